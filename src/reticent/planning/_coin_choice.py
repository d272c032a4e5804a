"""The other half of lazy planning: the forced switching rate and the scale of the coin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent._check import Array
from reticent.planning._clipping import clipping
from reticent.planning._measure_choice import MeasureCosts
from reticent.planning._plan import Plan
from reticent.planning._switching import expected_switches, looked_at, overrun, variation_sum

# Steps of the sum over rounds in the search; the certificate takes more.
_STEPS = 32
_ROUNDS = 6


@dataclass(frozen=True)
class Coin:
    """A forced rate, a scale, and the largest step that the allowed number of switches leaves room for."""

    p: float
    log_phi: float
    step: float


def best_coin(shell: Plan, costs: MeasureCosts, allowed: float) -> Coin:
    """Return the coin of least certified regret whose expected switches, without a budget, are at most `allowed`.

    A search from coarse to fine over c (log phi is c sigma), over u (the forced switches are the share u of those
    aimed at), and with a budget over m (those aimed at are m times the allowed ones). For each, the step is solved for.
    """
    n = shell.coins
    c, u = (
        np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0]),
        np.append(np.linspace(0.0, 0.9, 10), [0.97, 0.999]),
    )
    m = np.array([1.0]) if shell.budget is None else np.array([0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.96, 1.0])
    best: tuple[float, Coin] = (math.inf, Coin(0.0, 0.0, 0.0))
    for _ in range(_ROUNDS):
        grid = np.meshgrid(c, u, m, indexing="ij")
        C, U, A = grid[0].ravel(), grid[1].ravel(), grid[2].ravel() * allowed
        p = U * A / n
        step = _solve(shell, C, p, A)
        total = _objective(shell, costs, C, p, step)
        i = int(total.argmin())
        if total[i] < best[0]:
            best = float(total[i]), Coin(float(p[i]), float(C[i] * _width(shell, step[i])), float(step[i]))
        j = np.unravel_index(i, grid[0].shape)
        c, u, m = (_closer(axis, int(place)) for axis, place in zip((c, u, m), j, strict=True))
    return best[1]


def _closer(axis: Array, i: int) -> Array:
    """Return points between the neighbours of `axis[i]`, that one among them."""
    if axis.size == 1:
        return axis
    low, high = axis[max(i - 1, 0)], axis[min(i + 1, axis.size - 1)]
    return np.unique(np.concatenate([np.linspace(low, axis[i], 4), np.linspace(axis[i], high, 4)]))


def _width(shell: Plan, step: Array) -> Array:
    return math.sqrt(1 + 1 / shell.draws) * step


def _number(shell: Plan, c: Array, p: Array, step: Array) -> Array:
    """Return the bound on expected switches, inexact draws included."""
    n, log_phi = shell.coins, c * _width(shell, step)
    switches = expected_switches(n, p, log_phi, clipping(log_phi, step, shell.draws))
    number = 1 + n * (p + looked_at(p, log_phi) * (shell.draws + 1))
    total: Array = switches + n * np.minimum(1.0, math.erf(shell.distance / math.sqrt(8)) * number)
    return total


def _solve(shell: Plan, c: Array, p: Array, allowed: Array) -> Array:
    """Return the largest steps at which the expected switches are at most `allowed`: they grow with the step."""
    low, high = np.full(c.shape, math.log(1e-30)), np.full(c.shape, math.log(20 * math.sqrt(shell.domain.chart_dim)))
    for _ in range(60):
        middle = (low + high) / 2
        fits = _number(shell, c, p, np.exp(middle)) <= allowed
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    solved: Array = np.exp(low)
    return solved


def _objective(shell: Plan, costs: MeasureCosts, c: Array, p: Array, step: Array) -> Array:
    n, log_phi = shell.coins, c * _width(shell, step)
    clip = clipping(log_phi, step, shell.draws)
    rounds = variation_sum(n, p, clip)
    if shell.budget is not None:
        rounds = rounds + overrun(shell.budget, n - 1, p, log_phi, clip, _STEPS)
    total: Array = costs.cost(step) + shell.lipschitz * shell.domain.diameter * rounds
    return total
