"""What counts as a number in a row, whether it comes in a dictionary or in a dataframe."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

# What `float` would take without a word: text, part of a complex number, a length of time in whatever unit it has.
_NO_NUMBERS = (str, bytes, bytearray, np.complexfloating, np.timedelta64, np.datetime64)


def plain_number(value: Any) -> float:
    """Return a value as a float, NaN if it is missing (None, NaN, `pandas.NA`).

    What is not a number raises TypeError, ValueError or OverflowError; the caller knows its name.

    >>> plain_number(3), plain_number(np.float32(0.5)), plain_number(None)
    (3.0, 0.5, nan)
    """
    if isinstance(value, float | int):
        return float(value)
    # Nobody has the NA of pandas who has not imported pandas.
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return math.nan
    if isinstance(value, _NO_NUMBERS) or (isinstance(value, np.ndarray) and value.ndim):
        raise TypeError
    return float(value)
