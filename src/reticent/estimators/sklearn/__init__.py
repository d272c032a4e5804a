"""Private online models with scikit-learn's face: a linear classifier and a linear regressor."""

from reticent._core._errors import need

need("sklearn", "sklearn")

from reticent.estimators.sklearn._classifier import PrivateOnlineClassifier  # noqa: E402 (after the check above)
from reticent.estimators.sklearn._regressor import PrivateOnlineRegressor  # noqa: E402

__all__ = ["PrivateOnlineClassifier", "PrivateOnlineRegressor"]
