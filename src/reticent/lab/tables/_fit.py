"""Exponents fitted by least squares in logarithms, with intervals, and whether the points can tell them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

CONFUSED = 30.0  # condition number from which on exponents are not told apart
LEVEL = 0.95


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent with its 95 percent interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """A power law fitted to points: its exponents, how far the points are from it, and what could not be fitted.

    `condition` is that of the logarithms, centred and of equal length: above 30 the variables move together and their
    exponents trade against each other. `residual` is the root mean square of the logarithm that is left.
    """

    exponents: dict[str, Exponent]
    points: int
    condition: float
    residual: float

    @property
    def identifiable(self) -> bool:
        """Whether the points tell the exponents apart."""
        return self.condition < CONFUSED

    def facts(self) -> dict[str, Any]:
        """Return it all as plain data."""
        return asdict(self) | {"identifiable": self.identifiable}


def fit(rows: Sequence[Mapping[str, float]], variables: Sequence[str], target: str = "regret") -> Fit | None:
    """Fit target = constant * product of powers; None with too few points. Variables that do not vary are left out.

    >>> rows = [{"T": T, "d": d, "regret": 3 * T**0.5 * d} for T in (10, 100, 1000) for d in (2, 4)]
    >>> {name: round(one.value, 6) for name, one in fit(rows, ("T", "d")).exponents.items()}
    {'T': 0.5, 'd': 1.0}
    """
    moving = [name for name in variables if len({row[name] for row in rows}) > 1]
    if not moving or len(rows) < len(moving) + 2:
        return None
    X = np.log([[float(row[name]) for name in moving] for row in rows])
    y = np.log([float(row[target]) for row in rows])
    X, middle = X - X.mean(axis=0), y - y.mean()
    sizes = np.linalg.norm(X, axis=0)
    lengths = np.linalg.svd(X / sizes, compute_uv=False)
    condition = float(lengths[0] / lengths[-1]) if lengths[-1] > 1e-12 else math.inf
    if not math.isfinite(condition):
        return Fit({}, len(rows), condition, math.nan)
    values = np.linalg.lstsq(X, middle, rcond=None)[0]
    left = middle - X @ values
    free = len(rows) - len(moving) - 1
    spread = np.sqrt(np.sum(left**2) / free * np.diag(np.linalg.inv(X.T @ X)))
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, free)) * spread
    found = {
        name: Exponent(float(v), float(v - r), float(v + r)) for name, v, r in zip(moving, values, reach, strict=True)
    }
    return Fit(found, len(rows), condition, float(np.sqrt(np.mean(left**2))))
