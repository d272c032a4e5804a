"""Noisy descent: decisions computed from the releases of the gate alone, by lazy dual averaging."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Loss
from reticent.systems._decider import Decider
from reticent.systems._plan import SystemPlan
from reticent.systems.gate._plan import NoisyDescentPlan
from reticent.systems.gate._walk import BlockWalk, GateLearner


@saved("noisy descent")
class NoisyDescent(GateLearner):
    """Plays dual averaging on block sums of gradients, each released once with noise; with or without a horizon.

    Algorithm: while block k lasts x_k is in play; at its end h_k = (sum of the gradients of its rounds at x_k, each
    clipped to G and rounded to integers on a public grid) + rounded normal noise is released, and
    x_{k+1} = nearest(-(h_1 + ... + h_k)/lam_{k+1}) around the centre. Memory O(d); no compiled code.
    Theorem (docs/theory, R8): mu-GDP with mu = 2G/sigma for replaced rounds and G/sigma for zeroed ones, for any number
    of rounds and for losses that react to decisions, in machine arithmetic; E regret <= lam R^2/2 + K V/(2 lam) for
    losses fixed in advance, V = W^2 G^2 + d sigma^2, K = T/W, and R sigma sqrt(K d) more for those that react. Without
    a horizon lam grows with the blocks: sqrt 2 times the best bound at every T. Assumes convex Lipschitz losses.
    References: Song, Chaudhuri and Sarwate 2013; Nesterov 2009; Xiao 2010.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Ball(2), None, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.NoisyDescent(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (20_000, 1)))
    >>> bool(trace.losses.mean() < -0.8), learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = NoisyDescentPlan

    def _new_walk(self) -> Decider:
        return DualAveraging(self.plan, self.loss, self._rng)


@saved("walk of noisy descent")
class DualAveraging(BlockWalk):
    """Steps on what the gate releases at the end of a block, and on nothing else."""

    _moves = ("released", "dual")

    def __init__(self, plan: NoisyDescentPlan, loss: Loss, rng: np.random.Generator) -> None:
        """Start at the centre."""
        super().__init__(plan.domain, loss, rng)
        self.plan, self.batch = plan, plan.batch
        self.release, self.lam = plan.release(), plan.first_lam
        self.released = np.zeros_like(self.open)  # the last release
        self.dual: Array = np.zeros_like(self.u)  # the sum of all releases

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the block ends."""
        return (self.done // self.batch + 1) * self.batch

    def _check_moved(self) -> None:
        self._check_open(self.done % self.batch)

    def _release(self) -> Array:
        self.released = self.release.released(self.open, self.rng)
        self.open = np.zeros_like(self.open)
        self.dual = self.dual + self.release.real(self.released)
        lam = self.lam * math.sqrt(self.done // self.batch + 1) if self.plan.horizon is None else self.lam
        return -self.dual / lam
