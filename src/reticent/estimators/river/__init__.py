"""Estimators for river: private and lazy linear models that learn one row at a time, or many.

    from reticent.estimators.river import PrivateLogisticRegression

They need the package river (`pip install 'reticent[river]'`).
"""

from reticent._core._errors import need

need("river", "river")

from reticent.estimators.river._linear import LazyLinearRegression, PrivateLinearRegression  # noqa: E402
from reticent.estimators.river._logistic import LazyLogisticRegression, PrivateLogisticRegression  # noqa: E402
from reticent.estimators.river._quantile import PrivateQuantile  # noqa: E402

__all__ = [
    "LazyLinearRegression",
    "LazyLogisticRegression",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateQuantile",
]
