"""A radial envelope exp(-lb(rho)) with a quartic lower bound near the centre and a convex tail (docs/theory.md, S9)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reticent._check import Array
from reticent._kernel import kernel

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


@kernel
def lower_bound(radial, rho):
    """lb(rho): what the potential is at least, at distance rho in the whitened coordinates."""
    if rho <= radial.rho1:
        return radial.level + rho * (-radial.slope + rho * (0.5 - rho * (radial.cubic + rho * radial.quartic)))
    s = rho / radial.rho1
    return s * radial.top + 0.5 * (s * s - s) * radial.kappa * radial.rho1 * radial.rho1


@kernel
def radial_envelope(d, level, slope, cubic, quartic, kappa, rho1):
    """The envelope that ends its quartic part at rho1; its log mass is infinite if the tail does not fall."""
    heights, totals = np.empty(CELLS), np.empty(CELLS + 1)
    width = rho1 / CELLS
    before = level
    peak = -np.inf
    for cell in range(CELLS):
        right = width * (cell + 1)
        lb = level + right * (-slope + right * (0.5 - right * (cubic + right * quartic)))
        # -lb over a cell is at most the mean of its ends plus half a cell's width times its steepest slope.
        steepest = slope + right * (1.0 + right * (3.0 * cubic + right * 4.0 * quartic))
        heights[cell] = (d - 1) * math.log(right) - 0.5 * (before + lb) + 0.5 * width * steepest
        peak = max(peak, heights[cell])
        before = lb
    top = before
    # The tail (d-1) log rho - lb is concave: its tangent at rho1 lies above it.
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    log_mass = np.inf
    if tail_slope < 0.0:
        tail = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
        peak = max(peak, tail)
        total = 0.0
        for cell in range(CELLS):
            total += math.exp(heights[cell] - peak) * width
            totals[cell] = total
        totals[CELLS] = total + math.exp(tail - peak)
        log_mass = peak + math.log(totals[CELLS])
    return Radial(level, slope, cubic, quartic, rho1, top, kappa, heights, totals, tail_slope, log_mass)


@kernel
def radial_tail(d, level, rise, kappa, rho1):
    """The tail alone, beyond rho1, where the potential is at least level + rise; the log mass as above."""
    top = level + rise
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    log_mass = np.inf
    if tail_slope < 0.0:
        log_mass = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
    return Radial(level, 0.0, 0.0, 0.0, rho1, top, kappa, np.zeros(1), np.ones(1), tail_slope, log_mass)


@kernel
def draw_tail(rng, radial, d):
    """One proposal of rho beyond rho1 from the exponential hat, and the potential that it stands for (below lb)."""
    step = rng.standard_exponential() / -radial.tail_slope
    rho = radial.rho1 + step
    hat = (d - 1) * math.log(radial.rho1) - radial.top + radial.tail_slope * step
    return rho, (d - 1) * math.log(rho) - hat


@kernel
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
