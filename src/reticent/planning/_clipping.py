"""What clipping costs: the mass that the coin loses when its probability is cut off at 1 (docs/theory.md, P4)."""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._check import Array

# Gauss-Legendre on an interval no longer than 1/2: six nodes leave a relative error below 1e-12.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
# Normal variables beyond 12 standard deviations have mass 2e-33; they are added to the bound, not dropped.
_FAR = 12.0


def sigma(lipschitz: float, beta: float, lam: float, batch: int = 1, draws: int = 1) -> float:
    """Return the standard deviation of a normal variable that stands for the logarithm of the coin's ratio.

    >>> sigma(1.0, 0.02, 4.0)
    0.1
    """
    return batch * lipschitz * math.sqrt((1 + 1 / draws) * beta / lam)


def delta0(log_phi: float | Array, sigma: float | Array) -> Array:
    """Return `E (exp(h) / phi - 1)_+` for `h` normal with variance `sigma^2` and `E exp(h) = 1`.

    With `c = log_phi / sigma` this is `exp(-log_phi) Q(c - sigma/2) - Q(c + sigma/2)`, here without cancellation.

    >>> float(delta0(0.0, 1e-9) * math.sqrt(2 * math.pi) / 1e-9)
    1.0
    """
    return _loss_and_rate(log_phi, sigma)[0]


def clipping(log_phi: float | Array, step: float | Array, draws: int = 1, reach: float | Array = math.inf) -> Array:
    """Return the bound on the mass that clipping moves per coin, before the forced coin takes its share.

    `step` is `batch * lipschitz * sqrt(beta / lam)` and `reach` is `beta * batch * lipschitz * diameter`: nothing is
    clipped when `log_phi` is not below it. The mean of several lognormal variables is not lognormal, so with
    `draws > 1` the formula at the smaller `sigma` is multiplied by what that costs, a factor near 1.

    >>> float(clipping(0.5, 0.01, reach=0.5))
    0.0
    """
    a, s = np.asarray(log_phi, dtype=np.float64), np.asarray(step, dtype=np.float64)
    bound, _ = _loss_and_rate(a, math.sqrt(2) * s)
    if draws > 1:
        bound = np.minimum(bound, _averaged(a, s, draws))
    return np.where(a >= np.asarray(reach), 0.0, np.minimum(bound, 1.0))


def _averaged(a: Array, s: Array, draws: int) -> Array:
    """Return the bound for the mean of `draws` auxiliary draws.

    That mean is a lognormal variable of variance `sigma^2`, times an independent `R` of mean 1 that holds the spread
    of the draws around their own mean. The loss f(a) is log-concave in a, with slope -rate: f(a - log R) is at most
    f(a) R^rate above, and the lower clip loses at most f(a)/phi R^(1-rate) (docs/theory.md, P4).
    """
    part = 1 - 1 / draws
    loss, rate = _loss_and_rate(a, math.sqrt(1 + 1 / draws) * s)
    far = _FAR * s
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        curve = np.where(far < 1e-3, 1 + far / 2, 2 * (np.expm1(far) - far) / np.maximum(far, 1e-3) ** 2)
        used = rate * s * s * curve / draws
        grown = -0.5 * (draws - 1) * np.log1p(-np.minimum(used, 1.0)) - rate * s * s * part / 2
        lower = (rate - 1) * s * s * part / 2 - a
        factor = np.exp(np.maximum(grown, lower))
        exceptional = 2 * draws * scipy.special.ndtr(s - _FAR)
        total: Array = loss * factor + exceptional
    return np.where((used < 1) & (rate >= 1), total, 1.0)


def _loss_and_rate(log_phi: float | Array, sigma: float | Array) -> tuple[Array, Array]:
    """Return f(a) = E (exp(h - a) - 1)_+ and -f'(a) / f(a)."""
    a, width = np.broadcast_arrays(np.asarray(log_phi, dtype=np.float64), np.asarray(sigma, dtype=np.float64))
    c = a / width
    kept = np.exp(scipy.special.log_ndtr(width / 2 - c) - a)
    beyond = np.exp(scipy.special.log_ndtr(-width / 2 - c))
    loss = kept - beyond
    # For small sigma: the difference of two Mills ratios as the integral of 1 - x m(x) between them, times phi.
    half = np.minimum(width, 0.5)[..., None] / 2
    x = c[..., None] + half * _NODES
    mills = math.sqrt(math.pi / 2) * scipy.special.erfcx(x / math.sqrt(2))
    slope = np.where(x > 1e4, 0.0, 1 - x * mills)
    small = (half * _WEIGHTS * slope).sum(axis=-1) * np.exp(-((c + width / 2) ** 2) / 2) / math.sqrt(2 * math.pi)
    loss = np.where(width <= 0.5, small, loss)
    loss = np.maximum(loss, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(loss > 0, kept / loss, np.inf)
    return loss, rate
