"""Exact draws for kinked losses in d >= 2: a quartic bound and two stages of rejection (docs/theory, S8-S10)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._fine import standard_exponential, standard_normal
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains._gaussian import propose
from reticent.gibbs._history import RowHistory, quadratic_minimiser
from reticent.gibbs._phi import margin
from reticent.gibbs._quartic import Built, build_quartic, draw_radius, draw_tail, fits, same_core


@kernel
def _in_body(body, x):
    if body.ball:
        square = 0.0
        for j in range(x.size):
            square += x[j] * x[j]
        return square <= body.radius * body.radius
    for c in range(body.b.size):
        reach = -body.b[c]
        for j in range(x.size):
            reach += body.A[c, j] * x[j]
        if reach > 0.0:
            return False
    return True


@kernel
def _minorant(a, v):
    return a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4])))


@kernel
def _largest_gap(a, critical, edge, reach):
    """The largest (v - edge)_+ - p(v) over |v| <= reach, in scaled units."""
    best = 0.0
    for end in (-reach, reach):
        best = max(best, max(end - edge, 0.0) - _minorant(a, end))
    for k in range(critical.size):
        v = critical[k]
        if abs(v) <= reach:  # false for nan
            best = max(best, max(v - edge, 0.0) - _minorant(a, v))
    return best


@kernel
def _gaps_survive(rng, beta, q, vectors, offsets, z, u, s, rates):
    """Toss the coin exp(-beta sum_i [h_i(v) - s p_i(v/s)]); return (kept?, rows read)."""
    d = u.size
    size = 0.0
    for j in range(d):
        size += u[j] * u[j]
    size = math.sqrt(size)
    bins = q.coefficients.shape[0]
    unit = beta * q.jump * q.scale
    total = 0.0
    for k in range(bins):
        rows = q.starts[k + 1] - q.starts[k]
        rates[k] = 0.0
        if rows > 0:
            reach = q.longest[k] * size / q.scale
            low = q.edges[k] / q.scale
            if k < q.inner:
                # h(v) - s p(v/s) <= s [h(v/s) - p(v/s)] + (s - 1) * residual
                gap = s * _largest_gap(q.coefficients[k], q.critical[k], low, reach / s)
                gap += (s - 1.0) * q.edges[k + 1] / q.scale
            else:
                gap = max(reach - low, 0.0)
            rates[k] = gap
            total += rows * gap
    waiting = offsets.size - q.rows
    fresh = 0.0
    if waiting > 0:
        fresh = rates[bins] * size / q.scale
        total += waiting * fresh
    reads = 0
    clock = 0.0
    while True:
        clock += standard_exponential(rng)
        if clock > unit * total:
            return True, reads
        target = rng.random() * total
        k = 0
        while k < bins:
            part = rates[k] * (q.starts[k + 1] - q.starts[k])
            if target < part:
                break
            target -= part
            k += 1
        if k < bins:
            first = q.starts[k]
            i = np.int64(
                q.order[first + min(int(rng.random() * (q.starts[k + 1] - first)), q.starts[k + 1] - first - 1)]
            )
            bound = rates[k]
        elif waiting > 0:
            i = q.rows + min(int(rng.random() * waiting), waiting - 1)
            bound = fresh
        else:
            continue  # rounding of the last partial sum
        reads += 1
        m, v = margin(vectors, offsets, i, z), 0.0
        for j in range(d):
            v += vectors[i, j] * u[j]
        v = v / q.scale if m < 0.0 else -v / q.scale
        gap = max(v - abs(m) / q.scale, 0.0)
        if k < q.inner:
            gap -= s * _minorant(q.coefficients[k], v / s)
        if rng.random() * bound < gap:
            return False, reads


@kernel
def _polynomial(q, w):
    """The quartic lower bound of the potential, less its value at z, at whitened coordinates w."""
    d = w.size
    size = q.quartic.shape[0]
    pair = np.empty(size)
    root2 = math.sqrt(2.0)
    total = q.level
    k = 0
    for i in range(d):
        total += w[i] * (q.slope[i] + 0.5 * w[i])
        for j in range(i, d):
            pair[k] = w[i] * w[j] * (1.0 if i == j else root2)
            k += 1
    for i in range(d):
        t = 0.0
        for k in range(size):
            t += q.cubic[i, k] * pair[k]
        total += t * w[i]
    for i in range(size):
        t = 0.0
        for k in range(i):
            t += q.quartic[i, k] * pair[k]
        total -= pair[i] * (2.0 * t + q.quartic[i, i] * pair[i])
    return total


@kernel
def quartic_draw(rng, beta, lam, body, q, core, vectors, offsets, z, newest_norm, limit, out):
    """Fill `out` with a draw; return (proposals, rows read, accepted?)."""
    d = z.size
    w, u = np.empty(d), np.empty(d)
    rates = np.empty(q.coefficients.shape[0] + 1)
    reads = 0
    radial = core.radial
    for count in range(1, limit + 1):
        if core.gaussian and rng.random() < core.share:
            # Near z: the Gaussian on the body, which is right up to distance rho1.
            weight = propose(rng, core.envelope, body, out)
            if weight == -np.inf or standard_exponential(rng) < -weight:
                continue
            rho = 0.0
            lb = q.level
            for j in range(d):
                u[j] = out[j] - z[j]
            for i in range(d):
                w[i] = 0.0
                for j in range(d):
                    w[i] += q.whiten[i, j] * u[j]
                rho += w[i] * w[i]
                lb += q.slope[i] * w[i]
            lb += 0.5 * core.kept * rho
            rho = math.sqrt(rho)
            if rho > radial.rho1:
                continue
        else:
            if core.gaussian:
                rho, lb = draw_tail(rng, radial, d)
            else:
                rho, lb = draw_radius(rng, radial, d)
            length = 0.0
            for j in range(d):
                w[j] = standard_normal(rng)
                length += w[j] * w[j]
            length = rho / math.sqrt(length)
            for j in range(d):
                w[j] *= length
            for i in range(d):
                u[i] = 0.0
                for j in range(d):
                    u[i] += q.unwhiten[i, j] * w[j]
                out[i] = z[i] + u[i]
            if not _in_body(body, out):
                continue
        # Beyond rho1 the bound at the end of the quartic part is continued by strong convexity along the ray.
        s = max(1.0, rho / radial.rho1)
        square = 0.0
        for i in range(d):
            w[i] /= s
            square += u[i] * u[i]
        bound = s * _polynomial(q, w) + 0.5 * (s - 1.0) / s * beta * lam * square
        if standard_exponential(rng) < bound - lb:
            continue
        rates[rates.size - 1] = newest_norm
        kept, read = _gaps_survive(rng, beta, q, vectors, offsets, z, u, s, rates)
        reads += read
        if kept:
            return count, reads, True
    return limit, reads, False


# Keeps the quartic bound of a growing history up to date, and draws with it.

_MOST_GROWTH = 1.5  # however cheap draws are, no more than a third of the past waits
_STRETCHES = (1.0, 1.3, 1.6, 2.0, 2.5, 3.2)  # of the width of the peak: scales at which a bound may be tight


def curvature_estimate(vectors: Array, margins: Array, jump: float, width: float) -> Array:
    """Return sum of jump/(2 width) aa' over rows within `width` of their kink: how the kinks add up to a curvature."""
    a = vectors[np.flatnonzero(np.abs(margins) < width)]
    return a.T @ a * (jump / (2.0 * width))


@saved("kinked sampler")
class KinkedSampler:
    """Draws from the measure of a kinked loss in two dimensions or more.

    Rows that come after the bound was built make draws dearer little by little. It is built again once they have cost
    as much more as a new bound costs. Costs are counted in operations, not measured, so that runs can be repeated.
    """

    _moves: ClassVar[tuple[str, ...]] = ("built", "slope", "builds", "stretch", "draws", "fresh", "excess")
    _grows: ClassVar[tuple[str, ...]] = ("slope",)
    _may_lack: ClassVar[tuple[str, ...]] = ("built",)

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

    def _check_moved(self) -> None:
        """Refuse a bound, from a file, whose arrays a kernel would read beyond their ends."""
        d, built = self.history.domain.chart_dim, self.built
        if self.slope.shape not in ((0,), (d,)) or (built is not None and not fits(built, d, len(self.history))):
            raise ValueError("its quartic bound does not fit its body")

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
        """Take in the slopes of rows that came since the bound was built; their bends wait (docs/theory, S8)."""
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
