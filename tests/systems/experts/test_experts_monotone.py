"""Asking for less never promises less over experts: certificates do not rise with epsilon, delta, switches, neighbours.

Planners search, so that two goals may end at slightly different places: `TOLERANCE` is what they may lose by that.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.planning import plan_agarwal_singh_experts, plan_drawn_leader, plan_private_dartboard

TOLERANCE = 1e-3
FOUND = (Phase.explicit, Phase.generate)  # a smaller example would take minutes of planning
PLANNERS = {
    "dartboard": plan_private_dartboard,
    "drawn leader": plan_drawn_leader,
    "weights on noisy sums": plan_agarwal_singh_experts,
}


@dataclass(frozen=True)
class Asked:
    """A goal for every private planner over experts."""

    n: int
    horizon: int
    epsilon: float
    delta: float
    max_switches: int | None = None
    neighbors: str = "replace"

    def bound(self, planner):
        goal = rt.Experts(self.n), self.horizon, 1.0, self.epsilon, self.delta
        return PLANNERS[planner](*goal, max_switches=self.max_switches, neighbors=self.neighbors).certified_regret


@st.composite
def pairs(draw):
    """A goal, and one that asks for less; few switches, which plans with few long blocks answer, as often as many."""
    horizon = int(10 ** draw(st.floats(2.0, 6.0)))
    few, many = st.integers(1, 8), st.floats(0.0, 1.0).map(lambda x: max(1, int(horizon**x)))
    asked = Asked(
        draw(st.sampled_from([2, 3, 5, 10, 49])),
        horizon,
        10 ** draw(st.floats(-2.0, 1.3)),
        10 ** draw(st.floats(-10.0, -3.0)),
        draw(st.one_of(st.none(), few, many)),
        draw(st.sampled_from(["replace", "zero-out"])),
    )
    ways = ["epsilon", "delta"]
    ways += ["switches", "drop"] if asked.max_switches is not None else []
    ways += ["neighbors"] if asked.neighbors == "replace" else []
    factor = draw(st.floats(1.01, 4.0))
    match draw(st.sampled_from(ways)):
        case "epsilon":
            return asked, replace(asked, epsilon=min(asked.epsilon * factor, 45.0))
        case "delta":
            return asked, replace(asked, delta=min(asked.delta * factor**2, 1e-2))
        case "switches":
            return asked, replace(asked, max_switches=int((asked.max_switches or 0) * factor) + 1)
        case "drop":
            return asked, replace(asked, max_switches=None)
        case _:
            return asked, replace(asked, neighbors="zero-out")


def check(planner, asked, less, tolerance=TOLERANCE):
    assert less.bound(planner) <= asked.bound(planner) * (1 + tolerance)


@pytest.mark.parametrize("planner", PLANNERS)
@settings(max_examples=6, derandomize=True, deadline=None, phases=FOUND)
@given(pair=pairs())
def test_asking_for_less_promises_no_less(planner, pair):
    check(planner, *pair)


@pytest.mark.slow
@pytest.mark.parametrize("planner", PLANNERS)
@settings(max_examples=120, derandomize=True, deadline=None, phases=FOUND)
@given(pair=pairs())
def test_asking_for_less_promises_no_less_at_length(planner, pair):
    check(planner, *pair)


def test_dartboards_with_few_draws_that_more_epsilon_made_worse():
    # A round .6683 and .6901, .28786 and .28833, .7587 and 1.0446 while long batches were looked at by chance only.
    first = Asked(3, 3852, 0.2622, 2e-9, 1)
    check("dartboard", first, replace(first, epsilon=1.3 * 0.2622))
    assert first.bound("dartboard") < 0.525 * 3852
    second = Asked(3, 21_382, 0.532, 2e-9, 5)
    check("dartboard", second, replace(second, epsilon=1.3 * 0.532))
    third = Asked(10, 1941, 0.0614, 8.9e-8, 1)
    check("dartboard", third, replace(third, neighbors="zero-out"))
    short = Asked(2, 100, 1.0, 1e-10)  # 18.674 and 18.719 while beta stopped where the number of draws jumps
    check("dartboard", short, replace(short, epsilon=1.03125))
    free = Asked(3, 10**6, 8.735295824054594, 1e-10, 444_289, "zero-out")  # 741 and 752 from a start with p = 1
    check("dartboard", free, replace(free, max_switches=None))
