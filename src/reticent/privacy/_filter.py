"""Whole runs and parts of them, asked of any plan: what they reveal, and whether more rounds would break a goal.

The odometer says what could have been revealed so far; the filter refuses rounds before they are taken if what they
could reveal breaks a goal (docs/theory, Q7). A plan is whatever can say what its rounds reveal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from reticent._core._check import integer
from reticent.privacy._account import METHODS, check_delta, check_epsilon


class Accountable(Protocol):
    """A plan, as far as this package knows it."""

    @property
    def horizon(self) -> int | None:
        """The rounds that it is for; None without an end."""

    @property
    def epsilon(self) -> float | None:
        """What it claims; None without a claim."""

    @property
    def delta(self) -> float | None:
        """What it claims; None without a claim."""

    def account(self, rounds: int | None = None, method: str = "pld") -> Any:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them."""

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what a run reveals."""

    def distribution(self, interval: float = 1e-4) -> Any:
        """Return a privacy loss distribution of dp_accounting for a whole run."""


# Certificates are computed to ten digits: a plan that spends its goal exactly must not be refused for the eleventh.
_ROUNDING = 1e-9


def account(plan: Accountable, method: str = "pld") -> Any:
    """Return what a whole run of `plan` can reveal about any one round.

    The plan need not claim privacy: one that is written by hand can be accounted. One with `horizon=None` has an
    account for each epoch, `account(plan.epoch(k))`, and the run that of the worst epoch (docs/theory, P8).
    Draws that may be inexact (`plan.distance`) are paid for (docs/theory, Q5): private plans allow exact ones only.

    >>> import reticent as rt
    >>> plan = rt.theorem_private(rt.Ball(2), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> account(plan).epsilon(1e-6) < 0.1 < account(plan, method="theorem").epsilon(1e-6)
    True
    """
    return spent(plan, None, method)


def spent(plan: Accountable, rounds: int | None, method: str = "pld") -> Any:
    """Return what the first `rounds` rounds of a run can have revealed: the odometer (docs/theory, Q7).

    It counts what could have happened by then, not what did: as many draws as the budget or the coins so far allow.
    It holds for a number of rounds that is fixed in advance. Who stops, or looks, at a time that depends on the
    decisions has the certificate of the latest time possible, `account(plan)`; the number of switches is no measure.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, batch=10, distance=0.0)
    >>> [spent(plan, rounds).epsilon(1e-6) for rounds in (0, 9)]
    [0.0, 0.0]
    >>> 0 < spent(plan, 10).epsilon(1e-6) < spent(plan, 1000).epsilon(1e-6) == account(plan).epsilon(1e-6)
    True
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    return plan.account(rounds, method)


def dp_event(plan: Accountable) -> Any:
    """Return stock dp_accounting events whose composition reveals at least as much as a run of `plan`.

    Use dp_accounting's default neighbouring relation: what neighbours are is in the events already, and REPLACE_ONE
    would double the sensitivity once more.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    >>> len(dp_event(plan).events)
    3
    """
    return plan.dp_event()


def distribution(plan: Accountable, interval: float = 1e-4) -> Any:
    """Return a dp_accounting PrivacyLossDistribution of a whole run, on the grid of `interval`, rounded upwards.

    It composes with other distributions of the same interval, and is the certificate for an adaptive adversary whatever
    `plan.adversary` is, a little larger than `account`: the special coin too is taken in its symmetric form.
    """
    return plan.distribution(interval)


def allowed(
    plan: Accountable, rounds: int, more: int = 1, *, epsilon: float | None = None, delta: float | None = None
) -> bool:
    """Say whether `more` rounds after `rounds` keep a run within (epsilon, delta), those of the plan unless given."""
    if plan.horizon is not None and rounds + more > plan.horizon:
        return False
    return _beyond(plan, rounds, more, epsilon, delta) is None


def require(
    plan: Accountable, rounds: int, more: int = 1, *, epsilon: float | None = None, delta: float | None = None
) -> None:
    """Refuse `more` rounds after `rounds` if they could break (epsilon, delta), those of the plan unless given.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
    >>> require(plan, 0, 10, epsilon=1.0, delta=1e-6)
    >>> require(plan, 10, 990, epsilon=1.0, delta=1e-6)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: 990 more rounds were requested, which could take epsilon from ... (spent in 10 rounds) to ...
    """
    found = _beyond(plan, rounds, more, epsilon, delta)
    if found is None:
        return
    before, after, goal, level = found
    raise ValueError(
        f"{more} more rounds were requested, which could take epsilon from {before:.4g} (spent in {rounds} rounds) to "
        f"{after:.4g}, more than the {goal:.4g} that is allowed at delta = {level:g}; nothing was drawn. Ask for fewer "
        "rounds, plan a lower budget or a longer horizon, or raise epsilon"
    )


@lru_cache(maxsize=64)
def rounds_within(plan: Accountable) -> int:
    """Return how many rounds of a private plan stay within the epsilon and delta that it claims, by the accountant.

    That is the horizon of every plan that a planner has made; one written by hand may claim too little.

    >>> import reticent as rt
    >>> modest = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, epsilon=0.5, delta=1e-6)
    >>> 0 < rounds_within(modest) < 1000
    True
    """
    assert plan.horizon is not None
    if allowed(plan, 0, plan.horizon):
        return plan.horizon
    # What is spent grows with the coins: the last number of them that fits, and all rounds before the next one.
    batch: int = getattr(plan, "batch", 1)
    low, high = 0, plan.horizon // batch
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(plan, 0, middle * batch) else (low, middle)
    return min(plan.horizon, (low + 1) * batch - 1)


def _beyond(
    plan: Accountable, rounds: int, more: int, epsilon: float | None, delta: float | None
) -> tuple[float, float, float, float] | None:
    goal, level = plan.epsilon if epsilon is None else epsilon, plan.delta if delta is None else delta
    if goal is None or level is None:
        raise ValueError(
            f"epsilon and delta must be given for a plan that makes no privacy claim, got epsilon={epsilon!r} and "
            f"delta={delta!r}"
        )
    goal, level = check_epsilon(goal), check_delta(level)
    total = integer("rounds", rounds, least=0) + integer("more", more, least=0)
    after = spent(plan, total).epsilon(level)
    return None if after <= goal * (1 + _ROUNDING) else (spent(plan, rounds).epsilon(level), after, goal, level)
