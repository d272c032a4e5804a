"""Private implicit gradient descent, after Jain, Kothari and Thakurta 2012."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.losses import Loss
from reticent.planning._implicit import ImplicitPlan
from reticent.planning._system import SystemPlan

from ._steps import StepWalk
from ._system import SystemLearner


class PrivateImplicitDescent(SystemLearner):
    """Moves a hidden iterate by implicit gradient steps; each decision is that iterate with fresh Gaussian noise.

    Algorithm: w_{t+1} = argmin over K of |w - w_t|^2/2 + (l_t(w) + alpha/2 |w|^2)/(alpha t) from w_1 = 0 (the centre),
    and x_t = nearest(w_t + sigma_t z_t) with z_t standard normal; the noise is not fed back.
    Theorem: iterates of neighbouring streams are at most Delta/(alpha t) apart, so that the run is mu-GDP with mu^2 the
    sum of (Delta/(alpha t sigma_t))^2; regret <= alpha (T+1) R^2/2 + G^2 (1 + ... + 1/T)/(2 alpha) + G E|z| (sum of the
    sigma_t), both for losses that may react to decisions (docs/theory.md, R3). Assumes convex Lipschitz losses, linear
    or generalised linear (the step minimises the loss, not its gradient); smoothness is not needed. Not lazy.
    Derived from the published idea: steps, noise and constants are those of the proof here.
    Reference: Jain, Kothari and Thakurta 2012, Differentially private online learning.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_implicit(rt.Ball(2), 1000, 1.0, epsilon=10.0, delta=1e-6)
    >>> learner = rt.learners.PrivateImplicitDescent(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)), np.full(1000, 0.5))
    >>> float(trace.regret()) <= plan.regret_bound, learner.spent() <= 10.0 + 1e-6
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ImplicitPlan

    def _new_walk(self) -> Any:
        return _Implicit(self.plan, self.loss, self._rng)


class _Implicit(StepWalk):
    """The iterate `w` is as secret as the data."""

    def __init__(self, plan: ImplicitPlan, loss: Loss, rng: np.random.Generator) -> None:
        super().__init__(plan.domain, loss)
        self.alpha, self.noise, self.knee, self.rng = plan.alpha, plan.noise, plan.knee, rng
        self.w = np.zeros_like(self.u)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._implicit_kernel import step_implicitly  # numba loads on first use

        step_implicitly(
            self.rng,
            self.domain.body,
            code,
            self.reader.parameter,
            vectors,
            offsets,
            self.alpha,
            self.noise,
            self.knee,
            self.done,
            self.w,
            after,
        )
