"""What Gaussian noise on a sum of gradients costs the regularised leader (docs/theory.md, R2d and R5d)."""

from __future__ import annotations

import math


def mean_length(dim: int) -> float:
    """Return the mean length of a standard normal vector.

    >>> round(mean_length(1) ** 2 * math.pi, 9)
    2.0
    """
    return math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))


def chi_shares(dim: int, length: float) -> tuple[float, float, float]:
    """Return P(|N_{d+2}| <= length), P(|N_{d+1}| > length), P(|N_d| > length), N_k standard normal in k dimensions."""
    from scipy.special import gammainc, gammaincc

    half = min(length, 1e150) ** 2 / 2
    inside, above, beyond = gammainc(dim / 2 + 1, half), gammaincc((dim + 1) / 2, half), gammaincc(dim / 2, half)
    return float(inside), float(above), float(beyond)


def noise_cost(dim: int, reach: float, lam: float, level: float) -> float:
    """Return E max over 0 <= r <= reach of r |N| - lam r^2/2, N normal with deviation `level` in each coordinate.

    Where |N| <= lam reach the maximum is |N|^2/(2 lam), beyond it is taken at the end.

    >>> round(noise_cost(4, 1.0, 1e9, 1.0) * 1e9, 6)
    2.0
    """
    if level == 0:
        return 0.0
    inside, above, beyond = chi_shares(dim, lam * reach / level)
    price = level**2 * dim / (2 * lam) * inside
    return price + reach * (level * mean_length(dim) * above - lam * reach / 2 * beyond)
