"""What is known of the least total loss: the best point so far, and a lower bound from affine minorants."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.learners._comparator_floor import inward, linear_floor
from reticent.learners._comparator_program import solve_program
from reticent.learners._comparator_sum import Look, ObjectSum, RowSum

Total = RowSum | ObjectSum


class Record:
    """The best point, and the best certified lower bound, from the passes so far.

    Every pass gives an affine minorant of the sum. A weighted mean of minorants is one too, so for any weights the
    least value of that mean over the body is a lower bound: a solver proposes weights, `linear_floor` does the rest.
    In floating point the weights are what they are (non-negative, divided by their sum), and the error of the
    constants, slopes and dot products is within `total.rounding`, which `gap` adds.
    """

    def __init__(self, domain: Domain, total: Total, wanted: float) -> None:
        self.domain, self.total, self.wanted = domain, total, wanted
        self.value, self.lower = np.inf, -np.inf
        self.point = np.zeros(domain.chart_dim)
        self.consts, self.slopes = np.zeros(0), np.zeros((0, domain.chart_dim))
        self.idle = np.zeros(0, dtype=np.int64)  # for how many programs a minorant has had no weight

    @property
    def gap(self) -> float:
        """How far the least value may lie below `value`, rounding included."""
        return max(0.0, self.value - self.lower) + self.total.rounding

    @property
    def done(self) -> bool:
        """Whether the gap is as wanted, or as small as rounding lets it become."""
        return self.gap <= max(self.wanted, 1.5 * self.total.rounding)

    def inside(self, u: Array) -> Array:
        """Return u, drawn back into the body where it lies outside."""
        return inward(self.domain, u)

    def add(self, look: Look) -> float:
        """Take in what a pass found; return how far its smooth value may be above the least one (Frank-Wolfe gap)."""
        if look.value < self.value:
            self.value, self.point = look.value, look.point
        floor = linear_floor(self.domain, look.slope)
        self.lower = max(self.lower, look.const + floor)
        self.consts, self.slopes = np.append(self.consts, look.const), np.vstack([self.slopes, look.slope])
        self.idle = np.append(self.idle, 0)
        return max(0.0, float(look.slope @ look.point) - floor)

    def constraints(self) -> tuple[Array, Array, float]:
        """Return rows, levels and the radius of the ball (0 for none) of the body."""
        body = self.domain.body
        return body.A[: body.rows], body.b[: body.rows], body.radius if body.ball else 0.0

    def combine(self) -> None:
        """Raise the lower bound by the best mean of minorants; forget minorants long without weight."""
        if self.domain.chart_dim == 1:
            self._combine_on_line()
            return
        A, b, ball = self.constraints()
        d, k = self.domain.chart_dim, len(self.consts)
        # In units of the body and of the steepest minorant: minimise t above all minorants.
        steep = max(float(np.linalg.norm(self.slopes, axis=1).max()), 1e-300)
        unit = steep * self.domain.radius
        base = float(self.consts.max())
        rows = np.zeros((len(A) + k, d + 1))
        rows[: len(A), :d], rows[len(A) :, :d], rows[len(A) :, d] = A, self.slopes / steep, -1.0
        levels = np.concatenate([b, (base - self.consts) / steep])
        cost = np.zeros(d + 1)
        cost[d] = 1.0
        # t is measured in lengths here: one unit of t is `steep` of loss, so that rows and body have one scale.
        _, forces = solve_program(np.zeros((d + 1, d + 1)), cost, rows, levels, ball, d)
        weights = np.maximum(forces[len(A) :], 0.0)
        if weights.sum() > 0 and np.isfinite(weights).all() and unit > 0:
            weights /= weights.sum()
            mean = float(weights @ self.consts) + linear_floor(self.domain, weights @ self.slopes)
            self.lower = max(self.lower, mean)
            self.idle = np.where(weights > 1e-9, 0, self.idle + 1)
        kept = self.idle < 12 + 2 * d
        self.consts, self.slopes, self.idle = self.consts[kept], self.slopes[kept], self.idle[kept]

    def _combine_on_line(self) -> None:
        """Raise the lower bound by means of two minorants, one falling and one rising, that are level."""
        slopes = self.slopes[:, 0]
        falling, rising = np.flatnonzero(slopes < 0), np.flatnonzero(slopes > 0)
        if not (falling.size and rising.size):
            return
        down, up = slopes[falling][:, None], slopes[rising][None, :]
        share = up / (up - down)
        means = share * self.consts[falling][:, None] + (1.0 - share) * self.consts[rising][None, :]
        i, j = np.unravel_index(int(np.argmax(means)), means.shape)
        left = share[i, j] * down[i, 0] + (1.0 - share[i, j]) * up[0, j]  # 0 but for rounding
        self.lower = max(self.lower, float(means[i, j]) + linear_floor(self.domain, np.array([left])))
        kept = np.sort(np.append(np.argsort(self.consts + slopes * self.point[0])[-40:], [falling[i], rising[j]]))
        kept = np.unique(kept)
        self.consts, self.slopes, self.idle = self.consts[kept], self.slopes[kept], self.idle[kept]
