"""The coin exp(-rate * sum of r_i), tossed by looking at a few random rows (docs/theory.md, S6)."""

from __future__ import annotations

import math

from reticent._kernel import kernel

from ._phi import curvature_range, d2phi, dphi, margin_bounds, phi


@kernel
def pick_row(rng, totals):
    """A row chosen with probability proportional to its weight, given running totals."""
    target = rng.random() * totals[-1]
    low, high = 0, totals.size - 1
    while low < high:
        middle = (low + high) // 2
        if totals[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def lower_factor(tau: float) -> float:
    """2 (exp(-tau) + tau - 1) / tau^2: how much of its curvature a self-concordant loss keeps within tau."""
    if tau < 1e-3:
        return 1.0 - tau / 3.0
    return 2.0 * (math.exp(-tau) + tau - 1.0) / (tau * tau)


@kernel
def upper_factor(tau: float) -> float:
    """2 (exp(tau) - tau - 1) / tau^2: by how much its curvature may grow within tau."""
    if tau < 1e-3:
        return 1.0 + tau / 3.0 + tau * tau / 6.0
    if tau > 100.0:
        return 1e300
    return 2.0 * (math.exp(tau) - tau - 1.0) / (tau * tau)


@kernel
def survives(rng, code, parameter, vectors, offsets, totals, body, z, u, beta, cap, share):
    """Toss the coin exp(-beta sum_i r_i(u)); return (kept?, rows read).

    r_i(u) = l_i(z+u) - l_i(z) - l_i'(z) v_i - b_i v_i^2 / 2 with v_i = row_i.u, where b_i is the least second
    derivative of the row over the body, or `share` times that at z if share > 0. The caller vouches for
    0 <= r_i(u) <= cap * weight_i, where the weights have the running totals `totals`.
    Points of a Poisson process of intensity beta * cap * (sum of weights) look at one row each, chosen by
    weight; a row kills with probability r_i / (cap * weight_i), so none kills with the chance wanted.
    """
    n = offsets.size
    points = 0.0
    reads = 0
    mean = beta * cap * totals[n - 1] if n > 0 else 0.0
    while True:
        points += rng.standard_exponential()
        if points > mean:
            return True, reads
        i = pick_row(rng, totals)
        reads += 1
        row = vectors[i]
        weight = totals[i] - (totals[i - 1] if i > 0 else 0.0)
        m, v = offsets[i], 0.0
        for j in range(u.size):
            m += row[j] * z[j]
            v += row[j] * u[j]
        if share > 0.0:
            bend = share * d2phi(code, parameter, m)
        else:
            low, high, _ = margin_bounds(row, offsets[i], body)
            bend = curvature_range(code, parameter, low, high)[0]
        excess = phi(code, parameter, m + v) - phi(code, parameter, m) - dphi(code, parameter, m) * v
        if rng.random() * cap * weight < excess - 0.5 * bend * v * v:
            return False, reads
