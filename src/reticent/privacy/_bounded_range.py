"""Releases of bounded range, such as draws of the exponential mechanism, in the Gaussian family."""

from __future__ import annotations

import math

import scipy

from reticent._check import positive

_SMALL = 1e-4  # below, the straight line is closer to the truth (1e-10 of it) than the rounding of quantiles


def gdp_of_bounded_range(rho: float) -> float:
    """Return the smallest mu for which every release of range `rho` is mu-GDP: 2 N^-1(1 / (1 + exp(-rho/2))).

    A release has range rho if the logarithm of the ratio of its two laws lies in an interval of length rho. Draws of
    the exponential mechanism do: weights exp(-beta s) and exp(-beta s'), with s - s' of range r, have rho = beta r.
    Such a pair is dominated by a logistic variable against itself moved by rho, and that by normal ones
    (docs/theory.md, R4). The value is rounded upwards; for small rho it is about sqrt(pi/8) rho, and never more.

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
