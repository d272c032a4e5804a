"""The history of a custom loss: the objects themselves, read through the caller's functions."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
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

    def value(self, u: Array) -> float:
        """Return the sum of the losses at the chart point u."""
        x = self.domain.from_chart(u)
        return float(sum(s * float(self.loss.value(x, item)) for s, item in zip(self.scales, self.items, strict=True)))

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """Return the sum of the losses at the chart point u and a subgradient of it; every row is checked."""
        x = self.domain.from_chart(u)
        total, slope = 0.0, np.zeros(self.domain.dim)
        for item, scale, bound in zip(self.items, self.scales, self.bounds, strict=True):
            value, gradient = self.loss.look(self.domain, x, item, bound / scale if scale > 0 else np.inf)
            total += scale * value
            slope += scale * gradient
        return total, self.domain.pull(slope[None])[0][0]
