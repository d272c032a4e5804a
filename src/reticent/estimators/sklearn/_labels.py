"""The two labels of a classifier: said in public, or found in the data."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target, unique_labels


def two_given(classes: Any) -> NDArray[Any]:
    """Return the labels that somebody gave, in order.

    >>> two_given(("yes", "no"))
    array(['no', 'yes'], dtype='<U3')
    """
    labels = list(classes) if isinstance(classes, Set) else classes
    try:
        found = np.unique(np.asarray(labels))
        kinds = {isinstance(label, str) for label in labels}
    except (TypeError, ValueError):
        found, kinds = np.empty(0), set()
    if found.size > 2:
        raise ValueError(_more(found, "multiclass"))
    if found.size < 2 or len(kinds) > 1:
        raise ValueError(f"classes must be two labels, both numbers or both text, got {classes!r}")
    return found


def two_found(y: Any) -> NDArray[Any]:
    """Return the labels that occur, in order."""
    found: NDArray[Any] = unique_labels(y)
    if found.size > 2:
        raise ValueError(_more(found, type_of_target(y, input_name="y")))
    if found.size < 2:
        raise ValueError(
            f"y must hold two classes, got the one class {found}; if the other may come later, give both as classes"
        )
    return found


def _more(found: NDArray[Any], kind: str) -> str:
    # The first two sentences are those that scikit-learn's checks look for.
    return (
        f"Only binary classification is supported. The type of the target is {kind}, with the classes {found}; "
        "OneVsRestClassifier makes a model for each class, at the price of epsilon for each"
    )
