"""Follow the lazy leader over convex bodies, for linear losses (Kalai and Vempala 2005)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Linear, Loss, Rows
from reticent.systems._checks import check_body
from reticent.systems._decider import Batched, Changes, Decider
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan


@saved("plan of FLL")
@dataclass(frozen=True, kw_only=True)
class LazyLeaderPlan(SystemPlan):
    """Follow the lazy leader: the sum of gradients is seen through a grid of cells of side 1/`scale`, shifted once.

    The decision is the least point of a perturbed sum, and changes where the sum enters another cell: with a chance of
    at most scale * |g|_1 per round. Expected regret is at most T G D min(1, scale sqrt(d) G) plus the expected width
    of the noise over the body (docs/theory, R5i).

    >>> from reticent.domains import Ball
    >>> plan = plan_lazy_leader(Ball(2), 10_000, 1.0, max_switches=50)
    >>> round(plan.expected_switches, 6), plan.vacuous
    (50.0, False)
    """

    system: ClassVar[str] = _names.FLL
    reference: ClassVar[str] = "Kalai and Vempala 2005"
    assumes: ClassVar[str] = "linear losses"
    adversary: ClassVar[str] = "oblivious"

    scale: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(scale=positive("scale", self.scale))

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not linear."""
        if not isinstance(loss, Linear):
            raise ValueError(
                f"LazyLeader needs Linear losses, got {loss!r}: gradients taken at its own decisions would react to "
                "them; PCOMW is lazy for any convex loss"
            )

    @property
    def chance(self) -> float:
        """The chance of a change per round, at most."""
        return min(1.0, self.scale * math.sqrt(self.domain.chart_dim) * self.lipschitz)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5i."""
        stability = self.horizon * self.lipschitz * self.domain.diameter * self.chance
        return stability + noise_width(self.domain) / self.scale

    @property
    def expected_switches(self) -> float:
        """The chance of a change, in every round."""
        return self.horizon * self.chance


def noise_width(domain: Domain) -> float:
    """Return a bound on E max over the body of -u.x, u uniform on [-1/2, 1/2]^d in the chart.

    >>> from reticent.domains import Interval
    >>> noise_width(Interval(-1.0, 1.0))
    0.25
    """
    width = domain.radius * math.sqrt(domain.chart_dim / 12)
    # The box around the body has E|u_i| = 1/4 for each half-width; a body's own box need not be symmetric.
    lo, hi = domain.body.lo, domain.body.hi
    return min(width, float((hi - lo).sum()) / 8 if domain.body.box else math.inf)


def plan_lazy_leader(
    domain: Domain, horizon: int, lipschitz: float, *, max_switches: int | None = None
) -> LazyLeaderPlan:
    """Return follow the lazy leader with the best grid, coarser if `max_switches`, in expectation, asks for it.

    >>> from reticent.domains import Ball
    >>> plan_lazy_leader(Ball(2), 10_000, 1.0).regret_bound < 250
    True
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    root = math.sqrt(domain.chart_dim)
    scale = math.sqrt(noise_width(domain) / (T * G**2 * root * domain.diameter))
    if max_switches is not None:
        # A little less, so that rounding never shows more switches than that.
        scale = min(scale, (1 - 1e-12) * integer("max_switches", max_switches, least=1) / (T * root * G))
    return LazyLeaderPlan(domain, T, G, scale=scale)


def _lazy_leader(goal: Goal) -> LazyLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("needs linear losses")
    goal.need_a_switch()
    return plan_lazy_leader(*goal.size, max_switches=goal.max_switches)


SYSTEMS = (System(LazyLeaderPlan.system, _lazy_leader, lazy=True),)


# Follow the lazy leader over convex bodies (Kalai and Vempala 2005).


@saved("FLL")
class LazyLeader(SystemLearner):
    """Plays the best point for the sum of gradients rounded to a random grid: it changes with the cell of that sum.

    Algorithm: q uniform on [0, 1/scale]^d once; in the chart g_i = q_i + ceil(scale (s_i - q_i))/scale, s the sum of
    gradients; play the point of the body with the least (g - 1/(2 scale)).x. Theorem: the law of each decision is that
    of follow the perturbed leader with uniform noise around s; expected switches <= T min(1, scale sqrt(d) G), expected
    regret <= T G D min(1, scale sqrt(d) G) + (width of the noise)/scale (docs/theory, R5i). Assumes linear losses
    that do not react to decisions. Not private. Reference: Kalai and Vempala 2005, section 3 (FLL).

    >>> import reticent as rt
    >>> plan = rt.planning.plan_lazy_leader(rt.Ball(2), 1000, 1.0, max_switches=30)
    >>> learner = rt.learners.LazyLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> trace.switches < 60, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyLeaderPlan

    def _new_walk(self) -> Decider:
        return _Cells(self.plan, self._rng)


@saved("walk of FLL")
class _Cells(Batched):
    _moves = ("shift", "total", "cells", "u")

    def __init__(self, plan: LazyLeaderPlan, rng: np.random.Generator) -> None:
        from reticent.systems.lazy_leader._kernel import lead  # numba loads on first use

        super().__init__()
        self.domain, self.scale = plan.domain, plan.scale
        d = plan.domain.chart_dim
        self.shift = rng.random(d) / plan.scale  # so that a sum of 0 is in cell 0
        self.total, self.cells = np.zeros(d), np.zeros(d)
        first = np.empty(d)
        lead(self.domain.body, self.scale, self.shift, self.cells, first)
        self.u: Array = self._points(first[None])[0]

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        from reticent.systems.lazy_leader._kernel import follow

        n, d = rows.vectors.shape
        places, points = np.empty(n, dtype=np.int64), np.empty((n, d))
        self.torn = True
        vectors = np.ascontiguousarray(rows.vectors)
        count = follow(self.domain.body, self.scale, self.shift, vectors, self.total, self.cells, places, points)
        after = self._points(points[:count])
        # Another cell may have the same least point.
        before = np.concatenate([self.u[None], after[:-1]]) if count else after
        other = (after != before).any(axis=1)
        if other.any():
            changes.add_many(places[:count][other] + self.done + 1, after[other])
            self.u = after[-1].copy()
        self.done += n
        self.torn = False

    def _points(self, directions: Array) -> Array:
        """Return the least point for each direction, where the body is of a shape that compiled code does not know."""
        if self.domain.body.ball or self.domain.body.box:
            return directions
        found = np.empty_like(directions)
        for i, slope in enumerate(directions):
            # The chart is an isometry: the slope as a function of the user's coordinates.
            found[i] = self.domain.to_chart(self.domain.support(self.domain.from_chart(slope) - self.domain.center))
        return found
