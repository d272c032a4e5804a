"""A quick stand-in for the accountant: what many candidate plans reveal, all at once. For searches, not for claims.

The later coins count as one more normal variable of the same variance. What is found with it goes through the real
accountant before it is called a plan.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._check import Array

# Nodes for the normal law of the losses, on both sides of the place where the coin's hockey stick has its corner, and
# the standard deviations around the mean that count.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_LEFT, _RIGHT = -5.0, 14.0


def gaussian(mu: Array, epsilon: Array | float) -> Array:
    """Return the delta of a `mu`-GDP release at `epsilon`, of any sign.

    >>> round(float(gaussian(np.array(1.0), 1.0)), 9)
    0.126936738
    """
    ratio = epsilon / mu
    with np.errstate(over="ignore", under="ignore"):
        value: Array = scipy.special.ndtr(mu / 2 - ratio) - np.exp(epsilon + scipy.special.log_ndtr(-mu / 2 - ratio))
    return np.maximum(value, 0.0)


def coins_variance(count: Array, p: Array, eta: Array) -> Array:
    """Return the variance of the privacy losses of the later coins (docs/theory.md, Q2)."""
    gap = -(1 - p) * np.expm1(-eta)
    folded = 2 * p + gap > 1
    step = np.where(folded, eta, np.log1p(gap / p))
    total = np.where(folded, (1 - p) * (1 + np.exp(-eta)), 2 * p + gap)
    variance: Array = np.maximum(count, 0.0) * total * step**2
    return variance


def adaptive(mu: Array, p: Array, special: Array, epsilon: float) -> Array:
    """Return delta with the coin of the changed batch, whose chances to keep differ by exp(`special`) (Q3 and Q4b)."""
    gap = -(1 - p) * np.expm1(-special)
    rise = np.log1p(gap / p)
    more = (1 - p - gap) * gaussian(mu, epsilon + special) + (p + gap) * gaussian(mu, epsilon - rise)
    less = p * gaussian(mu, epsilon + rise) + (1 - p) * gaussian(mu, epsilon - special)
    return np.maximum(more, less)


def oblivious(
    mu: Array, p: Array, log_phi: Array, shift: Array, length: Array, failure: Array, epsilon: float
) -> Array:
    """Return delta for losses that do not depend on the decisions (docs/theory.md, Q6), with a few values of t only.

    `mu` is that of everything but the coin of the changed batch, `shift` that of one draw, `length` that of a batch's
    losses, `failure` what clipping moves in all.
    """
    keep = (1 - p) * np.exp(-np.minimum(log_phi, 50.0))
    kept = keep * gaussian(np.hypot(mu, shift), epsilon)
    corner = np.clip((epsilon - mu**2 / 2) / mu, _LEFT + 0.1, _RIGHT - 6.0)
    switched = np.zeros_like(mu)
    # Six deviations to the right of the corner: beyond it the normal density falls at least as fast as around 0.
    for low, high in ((np.full_like(mu, _LEFT), corner), (corner, np.maximum(corner, 0.0) + 6.0)):
        half = (high - low)[..., None] / 2
        place = low[..., None] + half * (_NODES + 1)
        density = half * _WEIGHTS * np.exp(-(place**2) / 2) / math.sqrt(2 * math.pi)
        loss = (mu**2 / 2)[..., None] + mu[..., None] * place
        parts = _switch(epsilon - loss, p[..., None], keep[..., None], shift[..., None], length[..., None])
        switched = switched + (parts * density).sum(axis=-1)
    delta: Array = kept + switched + (1 + math.exp(epsilon)) * failure
    return delta


def _switch(e: Array, p: Array, keep: Array, shift: Array, length: Array) -> Array:
    """Return T at exp(e), for a switch in the changed batch."""
    with np.errstate(over="ignore"):
        less = -np.expm1(-np.abs(e))  # 1 - exp(-|e|)
    excess = np.expm1(np.minimum(np.abs(e), 50.0))  # alpha - 1 for the alpha >= 1 among alpha and 1/alpha
    best = keep * _hockey(excess * p / (1 - p), shift)
    for times in (2.0, 3.0, 4.0, 5.0):
        t = times * length
        rest = np.exp(-t) / keep - 1
        best = np.minimum(best, keep * _hockey(excess * rest, shift) + excess * np.exp(-t) * _hockey(t, length))
    # Exchanging the two worlds for alpha < 1.
    return np.where(e >= 0, best, (1 - keep) * less + (1 - less) * best)


def _hockey(gap: Array, shift: Array) -> Array:
    """Return c h(log 1/c) for c = 1 - gap and a small shift: the mean excess of a normal variable over gap."""
    x = np.maximum(gap, 0.0) / shift
    x = np.minimum(x, 30.0)
    value: Array = shift * (np.exp(-x * x / 2) / math.sqrt(2 * math.pi) - x * scipy.special.ndtr(-x))
    return np.maximum(value, 0.0)
