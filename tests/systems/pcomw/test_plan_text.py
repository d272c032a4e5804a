"""The printed plan says what is promised, and what is not."""

import pytest

from reticent.domains import Ball, Box
from reticent.planning import Plan, plan_lazy, theorem_lazy, theorem_private


def by_hand(**changes):
    return Plan(Ball(2), 1000, 1.0, **{"beta": 0.1, "lam": 3000.0, "p": 0.1, "phi": 1.25, **changes})


def row(plan, label):
    lines = [line for line in str(plan).splitlines() if line.startswith(f"{label:<20}")]
    assert len(lines) == 1, (label, str(plan))
    return lines[0][20:]


def test_every_parameter_has_a_row():
    made = by_hand(budget=70, batch=4, draws=3, expected_switches=50, regret_bound=123.4)
    assert row(made, "plan") == "written by hand"
    assert row(made, "domain") == "Ball(2, 1.0)"
    assert row(made, "horizon") == "1,000 rounds"
    assert row(made, "lipschitz") == "1"
    assert row(made, "beta") == "0.1"
    assert row(made, "lam") == "3,000"
    assert row(made, "p") == "0.1"
    assert row(made, "phi") == "1.25 (log phi 0.223144)"
    assert row(made, "budget") == "at most 70 switches"
    assert row(made, "batch") == "4 rounds per coin"
    assert row(made, "draws") == "3 auxiliary draws per coin that needs one"
    assert row(made, "expected switches") == "at most 50 (5% of the rounds)"
    assert row(made, "regret bound").startswith("123.4 (0.1234 per round)")


def test_privacy_is_said_in_plain_words():
    assert row(by_hand(), "privacy") == "none: this plan makes no privacy claim"
    assert "neighbors" not in str(by_hand())
    claimed = by_hand(epsilon=1.0, delta=1e-6, neighbors="zero-out", adversary="oblivious")
    assert row(claimed, "privacy") == "epsilon 1, delta 1e-06 (claimed by hand, not certified)"
    assert "replaced by a constant" in row(claimed, "neighbors")
    assert "must not depend on the decisions" in row(claimed, "adversary")
    proved = theorem_private(Ball(2), 10**4, 1.0, 1.0, 1e-6)
    assert row(proved, "privacy") == "epsilon 1, delta 1e-06"
    assert "must not depend on the decisions" in row(proved, "adversary")
    assert "after seeing the decisions" in row(by_hand(epsilon=1.0, delta=1e-6), "adversary")


def test_a_vacuous_bound_is_called_so_and_a_real_one_is_not():
    assert "vacuous" in str(by_hand(regret_bound=1000.0))
    said = " ".join(str(by_hand(regret_bound=2500.0)).split()).split("vacuous")[1]
    assert "staying at the centre satisfies lipschitz * radius * horizon = 1,000" in said
    assert "any decisions whatever lipschitz * diameter * horizon = 2,000" in said
    assert "vacuous" not in str(by_hand(regret_bound=999.0))
    assert "vacuous" in str(theorem_private(Ball(10), 10**6, 1.0, 1.0, 1e-6))
    assert "vacuous" not in str(theorem_private(Ball(1), 10**9, 1.0, 1.0, 1e-6))
    assert "vacuous" in str(theorem_lazy(Ball(10), 1000, 1.0, 10))


def test_an_unknown_horizon_is_explained():
    made = plan_lazy(Ball(1), None, 1.0, 20)
    assert "doubling epochs, the first of 1,024 rounds" in str(made)
    assert row(made, "expected switches") == "depends on the epoch: see plan.epoch(k)"
    assert "Every epoch switches in expectation at most 20 times" in str(made)
    assert "sqrt(T)/2" in str(theorem_private(Ball(1), None, 1.0, 1.0, 1e-6))


@pytest.mark.parametrize("made", [by_hand(remarks=("long " * 60,)), theorem_lazy(Box([0] * 3, [1] * 3), 9999, 1.0, 9)])
def test_lines_stay_short_and_aligned(made):
    for line in str(made).splitlines():
        assert len(line) <= 100
        assert line[19] == " "
        assert line[20] != " "
