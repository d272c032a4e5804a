"""Gates for plans that rest on smooth losses: rounds that bend too much are refused before anything is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects, Rows
from reticent.losses._custom import pulled_bend
from reticent.losses._differentiated import segments
from reticent.losses._gate import Gate
from reticent.losses._limit import SLACK
from reticent.systems._inbox import Inbox

_SEGMENTS = 3  # across the domain, between whose ends and middles gradients of a custom loss are compared
_ROOM = 1e-9  # relative room for rounding in a caller's functions, as for their slopes


@saved("smooth gate")
class SmoothGate(Gate):
    """A gate that also refuses rows whose second derivative exceeds the plan's smoothness somewhere on the domain.

    >>> import reticent as rt
    >>> from types import SimpleNamespace as Plain
    >>> gate = SmoothGate(Plain(domain=rt.Ball(1), lipschitz=9.0, smoothness=1.0), rt.Logistic(), "raise")
    >>> gate.prepare([[3.0]], [1.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: row 0 has second derivatives up to 2.25, above the plan's smoothness=1; divide ...
    """

    def __init__(self, plan: Any, loss: Loss, on_steep: str) -> None:
        super().__init__(plan.domain, loss, plan.lipschitz, on_steep)
        self.smoothness = plan.smoothness

    def prepare(self, *block: Any) -> list[Any]:
        """Return a block of rounds, checked, in parts; nothing is recorded."""
        parts = super().prepare(*block)
        first = 0
        for rows in parts:
            self._refuse_curved(rows, first)
            first += len(rows)
        return parts

    def _refuse_curved(self, rows: Any, first: int) -> None:
        if isinstance(self.loss, Custom) and self.loss.hessian is not None:
            for row in range(len(rows)):
                self._look_at(self.loss, rows, row, first + row)
        if not isinstance(self.loss, GeneralisedLinear):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            bends: Array = self._largest(self.loss, rows) * self.domain.lengths(rows.vectors) ** 2
        # Written so that a NaN counts as too much.
        curved = ~(bends <= self.smoothness * (1 + SLACK))
        if curved.any():
            row = int(np.argmax(curved))
            raise ValueError(
                f"row {first + row} has second derivatives up to {bends[row]:.6g}, above the plan's "
                f"smoothness={self.smoothness:.6g}; divide the features by a bound on their size that is public, or "
                "plan with a larger smoothness"
            )

    def _look_at(self, loss: Custom, rows: Objects, row: int, name: int) -> None:
        """Look at an object's Hessian at the centre, and at how its gradient turns between some points: a probe."""
        scale, item = float(rows.scales[row]), rows.items[row]
        points = segments(self.domain, _SEGMENTS).points  # type: ignore[arg-type]
        slopes = np.array([loss.look(self.domain, x, item, np.inf)[1] for x in points])
        pulled = scale * self.domain.pull(slopes)[0]
        check_turn(pulled, points, self.smoothness, name)  # distances are those of the chart
        bend = pulled_bend(self.domain, loss.bend(self.domain.center, item))
        check_bend(scale * bend[None], self.smoothness, name)

    def _largest(self, loss: GeneralisedLinear, rows: Rows) -> Array | float:
        """Return the largest second derivative of the profile of each row on the domain."""
        return loss.rows_curvature(self.domain, rows)[1]


@saved("smooth gate, everywhere")
class SmoothGateEverywhere(SmoothGate):
    """A gate that refuses rows whose second derivative exceeds the plan's smoothness anywhere, the domain or not.

    >>> import reticent as rt
    >>> from types import SimpleNamespace as Plain
    >>> plan = Plain(domain=rt.Ball(1, 0.1), lipschitz=9.0, smoothness=1.0)
    >>> SmoothGateEverywhere(plan, rt.Huber(), "raise").prepare([[1.1]], [9.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: row 0 has second derivatives up to 1.21, above the plan's smoothness=1; divide ...
    """

    def _largest(self, loss: GeneralisedLinear, rows: Rows) -> Array | float:
        return largest_bend(loss)


def check_bend(bends: Array, smoothness: float, first: int | None = None) -> None:
    """Refuse Hessians of custom losses with eigenvalues below 0 or above the smoothness; rows count from `first` on."""
    if not len(bends):
        return
    values = np.linalg.eigvalsh(bends)
    room = _ROOM * smoothness
    wrong = ~((values[:, 0] >= -room) & (values[:, -1] <= smoothness + room))
    if wrong.any():
        row = int(np.argmax(wrong))
        name = "a round" if first is None else f"row {first + row}"
        raise ValueError(
            f"{name} has second derivatives from {values[row, 0]:.10g} to {values[row, -1]:.10g}, and the plan is for "
            f"those from 0 to smoothness={smoothness:.10g}; plan with a larger smoothness, or scale the loss by a "
            "public factor"
        )


def check_turn(slopes: Array, points: Array, smoothness: float, row: int | None = None) -> None:
    """Refuse gradients that differ by more between two points than the smoothness allows: there may be a kink."""
    turns = np.linalg.norm(slopes[:, None] - slopes[None], axis=2)
    ways = np.linalg.norm(points[:, None] - points[None], axis=2)
    above = turns - smoothness * ways - _ROOM * (np.abs(slopes).max(initial=0.0) + smoothness * ways)
    if (above > 0).any():
        a, b = divmod(int(np.argmax(above)), len(points))
        name = "a round" if row is None else f"row {row}"
        raise ValueError(
            f"{name} has a gradient that turns by {turns[a, b]:.6g} over a distance of {ways[a, b]:.6g}, more than the "
            f"plan's smoothness={smoothness:.6g} allows; plan with a larger smoothness, and take a loss without kinks"
        )


def largest_bend(loss: GeneralisedLinear) -> float:
    """Return the largest second derivative of a profile at any margin.

    >>> from reticent.losses import Logistic
    >>> largest_bend(Logistic())
    0.25
    """
    return float(loss.curvature_bounds(np.array([-np.inf]), np.array([np.inf]))[1][0])


def limit_inbox(inbox: Inbox, loss: Loss, smoothness: float) -> None:
    """Let rows pass the inbox at once only if their norm keeps their curvature within the limit at any margin."""
    if not isinstance(loss, GeneralisedLinear):
        return
    if np.isfinite(inbox.cap):
        inbox.most = min(inbox.most, smoothness / largest_bend(loss))
    else:
        inbox.capacity = 0  # the margin decides on the slope of such rows: they all take the full check
