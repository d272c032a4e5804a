"""Ordinary streams as problems: rows, what never moving and the best fixed decision suffer; and peers, written apart.

The peers share nothing with the library but the losses: noise from numpy, in real numbers, with no claim of exactness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.signal import fftconvolve

import reticent as rt
from reticent.hindsight._comparator import best_fixed


@dataclass
class Problem:
    """Rounds in the order in which they come, with a public scale."""

    name: str
    domain: Any
    loss: Any
    lipschitz: float
    block: tuple[Any, ...]

    @cached_property
    def rows(self) -> Any:
        """The rounds in the chart, those above the scale scaled down."""
        return self.loss.prepare(self.domain, *self.block, lipschitz=self.lipschitz, on_steep="clip")

    @cached_property
    def still(self) -> float:
        """What a decision that never moves from the centre suffers."""
        return float(self.loss.phi(self.rows.offsets).sum())

    @cached_property
    def best(self) -> float:
        """What the best fixed decision suffers, in hindsight."""
        return float(best_fixed(self.domain, self.loss, lambda: [self.rows], self.lipschitz).value)

    @property
    def rounds(self) -> int:
        return len(self.rows)

    @property
    def smooth(self) -> bool:
        pieces = self.loss.pieces()
        return pieces is None or not pieces[1].any()

    def share(self, total: float) -> float:
        """Return how much of the way from never moving to the best fixed decision a total loss is, in percent."""
        return 100 * (self.still - total) / (self.still - self.best)

    def constant(self) -> float | None:
        """Return the share of the best constant prediction, whatever the features; None for portfolios."""
        if isinstance(self.loss, rt.Squared):
            return None
        targets = np.asarray(self.block[1], dtype=float)
        if isinstance(self.loss, rt.Logistic):
            rate = float(np.mean(targets > 0))
            total = -len(targets) * (rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
        else:
            level = self.loss.tau if isinstance(self.loss, rt.Pinball) else 0.5
            total = float(self.loss.phi(np.quantile(targets, level) - targets).sum())
        return self.share(total)

    def run(self, learner: Any) -> tuple[float, int]:
        """Run a learner of the library; return its total loss and changes."""
        return learner.observe_many(*self.block).total, learner.switches

    def gradient(self, start: int, stop: int, u: np.ndarray, clip: float) -> tuple[float, np.ndarray]:
        """Return the loss of some rounds at `u`, and the sum of their gradients, each clipped."""
        V, offsets = self.rows.vectors[start:stop], self.rows.offsets[start:stop]
        margins = V @ u + offsets
        slopes = self.loss.dphi(margins)
        sizes = np.abs(slopes) * np.linalg.norm(V, axis=1)
        slopes = np.where(sizes > clip, slopes * clip / np.maximum(sizes, 1e-300), slopes)
        return float(self.loss.phi(margins).sum()), slopes @ V

    def project(self, u: np.ndarray) -> np.ndarray:
        return self.domain.to_chart(self.domain.project(self.domain.from_chart(u)))


@lru_cache
def coefficients(n: int) -> np.ndarray:
    """Return the first n coefficients of (1 - x)^(-1/2)."""
    k = np.arange(1, n)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])


def toeplitz(rng: np.random.Generator, n: int, dim: int, deviation: float) -> np.ndarray:
    """Return square-root Toeplitz noise on n prefix sums."""
    fresh = deviation * rng.standard_normal((n, dim))
    return fftconvolve(fresh, coefficients(n)[:, None], axes=0)[:n]


def correlated(problem: Problem, mu: float, rng: np.random.Generator) -> tuple[float, int]:
    """Run G7: DP-FTRL in epochs of 8, 16, ... blocks, each from the last decision; constants fixed for all streams."""
    smooth, R, d = problem.smooth, problem.domain.radius, problem.domain.chart_dim
    clip, firm = (0.5, 0.5) if smooth else (1.0, 2.0)
    C, W = clip * problem.lipschitz, max(1, round(4 * math.sqrt(d) * 2 / mu))
    u, at, total, changes, n = np.zeros(d), 0, 0.0, 0, 8
    while at < problem.rounds:
        length = float(np.linalg.norm(coefficients(n)))
        sigma = 2 * C * length / mu
        noise = toeplitz(rng, n, d, sigma)
        lam = firm * math.sqrt(n * W**2 * C**2 + 2 * d * length**2 * sigma**2 + n * d * (2 * C / mu) ** 2) / R
        start, summed = u, np.zeros(d)
        for k in range(n):
            stop = min(problem.rounds, at + W)
            lost, part = problem.gradient(at, stop, u, C)
            total, summed = total + lost, summed + part
            if stop - at == W:
                u, changes = problem.project(start - (summed + noise[k]) / lam), changes + 1
            at = stop
            if at >= problem.rounds:
                break
        n *= 2
    return total, changes


def clipped_leader(problem: Problem, plan: Any, rng: np.random.Generator) -> tuple[float, int]:
    """Run DP-FTRL with slopes clipped at what its plan takes for the steepest, and half the regulariser of the plan."""
    W, n = plan.batch, -(-problem.rounds // plan.batch)
    noise = toeplitz(rng, n, problem.domain.chart_dim, plan.sigma)
    u, total, changes = np.zeros(problem.domain.chart_dim), 0.0, 0
    summed = np.zeros_like(u)
    for k, at in enumerate(range(0, problem.rounds, W)):
        stop = min(problem.rounds, at + W)
        lost, part = problem.gradient(at, stop, u, plan.lipschitz)
        total, summed = total + lost, summed + part
        if stop - at == W:
            u, changes = problem.project(-(summed + noise[k]) / (0.5 * plan.lam)), changes + 1
    return total, changes
