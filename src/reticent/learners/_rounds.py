"""Rounds as compiled steps read them: rows, the code of their loss, and margins from the kink."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Objects, Rows

LINEAR = -1
"""The code of linear losses, beside those of `reticent.losses._glm`."""


class Reader:
    """What compiled steps need to know of a loss; see `reticent.learners._slope_kernel`.

    >>> from reticent.losses import Hinge
    >>> reader = Reader(Hinge())
    >>> reader.plain(Rows(np.ones((1, 2)), np.zeros(1)))[1]
    array([-1.])
    """

    def __init__(self, loss: Loss) -> None:
        self.code, self.parameter, self.kink = LINEAR, 0.0, 0.0
        if isinstance(loss, GeneralisedLinear):
            self.code, self.parameter = loss.code, loss.parameter
            pieces = loss.pieces()
            # One break with a jump of the slope is a kink; kernels reckon margins from there.
            if pieces is not None and pieces[1].any():
                self.kink = float(pieces[0][0])
        elif not isinstance(loss, Linear | Custom):
            raise ValueError(f"no learner knows the loss {loss!r}; wrap it in Custom(value, subgradient)")

    def plain(self, rows: Rows) -> tuple[Array, Array]:
        """Return vectors and offsets, C-contiguous, with margins reckoned from the kink."""
        offsets = rows.offsets - self.kink if self.kink else rows.offsets
        return np.ascontiguousarray(rows.vectors), np.ascontiguousarray(offsets)


def gradient_at(domain: Domain, loss: Custom, rows: Objects, i: int, u: Array) -> Array:
    """Return the subgradient of object `i` at the chart point `u`, in the chart and checked."""
    scale, bound = float(rows.scales[i]), float(rows.bounds[i])
    _, slope = loss.look(domain, domain.from_chart(u), rows.items[i], bound / scale if scale > 0 else np.inf)
    pulled: Array = domain.pull(scale * slope[None])[0][0]
    return pulled
