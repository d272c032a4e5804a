"""The limit on the curvature of rounds, enforced before anything changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._check import Array
from reticent.losses import GeneralisedLinear, Loss, Rows
from reticent.losses._gate import Gate
from reticent.losses._limit import SLACK

from ._inbox import Inbox


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

    def _refuse_curved(self, rows: Rows, first: int) -> None:
        if not isinstance(self.loss, GeneralisedLinear):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            bends: Array = self.loss.rows_curvature(self.domain, rows)[1] * self.domain.lengths(rows.vectors) ** 2
        # Written so that a NaN counts as too much.
        curved = ~(bends <= self.smoothness * (1 + SLACK))
        if curved.any():
            row = int(np.argmax(curved))
            raise ValueError(
                f"row {first + row} has second derivatives up to {bends[row]:.6g}, above the plan's "
                f"smoothness={self.smoothness:.6g}; divide the features by a bound on their size that is public, or "
                "plan with a larger smoothness"
            )


def limit_inbox(inbox: Inbox, loss: Loss, smoothness: float) -> None:
    """Let rows pass the inbox at once only if their norm keeps their curvature within the limit at any margin."""
    if not isinstance(loss, GeneralisedLinear):
        return
    whole = loss.curvature_bounds(np.array([-np.inf]), np.array([np.inf]))[1]
    if np.isfinite(inbox.cap):
        inbox.most = min(inbox.most, smoothness / float(whole[0]))
    else:
        inbox.capacity = 0  # the margin decides on the slope of such rows: they all take the full check
