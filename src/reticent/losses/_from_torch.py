"""Losses from PyTorch: a function of tensors, differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._errors import need
from reticent.losses._differentiated import Bound, Differentiated, Engine, WrongResultError


def from_torch(fn: Callable[[Any, Any], Any], lipschitz: Bound | None = None, *, probe: int = 16) -> Differentiated:
    """Return the loss `fn(x, datum)`, written with torch and convex in `x`, with PyTorch's derivative.

    A datum is an array, a number, or tuples, lists and dicts of these; `fn` gets its arrays as tensors, real numbers in
    double precision, as is `x`. `lipschitz` is the Lipschitz constant in `x` over the domain, a number or a function of
    the datum (as you gave it). It and convexity are checked on every row as `Differentiated` says; `probe=0` switches
    that off for a function that has been proved to be good.

    >>> import numpy as np
    >>> import reticent as rt
    >>> loss = rt.losses.from_torch(lambda x, c: (1 + (x - c) ** 2).sqrt().sum(), lipschitz=2**0.5)
    >>> loss.subgradients([0.0, 0.0], [np.array([0.0, -1.0])]).round(4)
    array([[0.    , 0.7071]])
    """
    return Differentiated(TorchEngine(fn), lipschitz, probe)


class TorchEngine(Engine):
    """PyTorch, in double precision, on the processor."""

    maker: ClassVar[str] = "from_torch"

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(function)
        self.torch = need("torch", "torch")

    def value(self, x: Array, datum: Any) -> float:
        """Return the value at x."""
        with self.torch.no_grad():
            return float(self._call(self.torch.tensor(x), self._tensors(datum)))

    def both(self, x: Array, datum: Any) -> tuple[float, Array]:
        """Return the value at x and the gradient."""
        return self._both(x, self._tensors(datum))

    def many(self, datum: Any, points: Array) -> tuple[Array, Array]:
        """Return values and gradients of one datum at several points."""
        tensors = self._tensors(datum)
        found = [self._both(x, tensors) for x in points]
        return np.array([value for value, _ in found]), np.array([slope for _, slope in found])

    def heights(self, x: Array, data: Any) -> Array | None:
        """Return the values of many data of one shape at x, in one call, or None where PyTorch cannot."""
        found: Array | None = self._together(self.torch.func.vmap(self._call, in_dims=(None, 0)), x, data)
        return found

    def across(self, x: Array, data: Any) -> tuple[Array, Array] | None:
        """Return values and gradients of many data of one shape at x, as `heights` does."""
        found = self._together(
            self.torch.func.vmap(self.torch.func.grad_and_value(self._call), in_dims=(None, 0)), x, data
        )
        return None if found is None else (found[1], found[0])

    def bend(self, x: Array, datum: Any) -> Array:
        """Return the Hessian at x."""
        with self.torch.enable_grad():
            found = self.torch.autograd.functional.hessian(
                lambda point: self._call(point, self._tensors(datum)), self.torch.tensor(x)
            )
        bend: Array = found.numpy()
        return bend

    def bends(self, x: Array, data: Any) -> Array | None:
        """Return the Hessians of many data of one shape at x, as `heights` does."""
        found: Array | None = self._together(
            self.torch.func.vmap(self.torch.func.hessian(self._call), in_dims=(None, 0)), x, data
        )
        return found

    def _together(self, batched: Callable[[Any, Any], Any], x: Array, data: Any) -> Any:
        """Return what a function of many data gives, as arrays; None if PyTorch cannot take them together at x.

        It cannot where the way through the function depends on the datum, say. One by one it then works, or tells what
        is wrong.
        """
        try:
            found = batched(self.torch.tensor(x), self._tensors(data))
        except (RuntimeError, ValueError, TypeError):
            return None
        return tuple(part.numpy() for part in found) if isinstance(found, tuple) else found.numpy()

    def _both(self, x: Array, tensors: Any) -> tuple[float, Array]:
        # The caller may be inside torch.no_grad().
        with self.torch.enable_grad():
            point = self.torch.tensor(x).requires_grad_()
            value = self._call(point, tensors)
            if not value.requires_grad:
                return float(value), np.zeros(x.size)  # a constant
            (slope,) = self.torch.autograd.grad(value, point, allow_unused=True)
        return float(value.detach()), np.zeros(x.size) if slope is None else slope.numpy()

    def _call(self, point: Any, tensors: Any) -> Any:
        value = self.function(point, tensors)
        if not self.torch.is_tensor(value) or value.numel() != 1 or value.dtype != self.torch.float64:
            facts = f"shape {tuple(value.shape)} and type {value.dtype}" if self.torch.is_tensor(value) else repr(value)
            raise WrongResultError(
                "the function given to from_torch must return one real number in double precision, as a tensor, got "
                f"{facts}; take a sum, and leave out conversions to other types"
            )
        return value.reshape(())

    def _tensors(self, datum: Any) -> Any:
        if isinstance(datum, dict):
            return {key: self._tensors(value) for key, value in datum.items()}
        if isinstance(datum, tuple) and hasattr(datum, "_fields"):
            return type(datum)(*(self._tensors(value) for value in datum))
        if isinstance(datum, list | tuple):
            return type(datum)(self._tensors(value) for value in datum)
        return self.torch.tensor(datum) if isinstance(datum, np.ndarray) else datum
