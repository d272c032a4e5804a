"""Losses from JAX: a function written with jax.numpy, differentiated and compiled by JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._errors import need
from reticent.losses._differentiated import Bound, Differentiated, Engine, WrongResultError


def from_jax(fn: Callable[[Any, Any], Any], lipschitz: Bound | None = None, *, probe: int = 16) -> Differentiated:
    """Return the loss `fn(x, datum)`, written with jax.numpy and convex in `x`, with JAX's derivative.

    A datum is an array, a number, or tuples, lists and dicts of these. `lipschitz` is the Lipschitz constant in `x`
    over the domain, a number or a function of the datum. It and convexity are checked on every row as `Differentiated`
    says; `probe=0` switches that off for a function that has been proved to be good. Everything is computed in
    double precision, whatever the setting of JAX, which stays as it is. `fn` is compiled once for each shape of datum.

    >>> import numpy as np
    >>> import jax.numpy as jnp
    >>> import reticent as rt
    >>> loss = rt.losses.from_jax(lambda x, c: jnp.sum(jnp.sqrt(1 + (x - c) ** 2)), lipschitz=2**0.5)
    >>> loss.subgradients([0.0, 0.0], [np.array([0.0, -1.0])]).round(4)
    array([[0.    , 0.7071]])
    >>> hill = rt.losses.from_jax(lambda x, c: -jnp.sum((x - c) ** 2), lipschitz=4.0)
    >>> rt.Gibbs(rt.Ball(2), hill, beta=1.0, lam=1.0).observe(np.zeros(2))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: the loss of row 0 is not convex: in the middle of the segment from [-1.  0.] to [1. 0.] it is -0, ...
    """
    return Differentiated(JaxEngine(fn), lipschitz, probe)


class JaxEngine(Engine):
    """JAX, in double precision."""

    maker: ClassVar[str] = "from_jax"

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(function)
        self.jax = jax = need("jax", "jax")
        numpy = need("jax.numpy", "jax")

        def scalar(x: Any, datum: Any) -> Any:
            # Runs while JAX traces the function, once for each shape of datum.
            value = numpy.asarray(function(x, datum))
            if value.shape != () or value.dtype != numpy.float64:
                raise WrongResultError(
                    "the function given to from_jax must return one real number in double precision, got shape "
                    f"{value.shape} and type {value.dtype}; take a sum, and leave out conversions to other types"
                )
            return value

        self._value = jax.jit(scalar)
        self._both = jax.jit(jax.value_and_grad(scalar))
        self._many = jax.jit(jax.vmap(jax.value_and_grad(scalar), in_axes=(0, None)))
        self._heights = jax.jit(jax.vmap(scalar, in_axes=(None, 0)))
        self._across = jax.jit(jax.vmap(jax.value_and_grad(scalar), in_axes=(None, 0)))
        self._bend = jax.jit(jax.hessian(scalar))
        self._bends = jax.jit(jax.vmap(jax.hessian(scalar), in_axes=(None, 0)))

    def value(self, x: Array, datum: Any) -> float:
        """Return the value at x."""
        with self.jax.enable_x64(True):
            return float(self._value(x, self._arrays(datum)))

    def both(self, x: Array, datum: Any) -> tuple[float, Array]:
        """Return the value at x and the gradient."""
        with self.jax.enable_x64(True):
            value, slope = self._both(x, self._arrays(datum))
            return float(value), np.asarray(slope)

    def many(self, datum: Any, points: Array) -> tuple[Array, Array]:
        """Return values and gradients of one datum at several points, in one call."""
        with self.jax.enable_x64(True):
            values, slopes = self._many(points, self._arrays(datum))
            return np.asarray(values), np.asarray(slopes)

    def heights(self, x: Array, data: Any) -> Array:
        """Return the values of many data of one shape at x, in one call."""
        with self.jax.enable_x64(True):
            return np.asarray(self._heights(x, data))

    def across(self, x: Array, data: Any) -> tuple[Array, Array]:
        """Return values and gradients of many data of one shape at x, in one call."""
        with self.jax.enable_x64(True):
            values, slopes = self._across(x, data)
            return np.asarray(values), np.asarray(slopes)

    def bend(self, x: Array, datum: Any) -> Array:
        """Return the Hessian at x."""
        with self.jax.enable_x64(True):
            return np.asarray(self._bend(x, self._arrays(datum)))

    def bends(self, x: Array, data: Any) -> Array:
        """Return the Hessians of many data of one shape at x, in one call."""
        with self.jax.enable_x64(True):
            return np.asarray(self._bends(x, data))

    def _arrays(self, datum: Any) -> Any:
        """Return a datum with arrays in the place of numbers, as it is among many."""
        return self.jax.tree.map(_array, datum)


def _array(leaf: Any) -> Array:
    array = np.asarray(leaf)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{leaf!r:.40} is no number and no array of numbers")
    return array
