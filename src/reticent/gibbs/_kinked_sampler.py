"""Keeps the quartic bound of a growing history up to date, and draws with it."""

from __future__ import annotations

import math

import numpy as np

from reticent._check import Array

from ._core import same_core
from ._history import RowHistory
from ._kinked import quartic_draw
from ._mode import quadratic_minimiser
from ._quartic import Built, build_quartic

_MOST_GROWTH = 1.5  # however cheap draws are, no more than a third of the past waits
_STRETCHES = (1.0, 1.3, 1.6, 2.0, 2.5, 3.2)  # of the width of the peak: scales at which a bound may be tight


def curvature_estimate(vectors: Array, margins: Array, jump: float, width: float) -> Array:
    """Return sum of jump/(2 width) aa' over rows within `width` of their kink: how the kinks add up to a curvature."""
    a = vectors[np.flatnonzero(np.abs(margins) < width)]
    return a.T @ a * (jump / (2.0 * width))


class KinkedSampler:
    """Draws from the measure of a kinked loss in two dimensions or more.

    Rows that come after the bound was built make draws dearer little by little. It is built again once they have cost
    as much more as a new bound costs. Costs are counted in operations, not measured, so that runs can be repeated.
    """

    PATIENCE = 4096  # proposals between two looks at whether a new bound would pay
    FRESH = 32  # draws after a build that show what a draw costs with a fresh bound

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        self.history, self.beta, self.lam = history, beta, lam
        self.built: Built | None = None
        self.slope = np.zeros(0)  # of all losses at the reference point, as the bound has it
        self.builds = 0
        self.stretch = 0.0
        self.draws = 0  # since the bound was built
        self.fresh = 0.0  # cost of the first of them
        self.excess = 0.0  # what the later ones cost beyond that

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, rows read), or None after `limit` proposals."""
        history = self.history
        columns = history.columns
        if self.built is None or len(history) > _MOST_GROWTH * self.built.bound.rows or self._pays(0.0):
            self._build()
        self._refresh()
        out = np.empty(history.domain.chart_dim)
        proposals = reads = 0
        while proposals < limit:
            if self.built is None:
                return None
            bound, _, core = self.built
            tried, read, done = quartic_draw(
                rng, self.beta, self.lam, history.domain.body, bound, core,
                columns.vectors, columns.offsets, history.summary.z, float(history.summary.extent[0]),
                min(self.PATIENCE, limit - proposals), out,
            )  # fmt: skip
            proposals += tried
            reads += read
            # A proposal evaluates the polynomial; a row read is mostly waiting for memory.
            cost = proposals * (bound.quartic.size + 200.0) + reads * 100.0
            if done:
                self._account(cost)
                return out, proposals, reads
            if self._pays(cost):
                self._build()
        return None

    def _account(self, cost: float) -> None:
        self.draws += 1
        if self.draws <= self.FRESH:
            self.fresh += cost / self.FRESH
        else:
            self.excess = max(0.0, self.excess + cost - self.fresh)

    def _pays(self, cost: float) -> bool:
        """Say whether a new bound would have been cheaper than what the rows that wait have cost, `cost` included."""
        assert self.built is not None
        bound = self.built.bound
        n, d = len(self.history), bound.slope.size
        if n == bound.rows:
            return False
        # Passes over the past; moments of the rows near their kinks; eigenvalues, for two scales and four tables.
        passes = n * (300.0 + 50.0 * d)
        moments = 2.0 * bound.starts[bound.inner] * bound.quartic.size
        eigenvalues = 80.0 * bound.quartic.size**1.5 + 3e6
        return bool(self.excess + cost > passes + moments + eigenvalues)

    def _refresh(self) -> None:
        """Take in the slopes of rows that came since the bound was built; their bends wait (docs/theory.md, S8)."""
        slope = self.history.summary.gradient
        if self.built is None or np.array_equal(slope, self.slope):
            return
        bound, norms, core = self.built
        bound = bound._replace(slope=bound.slope + self.beta * bound.unwhiten @ (slope - self.slope))
        moved = same_core(bound, norms, self.history.summary.z, self.history.domain, core)
        if moved is None:
            self._build()
        else:
            self.built, self.slope = Built(bound, norms, moved), slope.copy()

    def _build(self) -> None:
        self.built = None
        if not len(self.history):
            return
        bend = self._recentre()
        history = self.history
        self.slope = history.summary.gradient.copy()
        for stretches in self._stretches():
            for stretch in stretches:
                found = build_quartic(history, self.slope, bend, self.beta, self.lam, stretch)
                if found is not None and (self.built is None or found.core.log_mass < self.built.core.log_mass):
                    self.built, self.stretch = found, stretch
            if self.built is not None:
                break
        self.draws, self.fresh, self.excess = 0, 0.0, 0.0
        self.builds += 1

    def _stretches(self) -> tuple[tuple[float, ...], ...]:
        """Scales to try: the best so far and a neighbour, larger or smaller in turn; at first, or if none fits, all."""
        if self.stretch == 0.0:
            return (_STRETCHES,)
        return (self.stretch, self.stretch * (1.15 if self.builds % 2 else 1.0 / 1.15)), _STRETCHES

    def _recentre(self) -> Array:
        """Move the reference point near the mode by Newton steps on smoothed kinks; return the curvature there."""
        history, domain = self.history, self.history.domain
        columns = history.columns
        pieces = history.loss.pieces()
        assert pieces is not None
        jump = float(pieces[1][0])
        x = history.summary.z.copy()
        eye = np.eye(x.size)
        sizes = np.linalg.norm(columns.vectors[:: max(1, len(columns) // 4096)], axis=1)
        typical = float(np.sqrt((sizes**2).mean())) or 1.0
        width = typical * domain.radius  # of the smoothing: wide at first, then that of the peak
        value = history.value(x) + 0.5 * self.lam * float(x @ x)
        bend = np.zeros((x.size, x.size))
        narrowing = True
        for _ in range(40):
            margins = columns.vectors @ x + columns.offsets
            bend = curvature_estimate(columns.vectors, margins, jump, width)
            inverse = np.linalg.pinv(self.beta * (bend + self.lam * eye))
            peak = typical * math.sqrt(max(0.0, float(np.trace(inverse))) / x.size)
            narrowing = width > 1.5 * peak
            gradient = history.gradient(x) + self.lam * x
            goal = quadratic_minimiser(domain, gradient, bend + self.lam * eye, x)
            gain = -float(gradient @ (goal - x))
            if self.beta * gain < 0.02 and not narrowing:
                break
            moved = False
            fraction = 1.0
            while self.beta * gain >= 0.02 and fraction > 1e-3:
                candidate = x + fraction * (goal - x)
                reached = history.value(candidate) + 0.5 * self.lam * float(candidate @ candidate)
                if reached < value:
                    x, value, moved = candidate, reached, True
                    break
                fraction *= 0.4
            if narrowing:
                width = max(0.25 * width, peak)
            elif not moved:
                break
        history.recentre(x, history.gradient(x), np.zeros_like(bend))
        return bend
