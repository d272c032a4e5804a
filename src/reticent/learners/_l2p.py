"""The lazy-to-private transformation (Asi et al. 2024), and the walk that it shares with flat weights."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.gibbs import Gibbs
from reticent.losses import Loss
from reticent.planning._coin_plan import CoinPlan
from reticent.planning._l2p import LazyToPrivatePlan
from reticent.planning._system import SystemPlan

from ._changes import Changes
from ._coin import Toss, _batches
from ._learner import NEVER
from ._system import SystemLearner


class LazyToPrivate(SystemLearner):
    """Plays draws of the Gibbs measure of the past, each kept as long as coins allow that compare it with a point y.

    Algorithm: nu_k has density proportional to exp(-beta (L_1 + ... + L_{k-1} + lam/2 |x|^2)), L_j the sum of the
    losses of batch j; x_1 is drawn from nu_1. After batch k the switch is forced with probability p; else x is kept
    with probability exp(beta (L_k(y) - L_k(x))) / phi, phi = exp(beta b G reach), which is
    nu_{k+1}(x) nu_k(y) / (phi nu_k(x) nu_{k+1}(y)): the integrals of the measures cancel. On a switch x is a fresh
    draw of nu_{k+1}. The point y is another draw, renewed with probability `plan.refresh`, or the centre
    (`plan.anchor`). After `plan.budget` switches the decision stays. A coin is looked at only where it may say
    "switch": a run costs O(switches + renewals) draws, all exact; one that is too hard raises `WorkLimitError`.

    Theorem (docs/theory.md, R6): for losses that do not depend on the decisions x_k ~ nu_k exactly, whatever y is, and
    regret is at most that of P6 without drift. A coin switches with probability 1 - (1-p) phi^-2 at most. Privacy holds
    for losses that react to decisions: draws of x and y are s-GDP each, s = Delta sqrt(beta/lam), coins after the
    changed batch cost nothing, and that of the changed batch once. Assumes convex Lipschitz losses; neither smooth nor
    linear ones are needed. Reference: Asi, Koren, Liu and Talwar 2024 (there y is always drawn; the centre is ours).

    What a private plan protects is the sequence of decisions; state, traces and running time are as secret as the data.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_l2p(rt.Ball(2), 2000, 1.0, epsilon=3.0, delta=1e-5, refresh="never")
    >>> learner = rt.learners.LazyToPrivate(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (2000, 1)))
    >>> trace.switches <= plan.budget, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 3.0
    (True, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyToPrivatePlan

    def _new_walk(self) -> Any:
        return _Compared(self.plan, self.loss, self._rng, self._on_steep)


class CoinWalk(ABC):
    """Decisions kept by coins that read nothing but the decision, the batch and what is public (or drawn beside it).

    Randomness is used when a coin is looked at and for finding the next one, never in between: so the decisions do not
    depend on how the rounds are cut into blocks. Coins that keep whatever the decision is are skipped
    (docs/theory.md, P5).
    """

    def __init__(self, plan: CoinPlan, lam: float, loss: Loss, rng: np.random.Generator, on_steep: str) -> None:
        self.rng, self.batch, self.budget = rng, plan.batch, plan.budget
        self.measure = Gibbs(
            plan.domain, loss, plan.beta, lam, lipschitz=plan.lipschitz, on_steep=on_steep, distance=0.0
        )
        self.beta = plan.beta
        self.open = -math.expm1(-plan.floor)  # the chance that a coin which is not forced has to be looked at
        self.look = plan.p + (1.0 - plan.p) * self.open
        self.forced = plan.p / self.look if self.look > 0.0 else 0.0
        self.done = 0
        self.spent = 0
        self.torn = False
        self._due = self._keep_from = NEVER
        self._toss: Toss | None = None
        self._kept: list[Any] = []
        self._verdict: bool | None = None
        self.u: Array = self._draw()
        self._schedule()

    @abstractmethod
    def _log_keep(self, rows: Any) -> float:
        """Return the logarithm of the chance to keep, at most 0, of a coin that is not forced; `rows` are its batch."""

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return self.spent >= self.budget

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when a coin has to be looked at next."""
        return self._due

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are added.

        If a draw fails, the rounds up to its coin have been taken in, and the next call goes on with that coin.
        """
        old = len(self._kept)
        try:
            self._settle(changes)
            start = 0
            while start < len(rows):
                stop = min(len(rows), start + self.due - self.done)
                self._absorb(rows[start:stop])
                start = stop
                self._settle(changes)
        finally:
            # Rounds kept for a later coin may be views of the caller's memory; those of earlier calls are copies.
            if len(self._kept) < old:
                old = 0
            self._kept[old:] = [part.copy() for part in self._kept[old:]]

    def _draw(self) -> Array:
        return self.measure.draw_in_chart(self.rng)[0]

    def _after(self, batches: int) -> int:
        return (self.done // self.batch + batches) * self.batch

    def _schedule(self) -> None:
        """Find the next coin that has to be looked at, and what is known of it beforehand."""
        self._kept, self._verdict, self._toss = [], None, None
        self._due = self._keep_from = NEVER
        if self.frozen or self.look == 0.0:
            return
        after, forced = _batches(self.rng.standard_exponential(), self.look), bool(self.rng.random() < self.forced)
        self._toss = Toss(after, forced, 0.0 if forced else 1.0 - self.open * self.rng.random())
        self._due = self._after(after)
        if not forced:
            self._keep_from = self._due - self.batch

    def _absorb(self, rows: Any) -> None:
        self.torn = True
        if not self.frozen:
            self.measure.add(rows)
        if self.done + len(rows) > self._keep_from:
            self._kept.append(rows[max(0, self._keep_from - self.done) :])
        self.done += len(rows)
        self.torn = False

    def _settle(self, changes: Changes) -> None:
        """Toss the coin if it is due, and draw afresh if it says so."""
        if self.done != self._due or self._toss is None:
            return
        if self._verdict is None:
            self._verdict = self._toss.forced or self._toss.level > math.exp(self._log_keep(self._joined()))
        if self._verdict:
            self.u = self._draw()
            self.spent += 1
            changes.add(self.done, self.u)
            if self.frozen:
                self.measure = self.measure.emptied()  # nothing will ever be drawn from it again
        self._schedule()

    def _joined(self) -> Any:
        return type(self._kept[0]).join(self._kept) if len(self._kept) > 1 else self._kept[0]

    def _losses(self, rows: Any, points: Array) -> Array:
        losses: Array = self.measure.loss.total(self.measure.domain, rows, points)
        return losses


class _Compared(CoinWalk):
    """The walk of lazy-to-private: coins compare the decision with y, which moves at times of its own."""

    def __init__(self, plan: LazyToPrivatePlan, loss: Loss, rng: np.random.Generator, on_steep: str) -> None:
        self.log_phi, self.refresh, self.left = plan.log_phi, plan.refresh, plan.refreshes
        self._renewal = NEVER
        super().__init__(plan, plan.lam, loss, rng, on_steep)
        self.y: Array = self._draw() if plan.anchor == "drawn" else np.zeros(plan.domain.chart_dim)
        self._schedule_renewal()

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when a coin is looked at, or y renewed, next."""
        return min(self._due, self._renewal)

    def _log_keep(self, rows: Any) -> float:
        losses = self._losses(rows, np.stack([self.y, self.u]))
        return self.beta * float(losses[0] - losses[1]) - self.log_phi

    def _schedule_renewal(self) -> None:
        """Find the next renewal: a geometric number of batches ahead, whatever the data are."""
        self._renewal = NEVER
        if self.left > 0 and self.refresh > 0.0 and not self.frozen:
            self._renewal = self._after(_batches(self.rng.standard_exponential(), self.refresh))

    def _settle(self, changes: Changes) -> None:
        super()._settle(changes)  # first, with the old y (docs/theory.md, R6)
        if self.frozen:
            self._renewal = NEVER
        if self.done == self._renewal:
            self.y = self._draw()
            self.left -= 1
            self._schedule_renewal()
