"""Accounts of privacy: the curve of (epsilon, delta) that the smallest of several bounds gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from reticent._core._check import Array, integer, positive, real
from reticent._core._html import card
from reticent.privacy._coins import NO_LOSS, Coin
from reticent.privacy._compose import Bound, Composed, Renyi, Term
from reticent.privacy._exposure import Exposure, adaptive, bounds

# Sums of the privacy losses are cut off at a chance of 1e-40, and added to delta: a delta near it has no meaning.
LEAST_DELTA = 1e-30
_FAR = 1e9
# Sections of the search for the least place: 24 leave a part in 1e5 of the range, around a place where nothing changes.
_GOLDEN, _SECTIONS = (math.sqrt(5.0) - 1) / 2, 24
_AHEAD = 0.01  # where to look whether a bound still falls: much farther than its least place is uncertain


def check_delta(delta: float) -> float:
    """Return `delta`; refuse what is not a probability that an epsilon can be given for."""
    number = real("delta", delta)
    if not LEAST_DELTA <= number < 1:
        raise ValueError(
            f"delta must be at least {LEAST_DELTA:g} and less than 1, got {delta!r}; draws are compared through normal "
            "laws, which have no finite epsilon at delta = 0: take a delta far below one over the number of people"
        )
    return number


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon`; refuse what is not a number of at least 0."""
    return positive("epsilon", epsilon, zero=True)


def smallest(delta: Callable[[float], float], goal: float) -> float:
    """Return an epsilon with `delta(epsilon) <= goal`, up to a part in 1e11 the smallest; infinity if none is found.

    >>> round(smallest(lambda e: math.exp(-e), 0.1), 9)
    2.302585093
    """
    low, value = 0.0, delta(0.0)
    if value <= goal:
        return 0.0
    low_log = math.log(value / goal)
    high = 1.0
    while (value := delta(high)) > goal:
        if high > _FAR:
            return math.inf
        low, low_log = high, math.log(value / goal)
        high = 2 * high
    high_log = math.log(max(value, 1e-300) / goal)
    # Regula falsi on the logarithm (the Illinois rule), with a halving step whenever it stalls.
    for turn in range(200):
        if high - low <= 1e-11 * high:
            break
        middle = low + (high - low) * low_log / (low_log - high_log)
        if turn % 4 == 3 or not low < middle < high:
            middle = (low + high) / 2
        value = delta(middle)
        if value <= goal:
            high, high_log = middle, math.log(max(value, 1e-300) / goal)
            low_log /= 2 if turn % 4 != 3 and low_log > 0 else 1
            if high_log == 0:
                break
        else:
            low, low_log = middle, math.log(value / goal)
            high_log /= 2 if turn % 4 != 3 else 1
    return high


def lowest(delta: Callable[[float], float], failure: float) -> float:
    """Return an epsilon at which `delta(epsilon) + (1 + exp(epsilon)) failure` is least, or hardly before that.

    As a function of exp(epsilon) the sum is convex, so a search by golden sections finds it, which asks for one delta
    at a time. The lower end counts: the value at an epsilon holds for all larger ones, and so for all beyond the least
    place.
    """
    if failure <= 0:
        return math.inf
    low, high = 0.0, max(-math.log(failure), 0.0)

    def value(epsilon: float) -> float:
        found = delta(epsilon)
        # Where delta is 1, Renyi bounds are flat, not convex: what is of use lies beyond.
        return found + math.exp(epsilon) * failure if found < 1 else math.inf

    a, b = high - _GOLDEN * high, _GOLDEN * high
    at_a, at_b = value(a), value(b)
    for _ in range(_SECTIONS):
        if at_a < math.inf and at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = value(b)
    return low


class Curve(NamedTuple):
    """The trade-off of epsilon and delta: the run is (epsilon[i], delta[i])-differentially private for every i."""

    epsilon: Array
    delta: Array


class Fall:
    """One bound, made to fall: with a failure it grows again for large epsilon, where its least value is used."""

    def __init__(self, bound: Composed | Renyi, failure: float) -> None:
        self.bound, self.failure = bound, failure

    @cached_property
    def _least(self) -> tuple[float, float]:
        epsilon = lowest(self.bound.delta, self.failure)
        return epsilon, self._at(epsilon)

    def _at(self, epsilon: float) -> float:
        extra = (1 + float(np.exp(min(epsilon, 700.0)))) * self.failure if self.failure else 0.0
        return self.bound.delta(epsilon) + extra

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta at `epsilon`."""
        value = self._at(epsilon)
        # Convex in exp(epsilon): it falls up to its least value, which is what counts from there on.
        if self.failure and self._at(epsilon + _AHEAD) >= value:
            place, least = self._least
            value = least if place <= epsilon else value
        return min(1.0, value)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at which the bound is `delta` or less."""
        return smallest(self.delta, delta)


class Statement(NamedTuple):
    """A bound, and how it is composed: "pld" by privacy losses, "rdp" by Renyi divergences.

    For "rdp" the `mu` of a term stands for any release whose Renyi divergence of every order a is at most a mu^2/2
    (mu^2/2 zero-concentrated privacy); for "pld" the release must be mu-GDP.
    """

    method: str
    bound: Bound


class Certificate(ABC):
    """What is certified of a run: for every delta an epsilon, for every epsilon a delta."""

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`; infinity if there is none."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`."""

    def curve(self, epsilons: Sequence[float] | Array | None = None, points: int = 100) -> Curve:
        """Return the trade-off at `epsilons`, or at `points` of them from 0 to where delta is 1e-12."""
        if epsilons is None:
            top = self._last_epsilon()
            levels = np.linspace(0.0, top if np.isfinite(top) else 50.0, integer("points", points, least=2))
        else:
            levels = np.asarray(epsilons, dtype=np.float64)
        return Curve(levels, np.array([self.delta(float(level)) for level in levels]))

    def _last_epsilon(self) -> float:
        """Return where a curve that is drawn ends."""
        return self.epsilon(1e-12)

    def heading(self) -> str:
        """Say what the account covers, and for whom; a certificate that says no more is known by its values."""
        return "What is certified"

    def _remark(self) -> str:
        """Say what else is to be known."""
        return ""

    def _values(self) -> list[tuple[float, float]]:
        """Return a few values of the curve, epsilon and delta."""
        return [(self.epsilon(delta), delta) for delta in (1e-5, 1e-6, 1e-8)]

    def __str__(self) -> str:
        """Say what the account covers, with a few of its values."""
        lines = [f"{self.heading()}:", *([f"  {self._remark()}"] if self._remark() else [])]
        return "\n".join([*lines, *(f"  epsilon = {e:.4g} at delta = {d:g}" for e, d in self._values())])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same."""
        rows = [(f"epsilon at delta {delta:g}", f"{found:.4g}") for found, delta in self._values()]
        return card(self.heading(), rows, note=self._remark())


@dataclass(frozen=True)
class SystemAccount(Certificate):
    """What a run can reveal about one round, by the best of the statements proved for it.

    >>> once = SystemAccount(100, "replace", (gaussian(0.5),))
    >>> 1.7 < once.epsilon(1e-6) < 2.4
    True
    """

    rounds: int | None
    """How many rounds it is about; None for any number."""
    neighbors: str
    statements: tuple[Statement, ...]

    @property
    def failure(self) -> float:
        """How far, in total variation, the machine's run may be from one that the statements hold for exactly."""
        return max(bound.failure for _, bound in self.statements)

    @cached_property
    def _falls(self) -> list[Fall]:
        return [
            Fall(Renyi(bound) if method == "rdp" else Composed(bound), bound.failure)
            for method, bound in self.statements
        ]

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`; infinity if there is none."""
        goal = check_delta(delta)
        return min(fall.epsilon(goal) for fall in self._falls)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`."""
        level = check_epsilon(epsilon)
        return min(fall.delta(level) for fall in self._falls)

    def heading(self) -> str:
        """Say what the account covers, and for whom."""
        change = "is replaced by another" if self.neighbors == "replace" else "is replaced by a constant"
        many = "any number of" if self.rounds is None else self.rounds
        return f"Account of {many} rounds, where losses react to released decisions and one round {change}"


def gaussian(mu: float) -> Statement:
    """Return the statement of a run that is `mu`-GDP as a whole."""
    return Statement("pld", Bound(((Term(mu, Coin(1.0, 0.0), 0, NO_LOSS),),)))


METHODS = ("pld", "rdp", "theorem")
"""How draws and coins are accounted."""


class Stated(Protocol):
    """What a published theorem states: epsilon for every delta from `least` on."""

    @property
    def least(self) -> float:
        """The smallest delta that the theorem is about."""

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that it states."""

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for which it states `epsilon`."""


class Shares(NamedTuple):
    """The epsilon at one delta of each part alone, and of the whole; the parts do not add up to the whole."""

    draws: float
    later_coins: float
    special_coin: float
    whole: float


@dataclass(frozen=True)
class Account(Certificate):
    """What a run can reveal about one round: the curve of (epsilon, delta), whichever the method.

    `method` is "pld" (exact composition, the one to rely on), "rdp" (Renyi divergences, a cross-check) or "theorem"
    (the paper's). `adversary` says who chooses the losses: "adaptive", from the decisions released so far, or
    "oblivious", in advance (docs/theory, Q0).
    """

    method: str
    adversary: str
    neighbors: str
    rounds: int
    exposure: Exposure
    stated: Stated | None = None

    @property
    def draws(self) -> int:
        """The largest number of draws after a changed round."""
        return self.exposure.draws

    @property
    def failure(self) -> float:
        """How far, in total variation, the machine's run may be from one with exact draws."""
        return adaptive(self.exposure).failure

    @property
    def coins(self) -> int:
        """The largest number of coins from the changed batch on."""
        return self.exposure.later + self.exposure.special

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`; infinity if there is none.

        >>> import reticent as rt
        >>> plan = rt.Plan(rt.Ball(2), 1000, 1.0, beta=0.01, lam=400.0, p=0.2, phi=1.1, distance=0.0)
        >>> from reticent.privacy import account
        >>> 0.5 < account(plan).epsilon(1e-6) < account(plan, method="rdp").epsilon(1e-6)
        True
        """
        goal = check_delta(delta)
        if self.stated is not None:
            return self.stated.epsilon(goal)
        return min(curve.epsilon(goal) for curve in self._curves)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`."""
        level = check_epsilon(epsilon)
        if self.stated is not None:
            return self.stated.delta(level)
        return min(curve.delta(level) for curve in self._curves)

    def _last_epsilon(self) -> float:
        # The paper's theorem ends at the smallest delta that it allows.
        return super()._last_epsilon() if self.stated is None else self.stated.epsilon(self.stated.least)

    def shares(self, delta: float) -> Shares:
        """Return how much of epsilon at `delta` the draws, the later coins and the special coin take, each alone."""
        if self.stated is not None:
            raise ValueError("the paper's theorem has no shares; ask account(plan, method='pld').shares(delta)")
        alone = (
            replace(self.exposure, later=0, special=False),
            replace(self.exposure, draws=0, special=False),
            replace(self.exposure, draws=0, later=0),
        )
        draws, later, special = (replace(self, exposure=part).epsilon(delta) for part in alone)
        return Shares(draws, later, special, self.epsilon(delta))

    @cached_property
    def _curves(self) -> list[Fall]:
        kind = Renyi if self.method == "rdp" else Composed
        return [Fall(kind(bound), bound.failure) for bound in bounds(self.exposure, self.adversary)]

    def heading(self) -> str:
        """Say what the account covers, and for whom."""
        who = "react to released decisions" if self.adversary == "adaptive" else "are fixed in advance"
        change = "is replaced by another" if self.neighbors == "replace" else "is replaced by a constant"
        return f"Account ({self.method}) of {self.rounds} rounds, where losses {who} and one round {change}"

    def _remark(self) -> str:
        return f"at most {self.draws} draws and {self.coins} coins can tell of it"

    def _values(self) -> list[tuple[float, float]]:
        least = 0.0 if self.stated is None else self.stated.least
        return [(self.epsilon(delta), delta) for delta in (1e-5, 1e-6, 1e-8) if least <= delta]
