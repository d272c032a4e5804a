"""Linear regression for river, private or lazy, with targets in public bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from river import base
from river.utils.dataframe import to_native_series

from reticent.estimators._encoding import Range, plain_number
from reticent.estimators._plans import LAZY, PRIVATE
from reticent.estimators.river._model import Lazy, Model, Private, frame_of
from reticent.losses import Absolute, Huber, Pinball, Squared
from reticent.losses._residual import Residual

_MANY = 20  # features: with more, a draw for losses with a kink reads its past for minutes
LOSSES = ("absolute", "huber", "squared")
_QUADRATIC = 0.25  # the width of the Huber loss unless given, in units: an eighth of the range of the targets


class Regression(Model, base.MiniBatchRegressor):
    """A linear model of a number; targets are moved to [-1, 1] by public bounds, and predictions back.

    The loss is counted in these units. Targets beyond the bounds are clipped, and so are predictions.
    """

    target_bounds: Any

    def _set_up(self) -> None:
        self._target = Range(self.target_bounds, "target_bounds")
        super()._set_up()
        if self.system == "P-COMW" and self._map.dim > 1 + _MANY and isinstance(self._loss, Absolute | Pinball):
            raise ValueError(
                f"features must be at most {_MANY} for {self._loss!r} with system='P-COMW', got {self._map.dim - 1}: "
                "draws would take minutes; take fewer, another loss, or another system"
            )

    @property
    def _reach(self) -> float:
        return 1.0  # nothing beyond the bounds of the targets is worth predicting

    def _target_of(self, y: Any) -> float:
        try:
            value = plain_number(y)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if math.isnan(value):
            raise ValueError(f"targets must be numbers, got {y!r}; leave rows without a target out")
        return self._target.unit("the target", value)

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn from one row.

        Parameters
        ----------
        x
            A dictionary of features.
        y
            The target, a number.

        """
        self._learn_one(x, y)

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> float:
        """Return the prediction for one row.

        Parameters
        ----------
        x
            A dictionary of features.
        kwargs
            Not used.

        """
        return self._target.back(self._score(x))

    def predict_many(self, X: Any) -> Any:
        """Return the prediction for every row, in a series.

        Parameters
        ----------
        X
            A dataframe with a column for each feature.

        """
        frame = frame_of(X)
        return to_native_series(self._target.backs(self._scores(frame)), name=None, like=frame)


class Linear(Regression):
    """A regression with one of three losses."""

    loss: str
    width: float | None

    def _check(self) -> None:
        super()._check()
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be {', '.join(map(repr, LOSSES[:-1]))} or {LOSSES[-1]!r}, got {self.loss!r}")
        if self.width is not None and self.loss != "huber":
            raise ValueError(f"width must be None unless loss='huber', got {self.width!r} with loss={self.loss!r}")
        if self.width is not None:
            Huber(self.width)

    @property
    def _loss(self) -> Residual:
        if self.loss == "absolute":
            return Absolute()
        return Squared() if self.loss == "squared" else Huber(self._units)

    @property
    def _units(self) -> float:
        """The width of the Huber loss in units."""
        return _QUADRATIC if self.width is None else 2.0 * float(self.width) / self._target.width

    @property
    def _lipschitz(self) -> float:
        # Rows have length 1 and targets lie in [-1, 1], so no residual is above 1 plus the largest prediction.
        most = 1.0 + self._domain.radius
        return {"absolute": 1.0, "squared": most, "huber": min(self._units, most)}[self.loss]


# Linear regression for river, private or lazy.

# For river's checks, which take the approval of a president: dates, and shares in percent.
_DATES, _PERCENT = (736_000.0, 738_000.0), (0.0, 100.0)
_POLLS = ("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")
CHECKED = {
    "features": ("ordinal_date", *_POLLS),
    "bounds": (_DATES, *(_PERCENT,) * len(_POLLS)),
    "target_bounds": _PERCENT,
}


class PrivateLinearRegression(Private, Linear):
    """Linear regression whose weights are differentially private.

    The whole sequence of weights is (`epsilon`, `delta`)-differentially private in the rows; what that means and what
    it does not cover is said at `PrivateLogisticRegression`. Targets are clipped to public bounds, as features are,
    and the loss is that of targets moved to [-1, 1].

    Parameters
    ----------
    features
        The names of the features in a tuple, or a number of slots to hash them to (0: only an intercept). Hashed rows
        are brought to length 1 each by itself, so a model that is linear in the features needs declared ones.
    bounds
        The range `(low, high)` of all features, or a tuple or dictionary with one for each declared feature. Values
        beyond are clipped. Unless given, values must lie in [-1, 1], and others are refused. A feature that is a date
        has two dates, one that is a category a tuple of the texts that it may be ("other" takes all others).
    target_bounds
        The range `(low, high)` of the targets. Targets beyond are clipped. Unless given, they must lie in [-1, 1].
    loss
        "absolute" for medians, "squared" for means, or "huber" for means with outliers. Squared losses are steep,
        and cost more noise. Absolute losses are slow with P-COMW and more than ten features, and refused with
        more than twenty.
    width
        The largest residual with a quadratic Huber loss, in units of the target; an eighth of its range unless given.
    epsilon
        How much the weights may reveal about one row.
    delta
        The chance that may be left out of this; far below one over the number of people.
    horizon
        How many rows will come; more are refused, and nothing of them is recorded. None stands for any number (with
        P-COMW in epochs of 1024 rows and then twice as many each time).
    radius
        The largest length of the weight vector, in units.
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
    >>> from reticent.estimators.river import PrivateLinearRegression
    >>> from river import datasets, evaluate, metrics

    >>> polls = ("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")
    >>> model = PrivateLinearRegression(
    ...     features=polls, bounds=(0.0, 100.0), target_bounds=(0.0, 100.0), seed=1
    ... )
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> metric.get() < 12.0
    True

    """

    def __init__(
        self,
        features: tuple[Any, ...] | int = 8,
        bounds: Any = None,
        target_bounds: Any = None,
        loss: str = "huber",
        width: float | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        horizon: int | None = None,
        radius: float = 4.0,
        system: str = PRIVATE[0],
        seed: int | None = None,
        fill: Any = None,
    ) -> None:
        self.features, self.bounds, self.target_bounds, self.fill = features, bounds, target_bounds, fill
        self.loss, self.width = loss, width
        self.epsilon, self.delta, self.horizon = epsilon, delta, horizon
        self.radius, self.system, self.seed = radius, system, seed
        self._set_up()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {**CHECKED, "horizon": 20_000}
        yield {**CHECKED, "loss": "absolute", "horizon": 20_000}
        yield {**CHECKED, "loss": "squared", "horizon": 20_000, "system": "DP-FTRL"}


class LazyLinearRegression(Lazy, Linear):
    """Linear regression whose weights change rarely.

    At most `max_switches` times in `horizon` rows, with low regret; there is no privacy promise. With P-COMW the
    learner keeps the rows of its present epoch, unless the loss is squared.

    Parameters
    ----------
    features
        The names of the features in a tuple, or a number of slots to hash them to; see `PrivateLinearRegression`.
    bounds
        The range of the features; see `PrivateLinearRegression`.
    target_bounds
        The range of the targets; see `PrivateLinearRegression`.
    loss
        "absolute", "huber" or "squared".
    width
        The largest residual with a quadratic Huber loss, in units of the target; an eighth of its range unless given.
    max_switches
        How often the weights may change: a cap that holds.
    horizon
        For how many rows; more are refused, and nothing of them is recorded. None stands for any number; P-COMW then
        has epochs of 1024 rows and then twice as many each time, with `max_switches` as the cap of each.
    radius
        The largest length of the weight vector, in units.
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
    >>> from reticent.estimators.river import LazyLinearRegression
    >>> from river import datasets, evaluate, metrics

    >>> polls = ("gallup", "ipsos", "morning_consult", "rasmussen", "you_gov")
    >>> model = LazyLinearRegression(
    ...     features=polls, bounds=(0.0, 100.0), target_bounds=(0.0, 100.0), max_switches=100, horizon=1_001,
    ...     loss="squared", system="gradient descent",
    ... )
    >>> metric = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> metric.get() < 12.0, model.learner.switches
    (True, 100)

    """

    def __init__(
        self,
        features: tuple[Any, ...] | int = 8,
        bounds: Any = None,
        target_bounds: Any = None,
        loss: str = "huber",
        width: float | None = None,
        max_switches: int = 100,
        horizon: int | None = None,
        radius: float = 4.0,
        system: str = LAZY[0],
        seed: int | None = None,
        fill: Any = None,
    ) -> None:
        self.features, self.bounds, self.target_bounds, self.fill = features, bounds, target_bounds, fill
        self.loss, self.width = loss, width
        self.max_switches, self.horizon = max_switches, horizon
        self.radius, self.system, self.seed = radius, system, seed
        self._set_up()

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {**CHECKED, "horizon": 20_000}
        yield {**CHECKED, "loss": "squared", "horizon": 20_000, "system": "gradient descent"}
