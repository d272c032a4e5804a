"""What one release reveals: privacy losses with finitely many values, and the Gaussian family."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from reticent._core._check import Array, positive

# Gauss-Legendre over a stretch of Mills' ratio no longer than 1/2: seven nodes leave a relative error below 1e-13.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
_ROOT = math.sqrt(2.0)


def hockey_stick(mu: float, epsilon: float | Array) -> Array:
    """Return sup over events of N(mu,1) - exp(epsilon) N(0,1): the delta of a `mu`-GDP release, any real epsilon.

    It is `N(mu/2 - epsilon/mu) - exp(epsilon) N(-mu/2 - epsilon/mu)`, computed without cancellation, so that small
    values have full relative accuracy too.

    >>> float(hockey_stick(0.0, -1.0)), round(float(hockey_stick(1.0, 1.0)), 12)
    (0.6321205588285577, 0.126936737507)
    """
    e = np.asarray(epsilon, dtype=np.float64)
    far = np.abs(e)
    upper = np.zeros_like(far) if mu == 0 else _upper(mu, far)
    with np.errstate(over="ignore"):
        # Exchanging the two laws: h(-e) = 1 - exp(-e) + exp(-e) h(e).
        value: Array = np.where(e >= 0, upper, -np.expm1(-far) + np.exp(-far) * upper)
    return value


def _upper(mu: float, e: Array) -> Array:
    """Return the hockey stick for e >= 0: the normal density at e/mu - mu/2 times a difference of Mills ratios."""
    low, high = e / mu - mu / 2, e / mu + mu / 2
    if mu > 0.5:
        with np.errstate(under="ignore"):
            value: Array = scipy.special.ndtr(-low) - np.exp(e + scipy.special.log_ndtr(-high))
        return np.maximum(value, 0.0)
    # d/dx of Mills' ratio m is x m - 1: integrate 1 - x m(x) between the two ends.
    x = (e / mu)[..., None] + (mu / 2) * _NODES
    slope = np.where(x > 1e4, 0.0, 1.0 - x * (math.sqrt(math.pi / 2) * scipy.special.erfcx(x / _ROOT)))
    with np.errstate(under="ignore"):
        density = np.exp(-0.5 * low * low) / math.sqrt(2 * math.pi)
        difference: Array = density * (slope @ _WEIGHTS) * (mu / 2)
    return np.maximum(difference, 0.0)


# A privacy loss with finitely many values, and how to put it on a grid without ever understating it.


@dataclass(frozen=True)
class Losses:
    """The law of log(P/Q) under P: `value` with probabilities `mass`, and the rest, `infinite`, where Q is 0.

    The masses may add up to less than 1: then P is a part of a law, and the rest is accounted elsewhere.

    >>> round(Losses.of([0.5, -0.5], [0.6, 0.4]).delta(0.0, 0.0), 6)
    0.236082
    """

    value: Array
    mass: Array
    infinite: float

    @classmethod
    def of(cls, value: Sequence[float], mass: Sequence[float]) -> Losses:
        """Make one from lists; values of plus infinity are collected, those without mass are dropped."""
        values, masses = np.asarray(value, dtype=np.float64), np.asarray(mass, dtype=np.float64)
        kept = (masses > 0) & np.isfinite(values)
        return cls(values[kept], masses[kept], float(masses[values == np.inf].sum()))

    def loosened(self, more: float, grown: float) -> Losses:
        """Return losses that are larger by `more`, of events that are exp(`grown`) times as likely.

        >>> Losses.of([0.5], [0.25]).loosened(0.5, math.log(2.0))
        Losses(value=array([1.]), mass=array([0.5]), infinite=0.0)
        """
        factor = math.exp(grown)
        return Losses(self.value + more, self.mass * factor, self.infinite * factor)

    def spread(self) -> float:
        """Return the standard deviation of the finite losses."""
        total = self.mass.sum()
        if total == 0:
            return 0.0
        mean = self.mass @ self.value / total
        return float(np.sqrt(self.mass @ (self.value - mean) ** 2 / total))

    def times(self, other: Losses) -> Losses:
        """Return the losses of both together, independent given the world."""
        value = (self.value[:, None] + other.value).ravel()
        mass = (self.mass[:, None] * other.mass).ravel()
        finite = float(self.mass.sum())
        infinite = self.infinite * (other.mass.sum() + other.infinite) + finite * other.infinite
        return Losses(value, mass, float(infinite))

    def on_grid(self, spacing: float) -> Losses:
        """Move every loss to the two multiples of `spacing` around it, both P and Q keeping their masses.

        The hockey stick, as a function of exp(epsilon), is then replaced by chords of itself: never smaller.

        >>> Losses.of([0.05], [1.0]).on_grid(0.1).mass.round(6)
        array([0.487503, 0.512497])
        """
        place = np.floor(self.value / spacing)
        rest = np.clip(self.value - place * spacing, 0.0, spacing)
        up = self.mass * (np.expm1(-rest) / np.expm1(-spacing))
        index = place.astype(np.int64)
        first = int(index.min())
        size = int(index.max()) - first + 2
        mass: Array = np.zeros(size)
        mass += np.bincount(index - first, self.mass - up, size)
        mass += np.bincount(index - first + 1, up, size)
        kept = mass > 0
        value = (first + np.arange(size, dtype=np.float64)) * spacing
        return Losses(value[kept], mass[kept], self.infinite)

    def delta(self, mu: float, epsilon: float) -> float:
        """Return the hockey stick at `epsilon` of these losses together with a `mu`-GDP release.

        With L the loss here and g that of the release, the hockey stick is E (1 - exp(epsilon - L - g))+ under P.
        """
        return self.infinite + float(self.mass @ hockey_stick(mu, epsilon - self.value))


# Releases of bounded range, such as draws of the exponential mechanism, in the Gaussian family.

_SMALL = 1e-4  # below, the straight line is closer to the truth (1e-10 of it) than the rounding of quantiles


def gdp_of_bounded_range(rho: float) -> float:
    """Return the smallest mu for which every release of range `rho` is mu-GDP: 2 N^-1(1 / (1 + exp(-rho/2))).

    A release has range rho if the logarithm of the ratio of its two laws lies in an interval of length rho. Draws of
    the exponential mechanism do: weights exp(-beta s) and exp(-beta s'), with s - s' of range r, have rho = beta r.
    Such a pair is dominated by a logistic variable against itself moved by rho, and that by normal ones
    (docs/theory, R4). The value is rounded upwards; for small rho it is about sqrt(pi/8) rho, and never more.

    >>> round(gdp_of_bounded_range(1.0), 6), round(gdp_of_bounded_range(1e-6), 12)
    (0.623893, 6.26657e-07)
    """
    size = positive("rho", rho, zero=True)
    line = math.sqrt(math.pi / 8) * size
    if size < _SMALL:
        return line
    # The upper quantile by the logarithm of its tail, which has all its digits for any rho.
    tail = -float(scipy.special.ndtri_exp(scipy.special.log_expit(-size / 2)))
    return min(line, 2 * tail * (1 + 1e-11))


def gaussian_delta(mu: Array, epsilon: Array | float) -> Array:
    """Return the delta of `mu`-GDP releases at `epsilon`, of any sign: quickly, for searches; else see `hockey_stick`.

    >>> round(float(gaussian_delta(np.array(1.0), 1.0)), 9)
    0.126936738
    """
    ratio = epsilon / mu
    with np.errstate(over="ignore", under="ignore"):
        value: Array = scipy.special.ndtr(mu / 2 - ratio) - np.exp(epsilon + scipy.special.log_ndtr(-mu / 2 - ratio))
    return np.maximum(value, 0.0)


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu of a release that is (epsilon, delta)-private.

    >>> round(largest_mu(1.0, float(gaussian_delta(np.array(1.0), 1.0))), 9)
    1.0
    """
    found = scipy.optimize.brentq(
        lambda x: float(gaussian_delta(np.array(math.exp(x)), epsilon)) - delta,
        math.log(1e-12),
        math.log(1e6),
        xtol=1e-12,
    )
    return math.exp(found)


# Releases that fail now and then: what a search takes for the best epsilon to count at.

# Parts that the failure may take of what its least cost, at epsilon 0, leaves of delta: near the goal one of them costs
# a few percent of that more than the best.
_PARTS = (0.45, 0.7, 0.87, 0.96, 0.99)


def delta_with_failure(
    delta: Callable[..., Array], at: Sequence[Array], epsilon: float | Array, failure: Array, goal: float
) -> Array:
    """Return about the least `delta(*at, e) + (1 + exp(e)) failure` over e up to `epsilon`: quickly, for searches.

    What holds at a smaller epsilon holds at a larger one, where the failure would cost more. The sum is tried where
    the failure costs some part of `goal`, the delta that is searched for: elsewhere it may be too large.

    >>> rare = delta_with_failure(lambda e: np.exp(-np.asarray(e)), (), 40.0, np.array([0.0, 1e-12]), 2e-6)
    >>> float(rare[0]) < 1e-17, round(float(rare[1]) * 1e6, 1)
    (True, 2.0)
    """
    most = np.exp(epsilon)
    if np.all((1 + most) * failure <= _PARTS[0] * goal):
        return delta(*at, epsilon) + (1 + most) * failure
    with np.errstate(divide="ignore", over="ignore"):
        factor: Array = np.clip(np.multiply.outer(_PARTS, goal / failure - 2) + 1, 1.0, most)
    new = np.diff(factor, axis=0, prepend=0.0) > 0  # most parts come to the same epsilon for most candidates
    found = np.full(factor.shape, np.inf)
    failure, *at = (np.broadcast_to(one, factor.shape)[new] for one in (failure, *at))
    found[new] = delta(*at, np.log(factor[new])) + (1 + factor[new]) * failure
    best: Array = found.min(axis=0)
    return best


def largest_mu_with_failure(epsilon: float, delta: float, failure: Array) -> Array:
    """Return about the largest mu of releases that are (epsilon, delta)-private though they may fail; 0 if none is.

    >>> bool(abs(largest_mu_with_failure(1.0, 1e-6, np.array([0.0]))[0] / largest_mu(1.0, 1e-6) - 1) < 1e-9)
    True
    """
    most = largest_mu(epsilon, delta)
    low, high = np.zeros(failure.shape), np.full(failure.shape, most)
    if not failure.any():
        return high
    for _ in range(40):
        mu = (low + high) / 2
        fits = delta_with_failure(gaussian_delta, (mu,), epsilon, failure, delta) <= delta
        low, high = np.where(fits, mu, low), np.where(fits, high, mu)
    return low
