"""Euclidean lengths of rows of numbers, of any size."""

from __future__ import annotations

import numpy as np

from reticent._check import Array

LEAST_SQUARE = 1e-270  # sums of squares below this may have lost parts to underflow


def norms(vectors: Array) -> Array:
    """Return the Euclidean norm of each row, without overflow or underflow on the way.

    >>> norms(np.array([[3.0, 4.0], [3e-200, 4e-200], [3e200, 4e200]]))
    array([5.e+000, 5.e-200, 5.e+200])
    """
    with np.errstate(over="ignore", under="ignore"):
        squares: Array = np.einsum("ij,ij->i", vectors, vectors)
        result: Array = np.sqrt(squares)
        doubtful = np.flatnonzero((squares < LEAST_SQUARE) | ~np.isfinite(squares))
        if doubtful.size:
            rows = vectors[doubtful]
            largest = np.abs(rows).max(axis=1, initial=0.0)
            unit = rows / np.where(largest > 0, largest, 1.0)[:, None]
            result[doubtful] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit))
    return result
