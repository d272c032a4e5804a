"""Accounts of privacy: the curve of (epsilon, delta) that the smallest of several bounds gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reticent._check import Array, integer
from reticent.privacy._pld import Composed
from reticent.privacy._renyi import Renyi
from reticent.privacy._solve import check_delta, check_epsilon, lowest, smallest
from reticent.privacy._terms import Bound


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
        # Convex in exp(epsilon): if it was smaller a little before, the least value lies behind.
        if self.failure and self._at(max(epsilon - 1e-3, 0.0)) < value:
            place, least = self._least
            if place <= epsilon:
                value = min(value, least)
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


@dataclass(frozen=True)
class SystemAccount:
    """What a run of a prior system can reveal about one round, by the best of the statements proved for it.

    >>> once = SystemAccount(100, "replace", (gaussian(0.5),))
    >>> 1.7 < once.epsilon(1e-6) < 2.4
    True
    """

    rounds: int
    neighbors: str
    statements: tuple[Statement, ...]

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

    def curve(self, epsilons: Sequence[float] | Array | None = None, points: int = 100) -> Curve:
        """Return the trade-off at `epsilons`, or at `points` of them from 0 to where delta is 1e-12."""
        if epsilons is None:
            top = self.epsilon(1e-12)
            levels = np.linspace(0.0, top if np.isfinite(top) else 50.0, integer("points", points, least=2))
        else:
            levels = np.asarray(epsilons, dtype=np.float64)
        return Curve(levels, np.array([self.delta(float(level)) for level in levels]))

    def __str__(self) -> str:
        """Say what the account covers, with a few of its values."""
        change = "is replaced by another" if self.neighbors == "replace" else "is replaced by a constant"
        lines = [f"Account of {self.rounds} rounds, where losses react to released decisions and one round {change}:"]
        lines += [f"  epsilon = {self.epsilon(delta):.4g} at delta = {delta:g}" for delta in (1e-5, 1e-6, 1e-8)]
        return "\n".join(lines)


def gaussian(mu: float) -> Statement:
    """Return the statement of a run that is `mu`-GDP as a whole."""
    from reticent.privacy._coin import NO_LOSS, Coin
    from reticent.privacy._terms import Term

    return Statement("pld", Bound(((Term(mu, Coin(1.0, 0.0), 0, NO_LOSS),),)))
