"""The regret certificate of a plan, part by part (docs/theory, P6 and P7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy

from reticent._core._check import Array
from reticent.domains import Ball, Box, Domain, Simplex
from reticent.systems.pcomw._plan import Plan
from reticent.systems.pcomw._switching import Switching

# Around z, x = z - r u with u at angle theta from z; r runs from 0 to 2 cos(theta). With tan(theta) = exp(v):
#   sin^(d-1) cos * r^(d-1) exp(-(a - k cos) r - k r^2/2)  in v and r, times exp(-k/2) and the area of a sphere.
# The exponent is taken relative to its value where theta = 0 and r is best there: with k = 1e18 its own last digit
# is worth more than everything that matters. In r the logarithm is concave with a known maximum. Parts below
# exp(-DROP) of the maximum are left out: that makes the integral smaller, which is the safe side.
_DROP = 44.0
_COARSE = np.linspace(-60.0, 24.0, 169)
_FINE, _ROUGH = (48, 64), (32, 44)


def log_ball_term(dim: int, a: float, k: float) -> tuple[float, float]:
    """Return the logarithm of the integral and a bound on its error, for `dim >= 2` and `k > 0`.

    The error is judged by a second quadrature with fewer nodes, whose error is far larger.

    >>> value, error = log_ball_term(3, 0.0, 1e-12)
    >>> abs(value - math.log(4 * math.pi / 3)) < 1e-9 and error < 1e-9
    True
    """
    window = _window(dim, a, k)
    value = _quadrature(dim, a, k, window, *_FINE)
    error = abs(value - _quadrature(dim, a, k, window, *_ROUGH))
    # Rounding: exponents as large as k/2 and d log r are added up.
    return value, error + 1e-14 * (k + dim * (1 + abs(math.log(dim + a))))


def quick_ball_term(dim: int, a: float, k: float) -> float:
    """Return the logarithm of the integral by the coarser quadrature alone: for searches, not for certificates."""
    return _quadrature(dim, a, k, _window(dim, a, k), *_ROUGH)


def _window(dim: int, a: float, k: float) -> tuple[float, float, float]:
    """Return the ends and the middle of the range of v that matters."""
    grid = _COARSE
    for _ in range(3):
        sin, cos = _angles(grid)
        top, height = _peak(_start(dim, a, k), sin, cos)
        # The width of the peak in r is at most about its place: good enough to see where the mass is.
        level = (dim - 1) * np.log(sin) + np.log(cos) + height + np.log(top)
        best = int(level.argmax())
        inside = np.flatnonzero(level >= level[best] - _DROP - 6)
        first, last = max(inside[0] - 1, 0), min(inside[-1] + 1, grid.size - 1)
        low, middle, high = float(grid[first]), float(grid[best]), float(grid[last])
        grid = np.linspace(low, high, 65)
    return low, middle, high


def _quadrature(dim: int, a: float, k: float, window: tuple[float, float, float], inner: int, outer: int) -> float:
    nodes, weights = _legendre(outer)
    low, middle, high = window
    v = np.concatenate([low + (middle - low) * nodes, middle + (high - middle) * nodes])
    w = np.concatenate([(middle - low) * weights, (high - middle) * weights])
    sin, cos = _angles(v)
    start = _start(dim, a, k)
    level = (dim - 1) * np.log(sin) + np.log(cos) + _radial(start, sin, cos, inner)
    most = level.max()
    total = most + math.log(float((w * np.exp(level - most)).sum()))
    sphere = math.log(2) + (dim - 1) / 2 * math.log(math.pi) - math.lgamma((dim - 1) / 2)
    return float(total) + sphere - a * start.place - k / 2 * (1 - start.place) ** 2


def _angles(v: Array) -> tuple[Array, Array]:
    return 1 / np.sqrt(1 + np.exp(-2 * v)), 1 / np.sqrt(1 + np.exp(2 * v))


class _Start(NamedTuple):
    """Where on the line through z the integrand is best, r = `place`, and minus the slope of the exponent there."""

    dim: int
    a: float
    k: float
    place: float
    pull: float


def _start(dim: int, a: float, k: float) -> _Start:
    place = float(_best(dim, k, np.array(a - k)))
    return _Start(dim, a, k, 2.0, a + k) if place > 2 else _Start(dim, a, k, place, (dim - 1) / place)


def _best(dim: int, k: float, slope: Array) -> Array:
    """Return the positive root of k r^2 + slope r = dim - 1."""
    root = np.hypot(slope, 2 * math.sqrt(k * (dim - 1)))
    with np.errstate(divide="ignore"):
        place: Array = np.where(slope > 0, 2 * (dim - 1) / (slope + root), (root - slope) / (2 * k))
    return place


def _peak(start: _Start, sin: Array, cos: Array) -> tuple[Array, Array]:
    """Return where in r the integrand is largest, and the logarithm of its value there."""
    top = np.minimum(_best(start.dim, start.k, start.a - start.k * cos), 2 * cos)
    return top, _log_radial(start, _fall(start, sin, cos), top)


def _fall(start: _Start, sin: Array, cos: Array) -> Array:
    """Return k (1 - cos) without cancellation."""
    fall: Array = start.k * sin * sin / (1 + cos)
    return fall


def _log_radial(start: _Start, fall: Array, r: Array) -> Array:
    """Return the logarithm of the integrand in r, its exponent relative to the one at the start."""
    away = r - start.place
    level: Array = (start.dim - 1) * np.log(r) - (start.pull + (start.k / 2) * away) * away - fall * r
    return level


def _radial(start: _Start, sin: Array, cos: Array, inner: int) -> Array:
    """Return the logarithms of the integrals over r, one for each angle."""
    top, height = _peak(start, sin, cos)
    fall = _fall(start, sin, cos)
    ends = []
    for limit in (top * 1e-30, 2 * cos):
        # Where the integrand has fallen by DROP, by bisection of the logarithm of r; the limit if it never does.
        near, far = np.log(top), np.log(limit)
        for _ in range(44):
            half = (near + far) / 2
            above = _log_radial(start, fall, np.exp(half)) > height - _DROP
            near, far = np.where(above, half, near), np.where(above, far, half)
        ends.append(np.minimum(np.exp(near), 2 * cos))
    nodes, weights = _legendre(inner)
    total = np.zeros_like(cos)
    for low, high in ((ends[0], top), (top, ends[1])):
        length = np.maximum(high - low, 0.0)
        r = low[:, None] + length[:, None] * nodes
        total += length * (weights * np.exp(_log_radial(start, fall[:, None], r) - height[:, None])).sum(axis=1)
    return height + np.log(total)


@cache
def _legendre(n: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (nodes + 1) / 2, weights / 2


# The first term of the regret certificate: what it costs to start from the prior instead of the best decision.

_ROUNDING = 1e-14
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def first_term(domain: Domain, beta: float, lam: float, steep: float, *, quick: bool = False) -> float:
    """Return a bound on the first term of docs/theory, P6, where `steep` is `lipschitz * horizon`.

    It is the supremum over z in K of `log(Z / I(z)) / beta`, with Z the integral over K of exp(-k|x|^2/2),
    `k = beta * lam`, and I(z) that of exp(-beta steep |x - z| - k|x|^2/2). `I` is log-concave in z, hence least at an
    extreme point. `quick` leaves out what guards against errors of quadrature: for searches, not for certificates.

    >>> from reticent.domains import Interval
    >>> round(first_term(Interval(-1.0, 1.0), 0.1, 30.0, 1000.0), 3)
    63.577
    """
    k, a = beta * lam, beta * steep
    bounds = [mean_term(domain, k, steep)]
    if _is_line(domain):
        line = _line(np.array([domain.radius]), a, k)
        bounds.append(_difference(domain, k, domain.log_z(k), float(line[0])) / beta)
    elif isinstance(domain, Ball):
        bounds.append(_difference(domain, k, _ball(domain, a, k, quick), 0.0) / beta)
    elif isinstance(domain, Box):
        # At a corner, with the sum of the coordinates' distances in place of their root of squares, or with the
        # square of that root: both are products (docs/theory, P6c).
        half = (domain.high - domain.low) / 2
        product = max(float(_line(half, a, k).sum()), _square(half, a, k))
        bounds.append(_difference(domain, k, domain.log_z(k), product) / beta)
    if not (quick and (_is_line(domain) or isinstance(domain, Ball))):
        bounds.append(shrinking_term(domain, beta, lam, steep))
    return max(0.0, min(bounds))


def _difference(domain: Domain, k: float, upper: float, lower: float) -> float:
    """Return `upper - lower`, two logarithms of integrals, with room for the rounding of both.

    Divided by a small beta, rounding alone could turn a bound into nothing. The exponents that were added up on the
    way are at most `k R^2`, and there are `d` factors.
    """
    sizes = 8 * domain.chart_dim + k * domain.radius**2 + abs(upper) + abs(lower)
    return upper - lower + _ROUNDING * sizes


def mean_term(domain: Domain, k: float, steep: float) -> float:
    """Return the bound by Jensen's inequality: `steep` times the mean distance of a draw of the prior from z.

    >>> from reticent.domains import Interval
    >>> round(mean_term(Interval(-1.0, 1.0), 0.0, 3.0), 6) == round(3.0 * math.sqrt(4 / 3), 6)
    True
    """
    return steep * _mean_distance(domain, k)


def shrinking_term(domain: Domain, beta: float, lam: float, steep: float) -> float:
    """Return the closed form from shrinking K towards z by a factor e, at the best e of a search (docs/theory, P6).

    Every e in (0, 1] gives a bound. Where the mean of a centred Gaussian on K is the centre (balls, boxes and the
    simplex), the law of (1-e)z + ey has the square (1-e)^2 |z|^2 + e^2 E|y|^2 and y may be taken at precision e^2 k.
    """
    k, d, radius = beta * lam, domain.chart_dim, domain.radius
    top = domain.log_z(k, side="upper")
    balanced = _balanced(domain)

    def value(log_e: float) -> float:
        e = math.exp(log_e)
        level, square = (e * e * k, (1 - e) ** 2) if balanced else (e * k, 1 - e)
        entropy = max(0.0, _difference(domain, k, top, domain.log_z(level, side="lower") + d * log_e))
        return lam * square * radius**2 / 2 + e * steep * _mean_distance(domain, level) + entropy / beta

    # Around the e at which d log(1/e) / beta and e * steep * diameter change at the same rate.
    middle = math.log(min(1.0, d / (beta * steep * domain.diameter)))
    grid = np.linspace(middle - 4, min(0.0, middle + 4), 25)
    values = [value(x) for x in grid]
    i = int(np.argmin(values))
    found = scipy.optimize.minimize_scalar(
        value, bounds=(grid[max(i - 1, 0)], grid[min(i + 1, 24)]), method="bounded", options={"xatol": 1e-3}
    )
    return min(float(found.fun), *values)


def _is_line(domain: Domain) -> bool:
    return domain.chart_dim == 1 and _balanced(domain)


def _balanced(domain: Domain) -> bool:
    """Say whether symmetry puts the mean of every isotropic Gaussian around the centre, cut off at K, at the centre."""
    return isinstance(domain, Ball | Box | Simplex)


def _mean_distance(domain: Domain, k: float) -> float:
    """Bound the mean distance from any point of K of a draw at precision `k` around the centre."""
    d, radius = domain.chart_dim, domain.radius
    if isinstance(domain, Box):
        square = radius**2 / 3
    elif isinstance(domain, Simplex):
        square = d / ((d + 1) * (d + 2))
    else:
        square = (
            radius**2 * d / (d + 2)
        )  # the uniform law on each ray from the centre, which has the largest mean square
    if k > 0:
        square = min(square, d / k)  # the Gaussian law on each ray, cut off where the ray leaves K
    spread = math.hypot(radius, math.sqrt(square)) if _balanced(domain) else radius + math.sqrt(square)
    return min(domain.diameter, spread)


def _ball(domain: Ball, a: float, k: float, quick: bool) -> float:
    """Return log(Z / I) at a point of the boundary, in units of the radius."""
    d, radius = domain.chart_dim, domain.radius
    whole = domain.log_z(k) - d * math.log(radius)
    if quick:
        return whole - quick_ball_term(d, a * radius, k * radius**2)
    value, error = log_ball_term(d, a * radius, k * radius**2)
    return whole - value + 2 * error


def _line(half: Array, a: float, k: float) -> Array:
    """Return the logarithms of the integrals of exp(-a (h - x) - k x^2/2) from -h to h."""
    root = math.sqrt(k)
    near, far = (a - k * half) / root, (a + k * half) / root
    # All three forms are evaluated; each is used where it neither cancels nor overflows.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tails = -k * half**2 / 2 - math.log(root) + np.log(_mills(near) - np.exp(-2 * a * half) * _mills(far))
        centre = a * (a / (2 * k) - half) + 0.5 * math.log(2 * math.pi) - math.log(root)
        inside = centre + np.log(_mass(-near, far))
    u = (_NODES + 1) * half[:, None]
    short_exponent = -np.minimum(a * u, 700.0) - k * (half[:, None] - u) ** 2 / 2
    short = np.log(half) + np.log((_WEIGHTS * np.exp(np.maximum(short_exponent, -700.0))).sum(axis=1))
    is_short = (2 * a * half <= 1) & (2 * half * root <= 1)
    return np.where(is_short, short, np.where(near >= 0, tails, inside))


def _square(half: Array, a: float, k: float) -> float:
    """Return the log-integral over a box with |v| replaced by (|v|^2 / tau + tau) / 2, at the best tau of a grid."""
    size = float(np.linalg.norm(half))
    # The typical distance from the corner, about d/a, and half a decade around it up to the size of the box.
    tau = np.geomspace(0.1 * min(size, half.size / a), 3 * size, 60)[:, None]
    pull = a / tau
    total = pull + k
    root = np.sqrt(total)
    to_corner, to_other = k * half / root, half * (total + pull) / root
    logs = -0.5 * pull * k / total * half**2 + 0.5 * np.log(2 * math.pi / total) + np.log(_mass(to_corner, to_other))
    return float((logs.sum(axis=1) - a * tau[:, 0] / 2).max())


def _mass(below: Array, above: Array) -> Array:
    """Return the normal mass from `-below` to `above`, both at least 0: no cancellation, however small they are."""
    halves: Array = (scipy.special.erf(below / math.sqrt(2)) + scipy.special.erf(above / math.sqrt(2))) / 2
    return halves


def _mills(z: Array) -> Array:
    ratio: Array = math.sqrt(math.pi / 2) * scipy.special.erfcx(z / math.sqrt(2))
    return ratio


# The regret certificate of a plan, part by part (docs/theory, P6 and P7).


@dataclass(frozen=True)
class RegretBound:
    """A bound on expected regret against losses that do not depend on the decisions, by its parts.

    `first` is what it costs to start from the prior, `stability` that each measure lags one batch behind, `drift`
    the clipping of the coin, `budget` the chance that the switches run out, `inexact` the draws' distance from exact,
    `rounding` the grid that decisions of private plans are released on.
    """

    first: float
    stability: float
    drift: float
    budget: float
    inexact: float
    rounding: float

    @property
    def total(self) -> float:
        """The bound itself: the sum of the parts."""
        return self.first + self.stability + self.drift + self.budget + self.inexact + self.rounding


def regret_bound(plan: Plan) -> RegretBound:
    """Return the certificate of `plan`, which must have a horizon.

    >>> from reticent.domains import Interval
    >>> plan = Plan(Interval(-1.0, 1.0), 1000, 1.0, beta=0.1, lam=30.0, p=0.0, phi=1.25)
    >>> round(regret_bound(plan).stability, 3)
    16.667
    """
    if plan.horizon is None:
        raise ValueError("a regret bound needs a horizon, got a plan with horizon=None; ask for plan.epoch(k)")
    law, G, D = Switching(plan), plan.lipschitz, plan.domain.diameter
    left_over = plan.horizon - plan.coins * plan.batch
    squares = plan.coins * plan.batch**2 + left_over**2
    return RegretBound(
        first=first_term(plan.domain, plan.beta, plan.lam, G * plan.horizon),
        stability=squares * G * G / (2 * plan.lam),
        drift=G * D * law.weighted_variation(),
        budget=G * D * law.weighted_overrun(),
        inexact=G * D * plan.horizon * law.failure,
        rounding=plan.grid_regret,
    )
