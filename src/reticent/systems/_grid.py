"""Decisions of private plans on a fixed public grid, and what rounding before it may cost (docs/theory, Q11, Q12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.privacy._account import Statement
from reticent.privacy._compose import Bound, Term

# What is assumed of the machine (docs/theory, Q11): a released coordinate, given those before it, is within so much, as
# a GDP number, of an exact one: drawn from a measure, a sum with noise, or what Newton's method finds.
DRAW = 2.0**-21
CELL = 2.0**-22  # of a draw, more: to what factor, as a logarithm, the chance of a cell of a coordinate is right
NOISE = 2.0**-25
SOLVED = 2.0**-18
# Noise of a deviation of so many steps of the grid is as large as that allows for; larger noise has fewer
# floating-point numbers in a cell, in proportion.
LARGEST_NOISE = 2.0**22
_ROUGHEST = 1e100  # times that: squares are numbers still, and no account has an epsilon from far less on
# On a polytope, but for a chance of so much, as its boundary cuts cells thin.
_CUT = 2.0**-44
# A coin keeps with a chance that is right to a factor of exp(2^-39), and so is that of an expert who is drawn.
COIN = 2.0**-39
# Sums of n rounds are right to n * 2^-44 of what a round may add, in either world: plain sums of 2^9 rounds at most.
_SUMS = 2.0**-43
# Slopes that grow with the margin may exceed the limit by so much where they are rounded (docs/theory, Q12).
STEEP = 2.0**-26


Number = TypeVar("Number", float, Array)


class Rounding(NamedTuple):
    """What the machine may add to the account of some releases."""

    distance: float = 0.0
    """How far, as a GDP number, the machine's releases may be from exact ones in one world."""
    failure: float = 0.0
    """The chance that they are farther."""
    stretch: float = 1.0
    """By what factor the change of one round may come out larger in sums."""
    epsilon: float = 0.0
    """What choices of experts may add to epsilon."""

    @classmethod
    def of(cls, domain: Domain, rounds: int, releases: int, *, near: float = NOISE, cut: bool = False) -> Rounding:
        """Take rounds, how many decisions may depend on a changed one, and how near a coordinate is to exact.

        `cut` says that the boundary of the domain cuts cells.

        >>> from reticent.domains import Ball
        >>> Rounding.of(Ball(9), 10_000, 10_000).distance * 2**25
        300.0
        """
        if domain.finite:
            return cls(stretch=stretch(rounds), epsilon=2 * COIN * releases)
        d, thin = domain.chart_dim, cut and not (domain.body.box or domain.body.ball)
        failure = _CUT * d * releases if thin else 0.0
        return cls(near * math.sqrt(d * releases), failure, stretch(rounds) + STEEP)

    def rougher(self, factor: float) -> Rounding:
        """Return the same where releases are so many times farther from exact ones, and boundaries cut so much more.

        >>> Rounding(distance=0.25).rougher(2.0).distance
        0.5
        """
        return self._replace(distance=self.distance * factor, failure=self.failure * factor)

    def widened(self, mu: Number) -> Number:
        """Return what mu-GDP releases are in the machine.

        >>> Rounding(distance=0.25).widened(1.0)
        1.5
        """
        return mu * self.stretch + 2 * self.distance

    def narrowed(self, mu: float) -> float:
        """Return what releases may be for the machine's to be mu-GDP; 0 if the machine is too rough for that.

        >>> Rounding(distance=0.25).narrowed(1.5)
        1.0
        """
        return max(mu - 2 * self.distance, 0.0) / self.stretch

    def most(self, mu: float, delta: float) -> float:
        """Return so many times what this is about that more leave nothing of `mu`, or of `delta` at any epsilon.

        >>> Rounding(distance=0.25).most(1.0, 1e-6), Rounding(failure=1e-8).most(1.0, 1e-6)
        (4.0, 50.0)
        """
        by_distance = (mu / (2 * self.distance)) ** 2 if self.distance else math.inf
        by_failure = delta / (2 * self.failure) if self.failure else math.inf
        return min(by_distance, by_failure)

    def applied(self, statements: Sequence[Statement]) -> tuple[Statement, ...]:
        """Return statements as they hold for the machine."""
        return tuple(Statement(method, self._bound(bound)) for method, bound in statements)

    def _bound(self, bound: Bound) -> Bound:
        alternatives = tuple(tuple(map(self._term, terms)) for terms in bound.alternatives)
        return Bound(alternatives, bound.failure + self.failure)

    def _term(self, term: Term) -> Term:
        other = term.other
        if self.epsilon:
            # Chances are right to a factor of exp(epsilon/2) in either world: that of the events themselves counts too.
            other = other.loosened(self.epsilon, self.epsilon / 2)
        return replace(term, mu=self.widened(term.mu), other=other)


def coin_error(domain: Domain, pull: float, length: float = 0.0) -> float:
    """Return to what factor, as a logarithm, the chance to keep is right for coins that go on from drawn points.

    `pull` is the most by which that changes along a unit of the domain, `length` along the scale of a draw: points are
    right to 2^-50 of the one, and 2^-41 of the other in a tail (docs/theory, Q11).

    >>> from reticent.domains import Ball
    >>> coin_error(Ball(4), 0.1) == COIN, coin_error(Ball(4), 2.0**11) / COIN
    (True, 4.0)
    """
    return COIN * max(1.0, pull * domain.radius * math.sqrt(domain.chart_dim) / 2**10, length / 2)


def stretch(rounds: int) -> float:
    """Return by what factor the change of one round may come out larger in sums of floating point (docs/theory, Q12).

    >>> stretch(10**6) < 1 + 2e-7
    True
    """
    return 1.0 + _SUMS * rounds


def roughness(noise: float, step: float) -> float:
    """Return how many times larger noise is than what rounding allows for, on a grid of such steps (docs/theory, Q11).

    >>> roughness(2.0**23, 1.0), roughness(1e300, 1e-30)
    (2.0, 1e+100)
    """
    return min(noise / (LARGEST_NOISE * step), _ROUGHEST)


def on_grid(domain: Domain, points: Array, grid: Array) -> Array:
    """Return points of the chart on a grid, each a function of its cell, the domain and the grid alone.

    >>> from reticent.domains import Interval
    >>> line = Interval(-1.0, 1.0)
    >>> on_grid(line, np.array([[0.3], [0.3 + 1e-9]]), line.grid).ravel() * 2**18
    array([78643., 78643.])
    """
    from reticent.systems._nearest import snap_rows  # numba loads on first use

    snapped = np.array(points, dtype=np.float64)
    snap_rows(domain.body._replace(grid=grid), snapped)
    return snapped


def largest_step(domain: Domain, cut: bool = True) -> float:
    """Return how far a released decision may be from the one that was drawn, or computed without a `cut` (Q11).

    >>> from reticent.domains import Ball
    >>> largest_step(Ball(4)) == 1.5 * 2.0**-17
    True
    """
    if domain.finite:
        return 0.0
    share = (1.0 if domain.body.box else 1.5 if domain.body.ball else 0.5) if cut else 0.5
    return share * float(np.linalg.norm(domain.grid))
