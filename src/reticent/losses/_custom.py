"""Losses that the caller writes: any convex function of the point and an object per round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, matrix, norms, positive, real, vector
from reticent._core._tags import saved
from reticent.losses._base import Charted, Loss
from reticent.losses._limit import SLACK, check_on_steep, refuse_steep

_SLACK = 1e-9


class KeptRows(Protocol):
    """Rows, and their losses at a point; the numbers depend on the rows only, not on how they came in."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def add(self, items: Sequence[Any]) -> None:
        """Add rows."""

    def values(self, x: Array) -> Array:
        """Return the loss of each row at `x`, shape `(n,)`, all finite."""

    def both(self, x: Array, bounds: Array) -> tuple[Array, Array]:
        """Return values and subgradients, shape `(n, dim)`; all finite, none longer than the bound of its row."""

    def bends(self, x: Array) -> Array:
        """Return the Hessians, shape `(n, dim, dim)`, all finite; of losses that have them only."""


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


def check_hessian(x: Array, bend: Any) -> Array:
    """Return the Hessian of one row at `x`, checked: a symmetric matrix of finite numbers."""
    found = matrix("the Hessian of a custom loss", bend, x.size)
    if len(found) != x.size or (np.abs(found - found.T) > _SLACK * np.abs(found).max()).any():
        raise ValueError(
            f"the Hessian of a custom loss must be a symmetric matrix with {x.size} rows, got "
            f"{np.array2string(found, threshold=9, precision=6)} at {x}"
        )
    return (found + found.T) / 2


def pulled_bend(domain: Charted, bend: Array) -> Array:
    """Return a matrix of second derivatives in the coordinates of the chart."""
    half = domain.pull(bend)[0]
    whole: Array = domain.pull(np.ascontiguousarray(half.T))[0]
    return whole


def check_all(domain: Charted, x: Array, values: Array, slopes: Array, bounds: Array) -> None:
    """Check rows as `checked` does, all at once; what is not plainly good is left to it, to say what is wrong."""
    good = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    sizes = norms(domain.pull(np.where(good[:, None], slopes, 0.0))[0])
    for k in np.flatnonzero(~(good & (sizes <= bounds))):
        checked(domain, x, float(values[k]), slopes[k], float(bounds[k]))


def rises_of(values: Array, bases: Array, limits: Array, distance: float) -> Array:
    """Return by how much losses rise over a distance from where they have the values `bases`, at most as is declared.

    What rounding makes of the difference of two large values may be anything; what it may move a sum by is this.

    >>> rises_of(np.array([1e20]), np.array([1.1e20]), np.array([2.0]), 0.5)
    array([-1.])
    """
    reach = limits * distance if distance > 0.0 else np.zeros(len(limits))
    rises: Array = np.clip(values - bases, -reach, reach)
    return rises


@saved("rows one by one")
class OneByOne:
    """Rows that a caller's functions are asked for one by one; see `KeptRows`."""

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

    def bends(self, x: Array) -> Array:
        """Return the Hessians, all finite."""
        return np.array([self.loss.bend(x, item) for item in self._items])


# Losses that the caller writes: any convex function of the point and an object per round.


@saved("objects")
@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """Rounds of a custom loss: the objects, a factor on the loss of each, and its Lipschitz constant then."""

    items: tuple[Any, ...]
    scales: Array
    bounds: Array

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.items)

    def __getitem__(self, part: slice) -> Objects:
        """Return some of the rounds."""
        return Objects(self.items[part], self.scales[part], self.bounds[part])

    @staticmethod
    def join(parts: Sequence[Objects]) -> Objects:
        """Return the rounds of several parts as one."""
        items = tuple(item for part in parts for item in part.items)
        return Objects(
            items, np.concatenate([part.scales for part in parts]), np.concatenate([part.bounds for part in parts])
        )

    def copy(self) -> Objects:
        """Return the rounds; what they hold is never changed."""
        return self


@dataclass(frozen=True, init=False, repr=False)
class Custom(Loss):
    """The loss `value(x, datum)` with a subgradient `subgradient(x, datum)`, convex in `x`.

    `lipschitz` declares the Lipschitz constant in `x` over the domain, as a number or per round as a function
    of the datum. It is taken on trust: privacy that rests on it is only as good as the declaration. `hessian(x, datum)`
    is the matrix of second derivatives, for the few systems that need it (`ObjectivePerturbation`, `ShermanKoren`). It
    is taken on trust too, and so is that the gradient nowhere jumps: there privacy rests on both.

    >>> distance = Custom(
    ...     lambda x, c: float(np.abs(x - c).sum()), lambda x, c: np.sign(x - c), lipschitz=2**0.5
    ... )
    >>> distance.values([0.0, 0.0], [np.array([1.0, 2.0]), np.array([0.0, 1.0])])
    array([3., 1.])
    """

    data: ClassVar[tuple[str, ...]] = ("items",)
    value: Callable[[Array, Any], float]
    subgradient: Callable[[Array, Any], ArrayLike]
    bound: float | Callable[[Any], float] | None
    hessian: Callable[[Array, Any], ArrayLike] | None

    def __init__(
        self,
        value: Callable[[Array, Any], float],
        subgradient: Callable[[Array, Any], ArrayLike],
        lipschitz: float | Callable[[Any], float] | None = None,
        hessian: Callable[[Array, Any], ArrayLike] | None = None,
    ) -> None:
        for name, function in (("value", value), ("subgradient", subgradient), ("hessian", hessian)):
            if not callable(function) and (name != "hessian" or function is not None):
                raise ValueError(f"{name} must be a function of a point and a datum, got {function!r}")
        if lipschitz is not None and not callable(lipschitz):
            lipschitz = positive("lipschitz", lipschitz, zero=True)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "subgradient", subgradient)
        object.__setattr__(self, "bound", lipschitz)
        object.__setattr__(self, "hessian", hessian)

    def __repr__(self) -> str:
        """Return the call that makes this loss."""
        bend = "" if self.hessian is None else f", hessian={self.hessian!r}"
        return f"Custom({self.value!r}, {self.subgradient!r}, lipschitz={self.bound!r}{bend})"

    def values(self, x: ArrayLike, items: Sequence[Any]) -> Array:
        """Return the loss of each object at the point `x`, shape `(n,)`."""
        point = vector("x", x)
        return np.array([real(f"value of item {i}", self.value(point, item)) for i, item in enumerate(_items(items))])

    def subgradients(self, x: ArrayLike, items: Sequence[Any]) -> Array:
        """Return one subgradient for each object at the point `x`, shape `(n, dim)`."""
        point = vector("x", x)
        return np.array(
            [
                vector(f"subgradient of item {i}", self.subgradient(point, item), point.size)
                for i, item in enumerate(_items(items))
            ]
        )

    def declared(self, items: Sequence[Any]) -> Array:
        """Return the declared Lipschitz constant of each object.

        >>> Custom(lambda x, c: c * abs(x[0]), lambda x, c: c * np.sign(x), lipschitz=abs).declared([2, -3])
        array([2., 3.])
        """
        listed = _items(items)
        if self.bound is None:
            raise ValueError(
                "the Lipschitz constant of this Custom loss must be declared, got none; give "
                "Custom(..., lipschitz=...) a number or a function of the datum"
            )
        if not callable(self.bound):
            return np.full(len(listed), self.bound)
        return np.array(
            [positive(f"lipschitz of item {i}", self.bound(item), zero=True) for i, item in enumerate(listed)]
        )

    def lipschitz(self, domain: Charted, items: Sequence[Any]) -> Array:
        """Return the declared Lipschitz constant of each object."""
        return self.declared(items)

    def total(self, domain: Charted, rows: Objects, points: Array) -> Array:
        """Return the sum of the prepared rounds at each chart point, less that at the centre, shape `(m,)`."""
        kept = self.reader(domain)
        kept.add(rows.items)
        bases = kept.values(domain.center)
        limits = np.full(len(rows), np.inf)
        np.divide(rows.bounds, rows.scales, out=limits, where=rows.scales > 0)
        return np.array(
            [
                float((rows.scales * rises_of(kept.values(domain.from_chart(u)), bases, limits, size)).sum())
                for u, size in zip(points, norms(points).tolist(), strict=True)
            ]
        )

    def look(self, domain: Charted, x: Array, item: Any, bound: float) -> tuple[float, Array]:
        """Return value and subgradient of one object at `x`, both checked, the second against the bound."""
        return checked(domain, x, self.value(x, item), self.subgradient(x, item), bound)

    def bend(self, x: Array, item: Any) -> Array:
        """Return the Hessian of one object at `x`: a symmetric matrix of finite numbers.

        >>> bowl = Custom(lambda x, c: float(x @ x) / 2, lambda x, c: x, hessian=lambda x, c: np.eye(2))
        >>> bowl.bend(np.zeros(2), None)
        array([[1., 0.],
               [0., 1.]])
        """
        if self.hessian is None:
            raise ValueError(f"hessian must be given, got none in {self!r}; write Custom(..., hessian=...)")
        return check_hessian(x, self.hessian(x, item))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickled state; those of older versions know no Hessian."""
        vars(self).update({"hessian": None} | state)

    def reader(self, domain: Charted) -> KeptRows:
        """Return what reads many rows at one point, again and again, for a measure."""
        return OneByOne(domain, self)

    def prepare(
        self,
        domain: Charted,
        items: Sequence[Any],
        *,
        lipschitz: float | None = None,
        on_steep: str = "raise",
    ) -> Objects:
        """Return the objects with the factor on each loss that keeps it within the limit `lipschitz`.

        Always a sequence of objects, `[datum]` for one. Without a limit all factors are 1; without a
        declaration too, the bounds are infinite.
        """
        check_on_steep(on_steep)
        listed = _items(items)
        scales = np.ones(len(listed))
        if lipschitz is None:
            undeclared = self.bound is None
            return Objects(listed, scales, np.full(len(listed), np.inf) if undeclared else self.declared(listed))
        limit = positive("lipschitz", lipschitz)
        bounds = self.declared(listed)
        if on_steep == "raise":
            refuse_steep(bounds, limit)
            return Objects(listed, scales, bounds)
        steep = bounds > limit * (1 + SLACK)
        scales[steep] = limit / bounds[steep]
        bounds[steep] = limit
        return Objects(listed, scales, bounds)


def _items(items: Sequence[Any]) -> tuple[Any, ...]:
    array = isinstance(items, np.ndarray) and items.ndim > 0
    if isinstance(items, str | bytes) or not (array or isinstance(items, Sequence)):
        raise ValueError(f"items must be a sequence of objects, got {items!r}; write [datum] for a single one")
    if len(items) == 0:
        raise ValueError(f"items must hold at least one object, got {items!r}")
    return tuple(items)
