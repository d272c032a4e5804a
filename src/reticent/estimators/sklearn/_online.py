"""What classifier and regressor share: public scaling, one private pass over rows, the mean of what was published."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from reticent._core._check import Array, positive
from reticent._core._random import Seed
from reticent.domains import Ball
from reticent.estimators._features import LARGEST
from reticent.estimators._plans import PRIVATE, check_system, private_plan
from reticent.learners import Learner, make
from reticent.losses import Loss
from reticent.planning import BasePlan

_log = logging.getLogger("reticent")
_MANY = 20  # rows that are not all beyond a bound by accident


@dataclass(frozen=True, eq=False)
class Scaling:
    """Public bounds of columns: what lies beyond is cut off, and a row, intercept included, has a length up to 1."""

    low: Array
    high: Array
    intercept: bool

    @staticmethod
    def of(bounds: Any, columns: int, intercept: bool) -> Scaling:
        """Read bounds: a pair of numbers for all columns, or of vectors with a number for each.

        >>> Scaling.of((0.0, [1.0, 4.0]), columns=2, intercept=True).rows(np.array([[1.0, 9.0]])).round(4)
        array([[0.5774, 0.5774, 0.5774]])
        """
        low, high = pair("bounds", bounds, columns)
        return Scaling(low, high, bool(intercept))

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.low.size + self.intercept

    def clip(self, X: Array) -> Array:
        """Return the columns with what lies beyond the bounds cut off."""
        clipped: Array = np.clip(X, self.low, self.high)
        return clipped

    def rows(self, X: Array) -> Array:
        """Return rows of length 1 at most, for a learner."""
        scaled = np.clip((self.clip(X) - self._middle) / self._half, -1.0, 1.0)  # the middle is rounded
        if self.intercept:
            scaled = np.column_stack([scaled, np.ones(len(X))])
        return scaled / math.sqrt(self.size)

    def weights(self, decision: Array) -> tuple[Array, float]:
        """Return the weights of the columns as they come, and the intercept, that give `rows(X) @ decision`."""
        count = self.low.size
        coef = decision[:count] / (math.sqrt(self.size) * self._half)
        constant = decision[count] / math.sqrt(self.size) if self.intercept else 0.0
        return coef, float(constant - coef @ self._middle)

    @property
    def _middle(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def _half(self) -> Array:
        return (self.high - self.low) / 2


def tell_if_beyond(name: str, X: Array, low: Any, high: Any) -> None:
    """Tell the keeper of the data, in the log, that all of a column lies beyond one bound and nothing of it is left.

    Neither a warning nor an error, since bounds are right whatever the data. Who may not see the data should not see
    the log.
    """
    lost = ((high - X) < 0).all(axis=0) | ((X - low) < 0).all(axis=0)
    if len(X) >= _MANY and lost.any():
        _log.warning(
            "all %d values of column %d lie beyond %s, where they are cut off to one number; give %s=(low, high), "
            "public and wide enough, and do not compute them from the data",
            *(len(X), int(np.argmax(lost)), name, name),
        )


def pair(name: str, value: Any, columns: int) -> tuple[Array, Array]:
    """Return two vectors, lows and highs; refuse what is not (low, high) with low below high everywhere."""
    try:
        if not isinstance(value, Sequence | np.ndarray):  # what else can be gone through has no order, or other things
            raise TypeError
        low, high = (np.broadcast_to(np.asarray(part, dtype=np.float64), (columns,)) for part in value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be public bounds (low, high), each a number or a vector of {columns} numbers, got {value!r}"
        ) from None
    # Sums, differences and quotients stay well within double precision.
    with np.errstate(invalid="ignore"):
        good = (low >= -LARGEST) & (high <= LARGEST) & (high - low >= 1 / LARGEST)
    if not good.all():
        k = int(np.argmin(good))
        raise ValueError(
            f"{name} must be from -1e100 to 1e100, with low below high by 1e-100 at least, "
            f"got ({low[k]}, {high[k]}) for column {k}"
        )
    return low, high


# What the classifier and the regressor share: one private pass over rows, and the mean of what was published.


class PrivateOnline(BaseEstimator, ABC):  # type: ignore[misc]
    """A linear model whose weights are private decisions; the classifier and the regressor say on which loss."""

    epsilon: float
    delta: float
    horizon: int | None
    bounds: Any
    radius: float
    fit_intercept: bool
    average: bool | None
    system: str
    random_state: Any
    learner_: Learner

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the model unless given), that fitting may have cost any one row."""
        check_is_fitted(self)
        level = self.learner_.plan.delta if delta is None else delta
        # A row lies in one run only.
        return max([*(plan.account().epsilon(level) for plan in self._past), self.learner_.spent(level)])

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Have a call that is refused leave the model as it was.

        Nothing that it holds is changed in place but the learner, by rows that it takes all or none of.
        """
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _checked(self, X: Any, y: Any, *, first: bool, **options: Any) -> tuple[Array, Any]:
        checked: tuple[Array, Any] = validate_data(self, X, y, reset=first, dtype=np.float64, **options)
        return checked

    @abstractmethod
    def _chosen(self) -> tuple[Loss, float]:
        """Return the loss, of scaled targets, and its steepest slope for rows of length 1."""

    def _start(self, rows: int | None) -> None:
        """Start from nothing; `rows` is how many will come, where no horizon was given, or None if nobody knows."""
        self._scaling = Scaling.of(self.bounds, self.n_features_in_, self.fit_intercept)
        self._past: list[BasePlan] = []  # of runs that are over
        self._rounds = 0
        self._total = np.zeros(self._scaling.size)  # decisions, added up over rounds
        # The filtered gate is no better for knowing how many rows will come, so that more of them are no trouble.
        self._run(rows if self.horizon is None and self.system != PRIVATE[0] else self.horizon)

    def _run(self, horizon: int | None) -> None:
        domain = Ball(self._scaling.size, radius=positive("radius", self.radius))
        loss, slope = self._chosen()
        check_system(self.system, horizon, PRIVATE)
        plan = private_plan(domain, horizon, slope, self.epsilon, self.delta, self.system, loss)
        # Runs of one model use one stream of random numbers.
        seed = self.learner_._rng if self._rounds else _seed(self.random_state)
        self.learner_ = make(plan, loss, seed, on_steep="clip")

    def _learn(self, X: Array, targets: Array) -> Self:
        """Take in rows in their order, and bring the weights up to date."""
        plan, done = self.learner_.plan, self.learner_.rounds
        if plan.horizon is not None and done + len(X) > plan.horizon:
            if self.horizon is not None:
                raise ValueError(
                    f"{len(X)} more rows were given, but this model has seen {done} of the horizon={plan.horizon} that "
                    "its privacy is certified for; give horizon= a public number with room for all rows, or None"
                )
            self._past = [*self._past, plan]
            self._run(None)
        tell_if_beyond("bounds", X, self._scaling.low, self._scaling.high)
        trace = self.learner_.observe_many(self._scaling.rows(X), targets)
        self._rounds += len(X)
        self._total = self._total + np.diff([*trace.starts, len(X)]) @ trace.points
        average = self.system != PRIVATE[0] if self.average is None else self.average
        decision = self._total / self._rounds if average else self.learner_.decision
        self._set_weights(*self._scaling.weights(decision))
        return self

    @abstractmethod
    def _set_weights(self, coef: Array, intercept: float) -> None:
        """Keep the weights of scaled columns for scaled targets."""

    def _margins(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = self._scaling.clip(validate_data(self, X, reset=False, dtype=np.float64))
        margins: Array = rows @ np.ravel(self.coef_) + self.intercept_
        return margins

    def __copy__(self) -> NoReturn:
        """Refuse, as learners do: two models would share one learner."""
        raise TypeError("a model cannot be copied, only cloned (without what it learned) or moved (by pickling it)")

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether any row has been seen."""
        return hasattr(self, "coef_")


def _seed(random_state: Any) -> Seed:
    """Return the seed of a learner: None stays None, a cryptographic generator, and not numpy's global one."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, Integral):
        return int(random_state)
    raise ValueError(
        "random_state must be None (a cryptographic generator, as privacy needs), a whole number, or a generator of "
        f"numpy, got {random_state!r}"
    )
