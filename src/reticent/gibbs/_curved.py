"""Exact draws for curved losses: a Gaussian below their curvature, corrected by thinning (docs/theory, S6 and S7)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from reticent._core._check import Array
from reticent._core._fine import standard_exponential
from reticent._core._kernel import choice, kernel
from reticent._core._tags import saved
from reticent.domains._gaussian import ANY, envelope, propose
from reticent.gibbs._history import DRAWN, FAR, GIVEN_UP, Counts, Past, RowHistory, mode_on_body
from reticent.gibbs._kinks import LineParts, draw_line
from reticent.gibbs._phi import concordance, curvature_range, d2phi, dphi, margin_bounds, rise
from reticent.losses import Rows


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
def survives(rng, code, parameter, vectors, offsets, totals, body, z, u, beta, cap, share, most):
    """Toss the coin exp(-beta sum_i r_i(u)); return (kept?, rows read), unknown after `most` rows read.

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
        points += standard_exponential(rng)
        if points > mean:
            return True, reads
        if reads == most:
            return False, reads
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
            low, high, room, _ = margin_bounds(row, offsets[i], body)
            bend = curvature_range(code, parameter, low, high, room)[0]
        excess = rise(code, parameter, m, v) - dphi(code, parameter, m) * v
        if rng.random() * cap * weight < excess - 0.5 * bend * v * v:
            return False, reads


# Exact draws for curved losses: a Gaussian below their curvature, corrected by thinning (docs/theory, S7).

FILLED, SINCE, LOOKED, WASTED, PROPOSALS, READS, KIND, CHOSEN, READ = range(9)  # places in `CurvedParts.work`
_PATIENCE = 64  # proposals for one draw between two looks at whether moving the reference point would pay
_ROWS, _FIRST = 64, 1 << 24  # rows that a draw may read for each proposal that it may take, and beside that


class CurvedParts(NamedTuple):
    """A measure of curved losses as its kernel takes it."""

    past: Past
    beta: float
    lam: float
    limit: int
    """The most proposals that one draw may take; rows that are read count too, 64 of them as a proposal."""
    work: Counts
    """Draws made, proposals for the next; rounds when it was last asked whether the reference point should move, work
    put into rejected proposals since, in rows read; all proposals, all rows read; the kind of the last envelope, and
    rounds when it was chosen; rows read for the next draw."""


@kernel
def draw_curved(rng, parts, n, out):
    """Fill the rows of `out` with draws from the measure of the first `n` rounds; return DRAWN, FAR or GIVEN_UP.

    After FAR the same call goes on, once the sampler has looked after its reference point. The envelope, which is most
    of the work, is found once for all rows.
    """
    past, beta, lam, limit, work = parts
    if work[FILLED] == 0 and work[SINCE] == 0 and n > 1.25 * work[LOOKED]:
        return FAR
    code, parameter, body = past.code, past.parameter, past.body
    vectors, offsets, totals = past.vectors[:n], past.offsets[:n], past.totals[:n]
    z, gradient, hessian, floor, extent, _ = past.summary
    d = z.size
    most = concordance(code, extent[1])
    P = np.empty((d, d))
    h = np.empty(d)
    for i in range(d):
        bent = 0.0
        for j in range(d):
            P[i, j] = beta * floor[i, j]
            bent += floor[i, j] * z[j]
        P[i, i] += beta * lam
        h[i] = beta * (bent - gradient[i])
    # To choose the best kind is most of the work of an envelope, and a little later it is still the best.
    wanted = work[KIND] if n <= 1.05 * work[CHOSEN] else ANY
    env = envelope(h, P, beta * lam, body, False, wanted)
    weight = totals[n - 1] if n > 0 else 0.0
    work[KIND] = env.kind
    if wanted == ANY:
        work[CHOSEN] = n
    u = np.empty(d)
    row = work[FILLED]
    # Proposals alone would not end: a row much longer than all others has almost all the weight, and rarely a say.
    readable = _FIRST + _ROWS * limit
    while row < out.shape[0]:
        since = work[SINCE]
        if since > 0 and (since % _PATIENCE == 0 or since == limit) and work[WASTED] > 4 * n:
            # Moving costs a few passes over the past: worth it once as much work has been wasted.
            work[FILLED] = row
            return FAR
        if since == limit or work[READ] == readable:
            work[FILLED] = work[SINCE] = work[READ] = 0
            return GIVEN_UP
        if since == _PATIENCE and wanted != ANY:
            wanted = ANY
            env = envelope(h, P, beta * lam, body, False, ANY)
            work[KIND], work[CHOSEN] = env.kind, n
        work[SINCE] += 1
        work[PROPOSALS] += 1
        work[WASTED] += d
        log_weight = propose(rng, env, body, out[row])
        if log_weight == -np.inf or standard_exponential(rng) < -log_weight:
            continue
        square = 0.0
        for j in range(d):
            u[j] = out[row, j] - z[j]
            square += u[j] * u[j]
        # A row's remainder is at most its largest curvature times (row.u)^2 / 2.
        cap, share = 0.5 * square, 0.0
        if most >= 0.0 and beta * cap * weight > 1.0:
            # Worth a closer look: the Hessian at z, less what self-concordance lets it lose, is a better lower bound.
            tau = most * extent[0] * math.sqrt(square)
            keep = lower_factor(tau)
            gain = 0.0
            for i in range(d):
                for j in range(d):
                    gain += u[i] * (keep * hessian[i, j] - floor[i, j]) * u[j]
            tighter = min(1.0, upper_factor(tau) - keep)
            # Its certain part costs no reading; it must be a loss, not a gain, of acceptance.
            if gain >= 0.0:
                if standard_exponential(rng) < 0.5 * beta * gain:
                    continue
                cap *= tighter
                share = keep
        left = readable - work[READ]
        kept, read = survives(rng, code, parameter, vectors, offsets, totals, body, z, u, beta, cap, share, left)
        work[READ] += read
        work[READS] += read
        work[WASTED] += read
        if kept:
            work[WASTED] -= d
            work[SINCE] = work[READ] = 0
            row += 1
    work[FILLED] = 0
    return DRAWN


@saved("curved sampler")
class CurvedSampler:
    """Draws from the measure of a curved loss; the past is read again only when the reference point must move."""

    _moves: ClassVar[tuple[str, ...]] = ("work",)

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        self.history = history
        self.beta, self.lam = beta, lam
        self.work: Counts = np.zeros(9, dtype=np.int64)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions did not count the rows read for a draw."""
        vars(self).update(state)
        self.work = np.append(self.work, np.zeros(9 - len(self.work), dtype=np.int64))

    def _check_moved(self) -> None:
        """Refuse counts, from a file, that stand inside of a draw: a kernel would write beyond its ends."""
        if self.work[[FILLED, SINCE, READ]].any() or (self.work < 0).any():
            raise ValueError(f"its counts of proposals are {self.work.tolist()}")

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, rows read), or None after `limit` proposals."""
        found = self.draw_many(rng, 1, limit)
        return None if found is None else (found[0][0], *found[1:])

    def draw_many(self, rng: np.random.Generator, count: int, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart points, proposals, rows read): `count` independent draws from one envelope.

        None after `limit` proposals for one of them, or as many rows read as that allows.
        """
        out = np.empty((count, self.history.domain.chart_dim))
        self.work[[FILLED, SINCE, READ, PROPOSALS, READS]] = 0
        while (outcome := draw_curved(rng, self.parts(limit), len(self.history), out)) == FAR:
            self.tend()
        return None if outcome == GIVEN_UP else (out, int(self.work[PROPOSALS]), int(self.work[READS]))

    def parts(self, limit: int) -> CurvedParts:
        """Return the measure as a kernel takes it, until more rounds are stored or the reference point moves."""
        return CurvedParts(self.history.past, self.beta, self.lam, limit, self.work)

    def store(self, rows: Rows) -> None:
        """Store rounds that a kernel is going to take in."""
        self.history.store(rows)

    def tend(self) -> None:
        """Bring the reference point up to date after a draw that ended as FAR: its envelope may have become too loose.

        It moves where a Newton step is long beside the width of the peak, or where proposals were wasted.
        """
        n = len(self.history)
        if n > 1.25 * self.work[LOOKED]:
            self.work[LOOKED] = n
            z, gradient, hessian, *_ = self.history.summary
            slope = gradient + self.lam * z
            step = np.linalg.lstsq(hessian + self.lam * np.eye(z.size), slope, rcond=None)[0]
            if self.beta * float(slope @ step) <= max(0.5, 0.1 * z.size):
                return
        self.history.recentre(*mode_on_body(self.history, self.beta, self.lam))
        self.work[WASTED] = 0


# Draws that kernels of other modules make, by whichever sampler the measure at hand is compiled for.


def draw_alone(rng: np.random.Generator, parts: CurvedParts | LineParts, n: int, out: Array) -> int:
    """Fill the rows of `out` with draws from the measure of the first `n` rounds; return how that ended.

    For use inside and outside of kernels; `parts` is what the sampler of `Gibbs.compiled` gives.
    """
    return int((draw_curved if isinstance(parts, CurvedParts) else draw_line)(rng, parts, n, out))


# Kernels are compiled for one sampler at a time, by the type of its parts.
@choice(draw_alone)
def _draw_alone(rng, parts, n, out):
    chosen = draw_curved if issubclass(parts.instance_class, CurvedParts) else draw_line
    return lambda rng, parts, n, out: chosen(rng, parts, n, out)
