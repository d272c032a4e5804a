"""Checks of arguments, with messages that name the value, what was expected and what to do; lengths of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """Return `value` as a float; refuse what is not a finite number above zero (or at zero, if allowed).

    >>> positive("beta", 2)
    2.0
    """
    number = real(name, value)
    if number < 0 or (number == 0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'greater than'} 0, got {value!r}")
    return number


def real(name: str, value: float) -> float:
    """Return `value` as a float; refuse what is not one finite real number."""
    if isinstance(value, str | bytes):
        raise ValueError(f"{name} must be a real number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit into double precision, got {value!r}") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    return number


def integer(name: str, value: int, *, least: int) -> int:
    """Return `value` as an int; refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def vector(name: str, value: ArrayLike, size: int | None = None) -> Array:
    """Return `value` as a one-dimensional float array, all finite, of length `size` where that is given."""
    array = _floats(name, value)
    if array.ndim != 1 or (size is not None and array.size != size):
        wanted = "a vector" if size is None else f"a vector of length {size}"
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}")
    return _finite(name, array)


def matrix(name: str, value: ArrayLike, columns: int | None = None) -> Array:
    """Return `value` as a two-dimensional float array, all finite, with `columns` columns where that is given.

    A memory-mapped array passes through without a copy.
    """
    array = _floats(name, value)
    if array.ndim != 2 or (columns is not None and array.shape[1] != columns):
        wanted = "rows of numbers" if columns is None else f"rows of {columns} numbers"
        raise ValueError(f"{name} must be {wanted} (two-dimensional), got shape {array.shape}")
    return _finite(name, array)


def numbers(value: Any) -> Array:
    """Return an array of floats; raise TypeError for a mask, which would be lost, for text and for complex numbers."""
    array = np.asarray(value)
    if isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in "biufO":
        raise TypeError
    return np.asarray(array, dtype=np.float64)


def _floats(name: str, value: Any) -> Array:
    try:
        return numbers(value)
    except OverflowError:
        raise ValueError(f"{name} must hold numbers that fit into double precision, got {value!r}") from None
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must hold real numbers only, without a mask, got {value!r}")


def _finite(name: str, array: Array) -> Array:
    # A NaN or an infinity anywhere makes the sum non-finite; only then look for the place.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())
    if suspicious:
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            place = tuple(int(i) for i in bad[0])
            raise ValueError(f"{name} must be finite, got {array[place]} at index {place}")
    return array


# Euclidean lengths of rows of numbers, of any size.

LEAST_SQUARE = 1e-270  # sums of squares below this may have lost parts to underflow


def norms(vectors: Array) -> Array:
    """Return the Euclidean norm of each row, without overflow or underflow on the way.

    >>> norms(np.array([[3.0, 4.0], [3e-200, 4e-200], [3e200, 4e200]]))
    array([5.e+000, 5.e-200, 5.e+200])
    """
    with np.errstate(over="ignore", under="ignore"):
        squares: Array = np.einsum("ij,ij->i", vectors, vectors)
        result: Array = np.sqrt(squares)
        if squares.size and not (squares.min() >= LEAST_SQUARE and squares.max() < np.inf):
            doubtful = np.flatnonzero((squares < LEAST_SQUARE) | ~np.isfinite(squares))
            rows = vectors[doubtful]
            largest = np.abs(rows).max(axis=1, initial=0.0)
            unit = rows / np.where(largest > 0, largest, 1.0)[:, None]
            result[doubtful] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return result
