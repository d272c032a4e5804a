"""From the columns of a table to rounds for a learner, encoded by public knowledge only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._check import Array
from reticent.estimators._encoding import Calendar, Categories, Encoding, Number, Range, is_missing
from reticent.lab.files._table import BadCell, Column, choose
from reticent.losses import Linear
from reticent.losses._label import Label

if TYPE_CHECKING:
    from datetime import date

    from reticent.domains import Domain
    from reticent.lab.files._table import Table
    from reticent.losses import Loss

_WIDEST = 1e100  # squares of what is larger, and sums of those, are beyond floating point
Ends = tuple[float, float] | tuple["date", "date"]


@dataclass(frozen=True)
class Layout:
    """Which columns make a round: features and a target, by name or by number from 1.

    Without features a round has the constant 1: the decision is one number, a quantile say. All that is known of a
    column is public: `bounds` are limits of numbers or dates (a value beyond is moved to the limit), `categories` the
    texts that it may be, `fill` what counts where a cell is empty, `labels` the texts that are label -1 and 1. With
    `unit_rows` features are numbers whose rows have length 1 at most already.
    """

    features: tuple[str, ...] = ()
    target: str | None = None
    intercept: bool = False
    bounds: Mapping[str, Ends] = field(default_factory=dict)
    labels: tuple[str, str] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fill: Mapping[str, str] = field(default_factory=dict)
    unit_rows: bool = False

    def bind(self, table: Table, loss: Loss | None) -> Rounds:
        """Return the rounds of this table; refuse columns that are not there, or do not go with the loss.

        Without a loss there is no target either: the rows are to be scored only.
        """
        linear, label = isinstance(loss, Linear), isinstance(loss, Label)
        if loss is not None:
            self._check(linear, label)
        places = [_place(table, wanted) for wanted in self.features]
        names = [table.names[place] for place in places]
        for i, place in enumerate(places):
            if place in places[:i]:
                raise ValueError(f"features must differ, got column {names[i]!r} twice")
        target = None if self.target is None else _place(table, self.target)
        if target in places:
            raise ValueError(f"target must not be one of the features, got {self.target!r} for both")
        bounds = self._by_place(table, "bounds", self.bounds, [*places, target])
        encodings = self._encodings(table, places, linear, bounds)
        fills = self._by_place(table, "fill", self.fill, places)
        columns = [
            _column(name, place, encodings.get(place), fills.get(place))
            for name, place in zip(names, places, strict=True)
        ]
        ends = _limits(table, linear, bounds, target, label)
        if target is not None:
            kind = "number" if not label else "label" if self.labels is None else "class"
            columns.append(Column(table.names[target], target, kind, self.labels or ()))
        elif loss is None:
            columns.append(Column("score", -1))  # in the place of a target; nobody reads it
        known = tuple(encodings[place] for place in places) if encodings else ()
        at = {place: i for i, place in enumerate([*places, target])}
        limits = {at[place]: pair for place, pair in ends.items()}
        return Rounds(tuple(columns), self.intercept, linear, limits, known, self.unit_rows)

    def _encodings(
        self, table: Table, places: list[int], linear: bool, bounds: Mapping[int, Any]
    ) -> dict[int, Encoding]:
        """Return what is known of the features, of all of them or of none."""
        texts = self._by_place(table, "categories", self.categories, places)
        if linear:
            return {}
        found: dict[int, Encoding] = {}
        for place in places:
            name = table.names[place]
            if place in texts and place in bounds:
                raise ValueError(f"a column has bounds or categories, got both for {name!r}; leave one out")
            if place in texts:
                found[place] = Categories(texts[place], f"categories of {name!r}")
            elif place in bounds:
                low, high = bounds[place]
                _check_order(name, low, high)
                numbers = isinstance(low, float)
                found[place] = Number(Range((low, high), f"bounds of {name!r}")) if numbers else Calendar(low, high)
        missing = [table.names[place] for place in places if place not in found]
        if missing and found:
            raise ValueError(
                f"bounds must be given for all features or for none, got none for {', '.join(missing)} (nor categories)"
            )
        if found and self.unit_rows:
            raise ValueError(
                "rows of length 1 are taken as they are; leave --bounds and --categories out, or --unit-rows"
            )
        return found

    def _by_place(
        self, table: Table, what: str, given: Mapping[str, Any], allowed: Sequence[int | None]
    ) -> dict[int, Any]:
        """Return what was given for columns by their place; refuse columns that are not used, or named twice."""
        found: dict[int, Any] = {}
        for name, value in given.items():
            place = _place(table, name)
            if place in found:
                raise ValueError(f"{what} must be given once for a column, got {table.names[place]!r} twice")
            if place not in allowed:
                also = " or the target" if what == "bounds" else ""
                raise ValueError(
                    f"{what} must be for features{also}, got some for {table.names[place]!r}; leave them out"
                )
            found[place] = value
        return found

    def _check(self, linear: bool, label: bool) -> None:
        if linear:
            if not self.features:
                raise ValueError("linear losses must have features, the gradient of each round; give --features")
            if self.target is not None or self.intercept:
                raise ValueError("linear losses have features only, the gradient; leave --target and --intercept out")
            if self.categories:
                raise ValueError("gradients are numbers; leave --categories out with --loss linear")
        elif self.target is None:
            raise ValueError("a target is expected for this loss, got none; give --target COLUMN")
        if self.labels is not None and not label:
            raise ValueError(f"labels must be left out for a loss without labels, got {','.join(self.labels)}")


def _place(table: Table, wanted: str) -> int:
    return choose(table.names, wanted, table.name, table.hint(wanted))


def _column(name: str, place: int, encoding: Encoding | None, fill: str | None) -> Column:
    """Return a feature's column; a fill must be what a cell may be."""
    coded = isinstance(encoding, Calendar | Categories)
    found = Column(name, place, "coded" if coded else "number", encoding=encoding if coded else None)
    if fill is None:
        return found
    try:
        if is_missing(fill):
            raise BadCell("nothing is there")
        code = found.read(fill)
    except BadCell as why:
        raise ValueError(f"fill must be a value of its column, got {fill!r} for {name!r}: {why}") from None
    return Column(name, place, found.kind, encoding=found.encoding, fill=code)


@dataclass(frozen=True)
class Rounds:
    """Rounds made from chosen columns, the target last.

    With `encodings` numbers and dates are mapped to [-1, 1], a category has a coordinate for each of its texts, and
    rows are divided by the root of the number of features (the intercept's 1 included), so that they have length 1 at
    most. Without, features are taken as they are. Gradients of linear losses and targets keep their units: bounds only
    cut them off.

    >>> x = Rounds((Column("age", 0), Column("sick", 1, "label")), False, False, {}, (Number(Range((0.0, 100.0))),))
    >>> x.block(np.array([[75.0, 1.0], [300.0, -1.0]]))
    (array([[0.5],
           [1. ]]), array([ 1., -1.]))
    """

    columns: tuple[Column, ...]
    intercept: bool
    linear: bool
    bounds: Mapping[int, tuple[float, float]]
    encodings: tuple[Encoding, ...] = ()
    unit_rows: bool = False

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns of the features."""
        return self.columns if self.linear else self.columns[:-1]

    @property
    def decision(self) -> tuple[str, ...]:
        """What each coordinate of a decision goes with."""
        if not self.features:
            return (self.columns[-1].name,)
        tails = [one.tails for one in self.encodings] or [("",)] * len(self.features)
        names = (f"{column.name}{tail}" for column, ends in zip(self.features, tails, strict=True) for tail in ends)
        return (*names, *("intercept",) * self.intercept)

    @property
    def dim(self) -> int:
        """The number of coordinates of a decision."""
        return len(self.decision)

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """The public bounds of the target, if there are any."""
        return None if self.linear else self.bounds.get(len(self.columns) - 1)

    @property
    def known(self) -> bool:
        """Whether something public says how long a row may be."""
        return math.isfinite(self.length)

    @property
    def length(self) -> float:
        """The largest length that a row of features may have; infinite where nothing is known of it."""
        if not self.features or self.encodings or self.unit_rows:
            return 1.0
        if self.linear and all(i in self.bounds for i in range(len(self.features))):
            return math.hypot(*(max(abs(low), abs(high)) for low, high in self.bounds.values()))
        return math.inf

    @property
    def scaling(self) -> str:
        """How values were brought to scale, in words."""
        if self.unit_rows:
            return "rows of length 1 at most, as they are"
        parts = [described(column, one) for column, one in zip(self.features, self.encodings, strict=False)]
        parts += [f"{self.columns[i].name} from {low:g} to {high:g}" for i, (low, high) in self.bounds.items()]
        return "public bounds: " + ", ".join(parts) if parts else "values as they are"

    def steepest(self, domain: Domain, loss: Any) -> float | None:
        """Return a Lipschitz constant that bounds and loss imply on a domain; None where they imply none."""
        if not self.known:
            return None
        if self.linear:
            if domain.finite:
                lows, highs = zip(*self.bounds.values(), strict=True)
                return max(max(highs) - min(lows), 0.0) or None
            return self.length or None
        reach = self.length * (domain.radius + float(np.linalg.norm(domain.center)))
        if self.columns[-1].kind == "number":
            reach += math.inf if self.target_bounds is None else max(map(abs, self.target_bounds))
        slope = float(loss.slope_bound(np.array([-reach]), np.array([reach]))[0])
        found = self.length * slope
        return found if math.isfinite(found) and found > 0 else None

    @property
    def root(self) -> float:
        """What rows are divided by, so that their length is 1 at most."""
        if self.encodings:
            return math.sqrt(len(self.features) + self.intercept)
        return math.sqrt(2.0) if self.unit_rows and self.intercept else 1.0

    def block(self, values: Array) -> tuple[Array, ...]:
        """Return rows of the table as a block of rounds, as `observe_many` takes them."""
        rows = self.rows(values)
        if self.linear:
            return (rows,)
        last = len(self.columns) - 1
        if self.columns[-1].kind != "number":
            return rows, np.where(values[:, last] == 1.0, 1.0, -1.0)
        return rows, self._clipped(values, last)

    def rows(self, values: Array) -> Array:
        """Return the features of rows of the table."""
        count, ones = len(self.features), np.ones((len(values), 1))
        if self.encodings:
            parts = [one.units(self.columns[i].name, values[:, i]) for i, one in enumerate(self.encodings)]
        else:
            parts = [self._clipped(values, i)[:, None] for i in range(count)]
        rows = np.concatenate([*parts, *[ones] * (self.intercept or not count)], axis=1)
        scaled: Array = rows / self.root
        return scaled

    def _clipped(self, values: Array, i: int) -> Array:
        return np.clip(values[:, i], *self.bounds[i]) if i in self.bounds else np.array(values[:, i])


def described(column: Column, encoding: Encoding) -> str:
    """Return what is known of a feature, in words."""
    if isinstance(encoding, Categories):
        return f"{column.name} one of {', '.join(encoding.labels)}"
    assert isinstance(encoding, Number)
    low, high = encoding.shown_ends()
    return f"{column.name} from {low} to {high}"


def _limits(
    table: Table, linear: bool, bounds: Mapping[int, Any], target: int | None, label: bool
) -> dict[int, tuple[float, float]]:
    """Return the bounds that cut values off in their own units: of gradients, and of the target."""
    found: dict[int, tuple[float, float]] = {}
    for place, (low, high) in bounds.items():
        name = table.names[place]
        if not linear and place != target:
            continue
        if place == target and label:
            raise ValueError(f"bounds must be left out for labels, got some for {name!r}")
        if not isinstance(low, float):
            raise ValueError(f"bounds must be numbers for {name!r}, which is no feature, got dates")
        _check_order(name, low, high)
        found[place] = low, high
    return found


def _check_order(name: str, low: Any, high: Any) -> None:
    if not low < high:
        raise ValueError(f"bounds must be LOW:HIGH with LOW below HIGH, got {low}:{high} for {name}")
    if isinstance(low, float) and max(-low, high) > _WIDEST:
        raise ValueError(f"bounds must be within {_WIDEST:g}, got {low:g}:{high:g} for {name}")
