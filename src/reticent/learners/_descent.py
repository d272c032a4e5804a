"""Gradient methods that are not private: online gradient descent, blocked or not, and FTRL."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.losses import Loss
from reticent.planning._descent import DescentPlan, LeaderPlan
from reticent.planning._system import SystemPlan

from ._steps import StepWalk
from ._system import SystemLearner


class OnlineGradientDescent(SystemLearner):
    """Steps against the gradient, and back to the nearest point of the body; lazy in blocks (`plan.batch`).

    Algorithm: x_{k+1} = nearest(x_k - step * sum of the gradients, at x_k, of the rounds of block k).
    Theorem: regret <= R^2/(2 step) + step G^2 (sum of squared block lengths)/2, for losses that may react to decisions
    (docs/theory.md, R1). Assumes convex Lipschitz losses; neither smooth nor linear ones are needed. Not private.
    References: Zinkevich 2003; blocks: Merhav, Ordentlich, Seroussi and Weinberger 2002; Anava, Hazan and Mannor 2015.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Interval(-1.0, 1.0), 100, 1.0, max_switches=10)
    >>> learner = rt.learners.OnlineGradientDescent(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((100, 1)), np.full(100, 0.5))
    >>> trace.switches <= 10, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = DescentPlan

    def _new_walk(self) -> Any:
        return _Descent(self.plan, self.loss)


class _Descent(StepWalk):
    def __init__(self, plan: DescentPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss, plan.batch)
        self.step, self.count, self.total = plan.step, 0, np.zeros_like(self.u)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._descent_kernel import descend  # numba loads on first use

        self.count = descend(
            self.domain.body,
            code,
            self.reader.parameter,
            vectors,
            offsets,
            self.step,
            self.batch,
            self.count,
            self.total,
            self.u.copy(),
            after,
        )


class RegularisedLeader(SystemLearner):
    """Plays the least of the sum of all linearised losses plus a quadratic (FTRL, also known as dual averaging).

    Algorithm: x_{t+1} = nearest(-(g_1 + ... + g_t)/lam) around the centre, g_s a subgradient of loss s at x_s.
    Theorem: regret <= lam R^2/2 + T G^2/(2 lam), for losses that may react to decisions (docs/theory.md, R1). Assumes
    convex Lipschitz losses. Not private, not lazy. Reference: Hazan 2016, chapter 5.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_leader(rt.Ball(2), 1000, 1.0)
    >>> learner = rt.learners.RegularisedLeader(plan, rt.Linear())
    >>> float(learner.observe_many(np.tile([0.6, 0.8], (1000, 1))).regret()) <= plan.regret_bound
    True
    """

    plan_type: ClassVar[type[SystemPlan]] = LeaderPlan

    def _new_walk(self) -> Any:
        return _Leader(self.plan, self.loss)


class _Leader(StepWalk):
    def __init__(self, plan: LeaderPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss)
        self.lam, self.total = plan.lam, np.zeros_like(self.u)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._descent_kernel import lead

        lead(
            self.domain.body,
            code,
            self.reader.parameter,
            vectors,
            offsets,
            self.lam,
            self.total,
            self.u.copy(),
            after,
        )
