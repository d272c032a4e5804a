"""Losses whose subgradients come from automatic differentiation: custom ones that are probed, row by row.

What is private rests on the values: draws read them. A derivative alone proves nothing, since automatic differentiation
can give that of another function (a part that is detached or rounded has derivative 0), so values are looked at too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from reticent._core._check import Array, integer, real
from reticent._core._tags import saved
from reticent.losses._base import Charted
from reticent.losses._custom import Custom, Objects, check_all, check_hessian, checked

if TYPE_CHECKING:
    from reticent.domains import Domain


_ROUNDING = 1e-9  # relative; sums of a few thousand doubles are exact to far less
_SHORT = 0.1  # length of short segments, in radii: bends that a long one passes over
_CLIMBS = 3  # steps towards the steepest place


class Look(Protocol):
    """Values and subgradients of one row at several points."""

    def __call__(self, points: Array, /) -> tuple[Array, Array]:
        """Return the values, shape `(m,)`, and subgradients, shape `(m, dim)`, at `(m, dim)` points."""


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Segments in a domain: their ends and their middles, each of shape `(n, dim)`."""

    one: Array
    other: Array
    middle: Array

    @property
    def points(self) -> Array:
        """All points, one after the other."""
        return np.concatenate([self.one, self.other, self.middle])


@lru_cache(maxsize=16)
def segments(domain: Domain, count: int) -> Segments:
    """Return segments across a domain, always the same ones, so that blocks and single rows are refused alike.

    The first leads from end to end through the centre; of the others half are long and half short.

    >>> from reticent.domains import Interval
    >>> segments(Interval(0.0, 2.0), 3).points[[0, 3, 6], 0]
    array([0., 2., 1.])
    """
    rng = np.random.default_rng(0)
    d, R = domain.chart_dim, domain.radius
    one, other = (_directions(rng, count, d) for _ in range(2))
    one *= rng.uniform(size=(count, 1)) ** (1.0 / d)
    # Beyond the domain, to be projected onto its boundary; a short way, for every second one.
    other *= np.where(np.arange(count)[:, None] % 2 == 0, 2.0, _SHORT)
    other[1::2] += one[1::2]
    axis = np.eye(1, d)[0]
    one[0], other[0] = -2.0 * axis, 2.0 * axis
    a, b = (np.array([domain.project(domain.from_chart(R * u)) for u in part]) for part in (one, other))
    return Segments(a, b, (a + b) / 2)


def _directions(rng: np.random.Generator, count: int, d: int) -> Array:
    found = rng.normal(size=(count, d))
    unit: Array = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def check(domain: Domain, row: int, look: Look, declared: float, count: int) -> None:
    """Refuse a row that is steeper than declared or not convex on one of `count` segments; say where.

    What is found is wrong for certain. What is not found may still be wrong, but in one dimension with the true
    derivative: the slope of a convex function is steepest at an end of the interval, and the ends are looked at.
    """
    places = segments(domain, count)
    seen = _seen(row, places.points, look)
    steepest = _check_slopes(domain, row, seen, declared)
    _check_bends(row, places, seen)
    # Uphill a convex function only grows steeper, so the steepest place is on the boundary: climb towards it.
    top = seen
    for _ in range(_CLIMBS):
        top = _seen(row, domain.support(-top.slopes[steepest])[None], look)
        steepest = _check_slopes(domain, row, top, declared)
        seen = seen.with_more(top)
    _check_rises(row, seen, declared)
    _check_tangents(row, seen)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Values and slopes at points."""

    points: Array
    values: Array
    slopes: Array

    def with_more(self, other: _Seen) -> _Seen:
        return _Seen(
            np.concatenate([self.points, other.points]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.slopes, other.slopes]),
        )

    @property
    def moves(self) -> Array:
        """The way from each point to each other one, shape `(m, m, dim)`."""
        return self.points[None] - self.points[:, None]

    def room(self, slope: float) -> float:
        """Return how far off a difference of values may be by rounding, at this slope."""
        extent = float(np.linalg.norm(np.ptp(self.points, axis=0)))
        return _ROUNDING * (float(np.abs(self.values).max()) + slope * extent)


def _seen(row: int, points: Array, look: Look) -> _Seen:
    values, slopes = look(points)
    _check_numbers(row, points, values, slopes)
    return _Seen(points, values, slopes)


def _check_numbers(row: int, points: Array, values: Array, slopes: Array) -> None:
    good = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"the loss of row {row} must be finite and have a finite derivative everywhere on the domain, got "
            f"{values[k]} with derivative {slopes[k]} at {points[k]}; write it so that automatic differentiation "
            "has a value there too (a norm, say, as the square root of a sum that is never 0)"
        )


def _check_slopes(domain: Domain, row: int, seen: _Seen, declared: float) -> int:
    """Return which point is the steepest."""
    lengths = domain.lengths(domain.pull(seen.slopes)[0])
    k = int(np.argmax(lengths))
    if lengths[k] > declared * (1 + _ROUNDING):
        raise ValueError(
            f"the loss of row {row} has a subgradient of length {lengths[k]:.6g} at {seen.points[k]}, above its "
            f"declared Lipschitz constant {declared:.6g}; declare one that holds everywhere on the domain"
        )
    return k


def _check_bends(row: int, places: Segments, seen: _Seen) -> None:
    """Refuse a loss that is above a chord."""
    f, g, middle = np.split(seen.values, 3)
    steepest = float(np.linalg.norm(seen.slopes, axis=1).max())
    room = np.abs(np.array([f, g, middle])).max(axis=0)
    room += steepest * np.linalg.norm(places.one - places.other, axis=1)
    above = middle - (f + g) / 2 - _ROUNDING * room
    if (above > 0).any():
        k = int(np.argmax(above))
        raise ValueError(
            f"the loss of row {row} is not convex: in the middle of the segment from {places.one[k]} to "
            f"{places.other[k]} it is {middle[k]:.9g}, above the {(f[k] + g[k]) / 2:.9g} half-way between its ends "
            f"({f[k]:.9g} and {g[k]:.9g}); privacy and regret are certified for convex losses only"
        )


def _worst(found: Array) -> tuple[int, int] | None:
    """Return the pair of points with the largest number, if that is above 0."""
    a, b = divmod(int(np.argmax(found)), len(found))
    return (a, b) if found[a, b] > 0 else None


def _check_rises(row: int, seen: _Seen, declared: float) -> None:
    """Refuse a loss that differs by more than declared between two of the points, whatever its derivative says."""
    ways = np.linalg.norm(seen.moves, axis=2)  # those in the chart, which is an isometry
    rises = seen.values[None] - seen.values[:, None]
    above = rises - declared * ways * (1 + _ROUNDING) - seen.room(declared)
    if pair := _worst(above):
        a, b = pair
        raise ValueError(
            f"the loss of row {row} grows by {rises[a, b]:.6g} from {seen.points[a]} to {seen.points[b]}, at a "
            f"distance of {ways[a, b]:.6g}: more than its declared Lipschitz constant {declared:.6g} allows, and more "
            "than its derivative says. Automatic differentiation does not see all of it (a part that is detached, "
            "stopped, rounded or cast to integers); take that out, and declare a constant that holds everywhere on the "
            "domain"
        )


def _check_tangents(row: int, seen: _Seen) -> None:
    """Refuse a loss that is below a tangent: it bends down, or the derivative is that of another function."""
    steepest = float(np.linalg.norm(seen.slopes, axis=1).max())
    tangents = seen.values[:, None] + np.einsum("ijk,ik->ij", seen.moves, seen.slopes)
    below = tangents - seen.values[None] - seen.room(steepest)
    if pair := _worst(below):
        a, b = pair
        raise ValueError(
            f"the loss of row {row} is not convex, or its derivative is not its own: at {seen.points[b]} it is "
            f"{seen.values[b]:.9g}, below the {tangents[a, b]:.9g} of its tangent at {seen.points[a]}; privacy and "
            "regret are certified for convex losses only, and automatic differentiation must see all of one (no part "
            "that is detached, stopped, rounded or cast to integers)"
        )


class WrongResultError(ValueError):
    """A caller's function returns something else than one real number, whatever the datum."""


class Engine(ABC):
    """One function of a point and a datum, with its derivative; the same for the same function."""

    maker: ClassVar[str]
    """The name of the public function that makes losses with this engine."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        if not callable(function):
            raise ValueError(f"fn must be a function of a point and a datum, got {function!r}")
        self.function = function

    @abstractmethod
    def value(self, x: Array, datum: Any) -> float:
        """Return the value at x."""

    @abstractmethod
    def both(self, x: Array, datum: Any) -> tuple[float, Array]:
        """Return the value at x and the gradient."""

    @abstractmethod
    def many(self, datum: Any, points: Array) -> tuple[Array, Array]:
        """Return values and gradients of one datum at several points."""

    @abstractmethod
    def heights(self, x: Array, data: Any) -> Array | None:
        """Return the values of many data of one shape at x, or None where the engine cannot take them together.

        `data` is like one datum, with one more axis in front of each array.
        """

    @abstractmethod
    def across(self, x: Array, data: Any) -> tuple[Array, Array] | None:
        """Return values and gradients of many data at x, as `heights` does."""

    @abstractmethod
    def bend(self, x: Array, datum: Any) -> Array:
        """Return the Hessian at x."""

    @abstractmethod
    def bends(self, x: Array, data: Any) -> Array | None:
        """Return the Hessians of many data at x, as `heights` does."""

    def takes(self, x: Array, datum: Any, data: Any) -> bool:
        """Say whether many data like this one, the first of them, can be evaluated together, and as if one by one."""
        together = self.across(x, data)
        if together is None:
            return False
        value, slope = self.both(x, datum)
        return bool(np.allclose([value, *slope], [together[0][0], *together[1][0]], rtol=1e-9, atol=1e-9))

    def slope(self, x: Array, datum: Any) -> Array:
        """Return the gradient at x."""
        return self.both(x, datum)[1]

    def __eq__(self, other: object) -> bool:
        """Say whether `other` differentiates the same function in the same way."""
        return type(self) is type(other) and self.function == other.function

    def __hash__(self) -> int:
        """Agree with equality."""
        return hash((type(self), self.function))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the function alone: it must be one that can be found by its name."""
        return {"function": self.function}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start again from the function."""
        type(self).__init__(self, **state)


# Rows of a differentiated loss in stacks of equal shape, which an engine evaluates at one point in one call.

_LEAST = 64  # rows that a stack has room for at first


@saved("stack")
class Stack:
    """Data of one structure, in arrays with room for more: twice as much whenever they are full.

    A compiled function serves one size, so sizes are few. They depend on the number of rows only, and so do all
    numbers that come out, to the last bit. Behind the rows there are copies of the first.
    """

    def __init__(self, datum: Any) -> None:
        self.rows: list[int] = []
        self.together = True
        self._like = datum
        self._leaves = [np.repeat(leaf[None], _LEAST, axis=0) for leaf in leaves(datum)]
        self._room = _LEAST

    def add(self, row: int, datum: Any) -> None:
        """Add a datum, which is that row of all."""
        count = len(self.rows)
        if count == self._room:
            self._leaves = [np.concatenate([leaf, np.repeat(leaf[:1], count, axis=0)]) for leaf in self._leaves]
            self._room *= 2
        for leaf, part in zip(self._leaves, leaves(datum), strict=True):
            leaf[count] = part
        self.rows.append(row)

    @property
    def data(self) -> Any:
        """The data as one datum, each of whose arrays has the rows as its first axis."""
        return rebuilt(self._like, iter(self._leaves))


@saved("stacked rows")
class StackedReader:
    """Rows of a differentiated loss, one stack for each shape of datum; see `KeptRows`."""

    def __init__(self, domain: Charted, engine: Engine) -> None:
        self.domain, self.engine = domain, engine
        self._items: list[Any] = []
        self._stacks: dict[Hashable, Stack] = {}
        self._single: list[int] = []  # rows that have no shape

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._items)

    def add(self, items: Sequence[Any]) -> None:
        """Add rows."""
        for row, datum in enumerate(items, start=len(self._items)):
            shape = shape_of(datum)
            if shape is None:
                self._single.append(row)
                continue
            if shape not in self._stacks:
                self._stacks[shape] = new = Stack(datum)
                # Once for all: the same rows must always be read in the same way.
                new.together = self.engine.takes(self.domain.center, datum, new.data)
            self._stacks[shape].add(row, datum)
        self._items += items

    def values(self, x: Array) -> Array:
        """Return the loss of each row at `x`, all finite."""
        found = np.empty(len(self))
        for rows, part in self._read(x, self.engine.heights, self.engine.value):
            found[rows] = part
        good = np.isfinite(found)
        if not good.all():
            real("the value of a custom loss", float(found[np.argmin(good)]))
        return found

    def both(self, x: Array, bounds: Array) -> tuple[Array, Array]:
        """Return values and gradients, all checked."""
        values, slopes = np.empty(len(self)), np.empty((len(self), x.size))
        for rows, (part, sloping) in self._read(x, self.engine.across, self.engine.both):
            values[rows], slopes[rows] = part, sloping
        check_all(self.domain, x, values, slopes, bounds)
        return values, slopes

    def bends(self, x: Array) -> Array:
        """Return the Hessians, all finite."""
        found = np.empty((len(self), x.size, x.size))
        for rows, part in self._read(x, self.engine.bends, self.engine.bend):
            found[rows] = part
        good = np.isfinite(found).all(axis=(1, 2))
        if not good.all():
            check_hessian(x, found[np.argmin(good)])
        return found

    def _read(
        self, x: Array, together: Callable[[Array, Any], Any], alone: Callable[[Array, Any], Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield rows and what was found for them, by stacks, and one by one where that cannot be."""
        single = list(self._single)
        for stack in self._stacks.values():
            found = together(x, stack.data) if stack.together else None
            count = len(stack.rows)
            if found is None:
                single += stack.rows
            else:
                yield stack.rows, tuple(part[:count] for part in found) if isinstance(found, tuple) else found[:count]
        for row in single:
            yield row, alone(x, self._items[row])


def shape_of(datum: Any) -> Hashable | None:
    """Return what two data must share to lie in one stack; None for data that cannot lie in any.

    >>> shape_of((np.zeros(3), 1)) == shape_of((np.ones(3), 2)), shape_of("text") is None
    (True, True)
    """
    if isinstance(datum, dict | list | tuple):
        parts = tuple(map(shape_of, datum.values() if isinstance(datum, dict) else datum))
        if None in parts:
            return None
        return type(datum), tuple(datum) if isinstance(datum, dict) else (), parts
    if datum is None:
        return "nothing"
    if not isinstance(datum, bool | int | float | np.ndarray):
        return None
    array = np.asarray(datum)
    return (array.shape, array.dtype.str) if array.dtype.kind in "biufc" else None


def leaves(datum: Any) -> Iterator[Array]:
    """Yield the arrays and numbers of a datum as arrays."""
    if isinstance(datum, dict | list | tuple):
        for part in datum.values() if isinstance(datum, dict) else datum:
            yield from leaves(part)
    elif datum is not None:
        yield np.asarray(datum)


def rebuilt(like: Any, parts: Iterator[Any]) -> Any:
    """Return a datum of the structure of another, with other leaves.

    >>> rebuilt({"a": (1, None), "b": [2]}, iter("xy"))
    {'a': ('x', None), 'b': ['y']}
    """
    if isinstance(like, dict):
        return {key: rebuilt(part, parts) for key, part in like.items()}
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(rebuilt(part, parts) for part in like))
    if isinstance(like, list | tuple):
        return type(like)(rebuilt(part, parts) for part in like)
    return like if like is None else next(parts)


# Losses whose subgradients come from automatic differentiation: custom ones that are probed, row by row.

Bound = float | Callable[[Any], float]


@saved("part of a stack")
@dataclass(frozen=True)
class _Part:
    """The value, the slope or the bend of an engine as a function; it goes by the name of the caller's."""

    engine: Engine
    part: str

    def __post_init__(self) -> None:
        """Take the name over: a saved learner tells functions apart by it."""
        function = self.engine.function
        object.__setattr__(self, "__qualname__", getattr(function, "__qualname__", type(function).__name__))

    def __call__(self, x: Array, datum: Any) -> Any:
        return getattr(self.engine, self.part)(x, datum)

    def __repr__(self) -> str:
        return f"{self.part} of {self.engine.function!r}"


@dataclass(frozen=True, init=False, repr=False)
class Differentiated(Custom):
    """A `Custom` loss from `from_jax` or `from_torch`, convex in the point by declaration and by probe.

    Every row is looked at before anything of it is recorded: at the ends and in the middle of `probe` segments across
    the domain, and uphill towards where it is steepest. A row that is not finite there, steeper than declared, above a
    chord or below a tangent is refused; how steep it is, its values say as well as its derivative, so that a part which
    automatic differentiation does not see is found. In one dimension, if the derivative is that of the function, this
    finds every slope above the declared one. Else it is a probe, not a proof, and the slope is looked at again wherever
    a learner takes a subgradient later.
    """

    engine: Engine
    probe: int

    def __init__(self, engine: Engine, lipschitz: Bound | None, probe: int) -> None:
        """Take a function, its Lipschitz constant in the point (or that of each datum), and how closely to look."""
        if lipschitz is None:
            raise ValueError(
                f"lipschitz must be given to {engine.maker}, got None: the Lipschitz constant of fn in the point over "
                "the domain, as a number or as a function of the datum; privacy rests on it"
            )
        super().__init__(_Part(engine, "value"), _Part(engine, "slope"), lipschitz, _Part(engine, "bend"))
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "probe", integer("probe", probe, least=0))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickled state; the Hessian is made again."""
        vars(self).update(state | {"hessian": _Part(state["engine"], "bend")})

    def __repr__(self) -> str:
        """Return the call that makes this loss."""
        return f"{self.engine.maker}({self.engine.function!r}, lipschitz={self.bound!r}, probe={self.probe!r})"

    def prepare(
        self, domain: Charted, items: Sequence[Any], *, lipschitz: float | None = None, on_steep: str = "raise"
    ) -> Objects:
        """Return the rows as `Custom` does, with data of their own, in double precision; each has been probed."""
        rows = super().prepare(domain, items, lipschitz=lipschitz, on_steep=on_steep)
        kept = tuple(self._frozen(row, item) for row, item in enumerate(rows.items))
        if self.probe:
            for row, (item, declared) in enumerate(zip(kept, self.declared(rows.items), strict=True)):
                look = _Look(self.engine, row, item)
                check(domain, row, look, float(declared), self.probe)  # type: ignore[arg-type]
        return Objects(kept, rows.scales, rows.bounds)

    def _frozen(self, row: int, item: Any) -> Any:
        try:
            return frozen(item)
        except Exception as error:
            raise _failed(f"the loss of row {row}", self.engine, error) from error

    def reader(self, domain: Charted) -> StackedReader:
        """Return a reader that has the engine evaluate all rows of a shape in one call."""
        return StackedReader(domain, self.engine)

    def look(self, domain: Charted, x: Array, item: Any, bound: float) -> tuple[float, Array]:
        """Return value and gradient of one datum at `x`, both checked: one evaluation of the function for the two."""
        try:
            value, slope = self.engine.both(x, item)
        except Exception as error:
            raise _failed("a loss", self.engine, error) from error
        return checked(domain, x, value, slope, bound)

    def bend(self, x: Array, item: Any) -> Array:
        """Return the Hessian of one datum at `x`, checked."""
        try:
            found = self.engine.bend(x, item)
        except Exception as error:
            raise _failed("a loss", self.engine, error) from error
        return check_hessian(x, found)


@dataclass(frozen=True)
class _Look:
    """One row at several points; what goes wrong on the way names the row."""

    engine: Engine
    row: int
    item: Any

    def __call__(self, points: Array, /) -> tuple[Array, Array]:
        try:
            return self.engine.many(self.item, points)
        except Exception as error:
            raise _failed(f"the loss of row {self.row}", self.engine, error) from error


def _failed(which: str, engine: Engine, error: Exception) -> ValueError:
    """Return what to say of an error of the package, or in the caller's function."""
    if isinstance(error, WrongResultError):
        return WrongResultError(*error.args)
    first = next(iter(str(error).splitlines()), "").rstrip(".;: ")
    return ValueError(
        f"{which} of {engine.maker} cannot be evaluated: {first or 'no reason given'} ({type(error).__name__}); a "
        "datum must be an array, a number, or tuples, lists and dicts of these, of the shape that fn takes"
    )


def frozen(datum: Any) -> Any:
    """Return a datum that no later change of the caller's arrays can reach; real numbers in double precision.

    >>> frozen((np.float32(0.5), [np.array([1, 2])]))
    (array(0.5), [array([1, 2])])
    """
    if isinstance(datum, dict):
        return {key: frozen(value) for key, value in datum.items()}
    if isinstance(datum, tuple) and hasattr(datum, "_fields"):
        return type(datum)(*(frozen(value) for value in datum))
    if isinstance(datum, list | tuple):
        return type(datum)(frozen(value) for value in datum)
    if not hasattr(datum, "__array__"):
        return datum
    array = np.array(np.asarray(datum))
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    array.setflags(write=False)
    return array
