"""Losses whose subgradients come from automatic differentiation: custom ones that are probed, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent._check import Array, integer
from reticent.losses._custom import Custom, Objects
from reticent.losses._engine import Engine, WrongResultError
from reticent.losses._probe import check
from reticent.losses._reader import checked
from reticent.losses._rows import Charted
from reticent.losses._stacked import StackedReader

Bound = float | Callable[[Any], float]


@dataclass(frozen=True)
class _Part:
    """The value or the slope of an engine as a function; it goes by the name of the caller's."""

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
        super().__init__(_Part(engine, "value"), _Part(engine, "slope"), lipschitz)
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "probe", integer("probe", probe, least=0))

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
