"""Quartic minorants of the hinge (v - rho)_+ : the best ones by linear programming, checked through their roots.

p(v) = a0 + a1 v + a2 v^2 + a3 v^3 - a4 v^4 <= (v - rho)_+ for every real v (docs/theory.md, S8). They are the only
approximation behind draws for kinked losses, and since every one of them is a true lower bound, a poor choice
costs time and nothing else.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from reticent._check import Array

BINS = 32
REACH = 3.2  # in units of the scale; beyond it the best minorant is next to nothing
WEIGHTS = (0.0, 1.0, 3.0, 10.0)  # how much a quartic term is discouraged beyond its mean under a normal v


@lru_cache(maxsize=1)
def minorant_tables() -> tuple[Array, Array]:
    """Return the upper edges of the residual bins and, per weight and bin, the five coefficients."""
    edges = np.linspace(0.0, REACH, BINS + 1)[1:]
    tables = np.array([[best_minorant(rho, weight) for rho in edges] for weight in WEIGHTS])
    return edges, tables


def best_minorant(rho: float, weight: float) -> Array:
    """Return (a0, ..., a4) with the largest mean of p under a standard normal v, less `weight` times a4.

    >>> a = best_minorant(1.0, 1.0)
    >>> excess(a, 1.0) <= 0.0
    True
    """
    v = np.unique(np.concatenate([np.linspace(-14, 14, 281), np.linspace(-3, 3, 121), rho + np.linspace(-2, 3, 101)]))
    # Rows are scaled to be of the same size far out.
    scale = 1.0 / np.maximum(1.0, v**4)
    columns = np.stack([v**0, v, v**2, v**3, -(v**4)], axis=1)
    solution = linprog(
        [-1.0, 0.0, -1.0, 0.0, 3.0 + weight],
        A_ub=columns * scale[:, None],
        b_ub=np.maximum(v - rho, 0.0) * scale,
        bounds=[(None, None)] * 4 + [(1e-5, None)],
        method="highs",
    )
    a: Array = np.array(solution.x) if solution.status == 0 else np.array([0.0, 0.0, 0.0, 0.0, 1e-5])
    # The programme only saw a grid: lower the constant by whatever is too high anywhere, and a little more.
    a[0] -= max(0.0, excess(a, rho)) + 1e-9
    return a


def excess(a: Array, rho: float) -> float:
    """Return the largest value over all real v of p(v) - (v - rho)_+, from the roots of its derivatives."""
    slope = np.array([-4 * a[4], 3 * a[3], 2 * a[2], a[1]])
    places = [rho]
    for target, side in ((0.0, -1.0), (1.0, 1.0)):
        roots = np.roots(slope - np.array([0.0, 0.0, 0.0, target]))
        # A root that rounding pushed off the real axis still counts: extra places only make the check stricter.
        places += [float(r.real) for r in roots if side * (r.real - rho) > 0.0]
    v = np.array(places)
    return float((a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4]))) - np.maximum(v - rho, 0.0)).max())
