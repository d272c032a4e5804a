"""What differentiates a caller's function: a package for automatic differentiation behind one face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array


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
