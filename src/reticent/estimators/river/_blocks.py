"""Dataframes and series as numbers: what `learn_one` refuses in a row, a block refuses as well."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from river.utils.dataframe import into_frame, into_series, to_numpy

from reticent._check import Array
from reticent.estimators._features import column_of


def frame_of(X: Any) -> Any:
    """Return a dataframe of any library as narwhals has it."""
    try:
        return into_frame(X)
    except TypeError:
        raise ValueError(
            f"X must be a dataframe with a column for each feature, got {type(X).__name__}; pandas.DataFrame makes one "
            "of rows, and learn_one and predict_one take a dictionary"
        ) from None


def targets_of(y: Any) -> list[Any]:
    """Return the targets of a block as a list."""
    if isinstance(y, list | tuple) or (isinstance(y, np.ndarray) and y.ndim == 1):
        return list(y)
    try:
        return list(into_series(y).to_list())
    except TypeError:
        shape = f" of shape {y.shape}" if hasattr(y, "shape") else ""
        raise ValueError(
            f"y must be a series or a list with one target for each row, got {type(y).__name__}{shape}"
        ) from None


def values_of(frame: Any, columns: list[int]) -> Array:
    """Return some columns of a frame as floats; NaN means missing."""
    if not columns:
        return np.empty((len(frame), 0))
    read = frame[:, columns]
    if all(kind.is_numeric() for kind in read.schema.values()):
        return np.asarray(to_numpy(read), dtype=np.float64)
    return np.column_stack([_column(read.columns[i], read[:, i]) for i in range(len(columns))])


def _column(name: Any, column: Any) -> Array:
    values = column.to_numpy()
    if values.dtype.kind in "biuf":  # truth values, sparse columns, categories that are numbers
        return np.asarray(values, dtype=np.float64)
    given: Iterable[Any] = column.to_list()
    return column_of(name, given)
