"""Losses whose subgradients come from automatic differentiation: custom ones that are probed, row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array, integer
from reticent.losses._custom import Custom, Objects
from reticent.losses._probe import check
from reticent.losses._rows import Charted

Bound = float | Callable[[Any], float]


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
    the domain, and uphill towards where it is steepest. A row that is not finite there, steeper than declared or above
    a chord is refused. In one dimension this finds every slope above the declared one. Elsewhere it is a probe, not a
    proof, and the slope is looked at again wherever a learner takes a subgradient later.
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
        kept = tuple(frozen(item) for item in rows.items)
        if self.probe:
            for row, (item, declared) in enumerate(zip(kept, self.declared(rows.items), strict=True)):
                check(domain, row, partial(self.engine.many, item), float(declared), self.probe)  # type: ignore[arg-type]
        return Objects(kept, rows.scales, rows.bounds)

    def look(self, domain: Charted, x: Array, item: Any, bound: float) -> tuple[float, Array]:
        """Return value and gradient of one datum at `x`, both checked: one evaluation of the function for the two."""
        value, slope = self.engine.both(x, item)
        # The checks are those of every custom loss.
        return Custom(lambda *_: value, lambda *_: slope).look(domain, x, item, bound)


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
    array = np.array(datum)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)
    array.setflags(write=False)
    return array
