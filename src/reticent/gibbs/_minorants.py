"""Quartic minorants of the hinge (v - rho)_+ : the best ones by linear programming, checked through their roots.

p(v) = a0 + a1 v + a2 v^2 + a3 v^3 - a4 v^4 <= (v - rho)_+ for every real v (docs/theory.md, S8). They are the only
approximation behind draws for kinked losses, and since every one of them is a true lower bound, a poor choice
costs time and nothing else.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
import scipy

from reticent._check import Array

BINS = 24
REACH = 1.2  # in units of the scale; a kink farther away than that is better left alone
WEIGHTS = (0.0, 1.0, 3.0, 10.0)  # how much a quartic term is discouraged beyond its mean under a normal v


EDGES: Array = np.linspace(0.0, REACH, BINS + 1)[1:]  # upper edges of the bins of residuals


@lru_cache(maxsize=1)
def minorant_tables() -> Array:
    """Return the five coefficients per weight and bin, as solved before by `solve_tables`.

    Each is checked again here, and lowered should it be too high: nothing rests on the file being right.
    """
    text = resources.files("reticent.gibbs").joinpath("minorants.json").read_text()
    tables: Array = np.array(json.loads(text))
    for table in tables:
        for rho, a in zip(EDGES, table, strict=True):
            if not a[4] > 0.0:
                a[:] = 0.0  # no minorant at all, whatever the other coefficients are
            a[0] -= max(0.0, excess(a, rho))
    return tables


def solve_tables() -> None:
    """Solve all tables again, by linear programming, and write them beside this module: for developers."""
    tables = [[best_minorant(rho, weight).tolist() for rho in EDGES] for weight in WEIGHTS]
    Path(__file__).with_name("minorants.json").write_text(json.dumps(tables, indent=1) + "\n")


def best_minorant(rho: float, weight: float) -> Array:
    """Return (a0, ..., a4) with the largest mean of p under a standard normal v, less `weight` times a4.

    Where the best is no better than nothing, it is 0.

    >>> a = best_minorant(1.0, 1.0)
    >>> excess(a, 1.0) <= 0.0
    True
    """
    value = np.array([1.0, 0.0, 1.0, 0.0, -(3.0 + weight)])
    v = np.concatenate([np.linspace(-14, 14, 141), np.linspace(-3, 3, 61), rho + np.linspace(-2, 3, 51)])
    a = np.zeros(5)
    for _ in range(12):
        # Rows are scaled to be of the same size far out.
        scale = 1.0 / np.maximum(1.0, v**4)
        columns = np.stack([v**0, v, v**2, v**3, -(v**4)], axis=1)
        solution = scipy.optimize.linprog(
            -value,
            A_ub=columns * scale[:, None],
            b_ub=np.maximum(v - rho, 0.0) * scale,
            bounds=[(None, None)] * 4 + [(1e-4, None)],
            method="highs",
        )
        if solution.status != 0:
            return np.zeros(5)
        a = np.array(solution.x)
        if excess(a, rho) < 1e-8:
            break
        # The programme only sees a grid: add the places where its answer is too high.
        v = np.append(v, _places(a, rho))
    # Lower the constant by whatever is still too high anywhere, and a little more.
    a[0] -= max(0.0, excess(a, rho)) + 1e-9
    return a if value @ a > 0.0 else np.zeros(5)


def excess(a: Array, rho: float) -> float:
    """Return the largest value over all real v of p(v) - (v - rho)_+, from the roots of its derivatives."""
    v = _places(a, rho)
    return float((a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4]))) - np.maximum(v - rho, 0.0)).max())


def _places(a: Array, rho: float) -> Array:
    """Return where p(v) - (v - rho)_+ may have a maximum: the kink, and the roots of its derivative on either side."""
    slope = np.array([-4 * a[4], 3 * a[3], 2 * a[2], a[1]])
    places = [rho]
    for target, side in ((0.0, -1.0), (1.0, 1.0)):
        roots = np.roots(slope - np.array([0.0, 0.0, 0.0, target]))
        # A root that rounding pushed off the real axis still counts: extra places only make the check stricter.
        places += [float(r.real) for r in roots if side * (r.real - rho) > 0.0]
    return np.array(places)
