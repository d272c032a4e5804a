"""Rows of a custom loss that are read again and again: all of them at one point, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from reticent._check import Array, real, vector
from reticent._norms import norms
from reticent.losses._rows import Charted

if TYPE_CHECKING:
    from reticent.losses._custom import Custom

_SLACK = 1e-9


class Reader(Protocol):
    """Rows, and their losses at a point; the numbers depend on the rows only, not on how they came in."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def add(self, items: Sequence[Any]) -> None:
        """Add rows."""

    def values(self, x: Array) -> Array:
        """Return the loss of each row at `x`, shape `(n,)`, all finite."""

    def both(self, x: Array, bounds: Array) -> tuple[Array, Array]:
        """Return values and subgradients, shape `(n, dim)`; all finite, none longer than the bound of its row."""


def checked(domain: Charted, x: Array, value: Any, slope: Any, bound: float) -> tuple[float, Array]:
    """Return value and subgradient of one row at `x`, both checked, the second against the bound."""
    height = real("the value of a custom loss", value)
    found = vector("the subgradient of a custom loss", slope, x.size)
    size = float(np.linalg.norm(domain.pull(found[None])[0]))
    if size > bound * (1 + _SLACK):
        raise ValueError(
            f"a custom loss has a subgradient of length {size:.6g} at {x}, above its declared Lipschitz constant "
            f"{bound:.6g}; declare a larger one in Custom(..., lipschitz=...)"
        )
    return height, found


def check_all(domain: Charted, x: Array, values: Array, slopes: Array, bounds: Array) -> None:
    """Check rows as `checked` does, all at once; what is not plainly good is left to it, to say what is wrong."""
    good = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    sizes = norms(domain.pull(np.where(good[:, None], slopes, 0.0))[0])
    for k in np.flatnonzero(~(good & (sizes <= bounds))):
        checked(domain, x, float(values[k]), slopes[k], float(bounds[k]))


class OneByOne:
    """Rows that a caller's functions are asked for one by one; see `Reader`."""

    def __init__(self, domain: Charted, loss: Custom) -> None:
        self.domain, self.loss = domain, loss
        self._items: list[Any] = []

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._items)

    def add(self, items: Sequence[Any]) -> None:
        """Add rows."""
        self._items += items

    def values(self, x: Array) -> Array:
        """Return the loss of each row at `x`, all finite."""
        return np.array([real("the value of a custom loss", self.loss.value(x, item)) for item in self._items])

    def both(self, x: Array, bounds: Array) -> tuple[Array, Array]:
        """Return values and subgradients, all checked."""
        found = [
            self.loss.look(self.domain, x, item, bound)
            for item, bound in zip(self._items, bounds.tolist(), strict=True)
        ]
        return np.array([value for value, _ in found]), np.array([slope for _, slope in found])
