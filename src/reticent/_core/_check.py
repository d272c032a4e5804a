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
    if _masked(value):
        raise TypeError
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":
        raise TypeError
    return np.asarray(array, dtype=np.float64)


def _masked(value: Any) -> bool:
    """Say whether there is a mask, also inside lists of arrays, where numpy would lose it."""
    if isinstance(value, list | tuple):
        return bool(value) and isinstance(value[0], np.ndarray | list | tuple) and any(map(_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def _floats(name: str, value: Any) -> Array:
    try:
        return numbers(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must hold real numbers only, without a mask, got {offending(value)}")


def offending(value: Any) -> str:
    """Say what of a value is no number: one cell and its place, nothing of the others.

    >>> offending([[0.25, 0.5], [0.75, "n/a"]])
    "'n/a' at index (1, 1)"
    >>> offending([[0.25, 0.5], [0.75]])
    'rows of different lengths: 2 at index 0, 1 at index 1'
    """
    if _masked(value):
        return "a masked array; put a public number in the place of what is masked"
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
        return f"an array of {value.dtype}"
    if not isinstance(value, np.ndarray | list | tuple):
        return f"a {type(value).__name__}" if hasattr(value, "__len__") and not isinstance(value, str) else _cell(value)
    try:
        cells = np.asarray(value, dtype=object)
    except ValueError:
        cells = np.zeros(0, dtype=object)
    if cells.ndim == 1 and (not cells.size or any(np.ndim(one) for one in cells)):
        return _uneven(value)
    for place, one in np.ndenumerate(cells):
        if not _plain(one):
            at = place if len(place) > 1 else place[0] if place else ""
            return f"{_cell(one)} at index {at}"
    return f"a {type(value).__name__}"


def _plain(one: Any) -> bool:
    try:
        return not isinstance(one, str | bytes | complex | np.complexfloating) and float(one) is not None
    except (TypeError, ValueError, OverflowError):
        return False


def _cell(one: Any) -> str:
    if isinstance(one, int):
        return "a whole number that does not fit into double precision"
    text = repr(one)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _uneven(rows: Any) -> str:
    sizes = [
        np.size(row) if isinstance(row, np.ndarray) else len(row) if hasattr(row, "__len__") else 1 for row in rows
    ]
    other = next((i for i, size in enumerate(sizes) if size != sizes[0]), 0)
    return f"rows of different lengths: {sizes[0] if sizes else 0} at index 0, {sizes[other]} at index {other}"


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
