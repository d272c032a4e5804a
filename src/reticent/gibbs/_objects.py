"""The history of a custom loss: the objects themselves, read through the caller's functions."""

from __future__ import annotations

import numpy as np

from reticent._check import Array, real, vector
from reticent.domains import Domain
from reticent.losses import Custom, Objects


class ObjectHistory:
    """Past rounds of a custom loss."""

    def __init__(self, domain: Domain, loss: Custom) -> None:
        self.domain, self.loss = domain, loss
        self.items: list[object] = []
        self.scales: list[float] = []
        self.bounds: list[float] = []

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.items)

    def add(self, rows: Objects) -> None:
        """Store objects."""
        self.items += rows.items
        self.scales += rows.scales.tolist()
        self.bounds += rows.bounds.tolist()

    def look(self, rows: Objects) -> None:
        """Look at each object once, at the centre: functions that do not work are found before anything is stored."""
        for item, scale, bound in zip(rows.items, rows.scales, rows.bounds, strict=True):
            self._look(self.domain.center, item, float(bound / scale) if scale > 0 else np.inf)

    def _look(self, x: Array, item: object, bound: float) -> tuple[float, Array]:
        value = real("the value of a custom loss", self.loss.value(x, item))
        slope = vector("the subgradient of a custom loss", self.loss.subgradient(x, item), x.size)
        size = float(np.linalg.norm(self.domain.pull(slope[None])[0]))
        if size > bound * (1 + 1e-9):
            raise ValueError(
                f"a custom loss has a subgradient of length {size:.6g} at {x}, above its declared Lipschitz constant "
                f"{bound:.6g}; declare a larger one in Custom(..., lipschitz=...)"
            )
        return value, slope

    def value(self, u: Array) -> float:
        """Return the sum of the losses at the chart point u."""
        x = self.domain.from_chart(u)
        return float(sum(s * float(self.loss.value(x, item)) for s, item in zip(self.scales, self.items, strict=True)))

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """Return the sum of the losses at the chart point u and a subgradient of it; every row is checked."""
        x = self.domain.from_chart(u)
        total, slope = 0.0, np.zeros(self.domain.dim)
        for item, scale, bound in zip(self.items, self.scales, self.bounds, strict=True):
            value, gradient = self._look(x, item, bound / scale if scale > 0 else np.inf)
            total += scale * value
            slope += scale * gradient
        return total, self.domain.pull(slope[None])[0][0]
