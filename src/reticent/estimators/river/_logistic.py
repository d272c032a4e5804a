"""Logistic regression for river, private or lazy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
from river import base
from river.utils.dataframe import to_native_frame, to_native_series

from reticent.estimators._plans import LAZY, PRIVATE
from reticent.estimators.river._model import Lazy, Model, Private, frame_of
from reticent.losses import Logistic

_LABELS = (bool, np.bool_, int, float, np.integer, np.floating)


class Binary(Model, base.MiniBatchClassifier):
    """The face of a classifier with two classes, over the logistic loss."""

    _lipschitz = 1.0

    @property
    def _loss(self) -> Logistic:
        return Logistic()

    def _target_of(self, y: Any) -> float:
        if isinstance(y, _LABELS) and y in (-1, 0, 1):
            return 1.0 if y == 1 else -1.0
        raise ValueError(
            f"labels must be True or False, 1 or 0, or 1 or -1, got {y!r}; with more than two classes, wrap the model "
            "in river.multiclass.OneVsRestClassifier, where each class has a model that spends its own epsilon"
        )

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn from one row.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            The label: True or False, 1 or 0, or 1 or -1.

        """
        self._learn_one(x, y)

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each label.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Not used.

        """
        p = float(scipy.special.expit(self._score(x)))
        return {False: 1.0 - p, True: p}

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each label for every row, in a dataframe.

        Parameters
        ----------
        X
            A dataframe with a column for each feature.

        """
        frame, p = self._probabilities(X)
        return to_native_frame({False: 1.0 - p, True: p}, like=frame)

    def predict_many(self, X: Any) -> Any:
        """Return the more probable label of every row, in a series.

        Parameters
        ----------
        X
            A dataframe with a column for each feature.

        """
        frame, p = self._probabilities(X)
        return to_native_series(p > 0.5, name=None, like=frame)

    def _probabilities(self, X: Any) -> tuple[Any, Any]:
        frame = frame_of(X)
        return frame, scipy.special.expit(self._scores(frame))


class PrivateLogisticRegression(Private, Binary):
    """Logistic regression whose weights are differentially private.

    Whoever sees the weights in play after every row, and so every prediction for rows of their own, learns little about
    any one row that the model learned from: the whole sequence of weights is (`epsilon`, `delta`)-differentially
    private, rows being replaced. Rows are protected, not people: who has several rows is protected that much less.

    What is public is said in advance: which features are read, and the bounds they are clipped to. Scalers that learn
    from the data (`preprocessing.StandardScaler`, `MinMaxScaler`) are not private, and nothing accounts for them.
    Predictions for rows of others, losses and metrics depend on these rows directly, and are not private either.

    A pickled model is as secret as the data (with P-COMW it holds the rows of its present epoch). A deep copy or a
    pickle of a model goes on with the same randomness as the model itself, so that the promise holds for one of the two
    only; `clone` starts anew, with a budget of its own.

    Parameters
    ----------
    features
        The names of the features in a tuple: others are ignored, and a missing one counts as the middle of its
        bounds. Or a number of slots that features are hashed to, whatever their names (0: only an intercept).
    bounds
        The range `(low, high)` of all features, or a tuple or dictionary with one for each declared feature. Values
        beyond are clipped. Unless given, values must lie in [-1, 1], and others are refused. A feature that is a date
        has two dates, one that is a category a tuple of the texts that it may be ("other" takes all others).
    epsilon
        How much the weights may reveal about one row.
    delta
        The chance that may be left out of this; far below one over the number of people.
    horizon
        How many rows will come; more are refused, and nothing of them is recorded. None stands for any number:
        the filtered gate needs no horizon, and P-COMW starts anew after 1024 rows, then after twice as many each time.
    radius
        The largest length of the weight vector; as rows have length 1 at most, the largest log odds.
    system
        "filtered gate", made for ordinary data (`rt.private_learner`); "P-COMW", which certifies regret in the worst
        case and changes its weights rarely; or "DP-FTRL", which needs a horizon.
    seed
        None for a cryptographic generator, which privacy needs; a number for tests and experiments.
    fill
        What counts where a declared feature is missing: a dictionary of public values by name. Without one, the middle
        of its bounds, or no category.

    Examples
    --------
    >>> from reticent.estimators.river import PrivateLogisticRegression
    >>> from river import datasets, evaluate, metrics

    >>> dataset = datasets.Phishing()
    >>> model = PrivateLogisticRegression(
    ...     features=tuple(next(iter(dataset))[0]), bounds=(0.0, 1.0), epsilon=1.0, seed=1
    ... )
    >>> metric = evaluate.progressive_val_score(dataset, model, metrics.Accuracy())
    >>> metric.get() > 0.8
    True

    >>> model.learner.rounds, model.spent() <= 1.0
    (1250, True)

    """

    def __init__(
        self,
        features: tuple[Any, ...] | int = 32,
        bounds: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        horizon: int | None = None,
        radius: float = 8.0,
        system: str = PRIVATE[0],
        seed: int | None = None,
        fill: Any = None,
    ) -> None:
        self.features, self.bounds, self.fill = features, bounds, fill
        self.epsilon, self.delta, self.horizon = epsilon, delta, horizon
        self.radius, self.system, self.seed = radius, system, seed
        self._set_up()


class LazyLogisticRegression(Lazy, Binary):
    """Logistic regression whose weights change rarely.

    For models that are costly to change: the weights change at most `max_switches` times in `horizon` rows, with low
    regret. There is no privacy promise. With P-COMW the learner keeps the rows of its present epoch.

    Parameters
    ----------
    features
        The names of the features in a tuple, or a number of slots to hash them to; see `PrivateLogisticRegression`.
    bounds
        The range of the features; see `PrivateLogisticRegression`.
    max_switches
        How often the weights may change: a cap that holds.
    horizon
        For how many rows; more are refused, and nothing of them is recorded. None stands for any number; P-COMW then
        starts anew after 1024 rows, and after twice as many each time, with `max_switches` as the cap of each epoch.
    radius
        The largest length of the weight vector.
    system
        "budgeted follower", made for ordinary data (`rt.lazy_learner`); "P-COMW", or "gradient descent" in blocks,
        which needs a horizon.
    seed
        Of the generator; None for a cryptographic one.
    fill
        What counts where a declared feature is missing: a dictionary of public values by name. Without one, the middle
        of its bounds, or no category.

    Examples
    --------
    >>> from reticent.estimators.river import LazyLogisticRegression
    >>> from river import datasets, evaluate, metrics

    >>> model = LazyLogisticRegression(bounds=(0.0, 1.0), max_switches=50, horizon=1_250, system="gradient descent")
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 86.56%

    >>> model.learner.switches
    50

    """

    def __init__(
        self,
        features: tuple[Any, ...] | int = 32,
        bounds: Any = None,
        max_switches: int = 100,
        horizon: int | None = None,
        radius: float = 4.0,
        system: str = LAZY[0],
        seed: int | None = None,
        fill: Any = None,
    ) -> None:
        self.features, self.bounds, self.fill = features, bounds, fill
        self.max_switches, self.horizon = max_switches, horizon
        self.radius, self.system, self.seed = radius, system, seed
        self._set_up()
