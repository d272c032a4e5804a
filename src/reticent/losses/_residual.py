"""The family of losses of a residual: real targets, margin `a @ x - y`."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.losses._glm import GeneralisedLinear
from reticent.losses._rows import Rows


class Residual(GeneralisedLinear):
    """A loss of how far the prediction `a @ x` lies above the target `y`."""

    def _targets(self, targets: Array) -> Array:
        return targets

    def _normal(self, vectors: Array, offsets: Array, targets: Array) -> Rows:
        with np.errstate(over="ignore"):
            shifted = offsets - targets
        if not np.isfinite(shifted).all():
            row = int(np.argmin(np.isfinite(shifted)))
            raise ValueError(
                f"targets must be small enough to subtract in double precision, got {targets[row]} in row {row}"
            )
        return Rows(vectors, shifted)
