"""Plans of descent on a grid: epochs, cells and first step with the least certified regret for so many switches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Box, Domain
from reticent.losses import Custom, GeneralisedLinear, Loss
from reticent.systems._checks import check_body, check_rounds, check_scale
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan

_SLACK = 1e-9  # constants that meet a limit exactly must not be refused for rounding
_MOST_EPOCHS = 32  # that are searched: each costs a switch, and more than one for each doubling gain nothing
_OFFSETS = 64  # values of `offset` that are searched
_SIDES = 1 << 15  # sides of cells that are searched, 40 halvings of the longest side of the box
_HALVINGS = 40.0


@saved("plan of descent on a grid")
@dataclass(frozen=True, kw_only=True)
class GridDescentPlan(SystemPlan):
    """Hidden descent with steps 1/(h (t + `offset`)), h = `strong_convexity`, seen through one grid in each epoch.

    In epoch k, of `lengths[k]` rounds, each side of the box is cut into equal parts of about `sides[k]`, and the
    decision is a random corner of the cell of the hidden point whose mean is that point: it stays in the box, and costs
    `smoothness` * (sum of squared sides of the cell)/8 a round. Expected regret is at most
    h offset R^2/2 + G^2/(2h) log((T + offset + 1/2)/(offset + 1/2)) + those, and the decision changes with a chance of
    at most (steps of descent)/(sides of the cell) (docs/theory, R5k).

    >>> from reticent.domains import Interval
    >>> plan = plan_grid_descent(Interval(-1.0, 1.0), 10**6, 2.0, 300, strong_convexity=1.0, smoothness=1.0)
    >>> plan.expected_switches <= 300, plan.regret_bound < 2000
    (True, True)
    """

    system: ClassVar[str] = _names.GRID_DESCENT
    reference: ClassVar[str] = "after Sherman and Koren 2021; Hazan, Agarwal and Kale 2007 (steps)"
    assumes: ClassVar[str] = "strongly convex and smooth losses"
    adversary: ClassVar[str] = "oblivious"

    strong_convexity: float
    smoothness: float
    offset: float
    lengths: tuple[int, ...]
    sides: tuple[float, ...]

    def _check(self) -> None:
        check_box(self.domain)
        h, bend = check_curvature(self.domain, self.lipschitz, self.strong_convexity, self.smoothness)
        self._set(strong_convexity=h, smoothness=bend, offset=positive("offset", self.offset, zero=True))
        self._set(lengths=tuple(integer("lengths", length, least=1) for length in self.lengths))
        self._set(sides=tuple(positive("sides", side) for side in self.sides))
        if sum(self.lengths) != self.horizon or len(self.sides) != len(self.lengths):
            raise ValueError(
                f"lengths must add up to the horizon of {self.horizon}, with one of sides for each, got "
                f"{self.lengths!r} and {self.sides!r}; plan_grid_descent chooses them"
            )

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not strongly convex; custom ones are taken on trust."""
        if isinstance(loss, Custom):
            return
        if self.domain.chart_dim > 1 or not (isinstance(loss, GeneralisedLinear) and loss.curved):
            raise ValueError(
                f"loss must be strongly convex for {self.system}, got {loss!r}, which is flat along some direction; "
                "take Squared() or Logistic() on an interval, or wrap a loss that is strongly convex in "
                "Custom(value, subgradient); plan_descent in blocks takes any convex loss"
            )

    @cached_property
    def parts(self) -> Array:
        """Into how many parts each side of the box is cut, a row for each epoch."""
        return parts_of(_widths(self.domain), np.array(self.sides))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5k."""
        noise = self.smoothness / 8 * np.array(self.lengths, dtype=np.float64)
        squares: Array = ((_widths(self.domain) / self.parts) ** 2).sum(axis=-1)
        size = (self.domain.radius, self.horizon, self.lipschitz, self.strong_convexity)
        return float(_steps_cost(*size, np.float64(self.offset)) + (noise * squares).sum())

    @property
    def expected_switches(self) -> float:
        """A bound on the expected number of changes: one at each border of epochs, and the chances of all others."""
        rates = (
            self.lipschitz / self.strong_convexity * np.sqrt(((self.parts / _widths(self.domain)) ** 2).sum(axis=-1))
        )
        lengths = np.array(self.lengths, dtype=np.float64)
        return min(float(self.horizon), float(_changes(lengths, rates, np.float64(self.offset))))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is meant by so many switches, and what is taken on trust."""
        return (
            "The number of changes is bounded in expectation; there is no hard cap. Regret of one run may be far from "
            "the mean, as all of an epoch hangs on one draw.",
            "Curvature of rows is checked, that of custom losses taken on trust.",
        )


def check_box(domain: Domain) -> None:
    """Refuse what is not a box: elsewhere, rounding without bias leaves the body (docs/theory, R5k)."""
    check_body(domain)
    if not isinstance(domain, Box):
        raise ValueError(
            f"domain must be an Interval or a Box for descent on a grid, got {domain!r}; take the box around it if "
            "losses have the same constants there"
        )


def check_curvature(
    domain: Domain, lipschitz: float, strong_convexity: float, smoothness: float
) -> tuple[float, float]:
    """Return both as numbers; refuse such that no loss has."""
    h, bend = positive("strong_convexity", strong_convexity), positive("smoothness", smoothness)
    most = min(bend, 2 * lipschitz / domain.diameter)
    if h > most * (1 + _SLACK):
        raise ValueError(
            f"strong_convexity must be at most {most:.6g}, the lower of smoothness and 2 * lipschitz / diameter, got "
            f"{strong_convexity!r}: no loss has so much"
        )
    if bend < 1e-12 * h or h * domain.radius < 1e-100 * lipschitz:
        raise ValueError(f"strong_convexity must be at least 1e-100 * lipschitz / radius, got {strong_convexity!r}")
    return h, bend


def _widths(domain: Domain) -> Array:
    return domain.body.hi - domain.body.lo


def parts_of(widths: Array, sides: Array) -> Array:
    """Return into how many parts of at least `sides` each of `widths` is cut, one at least.

    >>> parts_of(np.array([1.0, 3.0]), np.array([0.9, 4.0]))
    array([[1., 3.],
           [1., 1.]])
    """
    found: Array = np.maximum(1.0, np.floor(widths / sides[..., None]))
    return found


def _steps_cost(radius: float, horizon: int, lipschitz: float, h: float, offset: Array | np.float64) -> Array:
    """Return the regret of hidden descent."""
    logs = np.log1p(horizon / (offset + 0.5))
    found: Array = h * offset * radius**2 / 2 + lipschitz**2 / (2 * h) * logs
    return found


def _changes(lengths: Array, rates: Array, offset: Array | np.float64) -> Array:
    """Return the expected changes: after round t with a chance of min(1, rate/(t + offset)), 1 at a border.

    A sum of 1/s over s = p, p+1, ..., q is at most log((q + 1/2)/(p - 1/2)), as 1/s is convex.
    """
    ends = lengths.cumsum(axis=-1)
    first = ends - lengths + 1 + np.asarray(offset)[..., None]
    free = lengths.copy()
    free[..., :-1] -= 1  # the last round of an epoch is followed by a fresh grid
    sure = np.clip(np.ceil(rates - first), 0.0, free)
    logs = np.log1p((free - sure) / (first + sure - 0.5))
    found: Array = (sure + np.minimum(rates * logs, free - sure)).sum(axis=-1) + lengths.shape[-1] - 1
    return found


def plan_grid_descent(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int, *, strong_convexity: float, smoothness: float
) -> GridDescentPlan:
    """Return epochs, cells and offset with the least regret bound for `max_switches` changes in expectation.

    Every loss has a second derivative from `strong_convexity` to `smoothness` in every direction on the whole box, and
    slopes of at most `lipschitz`. Regret is of the order of T/S^2 for S switches, where that of any convex losses is
    of the order of T/S.

    >>> from reticent.domains import Box
    >>> box, curved = Box([0.0, 0.0], [1.0, 1.0]), {"strong_convexity": 1.0, "smoothness": 1.0}
    >>> few, more = (plan_grid_descent(box, 10**6, 1.5, S, **curved).regret_bound for S in (200, 400))
    >>> 3 < few / more < 5
    True
    """
    check_box(domain)
    T, G = check_rounds("horizon", horizon), positive("lipschitz", lipschitz)
    check_scale(domain, G)
    S = integer("max_switches", max_switches, least=1)
    h, bend = check_curvature(domain, G, strong_convexity, smoothness)
    widths, counts = np.unique(_widths(domain), return_counts=True)
    times = counts.astype(np.float64)
    # All that is searched is the same for every S, and of each kind the finest cells that S allows are taken: more
    # switches never give a worse certificate.
    far = max(100.0, 4 * G / h * math.sqrt((times / widths**2).sum())) * T
    offsets = np.concatenate([[0.0], np.geomspace(0.25, far, _OFFSETS - 1)])
    best, found = math.inf, None
    for count in range(1, min(T, _MOST_EPOCHS) + 1):
        lengths, starts = _epochs(T, count, offsets)
        if not starts.size:
            break
        ideal = np.log1p(lengths / (lengths.cumsum(axis=1) - lengths + 0.5 + starts[:, None])) / lengths
        shape = np.cbrt(ideal / ideal[:, -1:])  # what is best by Lagrange where cells may have any side
        levels = _finest(G / h, widths, times, lengths, shape, starts, S)
        sides = _side(widths, levels)[:, None] * shape
        squares = (times * (widths / parts_of(widths, sides)) ** 2).sum(axis=-1)
        costs = _steps_cost(domain.radius, T, G, h, starts) + bend / 8 * (lengths * squares).sum(axis=1)
        costs[levels < 0] = math.inf
        k = int(costs.argmin())
        if costs[k] < best:
            best, found = float(costs[k]), (float(starts[k]), lengths[k].astype(int).tolist(), sides[k].tolist())
    if found is None:
        raise ValueError(
            f"max_switches must be larger for {_names.GRID_DESCENT} over {T:,} rounds, got {max_switches!r}; "
            "plan_descent in blocks meets any number"
        )
    offset, chosen, cells = found
    return GridDescentPlan(
        domain, T, G, strong_convexity=h, smoothness=bend, offset=offset, lengths=tuple(chosen), sides=tuple(cells)
    )


def _epochs(horizon: int, count: int, offsets: Array) -> tuple[Array, Array]:
    """Return lengths of `count` epochs for each offset where none is empty, and those offsets.

    Borders are even in (t + offset)^(1/9): sides fall as the cube root of t, and the loss in a long epoch is of second
    order in its length in log t.
    """
    low, high = offsets + 0.5, offsets + horizon + 0.5
    share = np.arange(count + 1) / count
    grown = low[:, None] * (1 + share * np.expm1(np.log(high / low) / 9)[:, None]) ** 9
    ends = np.round(grown - low[:, None])
    ends[:, 0], ends[:, -1] = 0.0, float(horizon)
    lengths = np.diff(ends, axis=1)
    full = (lengths >= 1).all(axis=1)
    return lengths[full], offsets[full]


def _side(widths: Array, levels: NDArray[np.int64]) -> Array:
    """Return the sides of the last epoch's cells at so many steps of the search."""
    found: Array = 4 * float(widths.max()) * np.exp2(-_HALVINGS * np.maximum(levels, 0) / _SIDES)
    return found


def _finest(
    speed: float, widths: Array, times: Array, lengths: Array, shape: Array, offsets: Array, switches: int
) -> NDArray[np.int64]:
    """Return the finest level for each offset that keeps to `switches`, by bisection; -1 where none does."""

    def fits(levels: NDArray[np.int64]) -> NDArray[np.bool_]:
        parts = parts_of(widths, _side(widths, levels)[:, None] * shape)
        rates = speed * np.sqrt((times * (parts / widths) ** 2).sum(axis=-1))
        good: NDArray[np.bool_] = _changes(lengths, rates, offsets) <= switches * (1 - 1e-12)
        return good

    low, high = np.zeros(len(offsets), dtype=np.int64), np.full(len(offsets), _SIDES, dtype=np.int64)
    possible = fits(low)
    while (high - low > 1).any():
        middle = (low + high) // 2
        good = fits(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(possible, low, -1)


def _propose(goal: Goal) -> GridDescentPlan:
    if not goal.strong_convexity or not goal.smoothness:
        raise NotApplicable("needs strong_convexity=... and smoothness=...")
    if goal.max_switches is None:
        raise NotApplicable("is for goals with max_switches")
    goal.need_a_switch()
    plan = plan_grid_descent(
        *goal.size, goal.max_switches, strong_convexity=goal.strong_convexity, smoothness=goal.smoothness
    )
    plan.check_loss(goal.loss)
    return plan


SYSTEMS = (System(GridDescentPlan.system, _propose, lazy=True),)
