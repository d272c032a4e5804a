"""Descent on a grid: the learner, and the gate that looks at the curvature of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects
from reticent.losses._gate import Gate
from reticent.losses._limit import SCALE_DOWN
from reticent.saving import refuse_unless
from reticent.systems._decider import Changes, Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._smooth import SmoothGate
from reticent.systems._steps import LINEAR, StepWalk, gradient_at
from reticent.systems.grid_descent._plan import GridDescentPlan


@saved("descent on a grid")
class GridDescent(SystemLearner):
    """Plays a random corner of the grid cell that hidden descent is in: right in the mean, and seldom another.

    Algorithm: y = 0 (the centre); after round t, y = nearest(y - gradient at y/(h (t + offset))). In each epoch every
    side i of the box is cut into m_i equal parts, and U_i is uniform on [0, 1); the decision has the coordinates
    low_i + side_i ceil(m_i (y_i - low_i)/side_i - U_i)/m_i. Theorem: its mean is y, so a round of a smooth loss costs
    smoothness * (sum of squared parts)/8 more than at y, and it changes with a chance of sum_i |change of y_i|/part_i
    at most; regret is of the order of T/S^2 for S expected switches (docs/theory, R5k). Assumes strongly convex and
    smooth losses that do not react to decisions, on an interval or a box. Not private; no hard cap on switches.
    References: Sherman and Koren 2021 for the regime; Hazan, Agarwal and Kale 2007 for the steps. Derived.

    >>> import reticent as rt
    >>> curved = {"strong_convexity": 1.0, "smoothness": 1.0}
    >>> plan = rt.planning.plan_grid_descent(rt.Interval(-1.0, 1.0), 2000, 2.0, 60, **curved)
    >>> learner = rt.learners.GridDescent(plan, rt.Squared(), seed=1)
    >>> trace = learner.observe_many(np.ones((2000, 1)), np.where(np.arange(2000) % 3, 0.9, -0.3))
    >>> trace.switches < 100, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = GridDescentPlan

    def _new_gate(self) -> Gate:
        return StrongGate(self.plan, self.loss, self._on_steep)

    def _new_walk(self) -> Decider:
        self._inbox.capacity = 0  # it knows nothing of curvature: every row takes the full check
        return _GridWalk(self.plan, self.loss, self._rng)


@saved("strong gate")
class StrongGate(SmoothGate):
    """A gate that also refuses rows with less curvature than the plan's strong convexity; constants pass.

    >>> import reticent as rt
    >>> from types import SimpleNamespace as Plain
    >>> plan = Plain(domain=rt.Interval(-1, 1), lipschitz=4.0, smoothness=4.0, strong_convexity=1.0)
    >>> gate = StrongGate(plan, rt.Squared(), "raise")
    >>> [len(part) for part in gate.prepare([[1.0], [0.0]], [0.5, 0.5])]
    [2]
    >>> gate.prepare([[0.5]], [0.5])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: row 0 has second derivatives down to 0.25, below the plan's strong_convexity=1; plan ...
    """

    def __init__(self, plan: Any, loss: Loss, on_steep: str) -> None:
        super().__init__(plan, loss, on_steep)
        self.strong_convexity = plan.strong_convexity

    def _prepared(self, part: Sequence[Any], start: int) -> Any:
        """Return rows in normal form; do not advise scaling them down, which takes their curvature too."""
        try:
            return super()._prepared(part, start)
        except ValueError as error:
            raise ValueError(str(error).replace(SCALE_DOWN, "plan with a larger lipschitz")) from error

    def _refuse_scaled(self, rows: Objects, first: int) -> None:
        """Refuse custom losses that were scaled down: so was their strong convexity, which steps rest on."""
        scaled = rows.scales < 1
        if scaled.any():
            row = int(np.argmax(scaled))
            raise ValueError(
                f"row {first + row} is steeper than the plan's lipschitz={self.lipschitz:.6g}, and a custom loss that "
                f"is scaled down to it by {rows.scales[row]:.6g} may lack the plan's "
                f"strong_convexity={self.strong_convexity:.6g}; plan with a larger lipschitz"
            )

    def _refuse_curved(self, rows: Any, first: int) -> None:
        super()._refuse_curved(rows, first)
        if isinstance(rows, Objects):
            self._refuse_scaled(rows, first)
        if not isinstance(self.loss, GeneralisedLinear):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            least: Array = self.loss.rows_curvature(self.domain, rows)[0] * self.domain.lengths(rows.vectors) ** 2
        # Written so that a NaN counts as too little.
        flat = ~(least >= self.strong_convexity * (1 - 1e-9)) & rows.vectors.any(axis=1)
        if flat.any():
            row = int(np.argmax(flat))
            raise ValueError(
                f"row {first + row} has second derivatives down to {least[row]:.6g}, below the plan's "
                f"strong_convexity={self.strong_convexity:.6g}; plan with a smaller one, or take plan_descent in "
                "blocks, which needs no curvature"
            )


@saved("walk of descent on a grid")
class _GridWalk(StepWalk):
    _moves = ("state", "hidden", "shifts")

    def __init__(self, plan: GridDescentPlan, loss: Loss, rng: np.random.Generator) -> None:
        super().__init__(plan.domain, loss)
        self.convexity, self.offset = plan.strong_convexity, plan.offset
        self.ends, self.parts = np.cumsum(plan.lengths), plan.parts
        self.state = np.zeros(2, dtype=np.int64)  # the rounds that counted, and the epoch
        self.hidden = np.zeros_like(self.u)
        # The thresholds of all epochs: losses are fixed in advance, and nothing is private.
        self.shifts: Array = rng.random(self.parts.shape)
        self.u = self._placed()

    def _placed(self) -> Array:
        from reticent.systems.grid_descent._kernel import place  # numba loads on first use

        found, epoch = np.empty_like(self.hidden), int(self.state[1])
        place(self.domain.body, self.parts[epoch], self.shifts[epoch], self.hidden, found)
        return found

    def _check_moved(self) -> None:
        count, epoch = self.state.tolist()
        last = self.ends.size - 1
        right = 0 <= count <= self.done and epoch == min(int(np.searchsorted(self.ends, count, side="right")), last)
        refuse_unless(right, f"it stands in epoch {epoch} after {count} of {self.done} rounds")
        refuse_unless(bool(((self.shifts >= 0) & (self.shifts < 1)).all()), "its thresholds are not from 0 to 1")
        body = self.domain.body
        inside = bool(((self.hidden >= body.lo) & (self.hidden <= body.hi)).all())
        refuse_unless(inside and np.array_equal(self._placed(), self.u), "its decision is not that of its hidden point")

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; gradients of custom losses are taken at the hidden point."""
        if not isinstance(rows, Objects):
            super().take(rows, changes)
            return
        assert isinstance(self.loss, Custom)
        for i in range(len(rows)):
            if rows.bounds[i] == 0:  # a constant, as rounds of persons over their cap are: passed over
                self.done += 1
                continue
            gradient = gradient_at(self.domain, self.loss, rows, i, self.hidden)
            self._advance(LINEAR, np.ascontiguousarray(gradient[None]), np.zeros(1), changes)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.grid_descent._kernel import walk_grid

        walk_grid(
            *self._rows(code, vectors, offsets),
            self.convexity,
            self.offset,
            self.ends,
            self.parts,
            self.shifts,
            self.state,
            self.hidden,
            self.u.copy(),
            after,
        )
