"""Histories that need no rows: linear and squared losses add up to a quadratic, kept as its coefficients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._exact import add_exactly
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._gaussian import draw_gaussian, draw_isotropic, separable
from reticent.losses import Rows


@kernel
def _add_linear(vectors, offsets, total, bend, low, low_bend):
    for i in range(offsets.size):
        for j in range(total.size):
            add_exactly(total, low, j, vectors[i, j])


@kernel
def _add_squared(vectors, offsets, total, bend, low, low_bend):
    d = total.size
    for i in range(offsets.size):
        for j in range(d):
            add_exactly(total, low, j, offsets[i] * vectors[i, j])
            for k in range(d):
                add_exactly(bend[j], low_bend[j], k, vectors[i, j] * vectors[i, k])


@saved("quadratic history")
class QuadraticHistory:
    """The sum of linear losses, or of squared ones, less that at the centre: total.x + x'bend x/2 in the chart.

    `total` and `bend` are kept in twice the precision, the rest of them in `low` and `low_bend` (docs/theory, Q12).
    """

    _moves: ClassVar[tuple[str, ...]] = ("count", "total", "bend", "low", "low_bend")

    def __init__(self, domain: Domain, squared: bool) -> None:
        d = domain.chart_dim
        self.domain = domain
        self.squared = squared
        self.count = 0
        self.total, self.bend = np.zeros(d), np.zeros((d, d))
        self.low, self.low_bend = np.zeros(d), np.zeros((d, d))

    def __len__(self) -> int:
        """Return the number of rounds."""
        return self.count

    def add(self, rows: Rows) -> None:
        """Add rows, one after the other."""
        add = _add_squared if self.squared else _add_linear
        add(rows.vectors, rows.offsets, self.total, self.bend, self.low, self.low_bend)
        self.count += len(rows)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have single precision only, and what they sum up to at 0."""
        vars(self).update({name: value for name, value in state.items() if name != "constant"})
        if "low" not in state:
            self.low, self.low_bend = np.zeros_like(self.total), np.zeros_like(self.bend)

    def value(self, x: Array) -> float:
        """Return the sum of the losses at the chart point x, less that at the centre."""
        return float(self.total @ x + 0.5 * x @ self.bend @ x)


@saved("gaussian sampler")
class GaussianSampler:
    """Draws from a Gaussian restricted to the body."""

    def __init__(self, history: QuadraticHistory, beta: float, lam: float) -> None:
        self.history, self.beta, self.lam = history, beta, lam

    @property
    def precision(self) -> Array:
        """The precision matrix of the Gaussian."""
        bend: Array = self.beta * (self.history.bend + self.lam * np.eye(len(self.history.bend)))
        return bend

    def closed_form(self) -> bool:
        """Say whether a draw takes no rejection at all."""
        return separable(self.precision, self.history.domain.body)

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, 0 rows read), or None after `limit` proposals."""
        body = self.history.domain.body
        if not self.history.squared and (body.box or body.ball):
            # Precision beta lam times the identity: nothing to find out, and no matrix to build.
            out = np.empty(body.dim)
            draw_isotropic(rng, self.history.total, -self.beta, self.beta * self.lam, body, out)
            return out, 1, 0
        h = -self.beta * self.history.total
        found = draw_gaussian(rng, h, self.precision, self.beta * self.lam, body, limit)
        return None if found is None else (*found, 0)
