"""The first term of the regret certificate: what it costs to start from the prior instead of the best decision."""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._check import Array
from reticent.domains import Ball, Box, Domain, Simplex
from reticent.planning._ball_term import log_ball_term, quick_ball_term

_ROUNDING = 1e-14
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def first_term(domain: Domain, beta: float, lam: float, steep: float, *, quick: bool = False) -> float:
    """Return a bound on the first term of docs/theory.md, P6, where `steep` is `lipschitz * horizon`.

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
        # square of that root: both are products (docs/theory.md, P6c).
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
    """Return the closed form from shrinking K towards z by a factor e, at the best e of a search (docs/theory.md, P6).

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
