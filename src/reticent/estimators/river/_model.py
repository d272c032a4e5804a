"""What all estimators for river share: features to rows, and a learner that is made when it is first needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Self

import numpy as np
from river import base
from river.utils.dataframe import into_frame, into_series, to_numpy

from reticent._core._check import Array, integer, positive
from reticent._core._random import generator
from reticent.domains import Ball, Domain, Interval
from reticent.estimators._features import Features, feature_map
from reticent.estimators._plans import LAZY, PRIVATE, check_privacy, check_system, lazy_plan, private_plan
from reticent.learners import Learner, make
from reticent.losses import Loss
from reticent.planning import BasePlan


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


def values_of(frame: Any, columns: list[int], features: Features) -> Array:
    """Return some columns of a frame as the numbers that they stand for; NaN means missing."""
    if not columns:
        return np.empty((len(frame), 0))
    read = frame[:, columns]
    if all(kind.is_numeric() and features.plain(name) for name, kind in read.schema.items()):
        return np.asarray(to_numpy(read), dtype=np.float64)
    return np.column_stack([_column(read.columns[i], read[:, i], features) for i in range(len(columns))])


def _column(name: Any, column: Any, features: Features) -> Array:
    values = column.to_numpy()
    # Truth values, sparse columns, categories that are numbers.
    if values.dtype.kind in "biuf" and features.plain(name):
        return np.asarray(values, dtype=np.float64)
    given: Iterable[Any] = column.to_list()
    return features.codes(name, given)


class Model(base.Base, ABC):
    """A linear model over public features, driven by a learner.

    Parameters stay as they were given, for `clone`; the learner is made from them when it is first asked for, so that
    a model costs nothing until it is used, and clones of a model without a seed have randomness of their own.
    """

    features: Any
    bounds: Any
    fill: Any
    horizon: int | None
    radius: float
    system: str
    seed: int | None

    def _set_up(self) -> None:
        """Check the parameters, which are in place, and be as new."""
        self._map = feature_map(self.features, self.bounds, self.fill)
        self._check()
        self._learner: Learner | None = None

    def _check(self) -> None:
        """Refuse parameters that no model can have, before any row comes."""
        positive("radius", self.radius)
        generator(self.seed)

    @abstractmethod
    def _new_plan(self) -> BasePlan:
        """Return the plan for the parameters."""

    @property
    @abstractmethod
    def _loss(self) -> Loss:
        """What a row costs, targets in units."""

    @property
    @abstractmethod
    def _lipschitz(self) -> float:
        """The largest slope of a row's loss, given that rows have length 1 at most."""

    @property
    def _reach(self) -> float:
        """The largest prediction of a model without features, in units."""
        return float(self.radius)

    @property
    def _domain(self) -> Domain:
        if self._map.dim == 1:
            return Interval(-self._reach, self._reach)
        return Ball(self._map.dim, float(self.radius))

    @property
    def learner(self) -> Learner:
        """The learner behind the model: `learner.decision` are the weights, `rounds` and `switches` count."""
        if self._learner is None:
            self._learner = make(self._new_plan(), self._loss, self.seed)
        return self._learner

    @property
    def plan(self) -> BasePlan:
        """What is promised: `print(model.plan)` lays it out."""
        plan: BasePlan = self.learner.plan
        return plan

    def _score(self, x: Mapping[Any, Any]) -> float:
        # Accumulated, since a dot product may be summed in another order for one row than for many.
        return float(np.add.accumulate(self._map.row(x) * self.learner.decision)[-1])

    def _scores(self, frame: Any) -> Array:
        scores: Array = np.add.accumulate(self._rows(frame) * self.learner.decision, axis=1)[:, -1]
        return scores

    def _rows(self, frame: Any) -> Array:
        names = frame.columns
        read = [i for i, name in enumerate(names) if self._map.reads(name)]
        return self._map.rows([names[i] for i in read], values_of(frame, read, self._map))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn from a block of rows, as from one after the other, to the last bit; if one is refused, none is taken.

        Parameters
        ----------
        X
            A dataframe with a column for each feature; missing values count as in `learn_one`.
        y
            A series of targets, or of labels.

        """
        self._learn_many(X, y)

    def _learn_many(self, X: Any, y: Any) -> None:
        frame, given = frame_of(X), targets_of(y)
        if len(given) != len(frame):
            raise ValueError(f"y must have one value for each of the {len(frame)} rows of X, got {len(given)}")
        targets = np.array([self._target_of(value) for value in given], dtype=np.float64)
        rows = self._rows(frame)
        if given:
            self._admit(len(given))
            self.learner.observe_many(rows, targets)

    def _learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        target, row = self._target_of(y), self._map.row(x)
        self._admit(1)
        self.learner.observe(row, target)

    def _admit(self, count: int) -> None:
        """Refuse rows beyond the horizon before anything of them is recorded."""
        if self.horizon is not None and self.learner.rounds + count > self.horizon:
            raise ValueError(
                f"{count} more rows were given, but this model has {self.horizon - self.learner.rounds} of its horizon="
                f"{self.horizon} left; nothing was recorded. What is promised ends there: make the model with a longer "
                "horizon, or horizon=None if their number is unknown; a new model on new rows has a budget of its "
                "own"
            )

    @abstractmethod
    def _target_of(self, y: Any) -> float:
        """Return a target as the loss takes it, or refuse it."""

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Return a model with the same parameters, or new ones, that has learned nothing.

        Parameters
        ----------
        new_params
            Parameters that are to be different.
        include_attributes
            Must be False: the clone would have the learner of this model, its randomness and its plan, whatever the
            new parameters say.

        """
        if include_attributes:
            raise ValueError(
                f"include_attributes must be False, got {include_attributes!r}: the clone would go on with the plan "
                "and the randomness of this model, and what is promised holds for one of the two; pickle moves a model"
            )
        return super().clone(new_params)

    def __copy__(self) -> NoReturn:
        """Refuse, as learners do: two models would share one learner."""
        raise TypeError("a model cannot be copied, only cloned (without what it learned) or moved (by pickling it)")


class Private(Model):
    """A model whose weights, as they change, are (epsilon, delta)-private in the rows."""

    epsilon: float
    delta: float

    def _check(self) -> None:
        super()._check()
        check_privacy(self.epsilon, self.delta)
        check_system(self.system, self.horizon, PRIVATE)

    def _new_plan(self) -> BasePlan:
        goal = self._domain, self.horizon, self._lipschitz, float(self.epsilon), float(self.delta)
        return private_plan(*goal, self.system, self._loss)

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (the model's unless given), that learning may have cost one row so far.

        Parameters
        ----------
        delta
            The level, if another than that of the model.

        """
        return self.learner.spent(delta)


class Lazy(Model):
    """A model whose weights change rarely; it makes no privacy promise."""

    max_switches: int

    def _check(self) -> None:
        super()._check()
        check_system(self.system, self.horizon, LAZY)
        integer("max_switches", self.max_switches, least=0)

    def _new_plan(self) -> BasePlan:
        return lazy_plan(self._domain, self.horizon, self._lipschitz, self.max_switches, self.system)
