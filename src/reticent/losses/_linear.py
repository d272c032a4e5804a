"""Linear losses: each round is a gradient vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, vector
from reticent._core._tags import saved
from reticent.losses._base import Charted, Loss, Rows, block, charted
from reticent.losses._limit import limited


@saved("linear")
@dataclass(frozen=True)
class Linear(Loss):
    """The loss `g @ x`, with the gradient `g` as the data of a round.

    >>> Linear().values([1.0, 2.0], [[1.0, 0.0], [1.0, 1.0]])
    array([1., 3.])
    """

    data: ClassVar[tuple[str, ...]] = ("gradients",)

    def values(self, x: ArrayLike, gradients: ArrayLike) -> Array:
        """Return `g @ x` for each gradient."""
        point = vector("x", x)
        result: Array = block("gradients", gradients, point.size) @ point
        return result

    def subgradients(self, x: ArrayLike, gradients: ArrayLike) -> Array:
        """Return a copy of the gradients; `x` gives the dimension only."""
        return np.array(block("gradients", gradients, vector("x", x).size))

    def lipschitz(self, domain: Charted, gradients: ArrayLike) -> Array:
        """Return the norm of each gradient along the domain."""
        return self.rows_lipschitz(domain, self.prepare(domain, gradients))

    def rows_lipschitz(self, domain: Charted, rows: Rows) -> Array:
        """Return the Lipschitz constant of each prepared row."""
        return domain.lengths(rows.vectors)

    def total(self, domain: Charted, rows: Rows, points: Array) -> Array:
        """Return the sum of prepared rows at each chart point, less that at the centre."""
        # Along rows in memory numpy adds in pairs, so that few digits are lost; along columns one after the other.
        result: Array = points @ np.ascontiguousarray(rows.vectors.T).sum(axis=1)
        return result

    def prepare(
        self,
        domain: Charted,
        gradients: ArrayLike,
        *,
        lipschitz: float | None = None,
        on_steep: str = "raise",
    ) -> Rows:
        """Return the gradients in the chart of the domain; `offsets` are the losses at its centre."""
        rows = self.assemble(domain, block("gradients", gradients, domain.dim))
        return limited(domain, rows, _unit_slope, lipschitz, on_steep)

    def assemble(self, domain: Charted, gradients: Array) -> Rows:
        """Bring gradients that are known to be good to the chart of the domain."""
        return Rows(*charted("gradients", domain, gradients))


def _unit_slope(low: Array, high: Array) -> Array:
    return np.ones_like(low)
