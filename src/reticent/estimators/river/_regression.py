"""The face of a regressor for river: targets in public bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from river import base
from river.utils.dataframe import to_native_series

from reticent.estimators._numbers import plain_number
from reticent.estimators._ranges import Range
from reticent.estimators.river._blocks import frame_of
from reticent.estimators.river._model import Model
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
                "draws would take minutes; take fewer, another loss, or the other system, which needs a horizon"
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

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from a block of rows, as from one after the other, to the last bit; if one is refused, none is taken.

        Parameters
        ----------
        X
            A dataframe with a column for each feature; missing values count as in `learn_one`.
        y
            A series of targets.

        """
        self._learn_many(X, y)

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
