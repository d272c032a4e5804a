"""The private approximate leader, after Smith and Thakurta 2013."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.losses import Loss
from reticent.planning._approximate_leader import ApproximateLeaderPlan
from reticent.planning._system import SystemPlan

from ._steps import StepWalk
from ._system import SystemLearner

_LEVELS = 64  # more rounds than 2^64 no one will see


class ApproximateLeader(SystemLearner):
    """Plays the least of quadratic lower bounds of all losses so far; the sums of gradients carry tree noise.

    Algorithm: x_{t+1} = argmin over K of sum_{s<=t} [<g_s, x> + h/2 |x - x_s|^2 + a/2 |x|^2] + <N_t, x> from x_1 = 0
    (the centre), g_s a subgradient of loss s at the released x_s, h its strong convexity (0 in general), a the
    curvature added, N_t the noise of the nodes of a binary tree that the first t rounds consist of.
    Theorem: the run is mu-GDP with mu = Delta sqrt(floor(log2 T) + 1)/sigma; regret <= a T R^2/2 + G^2/(2(h+a)) + sum
    over t < T of (G^2/2 + G E|N_t|)/(h + (h+a)t), both for losses that may react to decisions (docs/theory.md, R3).
    Assumes convex Lipschitz losses, and those of `strong_convexity` h if the plan has it. Not lazy.
    Derived from the published idea: constants are those of the proof here.
    Reference: Smith and Thakurta 2013, (Nearly) optimal algorithms for private online learning.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_approximate_leader(rt.Ball(2), 1000, 1.0, epsilon=10.0, delta=1e-6)
    >>> learner = rt.learners.ApproximateLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> float(trace.regret()) <= plan.regret_bound, learner.spent() <= 10.0 + 1e-6
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ApproximateLeaderPlan

    def _new_walk(self) -> Any:
        return _Leader(self.plan, self.loss, self._rng)


class _Leader(StepWalk):
    """Sums of gradients and noise apart are as secret as the data; only together they are released."""

    def __init__(self, plan: ApproximateLeaderPlan, loss: Loss, rng: np.random.Generator) -> None:
        super().__init__(plan.domain, loss)
        self.strong, self.added, self.noise, self.rng = plan.strong_convexity, plan.added, plan.noise, rng
        self.total, self.visited = np.zeros_like(self.u), np.zeros_like(self.u)
        self.sums = np.zeros((_LEVELS, self.u.size))

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._leader_kernel import follow  # numba loads on first use

        follow(
            self.rng,
            self.domain.body,
            code,
            self.reader.parameter,
            vectors,
            offsets,
            self.strong,
            self.added,
            self.noise,
            self.done,
            self.total,
            self.visited,
            self.sums,
            self.u.copy(),
            after,
        )
