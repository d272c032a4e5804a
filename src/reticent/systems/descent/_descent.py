"""Gradient methods that are not private: online gradient descent, in blocks for laziness, and FTRL."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.saving import refuse_unless
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_body, check_firm, check_neighbors, least_batch
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk
from reticent.systems.gate import NoisyDescentPlan, plan_noisy_descent


@saved("plan of gradient descent")
@dataclass(frozen=True, kw_only=True)
class DescentPlan(SystemPlan):
    """Online gradient descent with steps of size `step` at the end of every `batch` rounds.

    The block's gradients, all taken at the decision in play, are summed (docs/theory, R1). Regret is at most
    R^2/(2 step) + step * sum of (block length)^2 * G^2 / 2.

    >>> from reticent.domains import Ball
    >>> round(plan_descent(Ball(3), 10_000, 1.0).regret_bound, 9)
    100.0
    """

    system: ClassVar[str] = _names.DESCENT
    reference: ClassVar[str] = "Zinkevich 2003; in blocks as in Merhav et al. 2002"

    step: float
    batch: int = 1

    def _check(self) -> None:
        check_body(self.domain)
        self._set(step=positive("step", self.step), batch=integer("batch", self.batch, least=1))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R1."""
        squares = block_squares(self.horizon, self.batch)
        return self.domain.radius**2 / (2 * self.step) + self.step * self.lipschitz**2 * squares / 2

    @property
    def max_switches(self) -> int:
        """One change after each full block."""
        return self.horizon // self.batch


@saved("plan of FTRL")
@dataclass(frozen=True, kw_only=True)
class LeaderPlan(SystemPlan):
    """Follow the regularised leader: the least of the sum of linearised losses plus `lam`/2 |x - center|^2.

    Regret is at most lam R^2 / 2 + T G^2 / (2 lam) (docs/theory, R1; Hazan 2016, chapter 5).

    >>> from reticent.domains import Ball
    >>> round(plan_leader(Ball(3), 10_000, 1.0).regret_bound, 9)
    100.0
    """

    system: ClassVar[str] = _names.FTRL
    reference: ClassVar[str] = "Shalev-Shwartz and Singer 2007; Hazan 2016"

    lam: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(lam=check_firm("lam", self.lam, self.domain, self.lipschitz))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R1."""
        return self.lam * self.domain.radius**2 / 2 + self.horizon * self.lipschitz**2 / (2 * self.lam)


@overload
def plan_descent(domain: Domain, horizon: int, lipschitz: float, *, max_switches: int | None = None) -> DescentPlan: ...


@overload
def plan_descent(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    *,
    epsilon: float,
    delta: float,
    max_switches: int | None = None,
    neighbors: str = "replace",
) -> NoisyDescentPlan: ...


def plan_descent(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
) -> DescentPlan | NoisyDescentPlan:
    """Return online gradient descent with the best step, in blocks if `max_switches` asks for it.

    Blocks are as short as the number of switches allows. It is a hard cap, and the guarantee holds for losses that
    react to decisions: G R sqrt(T b) with blocks of b rounds.

    With `epsilon` and `delta` it is private: the plan is that of `plan_noisy_descent`, which can do without a horizon.

    >>> from reticent.domains import Ball
    >>> plan = plan_descent(Ball(3), 10_000, 1.0, max_switches=100)
    >>> plan.batch, plan.max_switches
    (100, 100)
    >>> plan_descent(Ball(10), 10**6, 1.0, epsilon=1.0, delta=1e-6).system
    'noisy descent'
    """
    if epsilon is not None or delta is not None:
        if epsilon is None or delta is None:
            raise ValueError(
                f"epsilon and delta go together, got epsilon={epsilon!r} and delta={delta!r}; give both, or neither "
                "for descent without privacy"
            )
        return plan_noisy_descent(
            domain, horizon, lipschitz, epsilon, delta, max_switches=max_switches, neighbors=neighbors
        )
    check_body(domain)
    check_neighbors(neighbors)
    if horizon is None:
        raise ValueError(
            "horizon must be given for descent without privacy, got None; with epsilon and delta it can be left open"
        )
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    batch = least_batch(T, max_switches)
    step = domain.radius / (G * math.sqrt(block_squares(T, batch)))
    return DescentPlan(domain, T, G, step=step, batch=batch)


def plan_leader(domain: Domain, horizon: int, lipschitz: float) -> LeaderPlan:
    """Return FTRL with the best regulariser."""
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    return LeaderPlan(domain, T, G, lam=G * math.sqrt(T) / domain.radius)


def _descent(goal: Goal) -> DescentPlan:
    return plan_descent(*goal.size, max_switches=goal.max_switches)


def _leader(goal: Goal) -> LeaderPlan:
    return plan_leader(*goal.size)


SYSTEMS = (System(DescentPlan.system, _descent, lazy=True), System(LeaderPlan.system, _leader))


# Gradient methods that are not private: online gradient descent, blocked or not, and FTRL.


@saved("gradient descent")
class OnlineGradientDescent(SystemLearner):
    """Steps against the gradient, and back to the nearest point of the body; lazy in blocks (`plan.batch`).

    Algorithm: x_{k+1} = nearest(x_k - step * sum of the gradients, at x_k, of the rounds of block k).
    Theorem: regret <= R^2/(2 step) + step G^2 (sum of squared block lengths)/2, for losses that may react to decisions
    (docs/theory, R1). Assumes convex Lipschitz losses; neither smooth nor linear ones are needed. Not private.
    References: Zinkevich 2003; blocks as in Merhav, Ordentlich, Seroussi and Weinberger 2002, over experts.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Interval(-1.0, 1.0), 100, 1.0, max_switches=10)
    >>> learner = rt.learners.OnlineGradientDescent(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((100, 1)), np.full(100, 0.5))
    >>> trace.switches <= 10, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = DescentPlan

    def _new_walk(self) -> Decider:
        return _Descent(self.plan, self.loss)


@saved("walk of gradient descent")
class _Descent(StepWalk):
    _moves = ("count", "total")

    def __init__(self, plan: DescentPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss, plan.batch)
        self.step, self.count, self.total = plan.step, 0, np.zeros_like(self.u)

    def _check_moved(self) -> None:
        refuse_unless(self.count == self.done % self.batch, f"its open block has {self.count} rounds")

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.descent._kernel import descend  # numba loads on first use

        self.count = descend(
            *self._rows(code, vectors, offsets),
            self.step,
            self.batch,
            self.count,
            self.total,
            self.u.copy(),
            after,
        )


@saved("FTRL")
class RegularisedLeader(SystemLearner):
    """Plays the least of the sum of all linearised losses plus a quadratic (FTRL, also known as dual averaging).

    Algorithm: x_{t+1} = nearest(-(g_1 + ... + g_t)/lam) around the centre, g_s a subgradient of loss s at x_s.
    Theorem: regret <= lam R^2/2 + T G^2/(2 lam), for losses that may react to decisions (docs/theory, R1). Assumes
    convex Lipschitz losses. Not private, not lazy. Reference: Hazan 2016, chapter 5.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_leader(rt.Ball(2), 1000, 1.0)
    >>> learner = rt.learners.RegularisedLeader(plan, rt.Linear())
    >>> float(learner.observe_many(np.tile([0.6, 0.8], (1000, 1))).regret()) <= plan.regret_bound
    True
    """

    plan_type: ClassVar[type[SystemPlan]] = LeaderPlan

    def _new_walk(self) -> Decider:
        return LeaderWalk(self.plan, self.loss)


@saved("walk of FTRL")
class LeaderWalk(StepWalk):
    """The walk of FTRL: sums of gradients, and the point nearest to minus these over lam."""

    _moves = ("total",)

    def __init__(self, plan: LeaderPlan, loss: Loss) -> None:
        """Start at the centre."""
        super().__init__(plan.domain, loss)
        self.lam, self.total = plan.lam, np.zeros_like(self.u)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.descent._kernel import lead

        lead(
            *self._rows(code, vectors, offsets),
            self.lam,
            self.total,
            self.u.copy(),
            after,
        )
