"""A private linear regressor, learned in one pass: of the mean, the median or another quantile."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from reticent._core._check import Array, positive, real
from reticent.estimators._plans import PRIVATE
from reticent.estimators.sklearn._online import PrivateOnline, pair, tell_if_beyond
from reticent.losses import Absolute, Huber, Loss, Pinball, Squared

LOSSES = ("absolute", "huber", "squared", "quantile")


class PrivateOnlineRegressor(RegressorMixin, PrivateOnline):  # type: ignore[misc]
    """Linear regression, (epsilon, delta)-private in every row, learned in one pass.

    Parameters
    ----------
    loss : "absolute", "huber", "squared" or "quantile"
        What predictions aim at: the median, a robust mean, the mean, the quantile `quantile`. Huber losses are fast for
        many features; squared ones are by far the steepest, and privacy asks for noise in proportion: for very many
        rows only.
    quantile : float
        The level for loss="quantile".
    width : float
        For loss="huber": residuals up to this part of the width of the target bounds count by their square.
    epsilon, delta, horizon, bounds, fill, fit_intercept, average, system, random_state :
        As for `PrivateOnlineClassifier`.
    target_bounds : (low, high)
        Public bounds of the targets, which are cut off there; predictions stay between them. The noise that privacy
        asks for is in proportion to their distance. None: targets are expected between -1 and 1, and others are
        refused.
    radius : float
        The longest vector of weights, for rows (intercept included) scaled to a length of at most 1 and targets to
        [-1, 1]. The root of one plus the number of features lets a single feature, or the intercept, span all targets.

    Attributes
    ----------
    coef_, intercept_ : the weights on the features as they come (cut off at the bounds); private, may be published.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    learner_ : the learner, with its `plan`; its state is as secret as the data.

    Weights of rows (`sample_weight`) are not supported: a row counts once, or its privacy would cost more.

    >>> import numpy as np
    >>> from reticent.estimators.sklearn import PrivateOnlineRegressor
    >>> X = np.random.default_rng(0).uniform(0.0, 10.0, size=(5000, 1))
    >>> y = 20.0 + 5.0 * X[:, 0]
    >>> model = PrivateOnlineRegressor(epsilon=3.0, bounds=(0.0, 10.0), target_bounds=(0.0, 100.0), random_state=1)
    >>> model.fit(X, y).score(X, y) > 0.5, model.spent() <= 3.0
    (True, True)
    """

    def __init__(
        self,
        loss: str = "absolute",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        horizon: int | None = None,
        bounds: Any = None,
        fill: Any = None,
        target_bounds: Any = None,
        radius: float = 4.0,
        quantile: float = 0.5,
        width: float = 0.1,
        fit_intercept: bool = True,
        average: bool | None = None,
        system: str = PRIVATE[0],
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.bounds = bounds
        self.fill = fill
        self.target_bounds = target_bounds
        self.radius = radius
        self.quantile = quantile
        self.width = width
        self.fit_intercept = fit_intercept
        self.average = average
        self.system = system
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, and learn from the rows in one pass, in their order; if refused, nothing changes."""
        with self._all_or_nothing():
            X, y = self._checked(X, y, y_numeric=True, first=True)
            self._bound_targets()
            self._start(len(X))
            return self._learn(X, self._scaled(y))

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from more rows, in their order; if they are refused, nothing changes."""
        first = not hasattr(self, "learner_")
        with self._all_or_nothing():
            X, y = self._checked(X, y, y_numeric=True, first=first)
            if first:
                self._bound_targets()
                self._start(None)
            return self._learn(X, self._scaled(y))

    def _bound_targets(self) -> None:
        (low,), (high,) = pair("target_bounds", (-1.0, 1.0) if self.target_bounds is None else self.target_bounds, 1)
        self._low, self._high = float(low), float(high)

    def _chosen(self) -> tuple[Loss, float]:
        farthest = positive("radius", self.radius) + 1.0  # of a prediction from a target
        if self.loss == "absolute":
            return Absolute(), 1.0
        if self.loss == "quantile":
            level = real("quantile", self.quantile)
            if not 0 < level < 1:
                raise ValueError(
                    f"quantile must lie strictly between 0 and 1, got {self.quantile!r}; 0.5 is the median"
                )
            return Pinball(level), max(level, 1 - level)
        if self.loss == "huber":
            width = 2 * positive("width", self.width)  # scaled targets are 2 apart
            return Huber(width), min(width, farthest)
        if self.loss == "squared":
            return Squared(), farthest
        raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}")

    def _scaled(self, y: Array) -> Array:
        beyond = np.abs(y) > 1.0
        if self.target_bounds is None and beyond.any():
            raise ValueError(
                f"y has {y[int(np.argmax(beyond))]:.6g}, outside of [-1, 1], and target_bounds were not given; give "
                "target_bounds=(low, high), public and not computed from the data: targets beyond are cut off there"
            )
        tell_if_beyond("target_bounds", y[:, None], self._low, self._high)
        clipped: Array = np.clip(y, self._low, self._high)
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        scaled: Array = np.clip((clipped - middle) / half, -1.0, 1.0)  # the middle is rounded
        return scaled

    def _set_weights(self, coef: Array, intercept: float) -> None:
        half, middle = (self._high - self._low) / 2, (self._high + self._low) / 2
        self.coef_, self.intercept_ = half * coef, middle + half * intercept

    def predict(self, X: ArrayLike) -> Array:
        """Return the prediction for each row, between the target bounds."""
        predictions: Array = np.clip(self._margins(X), self._low, self._high)
        return predictions

    def __sklearn_tags__(self) -> Any:
        """Say what is different here, for scikit-learn's own checks."""
        tags = super().__sklearn_tags__()
        # Nothing private is good on the few hundred rows that the checks have, at an epsilon of 1.
        tags.regressor_tags.poor_score = True
        return tags
