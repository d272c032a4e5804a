"""Releases whose costs are chosen as one goes, from what was released before: filters and odometers.

A filter holds everything that it admits to one goal (epsilon, delta), fixed in advance; an odometer says, at any time
that may depend on what was released, what has been spent by then (docs/theory, Q13; Whitehouse, Ramdas, Rogers and Wu
2023). What counts is the cost that was chosen, before the release is made; what then came out may not change it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from reticent._core._check import positive, real
from reticent.privacy._account import check_delta, check_epsilon
from reticent.privacy._losses import gdp_of_bounded_range, hockey_stick, largest_mu

# Budgets are computed in double precision: they are lowered by this part of what they are made of, so that no
# rounding can raise them. Sums of costs are rounded upwards.
_MARGIN = 1e-11
# Sums of ten times 0.1 shall not be refused against 1 for their last digit; the delta set aside is raised by as much.
_ROUNDING = 1e-12
# Orders minus 1 among which that of a filter is searched: a part in fifty apart, as in the accountant.
_ORDERS = np.exp(np.arange(math.log(1e-3), math.log(1e7), 0.02))
KINDS = ("renyi", "gaussian")
"""How a filter adds up."""


@dataclass(frozen=True)
class Cost:
    """What one release costs: it is `mu`-GDP, `rho`-zCDP or (`epsilon`, `delta`)-private, for every past.

    If several are given, the release consists of so many parts, one after the other. The parameters must hold both
    ways, for the neighbours that everything under one filter is meant for, and given whatever was released before.

    >>> Cost(epsilon=0.1, delta=1e-9)
    Cost(mu=0.0, rho=0.0, epsilon=0.1, delta=1e-09)
    """

    mu: float = 0.0
    rho: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no cost."""
        for name in ("mu", "rho", "epsilon", "delta"):
            object.__setattr__(self, name, positive(name, getattr(self, name), zero=True))
        if self.delta > 1:
            raise ValueError(f"delta of a cost must be at most 1, got {self.delta!r}")

    @property
    def pure(self) -> bool:
        """Whether, but for delta, the privacy loss is never more than `epsilon`."""
        return self.mu == 0 and self.rho == 0


class Sums(NamedTuple):
    """What a filter counts: the part in the unit of its budget, deltas, and epsilon while all costs are pure.

    The unit is mu^2 ("gaussian"), or log E exp((order - 1) loss), both ways and for every past ("renyi").
    """

    spent: float = 0.0
    delta: float = 0.0
    pure: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Return both together, rounded upwards.

        >>> Sums(1.0, 0.0, 0.5).plus(Sums(1.0, 1e-9, math.inf))
        Sums(spent=2.0, delta=1e-09, pure=inf)
        """
        return Sums(*(_plus(one, two) for one, two in zip(self, other, strict=True)))


class _Sums:
    """What was charged so far, of what filters and odometers have in common: delta, and epsilon of pure costs."""

    def __init__(self, slack: float) -> None:
        self.slack = slack
        self._delta = 0.0
        self._pure = 0.0  # infinite once a cost is not pure
        self.releases = 0

    def _delta_with(self, cost: Cost | Sums) -> float:
        return _plus(self._delta, cost.delta)

    def _fits_slack(self, cost: Cost | Sums) -> bool:
        return self._delta_with(cost) <= self.slack * (1 + _ROUNDING)

    def _refuse_slack(self, cost: Cost | Sums) -> None:
        raise ValueError(
            f"the deltas of releases would add up to {self._delta_with(cost):.4g}, more than the slack = "
            f"{self.slack:.4g} that is set aside for them; nothing was charged, and the release must not be made. "
            "Choose a release with a smaller delta, or set more aside from the start"
        )


class Filter(_Sums):
    """Admits releases of any costs, chosen from what was released before, as long as all together keep one goal.

    Charge a release before it is made, and make it only if `charge` does not raise. Then everything that was released
    is (`epsilon`, `delta`)-private, whoever chose the costs and whenever they stopped (docs/theory, Q13). A refusal
    charges nothing: a cheaper release may still fit. What came out must not change what is charged: costs that were
    not needed in the end stay spent.

    `slack`, a part of `delta`, is set aside for the deltas of the releases; those without one need none. `kind` is
    "renyi" (takes every cost; one Renyi order, fixed from the start: `order`, unless given the best for Gaussian
    releases) or "gaussian" (exact for GDP, and refuses `rho`, which gives no GDP). Pure costs that add up to epsilon
    are admitted by either. Releases may run at the same time and take turns (docs/theory, Q14).

    >>> budget = Filter(1.0, 1e-6, slack=1e-7)
    >>> budget.charge(Cost(mu=0.1))
    >>> budget.charge(Cost(epsilon=0.05, delta=1e-8))  # chosen after the first result was seen
    >>> budget.allows(Cost(mu=0.3)), budget.releases, round(budget.left_mu, 3)
    (False, 2, 0.19)
    """

    def __init__(
        self, epsilon: float, delta: float, *, slack: float = 0.0, kind: str = "renyi", order: float | None = None
    ) -> None:
        goal, level = check_epsilon(epsilon), check_delta(delta)
        super().__init__(_checked_slack(slack, level))
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.epsilon, self.delta, self.kind = goal, level, kind
        rest = level - self.slack * (1 + _ROUNDING)
        if kind == "gaussian":
            if order is not None:
                raise ValueError(f"order is for kind='renyi', got order={order!r} with kind='gaussian'")
            self.order = math.inf
            self._budget = _gaussian_budget(goal, rest)
        else:
            self.order = _best_order(goal, rest) if order is None else real("order", order)
            if self.order <= 1:
                raise ValueError(f"order must be greater than 1, got {order!r}")
            self._budget = float(_renyi_budget(np.array(self.order - 1), goal, rest))
            if self._budget <= 0:
                raise ValueError(
                    f"order = {order!r} leaves nothing to spend at epsilon = {goal:g} and delta = {rest:g}; leave "
                    f"order out, for {_best_order(goal, rest):.4g}"
                )
        self._spent = 0.0

    def allows(self, cost: Cost | Sums) -> bool:
        """Say whether a release of this cost, or price, would be admitted; it charges nothing."""
        price = self.price(cost)
        return self._fits_slack(price) and self._fits(self.sums.plus(price))

    def charge(self, cost: Cost | Sums) -> None:
        """Charge a release that is about to be made; refuse it if the goal could be broken."""
        price = self.price(cost)
        if not self._fits_slack(price):
            self._refuse_slack(price)
        after = self.sums.plus(price)
        if not self._fits(after):
            part = price.spent / self._budget
            raise ValueError(
                f"the release would take {part:.4g} of the budget for epsilon = {self.epsilon:g} and "
                f"delta = {self.delta:g}, of which {max(1 - self.spent, 0.0):.4g} is left; nothing was charged, and "
                "the release must not be made. Choose a release with more noise: one that is mu-GDP fits up to "
                f"mu = {self.left_mu:.4g}, a pure one up to epsilon = {self.left_epsilon:.4g}"
            )
        self.sums = after
        self.releases += 1

    def price(self, cost: Cost | Sums) -> Sums:
        """Return what a release of this cost adds to `sums`."""
        if isinstance(cost, Sums):
            return cost
        return Sums(self._price(cost), cost.delta, cost.epsilon if cost.pure else math.inf)

    @property
    def sums(self) -> Sums:
        """What was charged so far; set it to go on from what was written down."""
        return Sums(self._spent, self._delta, self._pure)

    @sums.setter
    def sums(self, found: Sums) -> None:
        self._spent, self._delta, self._pure = found

    @property
    def spent(self) -> float:
        """The part of the budget that is spent; above 1 only where all costs were pure and add up to epsilon."""
        return self._spent / self._budget

    @property
    def left_mu(self) -> float:
        """The largest mu of a GDP release that still fits."""
        left = max(self._budget - self._spent, 0.0)
        step = self.order - 1
        square = left if self.kind == "gaussian" else 2 * left / (step * (step + 1))
        return math.sqrt(square) * (1 - _MARGIN)

    @property
    def left_epsilon(self) -> float:
        """The largest epsilon, to nine digits, of a pure release that still fits.

        >>> budget = Filter(1.0, 1e-6)
        >>> budget.left_epsilon
        1.0
        >>> budget.charge(Cost(mu=0.1))
        >>> 0 < budget.left_epsilon < 1
        True
        """
        low, high = 0.0, self.epsilon
        if self.allows(Cost(epsilon=high)):
            return high
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self.allows(Cost(epsilon=middle)) else (low, middle)
            if high < 1e-12:
                return 0.0
        return low

    def _fits(self, after: Sums) -> bool:
        return after.spent <= self._budget or after.pure <= self.epsilon * (1 + _ROUNDING)

    def _price(self, cost: Cost) -> float:
        """Return the cost in the unit of the budget: mu^2, or the logarithm of a moment of the privacy loss."""
        if self.kind == "gaussian":
            if cost.rho > 0:
                raise ValueError(
                    f"rho = {cost.rho!r} gives no GDP, which Filter(kind='gaussian') adds up; state the release as mu, "
                    "or as epsilon and delta, or take Filter(kind='renyi')"
                )
            response = gdp_of_bounded_range(2 * cost.epsilon) if cost.epsilon < 1e300 else math.inf
            return _plus(_above(cost.mu * cost.mu), _above(response * response))
        step = self.order - 1
        normal = _plus(_above(cost.mu * cost.mu / 2), cost.rho)
        return _plus(_above(step * (step + 1) * normal), _above(pure_moment(cost.epsilon, step)))

    def __repr__(self) -> str:
        """Say the goal, and how much of the budget is spent."""
        return f"Filter(epsilon={self.epsilon:g}, delta={self.delta:g}, kind={self.kind!r}; spent {self.spent:.3g})"


class Odometer(_Sums):
    """Says what releases of costs chosen as one goes have spent, at whatever time one looks or stops.

    With probability 1 - `delta` the privacy loss is below `epsilon` (the property, which grows) at all times at once:
    for every rule to stop, and every event of what was released by then, its probability is at most the mean of
    exp(reading at the stop) on it in the neighbouring world, plus `delta` (docs/theory, Q13). That costs more than a
    filter: about a quarter more epsilon where it is tightest, near the reading `around`, and more far from it.

    `slack`, a part of `delta`, is set aside for the deltas of the releases, and those beyond it are refused.

    >>> meter = Odometer(1e-6)
    >>> meter.epsilon
    0.0
    >>> for _ in range(3):
    ...     meter.charge(Cost(epsilon=0.01))
    >>> round(meter.epsilon, 12)
    0.03
    >>> meter.charge(Cost(mu=0.15))
    >>> 0.8 < meter.epsilon < 1.0
    True
    """

    def __init__(self, delta: float, *, slack: float = 0.0, around: float = 1.0) -> None:
        self.delta = check_delta(delta)
        super().__init__(_checked_slack(slack, self.delta))
        self.around = positive("around", around)
        self._rest = self.delta - self.slack * (1 + _ROUNDING)
        self._drift = self._variance = 0.0
        self._prior = _best_prior(self.around, self._rest)

    @property
    def epsilon(self) -> float:
        """What has been spent, at this time and at all times before."""
        return min(self._pure, _reading(self._drift, self._variance, self._prior, self._rest))

    def charge(self, cost: Cost) -> None:
        """Charge a release that is about to be made; refuse it if its delta does not fit into the slack."""
        if not self._fits_slack(cost):
            self._refuse_slack(cost)
        # The logarithm of E exp(t loss) is at most t drift + t^2 variance/2 for every t > 0.
        square = _plus(_above(cost.mu * cost.mu), 2 * cost.rho)
        self._drift = _plus(self._drift, _plus(square / 2, _above(cost.epsilon * math.tanh(cost.epsilon / 2))))
        self._variance = _plus(self._variance, _plus(square, _above(cost.epsilon * cost.epsilon)))
        self._delta = self._delta_with(cost)
        self._pure = _plus(self._pure, cost.epsilon) if cost.pure else math.inf
        self.releases += 1

    def __repr__(self) -> str:
        """Say what has been spent."""
        return f"Odometer(delta={self.delta:g}; epsilon {self.epsilon:.4g} after {self.releases} releases)"


def pure_moment(epsilon: float, step: float) -> float:
    """Return the largest log E exp(step loss) of a release that is `epsilon`-private, that of randomised response.

    It is log(cosh((step + 1/2) epsilon)/cosh(epsilon/2)), computed without cancellation, and at most
    step (step + 1) epsilon^2/2.

    >>> round(pure_moment(1.0, 1.0), 9) == round(math.log(math.cosh(1.5) / math.cosh(0.5)), 9)
    True
    """
    cap = min(step * epsilon, step * (step + 1) * epsilon * epsilon / 2)
    if (step + 1) * epsilon > 600:  # the exponential of half of it is still a number, and `cap` is close
        return cap
    up = 2 * math.sinh((step + 1) * epsilon / 2) * math.sinh(step * epsilon / 2) / math.cosh(epsilon / 2)
    return min(cap, math.log1p(up))


def _plus(one: float, two: float) -> float:
    """Return the sum, rounded upwards.

    >>> _plus(1.0, 1e-30) > 1.0, _plus(1.0, 0.0)
    (True, 1.0)
    """
    total = one + two
    if not math.isfinite(total):
        return total
    part = total - one
    lost = (one - (total - part)) + (two - part)
    return math.nextafter(total, math.inf) if lost > 0 else total


def _above(value: float) -> float:
    """Return a computed price, raised by more than its rounding."""
    return value * (1 + _MARGIN / 10)


def _checked_slack(slack: float, delta: float) -> float:
    number = positive("slack", slack, zero=True)
    if not number < delta:
        raise ValueError(
            f"slack must be less than delta = {delta:g}, of which it is a part, got {slack!r}; half of it is a choice"
        )
    return number


def _gaussian_budget(epsilon: float, delta: float) -> float:
    """Return the largest mu^2 that is (epsilon, delta)-private, from below."""
    mu = largest_mu(epsilon, delta) * (1 - _MARGIN)
    while float(hockey_stick(mu, epsilon)) > delta * (1 - _MARGIN):
        mu *= 1 - 1e-9
    return mu**2


def _renyi_budget(step: np.ndarray, epsilon: float, delta: float) -> np.ndarray:
    """Return the largest log E exp(step loss) that gives (epsilon, delta) (docs/theory, Q9b), from below."""
    parts = (step * epsilon, math.log(delta), step * np.log1p(1 / step), np.log1p(step))
    size = sum(np.abs(part) for part in parts)
    return np.asarray(sum(parts) - _MARGIN * size)


def _best_order(epsilon: float, delta: float) -> float:
    """Return the order at which the most zCDP fits."""
    fits = _renyi_budget(_ORDERS, epsilon, delta) / (_ORDERS * (_ORDERS + 1))
    return float(1 + _ORDERS[int(np.argmax(fits))])


def _reading(drift: float, variance: float, prior: float, delta: float) -> float:
    """Return the boundary that the loss stays below at all times but for a chance of `delta`.

    The mean of exp(t (loss - drift) - t^2 variance/2) over t, half normal with variance 1/prior, is a supermartingale
    that starts at 1. It is a function of y = (loss - drift)/sqrt(variance + prior) and reaches 1/delta at the boundary.
    """
    if variance == 0:
        return 0.0
    height = -math.log(2 * delta) + 0.5 * math.log1p(variance / prior)

    def beyond(y: float) -> float:
        return y * y / 2 + float(scipy.special.log_ndtr(y)) - height

    if not math.isfinite(height):
        return math.inf
    high = math.sqrt(2 * (height + math.log(2))) + 1e-9  # the logarithm of the normal integral is at least -log 2
    y = float(scipy.optimize.brentq(beyond, 0.0, high, xtol=1e-13))
    return (drift + (y + 1e-12) * math.sqrt(variance + prior)) * (1 + _MARGIN)


def _best_prior(around: float, delta: float) -> float:
    """Return the prior with the lowest reading where a filter at `around` would be spent."""
    log = -math.log(delta)
    variance = 2 * (math.sqrt(log + around) - math.sqrt(log)) ** 2
    found = scipy.optimize.minimize_scalar(
        lambda x: _reading(variance / 2, variance, variance * math.exp(x), delta), bounds=(-8.0, 4.0), method="bounded"
    )
    return variance * math.exp(float(found.x))
