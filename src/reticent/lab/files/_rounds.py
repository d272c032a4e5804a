"""From the columns of a table to rounds for a learner, scaled by public bounds only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._check import Array
from reticent.lab.files._table import Column, choose
from reticent.losses import Linear
from reticent.losses._label import Label

if TYPE_CHECKING:
    from reticent.domains import Domain
    from reticent.lab.files._table import Table
    from reticent.losses import Loss

_WIDEST = 1e150  # squares of what is larger are beyond floating point
Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Layout:
    """Which columns make a round: features and a target, by name or by number from 1.

    Without features a round has the constant 1: the decision is one number, a quantile say. `bounds` are public limits
    of columns; a value beyond is moved to the limit. `positive` is the text that means label 1.
    """

    features: tuple[str, ...] = ()
    target: str | None = None
    intercept: bool = False
    bounds: Bounds = field(default_factory=dict)
    positive: str | None = None

    def bind(self, table: Table, loss: Loss) -> Rounds:
        """Return the rounds of this table; refuse columns that are not there, or do not go with the loss."""
        linear, label = isinstance(loss, Linear), isinstance(loss, Label)
        self._check(linear, label)
        places = [choose(table.names, wanted, table.name, table.hint) for wanted in self.features]
        columns = [Column(table.names[place], place) for place in places]
        for i, column in enumerate(columns):
            if column.place in places[:i]:
                raise ValueError(f"features must differ, got column {column.name!r} twice")
        if self.target is not None:
            place = choose(table.names, self.target, table.name, table.hint)
            if place in places:
                raise ValueError(f"target must not be one of the features, got {self.target!r} for both")
            if label and self.positive is not None:
                columns.append(Column(table.names[place], place, "class", self.positive.strip()))
            else:
                columns.append(Column(table.names[place], place, "label" if label else "number"))
        limits: dict[int, tuple[float, float]] = {}
        for name, limit in self.bounds.items():
            place = choose(table.names, name, table.name, table.hint)
            if place in limits:
                raise ValueError(f"bounds must be given once for a column, got {table.names[place]!r} twice")
            limits[place] = limit
        return Rounds(tuple(columns), self.intercept, linear, _limits(columns, limits, len(places)))

    def _check(self, linear: bool, label: bool) -> None:
        if linear:
            if not self.features:
                raise ValueError("linear losses must have features, the gradient of each round; give --features")
            if self.target is not None or self.intercept:
                raise ValueError("linear losses have features only, the gradient; leave --target and --intercept out")
        elif self.target is None:
            raise ValueError("a target is expected for this loss, got none; give --target COLUMN")
        if self.positive is not None and not label:
            raise ValueError(f"positive must be left out for a loss without labels, got {self.positive!r}")


@dataclass(frozen=True)
class Rounds:
    """Rounds made from chosen columns, the target last.

    Features with bounds are mapped to [-1, 1] and divided by the root of their number (the intercept's 1 included), so
    that rows have length 1 at most; without bounds they are taken as they are. Gradients of linear losses and targets
    keep their units: bounds only cut them off.

    >>> x = Rounds((Column("age", 0), Column("sick", 1, "label")), False, False, {0: (0.0, 100.0)})
    >>> x.block(np.array([[75.0, 1.0], [300.0, -1.0]]))
    (array([[0.5],
           [1. ]]), array([ 1., -1.]))
    """

    columns: tuple[Column, ...]
    intercept: bool
    linear: bool
    bounds: Mapping[int, tuple[float, float]]

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns of the features."""
        return self.columns if self.linear else self.columns[:-1]

    @property
    def decision(self) -> tuple[str, ...]:
        """What each coordinate of a decision goes with."""
        if not self.features:
            return (self.columns[-1].name,)
        return tuple(column.name for column in self.features) + ("intercept",) * self.intercept

    @property
    def dim(self) -> int:
        """The number of coordinates of a decision."""
        return len(self.decision)

    @property
    def target_bounds(self) -> tuple[float, float] | None:
        """The public bounds of the target, if there are any."""
        return None if self.linear else self.bounds.get(len(self.columns) - 1)

    @property
    def length(self) -> float:
        """The largest length that a row of features may have; infinite without bounds."""
        if not self.features:
            return 1.0
        if not self._bounded:
            return math.inf
        if self.linear:
            return math.hypot(*(max(abs(low), abs(high)) for low, high in self.bounds.values()))
        return 1.0

    @property
    def _bounded(self) -> bool:
        return bool(self.features) and all(i in self.bounds for i in range(len(self.features)))

    @property
    def scaling(self) -> str:
        """How values were brought to scale, in words."""
        parts = [f"{self.columns[i].name} from {low:g} to {high:g}" for i, (low, high) in self.bounds.items()]
        return "values as they are" if not parts else "public bounds: " + ", ".join(parts)

    def steepest(self, domain: Domain, loss: Any) -> float | None:
        """Return a Lipschitz constant that bounds and loss imply on a domain; None where they imply none."""
        if not math.isfinite(self.length):
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

    def block(self, values: Array) -> tuple[Array, ...]:
        """Return rows of the table as a block of rounds, as `observe_many` takes them."""
        count = len(self.features)
        rows = np.empty((len(values), self.dim))
        rows[:, count:] = 1.0
        for i in range(count):
            rows[:, i] = self._clipped(values, i)
        if self._bounded and not self.linear:
            for i in range(count):
                low, high = self.bounds[i]
                rows[:, i] = 2.0 * (rows[:, i] - low) / (high - low) - 1.0
            rows /= math.sqrt(self.dim)
        return (rows,) if self.linear else (rows, self._clipped(values, count))

    def _clipped(self, values: Array, i: int) -> Array:
        return np.clip(values[:, i], *self.bounds[i]) if i in self.bounds else np.array(values[:, i])


def _limits(
    columns: list[Column], limits: dict[int, tuple[float, float]], features: int
) -> dict[int, tuple[float, float]]:
    """Return bounds by the place among the chosen columns; refuse those that make no sense."""
    places = {column.place: i for i, column in enumerate(columns)}
    for place in limits:
        if place not in places:
            raise ValueError(f"bounds must be for features or the target, got some for column {place + 1}; leave them")
    found = {places[place]: limit for place, limit in limits.items()}
    missing = [columns[i].name for i in range(features) if i not in found]
    if missing and len(missing) < features:
        raise ValueError(f"bounds must be given for all features or for none, got none for {', '.join(missing)}")
    for i, (low, high) in found.items():
        if not -math.inf < low < high < math.inf:
            raise ValueError(f"bounds must be LOW:HIGH with LOW below HIGH, got {low:g}:{high:g} for {columns[i].name}")
        if max(-low, high) > _WIDEST:
            raise ValueError(f"bounds must be within {_WIDEST:g}, got {low:g}:{high:g} for {columns[i].name}")
        if columns[i].kind != "number":
            raise ValueError(f"bounds must be left out for labels, got some for {columns[i].name!r}")
    return found
