"""Exact draws for curved losses: a Gaussian below their curvature, corrected by thinning (docs/theory.md, S7)."""

from __future__ import annotations

import math

import numpy as np

from reticent._check import Array
from reticent._kernel import kernel
from reticent.domains._gauss import envelope, propose

from ._history import RowHistory
from ._mode import mode_on_body
from ._thinning import lower_factor, survives, upper_factor


@kernel
def _attempt(rng, code, parameter, concordance, beta, lam, body, summary, vectors, offsets, totals, limit, out):
    """Fill the rows of `out` with draws; return (proposals, rows read, rows filled).

    Gives up after `limit` proposals for one row. The envelope, which is most of the work, is found once for all rows.
    """
    z, gradient, hessian, floor, extent = summary
    d = z.size
    P = np.empty((d, d))
    h = np.empty(d)
    for i in range(d):
        bent = 0.0
        for j in range(d):
            P[i, j] = beta * floor[i, j]
            bent += floor[i, j] * z[j]
        P[i, i] += beta * lam
        h[i] = beta * (bent - gradient[i])
    env = envelope(h, P, beta * lam, body, False)
    weight = totals[-1] if totals.size else 0.0
    reads = 0
    u = np.empty(d)
    tried, row, since = 0, 0, 0
    while row < out.shape[0]:
        if since == limit:
            return tried, reads, row
        tried += 1
        since += 1
        log_weight = propose(rng, env, body, out[row])
        if log_weight == -np.inf or rng.standard_exponential() < -log_weight:
            continue
        square = 0.0
        for j in range(d):
            u[j] = out[row, j] - z[j]
            square += u[j] * u[j]
        # A row's remainder is at most its largest curvature times (row.u)^2 / 2.
        cap, share = 0.5 * square, 0.0
        if concordance >= 0.0 and beta * cap * weight > 1.0:
            # Worth a closer look: the Hessian at z, less what self-concordance lets it lose, is a better lower bound.
            tau = concordance * extent[0] * math.sqrt(square)
            keep = lower_factor(tau)
            gain = 0.0
            for i in range(d):
                for j in range(d):
                    gain += u[i] * (keep * hessian[i, j] - floor[i, j]) * u[j]
            tighter = min(1.0, upper_factor(tau) - keep)
            # Its certain part costs no reading; it must be a loss, not a gain, of acceptance.
            if gain >= 0.0:
                if rng.standard_exponential() < 0.5 * beta * gain:
                    continue
                cap *= tighter
                share = keep
        kept, read = survives(rng, code, parameter, vectors, offsets, totals, body, z, u, beta, cap, share)
        reads += read
        if kept:
            row += 1
            since = 0
    return tried, reads, row


class CurvedSampler:
    """Draws from the measure of a curved loss; the past is read again only when the reference point must move."""

    # Proposals between two looks at whether moving the reference point would pay.
    PATIENCE = 64

    def __init__(self, history: RowHistory, beta: float, lam: float) -> None:
        self.history = history
        self.beta, self.lam = beta, lam
        self.looked_at = 0  # rounds when it was last asked whether the reference point should move
        self.wasted = 0.0  # work put into rejected proposals since, in rows read

    def draw(self, rng: np.random.Generator, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart point, proposals, rows read), or None after `limit` proposals."""
        found = self.draw_many(rng, 1, limit)
        return None if found is None else (found[0][0], *found[1:])

    def draw_many(self, rng: np.random.Generator, count: int, limit: int) -> tuple[Array, int, int] | None:
        """Return (chart points, proposals, rows read): `count` independent draws from one envelope.

        None after `limit` proposals for one of them.
        """
        history = self.history
        columns, loss = history.columns, history.loss
        self._recentre_if_far()
        out = np.empty((count, history.domain.chart_dim))
        proposals = reads = filled = since = 0
        while since < limit:
            most = loss.self_concordance(float(history.summary.extent[1]))
            tried, read, done = _attempt(
                rng,
                loss.code,
                loss.parameter,
                -1.0 if most is None else most,
                self.beta,
                self.lam,
                history.domain.body,
                history.summary,
                columns.vectors,
                columns.offsets,
                columns.totals,
                min(self.PATIENCE, limit - since),
                out[filled:],
            )
            proposals += tried
            reads += read
            filled += done
            self.wasted += (tried - done) * out.shape[1] + read
            if filled == count:
                return out, proposals, reads
            # The row that was given up has had its patience, after those that were filled.
            since = min(self.PATIENCE, limit - since) + (0 if done else since)
            # Moving costs a few passes over the past: worth it once as much work has been wasted.
            if self.wasted > 4 * len(history):
                self._recentre()
        return None

    def _recentre_if_far(self) -> None:
        """Move the reference point when the past has grown and a Newton step is long beside the width of the peak."""
        n = len(self.history)
        if n <= 1.25 * self.looked_at:
            return
        self.looked_at = n
        z, gradient, hessian, _, _ = self.history.summary
        slope = gradient + self.lam * z
        step = np.linalg.lstsq(hessian + self.lam * np.eye(z.size), slope, rcond=None)[0]
        if self.beta * float(slope @ step) > max(0.5, 0.1 * z.size):
            self._recentre()

    def _recentre(self) -> None:
        history = self.history
        z, gradient, hessian = mode_on_body(history, self.beta, self.lam)
        history.recentre(z, gradient, hessian)
        self.wasted = 0.0
