"""Perturbed regularised leaders: private (Agarwal et al. 2023), and lazy without privacy (Sherman and Koren 2021)."""

from __future__ import annotations

from typing import Any, ClassVar

from reticent.losses import Linear
from reticent.losses._gate import Gate
from reticent.planning._perturbed_lazy import ShermanKorenPlan
from reticent.planning._perturbed_objective import ObjectivePlan
from reticent.planning._system import SystemPlan

from ._perturbed_gate import SmoothGate, limit_inbox
from ._perturbed_walk import PerturbedWalk, ReflectedWalk
from ._system import SystemLearner


class ObjectivePerturbation(SystemLearner):
    """Plays a private minimiser of the past losses plus random linear term, and keeps it as long as a coin allows.

    Algorithm: x = argmin over K of F(x) + lam/2 |x|^2 + Z.x, Z ~ N(0, sigma^2 I). When a loss l arrives, keeping x is
    moving Z to Z - grad l(x); r is the ratio of densities, next over present, there, with the determinant
    1 + phi'' a'Ma. Keep with probability (1-p) clip(r/phi, phi^-2, 1), else draw Z afresh, at most `budget` times.
    Theorem: differentially private for losses that may react to decisions, even if Z were released; regret and switches
    as certified for losses that do not (docs/theory.md, R5). Assumes linear losses, or on balls and boxes smooth
    generalised linear ones (`Logistic`, `Squared`, `Huber`) with second derivatives up to `plan.smoothness` (rounds
    above it are refused), and exact minimisers: Newton's method goes on to the accuracy of the arithmetic.
    Cost: a switch takes passes over all past rounds, O(t d^2) each, but for `Linear` and `Squared`, which keep sums.
    Reference: Agarwal, Kale, Singh and Thakurta 2023; derived from the published idea, with an account of our own.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_objective(rt.Ball(2), 1000, 1.0, 1.0, 1e-6, smoothness=1.0)
    >>> learner = rt.learners.ObjectivePerturbation(plan, rt.Logistic(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)), np.ones(1000))
    >>> trace.switches <= plan.budget, learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ObjectivePlan

    def _new_gate(self) -> Gate:
        return SmoothGate(self.plan, self.loss, self._on_steep)

    def _new_walk(self) -> Any:
        limit_inbox(self._inbox, self.loss, self.plan.smoothness)
        plan = self.plan
        return PerturbedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam, plan.p, plan.phi, plan.budget)


class ShermanKoren(SystemLearner):
    """Plays a perturbed regularised leader that is kept as long as a coupling of its next law with the present allows.

    Algorithm: for linear losses the noisy sum W = S + Z is kept with probability min(1, next density/present density),
    else reflected about the hyperplane midway between the two means; x = argmin W.x + lam/2 |x|^2. For smooth losses
    the coin of `ObjectivePerturbation` with p = 0, without a budget. Theorem: expected switches and regret are as
    certified, for losses that do not react to decisions (docs/theory.md, R5). Assumes linear losses, or smooth
    generalised linear ones on balls and boxes. Not private.
    Reference: Sherman and Koren 2021; derived from the published idea.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_sherman_koren(rt.Ball(2), 1000, 1.0, 50)
    >>> learner = rt.learners.ShermanKoren(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> trace.switches < 100, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ShermanKorenPlan

    def _new_gate(self) -> Gate:
        return SmoothGate(self.plan, self.loss, self._on_steep)

    def _new_walk(self) -> Any:
        plan = self.plan
        if not plan.smoothness:
            assert isinstance(self.loss, Linear)
            return ReflectedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam)
        limit_inbox(self._inbox, self.loss, plan.smoothness)
        return PerturbedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam, 0.0, plan.phi, None)
