"""What a plan costs to run: operations over the horizon and numbers kept, as estimates good to a factor of ten."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Squared

if TYPE_CHECKING:
    from reticent.systems._plan import BasePlan

MOST_OPERATIONS = 1e13
"""What `best_plan` holds for too much: some hours to a day of one core."""


class Cost(NamedTuple):
    """Operations over the whole horizon, the most numbers that are kept at a time, and both in words.

    They are estimates, from how a system works and how often its decision changes in expectation: an order of
    magnitude, not a promise. Draws that a stream makes hard take more.
    """

    operations: float
    numbers: float
    words: str


# Constants are counts of passes over a vector, rounded up from the code of each kind.
_STEP = 10  # a round of a gradient method: margin, slope, sums, noise and the nearest point
_SOLVE = 10  # passes over the past by Newton's method, with a Hessian each, for one minimiser
_DRAWS = 4  # draws per change of decision: the decision, and those of coins that were looked at in vain
_TRIED = 10  # proposals per exact draw
_READ = 100  # past losses read by a draw that thins them
_KINKED = 1_000  # the same for losses with kinks in several dimensions
_CHAIN = 100  # passes over the past by a draw that knows a loss by its values only


def _steps(plan: BasePlan, loss: Loss) -> Cost:
    """Return the cost of a method that needs the gradient of each round once, and sums."""
    d = plan.domain.chart_dim
    return Cost(_STEP * _rounds(plan) * d, _STEP * d, "O(d) a round")


def _matrices(plan: BasePlan, loss: Loss) -> Cost:
    """Return the cost of a method that keeps a matrix, and factors it where the nearest point asks for that."""
    d = plan.domain.chart_dim
    return Cost(_STEP * _rounds(plan) * (d**2 + d**3 / 6), 2 * d**2, "O(d^2) a round, O(d^3) at the boundary")


def _solves(plan: BasePlan, loss: Loss) -> Cost:
    """Return the cost of a method that minimises the sum of all past losses anew at each change."""
    d, T = plan.domain.chart_dim, _rounds(plan)
    if isinstance(loss, Linear | Squared):
        return Cost(_STEP * T * d**2 + _changes(plan) * _SOLVE * d**3, 3 * d**2, "O(d^2) a round, O(d^3) a change")
    passes = _changes(plan) * _SOLVE * T / 2 * d**2
    return Cost(_STEP * T * d**2 + passes, T * (d + 1), "passes over the past at each change, O(t d^2) each")


def _draws(plan: BasePlan, loss: Loss) -> Cost:
    """Return the cost of a method whose decisions are draws given all past losses."""
    d, T, count = plan.domain.chart_dim, _rounds(plan), _DRAWS * _changes(plan)
    if isinstance(loss, Linear | Squared):
        return Cost(_STEP * T * d**2 + count * _TRIED * d**2, 3 * d**2, "O(d^2) a round and a draw")
    if isinstance(loss, Custom) or not isinstance(loss, GeneralisedLinear):
        return Cost(_STEP * T * d + count * _CHAIN * T / 2 * d, T * (d + 1), "passes over the past at each draw")
    read = _READ if loss.curved or d == 1 else _KINKED
    few = "a hundred" if read == _READ else "a thousand"
    # Envelopes are made anew as the past grows: some twenty times per doubling, by one pass each.
    made = _STEP * T * d**2 + count * _TRIED * (d**2 + read * d)
    return Cost(made, T * (d + 1), f"O(d^2) a round, some {few} past losses read at each draw")


def _rounds(plan: BasePlan) -> float:
    return float(plan.horizon or 0)


def _changes(plan: BasePlan) -> float:
    found = plan.expected_switches
    return _rounds(plan) if found is None else 1 + found


_KINDS: dict[str, Callable[[BasePlan, Loss], Cost]] = {
    "steps": _steps,
    "matrices": _matrices,
    "solves": _solves,
    "draws": _draws,
}


_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def in_short(cost: Cost, rounds: int) -> tuple[str, str]:
    """Return the operations of a round and the memory as texts for a table; a number takes eight bytes.

    >>> in_short(Cost(2.4e9, 4e7, ""), 1000), in_short(Cost(5e4, 20.0, ""), 1000)
    (('2e6', '320 MB'), ('50', '160 B'))
    """
    work = cost.operations / rounds
    digits, _, power = f"{work:.0e}".partition("e")
    size, unit = 8 * cost.numbers, 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{float(f'{work:.1g}'):,.4g}" if work < 1e4 else f"{digits}e{int(power)}", f"{size:.3g} {_UNITS[unit]}"


class _Changing(NamedTuple):
    """What the cost of a plan depends on."""

    domain: Domain
    horizon: int | None
    expected_switches: float


def affordable_switches(plan: BasePlan, loss: Loss, most: float) -> int | None:
    """Return how often a plan of this kind may change so that a run takes no more than `most` operations.

    None if so few changes help nothing: the rounds alone take that much.
    """
    none, one = (
        _KINDS[plan.work](cast("BasePlan", _Changing(plan.domain, plan.horizon, count)), loss).operations
        for count in (0.0, 1.0)
    )
    if one <= none or one > most:
        return None
    return math.floor((most - none) / (one - none) * (1 - 1e-9))


def cost_of(plan: BasePlan, loss: Loss) -> Cost:
    """Return the cost of a plan by the kind of its work, as `BasePlan.cost` does."""
    return _KINDS[plan.work](plan, loss)
