"""What the certificates of several systems share: lengths of blocks, and what Gaussian noise costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import scipy


def block_squares(horizon: int, batch: int) -> int:
    """Return the sum of the squared lengths of the blocks that a horizon is cut into; the last may be short.

    >>> block_squares(10, 4)
    36
    """
    full, rest = divmod(horizon, batch)
    return full * batch**2 + rest**2


@cache
def mean_length(dim: int) -> float:
    """Return the mean length of a standard normal vector.

    >>> round(mean_length(1) ** 2 * math.pi, 9)
    2.0
    """
    return math.sqrt(2) * math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))


def chi_shares(dim: int, length: float) -> tuple[float, float, float]:
    """Return P(|N_{d+2}| <= length), P(|N_{d+1}| > length), P(|N_d| > length), N_k standard normal in k dimensions."""
    half, longer = min(length, 1e150) ** 2 / 2, scipy.special.gammaincc
    return (
        float(scipy.special.gammainc(dim / 2 + 1, half)),
        float(longer((dim + 1) / 2, half)),
        float(longer(dim / 2, half)),
    )


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


def least_at(cost: Callable[[float], float], low: float, high: float) -> float:
    """Return about where a function of a positive number is least: on a grid, then between the neighbours of its best.

    >>> round(least_at(lambda x: x + 4 / x, 0.01, 100.0), 4)
    2.0
    """
    grid = np.linspace(math.log(low), math.log(high), 120)
    values = [cost(math.exp(x)) for x in grid]
    best = int(np.argmin(values))
    between = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)]))
    found = scipy.optimize.minimize_scalar(
        lambda x: cost(math.exp(x)), bounds=between, method="bounded", options={"xatol": 1e-6}
    )
    return math.exp(float(found.x) if found.fun < values[best] else float(grid[best]))


def finite(system: str, mu: float) -> float:
    """Return `mu`, or say that there is no account without noise."""
    if not math.isfinite(mu):
        raise ValueError(f"noise must be greater than 0 for a privacy account of {system}, got 0.0")
    return mu
