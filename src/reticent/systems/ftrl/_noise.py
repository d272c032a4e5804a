"""Noise for prefix sums: square-root Toeplitz, its approximation by buffers, and binary trees (docs/theory, R2).

Everything here is for noise of standard deviation 1 at its source and for a gradient that changes by 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.systems.ftrl._revealed import reduced, reduced_and_topped
from reticent.systems.ftrl._revealed import topped as topped_up

_TABLE = 1024  # terms that are added one by one; beyond, sums of smooth functions are integrals
_LOW = 16  # heights of a tree that are told apart in sums over all prefixes; the noise of higher nodes hardly differs
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


class Noise(ABC):
    """What plans need to know of noise on the sums of the first 1, 2, 3, ... batches."""

    @abstractmethod
    def sensitivity(self, n: int, topped: int = 0) -> float:
        """Return the mu of releasing the first n sums where one batch changes by 1: at most this.

        `topped`, if not 0, says that noise is topped up to the largest of so many sums, where that is known to help.
        """

    @abstractmethod
    def deviation(self, n: int) -> float:
        """Return the standard deviation of the noise on the sum of the first n batches."""

    @abstractmethod
    def largest(self, n: int) -> float:
        """Return the largest deviation among the first n sums."""

    @abstractmethod
    def total(self, n: int) -> float:
        """Return the sum of the deviations of the first n - 1 sums, rounded upwards."""

    @abstractmethod
    def squares(self, n: int) -> float:
        """Return the sum of the variances of the first n - 1 sums, rounded upwards."""


class Rising(Noise):
    """Noise whose deviation rises with the number of batches, and is a concave function of it."""

    def __init__(self) -> None:
        deviations = self._deviations(np.arange(_TABLE, dtype=np.float64))
        self._table, self._square_table = np.cumsum(deviations), np.cumsum(deviations**2)

    @abstractmethod
    def _deviations(self, n: Array) -> Array:
        """Return the deviations after n batches; n may be broken where it is at least `_TABLE` - 2."""

    def deviation(self, n: int) -> float:
        """Return the standard deviation of the noise on the sum of the first n batches."""
        return float(self._deviations(np.array([float(n)]))[0])

    def largest(self, n: int) -> float:
        """Return the deviation of the last sum."""
        return self.deviation(n)

    def total(self, n: int) -> float:
        """Return the sum of the deviations of the first n - 1 sums, rounded upwards."""
        return self._sum(n, self._table, 1)

    def squares(self, n: int) -> float:
        """Return the sum of the variances of the first n - 1 sums, rounded upwards: they too are concave."""
        return self._sum(n, self._square_table, 2)

    def _sum(self, n: int, table: Array, power: int) -> float:
        if n <= _TABLE:
            return float(table[n - 1]) if n else 0.0
        # The sum over k >= _TABLE as an integral over k - 1/2 to k + 1/2. For a concave function f that is too little,
        # by no more than (f'(k - 1/2) - f'(k + 1/2))/8 each: in all f'(_TABLE - 1/2)/8.
        start, end = math.log(_TABLE - 0.5), math.log(n - 0.5)
        edges = np.linspace(start, end, 2 + int(end - start))
        half = (edges[1:] - edges[:-1])[:, None] / 2
        k = np.exp(edges[:-1, None] + half * (1 + _NODES))
        rest = float((half * _WEIGHTS * k * self._deviations(k.ravel()).reshape(k.shape) ** power).sum())
        last, before = (self.deviation(_TABLE - j) ** power for j in (1, 2))
        return float(table[-1]) + rest + (last - before) / 8


@saved("square-root noise")
class SquareRoot(Rising):
    """The square root of the matrix of prefix sums: coefficients 1, 1/2, 3/8, ... of (1 - x)^(-1/2).

    Noise on the sums, and how the data enter the release, are one matrix. Sums of squares of the coefficients are
    Landau's constants.

    >>> round(SquareRoot().sensitivity(3) ** 2, 9)
    1.390625
    """

    def sensitivity(self, n: int, topped: int = 0) -> float:
        """Return the length of the first n coefficients."""
        return self.deviation(n)

    def _deviations(self, n: Array) -> Array:
        table = _landau()
        small = table[np.minimum(n, _TABLE).astype(np.int64)]
        x = np.maximum(n, _TABLE - 2) - 0.25
        # Their asymptotic expansion; what is left out is of the order of x^-6, below rounding here.
        large = np.log(x) + np.euler_gamma + 4 * math.log(2) + 11 / (192 * x**2) - 1541 / (122880 * x**4)
        found: Array = np.sqrt(np.where((n < _TABLE) & (n == np.floor(n)), small, large / math.pi))
        return found


@cache
def _landau() -> Array:
    return np.concatenate([[0.0], np.cumsum(root_coefficients(_TABLE) ** 2)])


def root_coefficients(n: int) -> Array:
    """Return the first n coefficients of (1 - x)^(-1/2).

    >>> root_coefficients(3)
    array([1.   , 0.5  , 0.375])
    """
    k = np.arange(1, n, dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])[:n]


@saved("buffered noise")
class Buffers(Rising):
    """A Toeplitz matrix with coefficients 1 and sum_j weights[j] decays[j]^(k-1), which streams with a buffer per j.

    All is exact for the coefficients given, however far they are from those of the square root.

    >>> noise = Buffers((0.5,), (0.75,))
    >>> round(noise.sensitivity(3) ** 2, 9), round(noise.deviation(2) ** 2, 9)
    (1.390625, 1.25)
    """

    def __init__(self, weights: tuple[float, ...], decays: tuple[float, ...]) -> None:
        w, fall = np.array(weights, dtype=np.float64), 1 - np.array(decays, dtype=np.float64)
        self._w, self._gaps = w, fall[:, None] + fall - fall[:, None] * fall  # 1 - decays[i] decays[j]
        # The inverse has coefficients 1 and -sum_j p_j r_j^(k-1) with r_j the eigenvalues of diag(decays) - vv', v the
        # roots of the weights; sums of it, the noise on prefixes, are b_0 + sum_j b_j r_j^k. 1 - r_j is what is small.
        root = np.sqrt(w)
        gaps, vectors = np.linalg.eigh(np.diag(fall) + np.outer(root, root)) if w.size else (w, np.zeros((0, 0)))
        first = 1 / (1 + float((w / fall).sum()))
        b = np.concatenate([[first], (vectors.T @ root) ** 2 / np.maximum(gaps, 1e-300)])
        gaps = np.concatenate([[0.0], gaps])
        self._pairs = np.outer(b, b).ravel()
        self._pair_gaps = (gaps[:, None] + gaps - gaps[:, None] * gaps).ravel()
        super().__init__()

    def sensitivity(self, n: int, topped: int = 0) -> float:
        """Return the length of the first n coefficients."""
        if n <= 1 or not self._w.size:
            return float(min(n, 1))
        sums = _geometric(self._gaps.ravel(), np.array([n - 1.0]))[0]
        return math.sqrt(1 + float(np.outer(self._w, self._w).ravel() @ sums))

    def _deviations(self, n: Array) -> Array:
        found: Array = np.sqrt((_geometric(self._pair_gaps, n) * self._pairs).sum(axis=1))
        return found


@np.errstate(under="ignore")
def _geometric(gaps: Array, n: Array) -> Array:
    """Return 1 + r + ... + r^(n-1) for each n and r = 1 - gap, a row for each n, without cancellation."""
    steep = (
        gaps > 1
    )  # alternating signs, which have died out where n may be broken (a plan has weights of sum 0.9 at most)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log1p(-np.where(steep, 0.0, gaps))
        sums = -np.expm1(n[:, None] * logs) / gaps
    for i in np.flatnonzero(steep):
        sums[:, i] = (1 - np.power(1 - gaps[i], np.minimum(np.floor(n), _TABLE))) / gaps[i]
    return np.where(gaps == 0, n[:, None], sums)


@saved("tree noise")
@dataclass(frozen=True)
class Tree(Noise):
    """Noise in the nodes of a binary tree over the batches; `reduced` mixes a node's noise with that of its children.

    A node of height h then has variance 1/(2 - 2^-h) (Honaker's bottom-up estimate), else 1. The first n batches are
    the nodes of the binary digits of n.

    >>> Tree(False).deviation(3) ** 2, Tree(True).total(2)
    (2.0000000000000004, 1.0)
    """

    reduced: bool

    def sensitivity(self, n: int, topped: int = 0) -> float:
        """Return the mu of the released sums themselves, which say less than all nodes would (docs/theory, R2e)."""
        if not topped:
            return reduced(n) if self.reduced else math.sqrt(n.bit_length())
        level = self.largest(max(n, topped)) ** 2
        return reduced_and_topped(n, level, max(n, topped)) if self.reduced else topped_up(n, round(level))

    def variances(self, levels: int) -> Array:
        """Return the variance of nodes of height 0, 1, ..., levels - 1."""
        heights = np.arange(levels, dtype=np.float64)
        return 1 / (2 - 2**-heights) if self.reduced else np.ones(levels)

    def deviation(self, n: int) -> float:
        """Return the standard deviation of the noise on the sum of the first n batches."""
        return math.sqrt(self._variance(n))

    def _variance(self, n: int) -> float:
        return float(sum(v for h, v in enumerate(self.variances(n.bit_length())) if n >> h & 1))

    def largest(self, n: int) -> float:
        """Return the largest deviation among the first n sums: of n, or of n with a digit 1 lowered and the rest 1."""
        lowered = [(n >> h << h) - 1 for h in range(n.bit_length()) if n >> h & 1]
        return math.sqrt(max(self._variance(k) for k in (n, *lowered)))

    def total(self, n: int) -> float:
        """Return the sum of the deviations of the first n - 1 sums, rounded upwards."""
        # Nodes above _LOW count as of height _LOW, whose variance is larger by 2^-18 at most.
        low, high = _low_variances(self.reduced), float(self.variances(_LOW + 1)[-1])
        blocks, rest = divmod(n, 1 << _LOW)
        found = float(np.sqrt(low[:rest] + high * blocks.bit_count()).sum())
        for digits, count in enumerate(_digit_counts(blocks)):
            if count:
                found += count * float(np.sqrt(low + high * digits).sum())
        return found

    def squares(self, n: int) -> float:
        """Return the sum of the variances of the first n - 1 sums, digit by digit."""
        variances = self.variances(n.bit_length())
        return float(sum(v * _with_digit(n, h) for h, v in enumerate(variances)))


@cache
def _low_variances(reduced: bool) -> Array:
    found = np.zeros(1)
    for v in Tree(reduced).variances(_LOW):
        found = np.concatenate([found, found + v])
    return found


def _with_digit(n: int, h: int) -> int:
    """Return how many of the numbers below n have a binary digit 1 at height h.

    >>> [_with_digit(6, h) for h in range(3)]
    [3, 2, 2]
    """
    blocks, rest = divmod(n, 2 << h)
    return (blocks << h) + max(rest - (1 << h), 0)


def _digit_counts(n: int) -> list[int]:
    """Return how many of the numbers below n have 0, 1, 2, ... binary digits 1.

    >>> _digit_counts(5)
    [1, 3, 1, 0]
    """
    counts, above = [0] * (n.bit_length() + 1), 0
    for h in reversed(range(n.bit_length())):
        if n >> h & 1:
            for free in range(h + 1):
                counts[above + free] += math.comb(h, free)
            above += 1
    return counts


# Buffers that stand in for square-root Toeplitz noise: as few as keep certificates close (docs/theory, R2).

Fit = tuple[tuple[float, ...], tuple[float, ...]]


@cache
def fit_buffers(n: int, tolerance: float = 0.005) -> Fit:
    """Return weights and decays for n batches, as few as keep certificates within `tolerance` of the square root's.

    c_k is the integral of x^(k-1/2) (1-x)^(-1/2) / pi over [0, 1]. Nodes that are evenly spaced in the logarithm of
    1 - x, and weights by non-negative least squares of the relative error, at places evenly spaced in that of k.

    >>> weights, decays = fit_buffers(1000)
    >>> len(weights) < 8
    True
    """
    if n < 2:
        return (), ()
    exact = SquareRoot()
    goals = [(f, f(exact)) for f in _prices(n)]
    best: tuple[float, Fit] = (math.inf, ((), ()))
    for count in range(1, 25):
        for reach in (0.3, 0.5, 0.8, 1.2, 2.0):
            fit = _fitted(n, count, reach)
            ratio = max(f(Buffers(*fit)) / goal for f, goal in goals)
            best = min(best, (ratio, fit))
        if best[0] <= 1 + tolerance:
            break
    return best[1]


def _prices(n: int) -> list[Callable[[Noise], float]]:
    """What certificates grow with, for losses in general and for linear ones."""
    return [
        lambda noise: noise.sensitivity(n) * noise.total(n + 1),
        lambda noise: noise.sensitivity(n) * noise.deviation(n),
    ]


def _fitted(n: int, count: int, reach: float) -> Fit:
    from scipy.optimize import nnls

    k = np.unique(np.rint(np.geomspace(1, n - 1, 200)))
    goal = np.exp(_log_coefficients(k))
    fall = np.geomspace(0.7, min(0.5, reach / n), count) if count > 1 else np.array([min(0.5, reach / n) ** 0.5])
    powers = np.exp((k[:, None] - 1) * np.log1p(-fall))
    weights, _ = nnls(powers / goal[:, None], np.ones(k.size))
    kept = weights > 0
    return tuple(map(float, weights[kept])), tuple(map(float, 1 - fall[kept]))


def _log_coefficients(k: Array) -> Array:
    from scipy.special import gammaln

    found: Array = gammaln(k + 0.5) - gammaln(k + 1) - 0.5 * math.log(math.pi)
    return found
