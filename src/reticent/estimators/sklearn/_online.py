"""What classifier and regressor share: public scaling, one private pass over rows, the mean of what was published."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
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
from reticent.estimators._encoding import LARGEST, Encoding, Number, Range, encoding_of
from reticent.estimators._features import set_fill
from reticent.estimators._plans import PRIVATE, check_system, private_plan
from reticent.learners import Learner, make
from reticent.losses import Loss
from reticent.planning import BasePlan

_log = logging.getLogger("reticent")
_MANY = 20  # rows that are not all beyond a bound by accident


@dataclass(frozen=True, eq=False)
class Scaling:
    """What is known of columns in public: numbers beyond their bounds are cut off, and a row has a length up to 1.

    A column is one coordinate between `low` and `high`, or several where its encoding has categories; `given` is False
    where nobody gave bounds, so that values beyond -1 and 1 are refused rather than cut off.
    """

    low: Array
    high: Array
    features: int
    intercept: bool
    given: bool = True
    encodings: tuple[Encoding, ...] | None = None

    @staticmethod
    def of(bounds: Any, names: Sequence[Any], intercept: bool, fill: Any = None) -> Scaling:
        """Read bounds: a pair of numbers for all columns, or of vectors, or a dictionary of encodings by column.

        >>> Scaling.of((0.0, [1.0, 4.0]), "ab", intercept=True).rows(np.array([[1.0, 9.0]])).round(4)
        array([[0.5774, 0.5774, 0.5774]])
        >>> Scaling.of({"a": (0, 8), "b": ("no", "yes")}, "ab", intercept=False).rows(np.array([[0.0, 1.0]])).round(4)
        array([[-0.7071,  0.    ,  0.7071]])
        """
        if not isinstance(bounds, Mapping) and fill is None:
            low, high = pair("bounds", (-1.0, 1.0) if bounds is None else bounds, len(names))
            return Scaling(low, high, low.size, bool(intercept), bounds is not None)
        known = _encodings(bounds, names)
        set_fill(known, fill)
        ends: list[tuple[float, float]] = []
        for encoding in known.values():
            one = (encoding.range.low, encoding.range.high) if isinstance(encoding, Number) else (-1.0, 1.0)
            ends += [one] * len(encoding.tails)
        low, high = np.array(ends).T
        return Scaling(low, high, len(names), bool(intercept), bounds is not None, tuple(known.values()))

    @property
    def size(self) -> int:
        """The number of weights."""
        return self.low.size + self.intercept

    def coordinates(self, X: Array) -> Array:
        """Return the columns with what lies beyond the bounds cut off, and with a column for each category."""
        spread = X
        if self.encodings is not None:
            parts = [
                one.or_fill(X[:, i])[:, None] if isinstance(one, Number) else one.units(f"column {i}", X[:, i])
                for i, one in enumerate(self.encodings)
            ]
            spread = np.concatenate(parts, axis=1)
        if not self.given and (np.abs(spread) > 1.0).any():
            row, column = np.argwhere(np.abs(spread) > 1.0)[0]
            raise ValueError(
                f"X has {spread[row, column]:.6g} in column {column}, outside of [-1, 1], and bounds were not given; "
                "give bounds=(low, high), public and not computed from the data: values are then scaled by them, and "
                "those beyond cut off"
            )
        clipped: Array = np.clip(spread, self.low, self.high)
        return clipped

    def rows(self, X: Array) -> Array:
        """Return rows of length 1 at most, for a learner."""
        scaled = np.clip((self.coordinates(X) - self._middle) / self._half, -1.0, 1.0)  # the middle is rounded
        if self.intercept:
            scaled = np.column_stack([scaled, np.ones(len(X))])
        return scaled / self._root

    def weights(self, decision: Array) -> tuple[Array, float]:
        """Return the weights of the coordinates as they come, and the intercept, that give `rows(X) @ decision`."""
        count = self.low.size
        coef = decision[:count] / (self._root * self._half)
        constant = decision[count] / self._root if self.intercept else 0.0
        return coef, float(constant - coef @ self._middle)

    @property
    def _root(self) -> float:
        return math.sqrt(self.features + self.intercept)

    @property
    def _middle(self) -> Array:
        return (self.low + self.high) / 2

    @property
    def _half(self) -> Array:
        return (self.high - self.low) / 2


def _encodings(bounds: Any, names: Sequence[Any]) -> dict[Any, Encoding]:
    """Return the encoding of every column, by its name."""
    if not isinstance(bounds, Mapping):
        low, high = pair("bounds", (-1.0, 1.0) if bounds is None else bounds, len(names))
        return {name: Number(Range((low[i], high[i]))) for i, name in enumerate(names)}
    found = {}
    for name in names:
        try:
            if name not in bounds:
                raise ValueError(f"there are none for {name!r}")
            found[name] = encoding_of(bounds[name], f"bounds[{name!r}]")
        except ValueError as why:
            raise ValueError(
                "bounds must be public bounds (low, high), of numbers or dates, or the texts of a category, for each "
                f"column, got {bounds!r}: {why}"
            ) from None
    return found


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
    fill: Any
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
        checked: tuple[Array, Any] = validate_data(self, self._loose(X), y, reset=first, **self._form, **options)
        return checked

    def _loose(self, X: Any) -> Any:
        """Return a frame of pandas as objects where encodings read it: scikit-learn takes no dates beside numbers."""
        return X.astype(object) if self._form["dtype"] is object and hasattr(X, "iloc") else X

    @property
    def _form(self) -> dict[str, Any]:
        """How rows are checked: as numbers, or as what they are where encodings read them."""
        if isinstance(self.bounds, Mapping) or self.fill is not None:
            return {"dtype": object, "ensure_all_finite": False}
        return {"dtype": np.float64}

    @property
    def _columns(self) -> Sequence[Any]:
        """The names of the columns, or their numbers where they have none or bounds go by number."""
        names = list(getattr(self, "feature_names_in_", ()))
        keys = [key for given in (self.bounds, self.fill) if isinstance(given, Mapping) for key in given]
        by_name = names and all(key in names for key in keys)
        return names if by_name else range(self.n_features_in_)

    def _codes(self, X: Any) -> Array:
        """Return rows as the numbers that their values stand for; what is missing has a fill, or is refused."""
        encodings = self._scaling.encodings
        if encodings is None:
            numbers: Array = X
            return numbers
        codes = np.empty(X.shape)
        for i, encoding in enumerate(encodings):
            name = self._columns[i]
            try:
                codes[:, i] = encoding.codes(X[:, i])
            except ValueError as why:
                raise ValueError(f"column {name!r} of X {why}") from None
            if np.isinf(codes[:, i]).any() or (np.isnan(codes[:, i]).any() and math.isnan(encoding.fill)):
                raise ValueError(
                    f"column {name!r} of X contains NaN or infinity, so that nothing is known of a value; give "
                    f"fill={{{name!r}: value}}, a public value that counts there, or leave such rows out"
                )
        return codes

    @abstractmethod
    def _chosen(self) -> tuple[Loss, float]:
        """Return the loss, of scaled targets, and its steepest slope for rows of length 1."""

    def _start(self, rows: int | None) -> None:
        """Start from nothing; `rows` is how many will come, where no horizon was given, or None if nobody knows."""
        self._scaling = Scaling.of(self.bounds, self._columns, self.fit_intercept, self.fill)
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
        codes = self._codes(X)
        rows = self._scaling.rows(codes)
        if self._scaling.encodings is None:
            tell_if_beyond("bounds", codes, self._scaling.low, self._scaling.high)
        trace = self.learner_.observe_many(rows, targets)
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
        rows = self._scaling.coordinates(self._codes(validate_data(self, self._loose(X), reset=False, **self._form)))
        margins: Array = rows @ np.ravel(self.coef_) + self.intercept_
        return margins

    def get_weight_names(self) -> list[str]:
        """Return what each of `coef_` goes with: a column, or a column and one of its categories."""
        check_is_fitted(self)
        names = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        if self._scaling.encodings is None:
            return [str(name) for name in names]
        return [f"{name}{tail}" for name, one in zip(names, self._scaling.encodings, strict=True) for tail in one.tails]

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
