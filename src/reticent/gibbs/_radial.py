"""A radial envelope exp(-lb(rho)) with a quartic lower bound near the centre and a convex tail (docs/theory.md, S9)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from reticent._check import Array

CELLS = 384


class Radial(NamedTuple):
    """The envelope rho^(d-1) exp(-lb(rho)) as cells of constant height and an exponential tail beyond `rho1`."""

    level: float  # lb(0)
    slope: float  # lb falls at most this fast at 0
    cubic: float
    quartic: float
    rho1: float  # end of the quartic part
    top: float  # lb(rho1)
    kappa: float  # strong convexity of the tail
    heights: Array  # log heights of the cells
    totals: Array  # running totals of the masses, the tail's last
    tail_slope: float
    log_mass: float


@njit(cache=True, error_model="numpy")
def lower_bound(radial, rho):
    """lb(rho): what the potential is at least, at distance rho in the whitened coordinates."""
    if rho <= radial.rho1:
        return radial.level + rho * (-radial.slope + rho * (0.5 - rho * (radial.cubic + rho * radial.quartic)))
    s = rho / radial.rho1
    return s * radial.top + 0.5 * (s * s - s) * radial.kappa * radial.rho1 * radial.rho1


def radial_envelope(d: int, level: float, slope: float, cubic: float, quartic: float, kappa: float) -> Radial | None:
    """Return the envelope of least mass over the choice of rho1, or None if no choice has a falling tail."""
    best: Radial | None = None
    # Beyond sqrt(d) + 6 there is next to no mass; before sqrt(d)/2 a tail would be heavy.
    for rho1 in np.linspace(0.6 * math.sqrt(d), math.sqrt(d) + 6.0, 24):
        found = _with_end(d, level, slope, cubic, quartic, kappa, float(rho1))
        if found is not None and (best is None or found.log_mass < best.log_mass):
            best = found
    return best


def _with_end(
    d: int, level: float, slope: float, cubic: float, quartic: float, kappa: float, rho1: float
) -> Radial | None:
    edges = np.linspace(0.0, rho1, CELLS + 1)
    lb = level + edges * (-slope + edges * (0.5 - edges * (cubic + edges * quartic)))
    top = float(lb[-1])
    right = edges[1:]
    # -lb over a cell is at most the mean of its ends plus half a cell's width times its steepest slope.
    steepest = slope + right * (1.0 + right * (3.0 * cubic + right * 4.0 * quartic))
    width = rho1 / CELLS
    heights = (d - 1) * np.log(right) - 0.5 * (lb[1:] + lb[:-1]) + 0.5 * width * steepest
    # The tail (d-1) log rho - lb is concave: its tangent at rho1 lies above it.
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    if not tail_slope < 0.0:
        return None
    tail = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
    peak = max(float(heights.max()), tail)
    masses = np.append(np.exp(heights - peak) * width, math.exp(tail - peak))
    totals = np.cumsum(masses)
    log_mass = peak + math.log(float(totals[-1]))
    return Radial(level, slope, cubic, quartic, rho1, top, kappa, heights, totals, float(tail_slope), float(log_mass))


def radial_tail(d: int, level: float, rise: float, kappa: float, rho1: float) -> Radial | None:
    """Return the tail alone, beyond rho1, where the potential is at least level + rise at rho1."""
    top = level + rise
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    if not tail_slope < 0.0:
        return None
    log_mass = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
    nothing = np.zeros(1)
    return Radial(level, 0.0, 0.0, 0.0, rho1, top, kappa, nothing, nothing + 1.0, tail_slope, log_mass)


@njit(cache=True, error_model="numpy")
def draw_tail(rng, radial, d):
    """One proposal of rho beyond rho1 from the exponential hat, and the potential that it stands for (below lb)."""
    step = rng.standard_exponential() / -radial.tail_slope
    rho = radial.rho1 + step
    hat = (d - 1) * math.log(radial.rho1) - radial.top + radial.tail_slope * step
    return rho, (d - 1) * math.log(rho) - hat


@njit(cache=True, error_model="numpy")
def draw_radius(rng, radial, d):
    """An exact draw of rho from rho^(d-1) exp(-lb(rho)), and lb there."""
    cells = radial.heights.size
    width = radial.rho1 / cells
    while True:
        target = rng.random() * radial.totals[-1]
        low, high = 0, cells
        while low < high:
            middle = (low + high) // 2
            if radial.totals[middle] > target:
                high = middle
            else:
                low = middle + 1
        if low < cells:
            rho = (low + rng.random()) * width
            height = radial.heights[low]
        else:
            return draw_tail(rng, radial, d)
        lb = lower_bound(radial, rho)
        if rho > 0.0 and rng.standard_exponential() >= height - ((d - 1) * math.log(rho) - lb):
            return rho, lb
