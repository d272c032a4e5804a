"""The family of losses of a label: targets -1 and +1, margin `y * (a @ x)`."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.losses._glm import GeneralisedLinear
from reticent.losses._rows import Rows


class Label(GeneralisedLinear):
    """A loss of how clearly the sign of the prediction `a @ x` agrees with the label `y`.

    Labels are -1 and +1; 0 and False are read as -1, True as +1.
    """

    def _targets(self, targets: Array) -> Array:
        known = (targets == 1) | (targets == -1) | (targets == 0)
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"targets must be labels -1 or +1 (or 0 for -1), got {targets[row]} in row {row}; "
                "map the two classes to -1 and +1"
            )
        return np.where(targets == 1, 1.0, -1.0)

    def _normal(self, vectors: Array, offsets: Array, targets: Array) -> Rows:
        if (targets == 1).all():
            return Rows(vectors, offsets)
        return Rows(vectors * targets[:, None], offsets * targets)
