"""Histories that need no rows: linear and squared losses add up to a quadratic, kept as its coefficients."""

from __future__ import annotations

import numpy as np
from numba import njit

from reticent._check import Array
from reticent.domains import Domain
from reticent.domains._gauss import draw_gaussian, shape
from reticent.domains._normal import draw_scaled
from reticent.losses import Rows


@njit(cache=True, error_model="numpy")
def _add_linear(vectors, offsets, total, bend, constant):  # type: ignore[no-untyped-def]
    for i in range(offsets.size):
        for j in range(total.size):
            total[j] += vectors[i, j]
        constant[0] += offsets[i]


@njit(cache=True, error_model="numpy")
def _add_squared(vectors, offsets, total, bend, constant):  # type: ignore[no-untyped-def]
    d = total.size
    for i in range(offsets.size):
        for j in range(d):
            total[j] += offsets[i] * vectors[i, j]
            for k in range(d):
                bend[j, k] += vectors[i, j] * vectors[i, k]
        constant[0] += 0.5 * offsets[i] * offsets[i]


@njit(cache=True, error_model="numpy")
def _draw_coordinates(rng, h, k, lo, hi, out):  # type: ignore[no-untyped-def]
    """Fill `out` with independent coordinates of density exp(h x - k x^2/2) on [lo, hi], k >= 0."""
    for j in range(out.size):
        reach = max(abs(lo[j]), abs(hi[j]))
        if k[j] * reach * reach >= 0.1:
            scale = 1.0 / np.sqrt(k[j])
            out[j] = draw_scaled(rng, (lo[j] - h[j] / k[j]) / scale, lo[j], hi[j], scale)
            continue
        # Nearly flat or exactly so: an exponential, kept with probability exp(-k x^2/2) >= 0.95.
        width = hi[j] - lo[j]
        while True:
            if abs(h[j]) * width < 1e-9:
                x = lo[j] + width * rng.random()
                wrong = abs(h[j]) * width - h[j] * (x - lo[j])  # exp(h x) against its largest value, nearly
            else:
                step = -np.log1p(rng.random() * np.expm1(-abs(h[j]) * width)) / abs(h[j])
                x = hi[j] - step if h[j] > 0.0 else lo[j] + step
                wrong = 0.0
            if rng.standard_exponential() >= wrong + 0.5 * k[j] * x * x:
                out[j] = min(max(x, lo[j]), hi[j])
                break


class QuadraticHistory:
    """The sum of linear losses, or of squared ones: constant + total.x + x'bend x/2 in the chart."""

    def __init__(self, domain: Domain, squared: bool) -> None:
        d = domain.chart_dim
        self.domain = domain
        self.squared = squared
        self.count = 0
        self.total, self.bend, self.constant = np.zeros(d), np.zeros((d, d)), np.zeros(1)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return self.count

    def add(self, rows: Rows) -> None:
        """Add rows, one after the other."""
        add = _add_squared if self.squared else _add_linear
        add(rows.vectors, rows.offsets, self.total, self.bend, self.constant)
        self.count += len(rows)

    def mark(self) -> tuple[int, tuple[Array, ...]]:
        """Return what `restore` needs to forget everything added from now on."""
        return self.count, (self.total.copy(), self.bend.copy(), self.constant.copy())

    def restore(self, mark: tuple[int, tuple[Array, ...]]) -> None:
        """Go back to an earlier `mark`."""
        self.count = mark[0]
        self.total, self.bend, self.constant = mark[1]

    def value(self, x: Array) -> float:
        """Return the sum of the losses at the chart point x."""
        return float(self.constant[0] + self.total @ x + 0.5 * x @ self.bend @ x)


class GaussianSampler:
    """Draws from a Gaussian restricted to the body."""

    def __init__(self, history: QuadraticHistory, beta: float, lam: float) -> None:
        self.history, self.beta, self.lam = history, beta, lam

    def separable(self) -> bool:
        """Say whether the draw has a closed form: isotropic on a ball, or coordinate by coordinate on a box."""
        bend = self.history.bend
        body = self.history.domain.body
        diagonal = not np.any(bend - np.diag(np.diag(bend)))
        if body.ball:
            return diagonal and bool(np.ptp(np.diag(bend)) == 0.0)
        return diagonal and bool(((body.A != 0.0).sum(axis=1) == 1).all())

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, 0 rows read), or None after `limit` proposals."""
        history, domain = self.history, self.history.domain
        out = np.empty(domain.chart_dim)
        h = -self.beta * history.total
        P = self.beta * (history.bend + self.lam * np.eye(out.size))
        if self.separable() and not domain.body.ball:
            _draw_coordinates(rng, h, np.diag(P).copy(), domain.body.lo, domain.body.hi, out)
            return out, 1, 0
        # On a ball an isotropic Gaussian is its own envelope, drawn in O(d).
        count = draw_gaussian(rng, h, P, self.beta * self.lam, shape(domain.body), limit, out)
        return None if count < 0 else (out, int(count), 0)
