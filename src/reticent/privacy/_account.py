"""The account of a plan: epsilon for delta, delta for epsilon, and its shares (docs/theory.md, Q4 to Q9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from reticent._check import Array, integer
from reticent.privacy._exposure import Exposure, exposure
from reticent.privacy._ledger import Curve, Fall, SystemAccount
from reticent.privacy._pld import Composed
from reticent.privacy._renyi import Renyi
from reticent.privacy._solve import check_delta, check_epsilon
from reticent.privacy._terms import bounds
from reticent.privacy._theorem import Theorem, theorem

if TYPE_CHECKING:
    from reticent.planning import Plan
    from reticent.planning._system import SystemPlan

METHODS = ("pld", "rdp", "theorem")


class Shares(NamedTuple):
    """The epsilon at one delta of each part alone, and of the whole; the parts do not add up to the whole."""

    draws: float
    later_coins: float
    special_coin: float
    whole: float


@dataclass(frozen=True)
class Account:
    """What a run can reveal about one round: the curve of (epsilon, delta), whichever the method.

    `method` is "pld" (exact composition, the one to rely on), "rdp" (Renyi divergences, a cross-check) or "theorem"
    (the paper's). `adversary` says who chooses the losses: "adaptive", from the decisions released so far, or
    "oblivious", in advance (docs/theory.md, Q0).
    """

    method: str
    adversary: str
    neighbors: str
    rounds: int
    exposure: Exposure
    stated: Theorem | None = None

    @property
    def draws(self) -> int:
        """The largest number of draws after a changed round."""
        return self.exposure.draws

    @property
    def coins(self) -> int:
        """The largest number of coins from the changed batch on."""
        return self.exposure.later + self.exposure.special

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`; infinity if there is none.

        >>> import reticent as rt
        >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
        >>> from reticent.privacy import account
        >>> 0.5 < account(plan).epsilon(1e-6) < account(plan, method="rdp").epsilon(1e-6)
        True
        """
        goal = check_delta(delta)
        if self.stated is not None:
            return self.stated.epsilon(goal)
        return min(curve.epsilon(goal) for curve in self._curves)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`."""
        level = check_epsilon(epsilon)
        if self.stated is not None:
            return self.stated.delta(level)
        return min(curve.delta(level) for curve in self._curves)

    def curve(self, epsilons: Sequence[float] | Array | None = None, points: int = 100) -> Curve:
        """Return the trade-off at `epsilons`, or at `points` of them from 0 to where delta is 1e-12.

        The paper's theorem ends at the smallest delta that it allows.
        """
        if epsilons is None:
            top = self.epsilon(1e-12) if self.stated is None else self.stated.epsilon(self.stated.least)
            levels = np.linspace(0.0, top if np.isfinite(top) else 50.0, integer("points", points, least=2))
        else:
            levels = np.asarray(epsilons, dtype=np.float64)
        return Curve(levels, np.array([self.delta(float(level)) for level in levels]))

    def shares(self, delta: float) -> Shares:
        """Return how much of epsilon at `delta` the draws, the later coins and the special coin take, each alone."""
        if self.stated is not None:
            raise ValueError("the paper's theorem has no shares; ask account(plan, method='pld').shares(delta)")
        alone = (
            replace(self.exposure, later=0, special=False),
            replace(self.exposure, draws=0, special=False),
            replace(self.exposure, draws=0, later=0),
        )
        draws, later, special = (replace(self, exposure=part).epsilon(delta) for part in alone)
        return Shares(draws, later, special, self.epsilon(delta))

    @cached_property
    def _curves(self) -> list[Fall]:
        kind = Renyi if self.method == "rdp" else Composed
        return [Fall(kind(bound), bound.failure) for bound in bounds(self.exposure, self.adversary)]

    def __str__(self) -> str:
        """Say what the account covers, with a few of its values."""
        who = "react to released decisions" if self.adversary == "adaptive" else "are fixed in advance"
        change = "is replaced by another" if self.neighbors == "replace" else "is replaced by a constant"
        lines = [
            f"Account ({self.method}) of {self.rounds} rounds, where losses {who} and one round {change}:",
            f"  at most {self.draws} draws and {self.coins} coins can tell of it",
        ]
        for delta in (1e-5, 1e-6, 1e-8):
            if self.stated is None or self.stated.least <= delta:
                lines.append(f"  epsilon = {self.epsilon(delta):.4g} at delta = {delta:g}")
        return "\n".join(lines)


@overload
def account(plan: Plan, method: str = "pld") -> Account: ...
@overload
def account(plan: SystemPlan) -> SystemAccount: ...
def account(plan: Plan | SystemPlan, method: str = "pld") -> Account | SystemAccount:
    """Return what a whole run of `plan` can reveal about any one round.

    The plan need not claim privacy: one that is written by hand can be accounted. One with `horizon=None` has an
    account for each epoch, `account(plan.epoch(k))`, and the run that of the worst epoch (docs/theory.md, P8).
    Draws that may be inexact (`plan.distance`) are paid for (docs/theory.md, Q5): private plans allow exact ones only.

    >>> import reticent as rt
    >>> plan = rt.theorem_private(rt.Ball(2), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> account(plan).epsilon(1e-6) < 0.1 < account(plan, method="theorem").epsilon(1e-6)
    True
    """
    return _spent(plan, None, method)


@overload
def spent(plan: Plan, rounds: int | None, method: str = "pld") -> Account: ...
@overload
def spent(plan: SystemPlan, rounds: int | None) -> SystemAccount: ...
def spent(plan: Plan | SystemPlan, rounds: int | None, method: str = "pld") -> Account | SystemAccount:
    """Return what the first `rounds` rounds of a run can have revealed: the odometer (docs/theory.md, Q7).

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
    return _spent(plan, rounds, method)


def _spent(plan: Plan | SystemPlan, rounds: int | None, method: str) -> Account | SystemAccount:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    from reticent.planning._system import SystemPlan

    if isinstance(plan, SystemPlan):
        return plan.account(rounds)
    found = exposure(plan, rounds)
    if rounds is not None and plan.horizon is not None and rounds > plan.horizon:
        raise ValueError(f"rounds must be at most the horizon of {plan.horizon}, got {rounds}; plan a longer horizon")
    count = plan.horizon if rounds is None else rounds
    assert count is not None
    if method == "theorem":
        # The theorem says nothing of a part of the run but what it says of the whole.
        return Account(method, "oblivious", plan.neighbors, count, found, theorem(plan))
    return Account(method, plan.adversary, plan.neighbors, count, found)
