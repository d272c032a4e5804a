"""Follow the lazy leader over convex bodies (Kalai and Vempala 2005)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.losses import Rows
from reticent.planning._lazy_leader import LazyLeaderPlan
from reticent.planning._system import SystemPlan

from ._changes import Changes
from ._system import SystemLearner


class LazyLeader(SystemLearner):
    """Plays the best point for the sum of gradients rounded to a random grid: it changes with the cell of that sum.

    Algorithm: q uniform on [0, 1/scale]^d once; in the chart g_i = q_i + ceil(scale (s_i - q_i))/scale, s the sum of
    gradients; play the point of the body with the least (g - 1/(2 scale)).x. Theorem: the law of each decision is that
    of follow the perturbed leader with uniform noise around s; expected switches <= T min(1, scale sqrt(d) G), expected
    regret <= T G D min(1, scale sqrt(d) G) + (width of the noise)/scale (docs/theory.md, R5i). Assumes linear losses
    that do not react to decisions. Not private. Reference: Kalai and Vempala 2005, section 3 (FLL).

    >>> import reticent as rt
    >>> plan = rt.planning.plan_lazy_leader(rt.Ball(2), 1000, 1.0, max_switches=30)
    >>> learner = rt.learners.LazyLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> trace.switches < 60, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyLeaderPlan

    def _new_walk(self) -> Any:
        return _Cells(self.plan, self._rng)


class _Cells:
    def __init__(self, plan: LazyLeaderPlan, rng: np.random.Generator) -> None:
        from ._lazy_leader_kernel import lead  # numba loads on first use

        self.domain, self.scale = plan.domain, plan.scale
        d = plan.domain.chart_dim
        self.shift = rng.random(d) / plan.scale  # so that a sum of 0 is in cell 0
        self.total, self.cells = np.zeros(d), np.zeros(d)
        self.done, self.torn = 0, False
        first = np.empty(d)
        lead(self.domain.body, self.scale, self.shift, self.cells, first)
        self.u: Array = self._points(first[None])[0]

    @property
    def due(self) -> int:
        """The decision may change after every round."""
        return self.done + 1

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        from ._lazy_leader_kernel import follow

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
