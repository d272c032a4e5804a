"""The history of a custom loss: the objects themselves, read through the caller's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, Objects
from reticent.losses._reader import Reader


class ObjectHistory:
    """Past rounds of a custom loss.

    What they are read with is made from them when it is needed: it is no part of the state.
    """

    def __init__(self, domain: Domain, loss: Custom) -> None:
        self.domain, self.loss = domain, loss
        self.items: list[object] = []
        self.scales: list[float] = []
        self.bounds: list[float] = []
        self._forget()

    def _forget(self) -> None:
        self._reader: Reader = self.loss.reader(self.domain)
        self._scales = self._limits = np.zeros(0)

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
        values = self._read().values(self.domain.from_chart(u))
        return float(_total(self._scales * values)) if len(self) else 0.0

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """Return the sum of the losses at the chart point u and a subgradient of it; every row is checked."""
        if not len(self):
            return 0.0, np.zeros(self.domain.chart_dim)
        values, slopes = self._read().both(self.domain.from_chart(u), self._limits)
        slope = _total(self._scales[:, None] * slopes)
        return float(_total(self._scales * values)), self.domain.pull(slope[None])[0][0]

    def _read(self) -> Reader:
        """Return the reader, with all rounds in it."""
        known = len(self._reader)
        if known < len(self):
            self._reader.add(self.items[known:])
            self._scales = np.array(self.scales)
            self._limits = np.full(len(self), np.inf)
            np.divide(self.bounds, self._scales, out=self._limits, where=self._scales > 0)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the rounds only."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with the rounds, none of them read."""
        vars(self).update(state)
        self._forget()


def _total(parts: Array) -> Array:
    """Return the sum of rows, added in their order whatever their number."""
    total: Array = np.cumsum(parts, axis=0)[-1]
    return total
