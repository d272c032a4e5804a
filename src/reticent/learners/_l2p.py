"""The lazy-to-private transformation (Asi et al. 2024)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.gibbs import Gibbs
from reticent.losses import Loss
from reticent.planning._coin_plan import CoinPlan
from reticent.planning._l2p import LazyToPrivatePlan
from reticent.planning._system import SystemPlan

from ._changes import Changes
from ._coin import KeepingCoin, batches_ahead
from ._learner import NEVER
from ._system import SystemLearner
from ._walk import Walk


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
        return _Compared(self.plan, exact_measure(self.plan, self.plan.lam, self.loss, self._on_steep), self._rng)


def exact_measure(plan: CoinPlan, lam: float, loss: Loss, on_steep: str) -> Gibbs:
    """Return the measure of a plan before any round, with exact draws only."""
    return Gibbs(plan.domain, loss, plan.beta, lam, lipschitz=plan.lipschitz, on_steep=on_steep, distance=0.0)


class ComparedCoin(KeepingCoin):
    """Keeps x with probability exp(beta (L(y) - L(x))) / phi, y a point that is the same in both worlds."""

    def __init__(self, plan: LazyToPrivatePlan) -> None:
        super().__init__(plan.p, plan.floor)
        self.beta, self.log_phi = plan.beta, plan.log_phi
        self.y: Array = np.zeros(plan.domain.chart_dim)

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep; it reads nothing of the past but the two points."""
        losses = measure.loss.total(measure.domain, rows, np.stack([self.y, u]))
        return math.exp(self.beta * float(losses[0] - losses[1]) - self.log_phi)


class _Compared(Walk):
    """The walk of lazy-to-private: y moves at times of its own."""

    def __init__(self, plan: LazyToPrivatePlan, measure: Gibbs, rng: np.random.Generator) -> None:
        self.refresh, self.left = plan.refresh, plan.refreshes
        self._renewal = NEVER
        coin = ComparedCoin(plan)
        super().__init__(plan, measure, rng, coin)
        self.compared = coin
        if plan.anchor == "drawn":
            self._renew()
        self._schedule_renewal()

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when a coin is looked at, or y renewed, next."""
        return min(self._coin_due, self._renewal)

    def _renew(self) -> None:
        self.compared.y = self.measure.draw_in_chart(self.rng)[0]

    def _schedule_renewal(self) -> None:
        """Find the next renewal: a geometric number of batches ahead, whatever the data are."""
        self._renewal = NEVER
        if self.left > 0 and self.refresh > 0.0 and not self.frozen:
            after = batches_ahead(self.rng.standard_exponential(), self.refresh)
            self._renewal = (self.done // self.batch + after) * self.batch

    def _settle(self, changes: Changes) -> None:
        super()._settle(changes)  # first, with the old y (docs/theory.md, R6)
        if self.frozen:
            self._renewal = NEVER
        if self.done == self._renewal:
            self._renew()
            self.left -= 1
            self._schedule_renewal()
