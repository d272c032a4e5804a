"""Perturbed leaders over experts: with fresh noise every round, or noise that is reused to switch rarely."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.planning._experts_leaders import ExpertsLazyLeaderPlan, LazyPerturbedPlan, PerturbedPlan
from reticent.planning._system import SystemPlan

from ._experts import ExpertsLearner
from ._experts_walk import Experts, ExpertsWalk


class PerturbedLeader(ExpertsLearner):
    """Follows the expert with the least sum of losses plus noise, drawn afresh in every round (FPL, FPL*).

    Theorem: expected regret <= c_n/rate + T G tanh(rate G/2) for two-sided exponential noise, c_n the mean of the
    largest of n such variables of rate 1; (1/2 - 1/(n+1))/rate + T G (1 - (1 - rate G)^(n-1)) for noise uniform on [0,
    1/rate] (docs/theory.md, R4: a sharper constant than that of the paper). For losses that do not react to decisions;
    linear, over experts. Not private, not lazy. Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_perturbed_leader(rt.Experts(3), 1000, 1.0)
    >>> learner = rt.learners.PerturbedLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = PerturbedPlan

    def _new_walk(self) -> Any:
        return _Perturbed(self.plan, self._rng)


class _Perturbed(ExpertsWalk):
    def __init__(self, plan: PerturbedPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.rate, self.flat = plan.rate, plan.noise == "uniform"
        self._start(int(rng.integers(plan.n)))  # sums of 0: all experts are alike

    def _play(self, vectors: Array, after: Experts) -> None:
        from ._experts_kernel import perturbed  # numba loads on first use

        perturbed(self.rng, self.rate, self.flat, vectors, self.sums, after)


class LazyLeaderStar(ExpertsLearner):
    """FLL*: noise makes up for each round, so that sums plus noise stay, unless a coin says no; then it is reflected.

    Algorithm: noise p with density proportional to exp(-rate |p|_1); after a round with losses s, p becomes p - s with
    probability min(1, density(p - s)/density(p)), else -p.
    Theorem: every round has the law of FPL with this noise, so its regret bound; expected switches <=
    T min(1 - exp(-a (n-1)), sqrt(1 - (1+a)^(2n-2) exp(-2a (n-1)))), a = rate G/2 (docs/theory.md, R4). For
    losses that do not react to decisions; linear, over experts. Not private.
    Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_lazy_leader_star(rt.Experts(3), 1000, 1.0, max_switches=20)
    >>> learner = rt.learners.LazyLeaderStar(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches < 20
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyPerturbedPlan

    def _new_walk(self) -> Any:
        return _Reflecting(self.plan, self._rng)


class _Reflecting(ExpertsWalk):
    def __init__(self, plan: LazyPerturbedPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.rate = plan.rate
        self.noise = (rng.standard_exponential(plan.n) - rng.standard_exponential(plan.n)) / plan.rate
        self._start(int(np.argmin(self.noise)))

    def _play(self, vectors: Array, after: Experts) -> None:
        from ._experts_kernel import reflecting

        reflecting(self.rng, self.rate, vectors, self.sums, self.noise, self.expert, after)


class ExpertsLazyLeader(ExpertsLearner):
    """FLL: follows the leader of the point just above the sums on a grid of side 1/rate, placed at random once.

    Algorithm: p uniform on [0, 1/rate)^n, once; the expert i with the least p_i + ceil(rate (S_i - p_i))/rate, S the
    sums of losses.
    Theorem: every round has the law of FPL with uniform noise, so its regret bound; expected switches <=
    T (1 - (1 - rate G)^(n-1)) (docs/theory.md, R4). For losses that do not react to decisions; linear, over experts.
    Not private. Reference: Kalai and Vempala 2005.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_experts_lazy_leader(rt.Experts(3), 1000, 1.0, max_switches=20)
    >>> learner = rt.learners.ExpertsLazyLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches < 20
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ExpertsLazyLeaderPlan

    def _new_walk(self) -> Any:
        return _Gridded(self.plan, self._rng)


class _Gridded(ExpertsWalk):
    def __init__(self, plan: ExpertsLazyLeaderPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.side = 1 / plan.rate
        self.grid = rng.random(plan.n) * self.side
        self.noise = self.grid.copy()
        self._start(int(np.argmin(self.grid)))

    def _play(self, vectors: Array, after: Experts) -> None:
        from ._experts_kernel import gridded

        gridded(self.side, vectors, self.grid, self.noise, self.expert, after)
