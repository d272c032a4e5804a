"""A private classifier of two classes: logistic regression, learned in one pass."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target, unique_labels

from reticent._core._check import Array
from reticent.estimators._plans import PRIVATE
from reticent.estimators.sklearn._online import PrivateOnline
from reticent.losses import Logistic, Loss


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


# A private classifier of two classes: logistic regression, learned in one pass.


class PrivateOnlineClassifier(ClassifierMixin, PrivateOnline):  # type: ignore[misc]
    """Logistic regression for two classes, (epsilon, delta)-private in every row, learned in one pass.

    Parameters
    ----------
    epsilon, delta : float
        What fitting may reveal of any one row, its label included. Every call of `fit` spends it anew on its rows.
    horizon : int or None
        The most rows that may come. None: any number; P-COMW then takes in `fit` the number of rows, as public, and in
        `partial_fit` epochs of doubling length. Rows that come after `fit` are learned in epochs of their own: a row
        lies in one of them, so epsilon does not add up, unless a row is given twice.
    bounds : (low, high), a dictionary, or None
        Public bounds of the features, numbers or a vector each; values beyond are cut off. They must not be computed
        from the data. None: values are expected between -1 and 1, and others are refused. A dictionary has for every
        column, by name or number, two numbers, two dates (for a column of dates), or a tuple of texts (for one of
        categories; "other" takes all that are not named).
    fill : dict or None
        What counts where a value is missing (None, NaN, an empty text), by column: public values. Without one, rows
        with such values are refused.
    radius : float
        The longest vector of weights, for rows (intercept included) scaled to a length of at most 1: how far the log
        odds may go.
    fit_intercept : bool
        Whether there is a constant term.
    average : bool or None
        Whether predictions use the mean of all decisions so far, which costs no privacy, or the last decision. None:
        the mean for P-COMW and DP-FTRL, where it is steadier (and their guarantee for rows of one law is for it), the
        last one for the filtered gate, which has looked at all of them.
    system : str
        "filtered gate", made for ordinary data (`rt.private_learner`); "P-COMW", which certifies regret in the worst
        case; or "DP-FTRL", which needs the number of rows (`fit` knows it).
    classes : two labels or None
        The labels that may come, public. None: `fit` takes those that occur, and that they do is not protected.
    random_state : None, int, RandomState or Generator
        None is a cryptographic generator, as privacy needs; anything else is for tests and experiments.

    Attributes
    ----------
    coef_, intercept_ : the weights on the features as they come (cut off at the bounds); private, may be published.
        A category has a weight for each of its texts: `get_weight_names()` says which is which.
    classes_, n_features_in_, feature_names_in_ : as everywhere in scikit-learn.
    learner_ : the learner, with its `plan`; its state is as secret as the data.

    Weights of rows (`sample_weight`) are not supported: a row counts once, or its privacy would cost more. More than
    two classes are not either; `OneVsRestClassifier` around this one spends epsilon once for each class.

    >>> import numpy as np
    >>> from reticent.estimators.sklearn import PrivateOnlineClassifier
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(5000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> model = PrivateOnlineClassifier(epsilon=3.0, bounds=(-1.0, 1.0), classes=("no", "yes"), random_state=1)
    >>> model.fit(X, y).score(X, y) > 0.9, model.spent() <= 3.0
    (True, True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        horizon: int | None = None,
        bounds: Any = None,
        fill: Any = None,
        radius: float = 8.0,
        fit_intercept: bool = True,
        average: bool | None = None,
        system: str = PRIVATE[0],
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.horizon = horizon
        self.bounds = bounds
        self.fill = fill
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.average = average
        self.system = system
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, and learn from the rows in one pass, in their order; if refused, nothing changes."""
        with self._all_or_nothing():
            X, y = self._checked(X, y, first=True)
            check_classification_targets(y)
            self.classes_ = two_found(y) if self.classes is None else two_given(self.classes)
            signs = self._signs(y)
            self._start(len(X))
            return self._learn(X, signs)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from more rows, in their order; if they are refused, nothing changes.

        `classes` must be known at the first call, here or at construction.
        """
        first = not hasattr(self, "learner_")
        with self._all_or_nothing():
            X, y = self._checked(X, y, first=first)
            check_classification_targets(y)
            self.classes_ = self._agreed(classes, first)
            signs = self._signs(y)
            if first:
                self._start(None)
            return self._learn(X, signs)

    def _agreed(self, classes: Any, first: bool) -> NDArray[Any]:
        """Return the labels that were said first; refuse others."""
        said = [two_given(given) for given in (self.classes, classes) if given is not None]
        if first and not said:
            raise ValueError("classes must be passed on the first call to partial_fit, got None; give the two labels")
        labels = said[0] if first else self.classes_
        for other in said:
            if not np.array_equal(other, labels):
                when = "at construction" if first else "in the first call"
                raise ValueError(f"classes must be {labels} as {when}, got {other}")
        return labels

    def _signs(self, y: NDArray[Any]) -> Array:
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(f"y must hold the labels {self.classes_} only, got {y[~known].tolist()[0]!r}")
        return np.where(y == self.classes_[1], 1.0, -1.0)

    def _chosen(self) -> tuple[Loss, float]:
        return Logistic(), 1.0

    def _set_weights(self, coef: Array, intercept: float) -> None:
        self.coef_, self.intercept_ = coef[None], np.array([intercept])

    def decision_function(self, X: ArrayLike) -> Array:
        """Return the log odds of the second class for each row."""
        return self._margins(X)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likelier class of each row."""
        margins = self._margins(X)
        labels: NDArray[Any] = self.classes_[(margins > 0).astype(int)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each class for each row."""
        from scipy.special import expit

        margins = self._margins(X)
        return np.column_stack([expit(-margins), expit(margins)])

    def __sklearn_tags__(self) -> Any:
        """Say what is different here, for scikit-learn's own checks."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False  # one loss, of a label with two values
        # Nothing private is good on the few hundred rows that the checks have, at an epsilon of 1.
        tags.classifier_tags.poor_score = True
        return tags
