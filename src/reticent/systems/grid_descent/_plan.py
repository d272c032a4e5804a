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
from reticent.systems._checks import check_body, check_firm, check_rounds, check_scale
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan

_SLACK = 1e-9  # constants that meet a limit exactly must not be refused for rounding
# Numbers of epochs that are searched: each costs a switch, and more than one for each doubling gain nothing.
_COUNTS = (1, 2, 3, 4, 6, 8, 16, 32)
_PER_OCTAVE = 8  # values of h * offset that are searched in each
_SIDES = 1 << 14  # sides of cells that are searched, 40 halvings of the longest side of the box
_HALVINGS = 40.0
_FINEST = 2.0**-45  # of the longest side: cells whose number is exact in double precision, whatever is added to it
_PINS = 4.0 ** -np.arange(45, 0, -1)  # of the longest side: what is tried as `pinned`; below the first squares overflow
_AT_ONCE = 1 << 20  # numbers in a temporary array


@saved("plan of descent on a grid")
@dataclass(frozen=True, kw_only=True)
class GridDescentPlan(SystemPlan):
    """Hidden descent with steps 1/(h (t + `offset`)), h = `strong_convexity`, seen through one grid in each epoch.

    In epoch k, of `lengths[k]` rounds, each side of the box is cut into equal parts of about `sides[k]`, and the
    decision is a random corner of the cell of the hidden point whose mean is that point: it stays in the box, and costs
    `smoothness` * (sum of squared sides of the cell)/8 a round. Sides of the box up to `pinned` are not cut: there the
    decision stays at the centre, which costs G * (root of the sum of their squares)/2 a round. Expected regret is at
    most h offset R^2/2 + G^2/(2h) log((T + offset + 1/2)/(offset + 1/2)) + those, or G R T where all sides are pinned,
    and the decision changes with a chance of at most (steps of descent)/(sides of the cell) (docs/theory, R5k).

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
    pinned: float = 0.0

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
        self._set(pinned=positive("pinned", self.pinned, zero=True))
        widths = _widths(self.domain)
        longest = float(widths.max())
        if min(self.sides) < _FINEST * longest:
            raise ValueError(
                f"sides must be at least {_FINEST * longest:.6g}, 2^-45 of the longest side of the domain, got "
                f"{min(self.sides)!r}: finer cells cannot be told apart; plan_grid_descent chooses them"
            )
        thin = widths[widths < _PINS[0] * longest]
        if not (thin.max() if thin.size else 0.0) <= self.pinned <= longest:
            raise ValueError(
                f"pinned must be at most {longest:.6g}, the longest side of the domain, and no less than any that is "
                f"below 2^-90 of it, got {self.pinned!r}; plan_grid_descent chooses it"
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
        """Into how many parts each side of the box is cut, a row for each epoch; 0 where it is pinned."""
        widths = _widths(self.domain)
        return np.where(widths > self.pinned, parts_of(widths, np.array(self.sides)), 0.0)

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """The sums over sides of the box that are cut of 1/part^2 and part^2, one for each epoch."""
        widths = _widths(self.domain)
        return _sums(widths[widths > self.pinned], 1.0, np.array(self.sides))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5k."""
        noise = self.smoothness / 8 * np.array(self.lengths, dtype=np.float64)
        size = (self.domain.radius, self.horizon, self.lipschitz, self.strong_convexity)
        widths = _widths(self.domain)
        fixed = _pins_cost(self.horizon, self.lipschitz, widths[widths <= self.pinned])
        if self.pinned >= widths.max():
            return fixed
        return fixed + float(_steps_cost(*size, np.float64(self.offset)) + (noise * self._cells[1]).sum())

    @property
    def expected_switches(self) -> float:
        """A bound on the expected number of changes: one at each border of epochs, and the chances of all others."""
        rates = self.lipschitz / self.strong_convexity * np.sqrt(self._cells[0])
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
    return check_firm("strong_convexity", h, domain, lipschitz), bend


def _widths(domain: Domain) -> Array:
    assert isinstance(domain, Box)
    # Not those of the body, whose matrices are gigabytes in high dimension: planning needs none.
    found: Array = 2 * (domain.high / 2 - domain.low / 2)
    return found


def parts_of(widths: Array, sides: Array) -> Array:
    """Return into how many parts of at least `sides` each of `widths` is cut, one at least.

    >>> parts_of(np.array([1.0, 3.0]), np.array([0.9, 4.0]))
    array([[1., 3.],
           [1., 1.]])
    """
    found: Array = np.maximum(1.0, np.floor(widths / sides[..., None]))
    return found


def _sums(widths: Array, times: Array | float, sides: Array) -> tuple[Array, Array]:
    """Return the sums, over `widths` that come so many `times`, of 1/part^2 and part^2, for each of `sides`."""
    found = np.empty((2, len(sides)))
    rows = max(1, _AT_ONCE // max(1, len(widths)))  # all at once would be gigabytes in high dimension
    for first in range(0, len(sides), rows):
        squares = (widths / parts_of(widths, sides[first : first + rows])) ** 2
        found[0, first : first + rows] = (times / squares).sum(axis=-1)
        found[1, first : first + rows] = (times * squares).sum(axis=-1)
    return found[0], found[1]


def _pins_cost(horizon: int, lipschitz: float, widths: Array, times: Array | float = 1.0) -> float:
    """Return what it costs to stay at the centre of such sides of the box."""
    return horizon * lipschitz / 2 * math.sqrt(float((times * widths**2).sum()))


def _steps_cost(radius: float, horizon: int, lipschitz: float, h: float, offset: Array | np.float64) -> Array:
    """Return the regret of hidden descent."""
    logs = np.log1p(horizon / (offset + 0.5))
    found: Array = h * offset * radius**2 / 2 + lipschitz**2 / (2 * h) * logs
    return found


def _changes(lengths: Array, rates: Array, offset: Array | np.float64) -> Array:
    """Return the expected changes: after round t with a chance of min(1, rate/(t + offset)), 1 at a border.

    A sum of 1/s over s = p, p+1, ..., q is at most log((q + 1/2)/(p - 1/2)), as 1/s is convex. Some rounds of an epoch,
    the first, count as 1 each: as many as make the bound least, so that it rises with the rate.

    >>> float(_changes(np.array([4.0]), np.array([2.0]), np.float64(0.0))) < 2 + 2 / 3 + 2 / 4 + 0.05
    True
    """
    ends = lengths.cumsum(axis=-1)
    first = ends - lengths + 1 + np.asarray(offset)[..., None]
    free = lengths.copy()
    free[..., :-1] -= 1  # the last round of an epoch is followed by a fresh grid
    sure = np.clip(np.floor(rates - first) + 1, 0.0, free)  # 1 is the lower bound for these, and for one more perhaps
    more = np.minimum(sure + 1, free)
    each = np.minimum(*(some + rates * np.log1p((free - some) / (first + some - 0.5)) for some in (sure, more)))
    found: Array = each.sum(axis=-1) + lengths.shape[-1] - 1
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
    # What is searched depends on T and the box alone, h * offset in units of G/R, and of each kind the finest cells
    # that S allows are taken. For each kind the cost falls with h and S, and rises with G and smoothness: so do
    # certificates.
    offsets = _firmness(domain, T, G) / h
    steps = _steps_cost(domain.radius, T, G, h, offsets)
    sides = 4 * float(_widths(domain).max()) * np.exp2(-_HALVINGS / _SIDES * np.arange(_SIDES + 1))
    shapes = [shape for count in _COUNTS if (shape := _epochs(T, count))[0].size]
    # To stay at the centre can always be had.
    longest = float(_widths(domain).max())
    best = _pins_cost(T, G, _widths(domain))
    found: tuple[float, list[int], list[float], float] = (0.0, [T], [longest], longest)
    for pinned, fixed, sums, squares in _pins(_widths(domain), sides, T, G):
        for lengths, coarser in shapes:
            some = steps + fixed < best
            levels = _finest(G / h * np.sqrt(sums), lengths, coarser, offsets[some], S)
            places = np.maximum(levels[..., None] - coarser, 0)
            costs = (steps[some] + fixed)[:, None] + bend / 8 * (lengths * squares[places]).sum(axis=-1)
            costs[levels < 0] = math.inf
            if costs.min(initial=math.inf) < best:
                i, k = np.unravel_index(int(costs.argmin()), costs.shape)
                best = float(costs[i, k])
                found = (float(offsets[some][i]), lengths[k].astype(int).tolist(), sides[places[i, k]].tolist(), pinned)
    offset, chosen, cells, pinned = found
    return GridDescentPlan(
        *(domain, T, G),
        strong_convexity=h,
        smoothness=bend,
        offset=offset,
        lengths=tuple(chosen),
        sides=tuple(cells),
        pinned=pinned,
    )


def _firmness(domain: Domain, horizon: int, lipschitz: float) -> Array:
    """Return the values of h * offset that are searched: 0, and in units of the problem the same whatever these are."""
    unit = lipschitz / domain.radius  # below the first there is nothing to gain; at the last hardly anything moves
    last = math.log2(8 * domain.chart_dim * horizon)
    places = np.arange(-10 * _PER_OCTAVE, math.ceil(last * _PER_OCTAVE) + 1)
    return np.concatenate([[0.0], unit * np.exp2(places / _PER_OCTAVE)])


def _pins(widths: Array, sides: Array, horizon: int, lipschitz: float) -> list[tuple[float, float, Array, Array]]:
    """Return what may be pinned: up to which width, at what cost, and the sums (see `_sums`) over all that is not."""
    several, counts = np.unique(widths, return_counts=True)
    times = counts.astype(np.float64)
    cuts = np.unique(np.searchsorted(several, _PINS * several[-1], side="right"))
    sums, squares = np.zeros_like(sides), np.zeros_like(sides)
    found = []
    for low, high in reversed(list(zip(cuts.tolist(), [*cuts[1:].tolist(), several.size], strict=True))):
        more = _sums(several[low:high], times[low:high], sides)
        sums, squares = sums + more[0], squares + more[1]
        fixed = _pins_cost(horizon, lipschitz, several[:low], times[:low])
        found.append((float(several[low - 1]) if low else 0.0, fixed, sums, squares))
    return found[::-1]


def _epochs(horizon: int, count: int) -> tuple[Array, NDArray[np.int64]]:
    """Return lengths of `count` epochs, none empty, and how many levels coarser cells are in each than in the last.

    Each row is best for some offset (0, 1, 8, 64, ...) where cells may have any side: sides are by Lagrange, and fall
    as the cube root of t; borders are even in (t + offset)^(1/9), as the loss in a long epoch is of second order in its
    length in log t. Near enough offsets share a row, so that what is searched does not hang on them.
    """
    offsets = np.concatenate([[0.0], 8.0 ** np.arange(math.ceil(math.log2(horizon + 1) / 3))])
    low, high = offsets + 0.5, offsets + horizon + 0.5
    share = np.arange(count + 1) / count
    grown = low[:, None] * (1 + share * np.expm1(np.log(high / low) / 9)[:, None]) ** 9
    ends = np.round(grown - low[:, None])
    ends[:, 0], ends[:, -1] = 0.0, float(horizon)
    lengths = np.diff(ends, axis=1)
    full = (lengths >= 1).all(axis=1)
    lengths, offsets = lengths[full], offsets[full]
    ideal = np.log1p(lengths / (lengths.cumsum(axis=1) - lengths + 0.5 + offsets[:, None])) / lengths
    coarser = np.log2(ideal / ideal[:, -1:]) / 3 * (_SIDES / _HALVINGS)
    # One epoch is the same whatever the offset.
    return lengths[: None if count > 1 else 1], np.rint(coarser).astype(np.int64)[: None if count > 1 else 1]


def _finest(
    rates: Array, lengths: Array, coarser: NDArray[np.int64], offsets: Array, switches: int
) -> NDArray[np.int64]:
    """Return the finest level for each offset and row of lengths that keeps to `switches`, by bisection; -1 if none."""

    def fits(levels: NDArray[np.int64]) -> NDArray[np.bool_]:
        places = np.maximum(levels[..., None] - coarser, 0)
        good: NDArray[np.bool_] = _changes(lengths, rates[places], offsets[:, None]) <= switches * (1 - 1e-12)
        return good

    shape = (len(offsets), len(lengths))
    low, high = np.zeros(shape, dtype=np.int64), np.full(shape, len(rates) - 1, dtype=np.int64)
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
    return plan_grid_descent(
        *goal.size, goal.max_switches, strong_convexity=goal.strong_convexity, smoothness=goal.smoothness
    )


SYSTEMS = (System(GridDescentPlan.system, _propose, lazy=True),)
