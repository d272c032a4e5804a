"""Small convex quadratic programs over a polytope, a ball or both, by an interior-point method.

Answers are used as suggestions only (where to look next, how to weigh lower bounds): no guarantee rests on them.
"""

from __future__ import annotations

import numpy as np
import scipy

from reticent._check import Array

_ITERATIONS = 60  # fifteen to thirty are usual
_GOOD = 1e-13  # residuals and complementarity, relative to a problem scaled to size 1
_STALE = 5  # iterations without a better point: rounding has the upper hand


def solve_program(
    H: Array, c: Array, A: Array, b: Array, ball: float = 0.0, round_dims: int = 0
) -> tuple[Array, Array]:
    """Minimise `x @ H @ x / 2 + c @ x` over `A @ x <= b`; return a minimiser and the multipliers of the rows.

    With `ball` above 0, the first `round_dims` coordinates also have to lie in the ball of that radius around 0.
    Mehrotra's predictor and corrector from an infeasible start; the ball is one more, curved, constraint.

    >>> x, forces = solve_program(np.eye(2), np.array([-3.0, 0.0]), np.array([[1.0, 0.0]]), np.array([1.0]))
    >>> x.round(8) + 0.0, forces.round(8)
    (array([1., 0.]), array([2.]))
    >>> solve_program(np.zeros((2, 2)), np.array([-3.0, 4.0]), np.zeros((0, 2)), np.zeros(0), 1.0, 2)[0].round(8)
    array([ 0.6, -0.8])
    """
    size = np.linalg.norm(A, axis=1)
    size[size == 0] = 1.0
    unit = ball if ball > 0 else max(1e-300, float(np.abs(b / size).max()))  # the scale of x
    weight = max(float(np.abs(c).max()) * unit, float(np.abs(H).max()) * unit * unit, 1e-300)
    x, forces = _scaled(
        H * (unit * unit / weight), c * (unit / weight), A / size[:, None], b / size / unit, ball > 0, round_dims
    )
    return x * unit, forces * (weight / unit) / size


def _scaled(H: Array, c: Array, A: Array, b: Array, ball: bool, round_dims: int) -> tuple[Array, Array]:
    dim, m = c.size, b.size
    curl = np.zeros(dim)  # the Hessian of the ball's constraint |x|^2 / 2 - 1 / 2
    curl[:round_dims] = 1.0 if ball else 0.0
    J = np.vstack([A, np.zeros((int(ball), dim))])
    x = np.zeros(dim)
    slack, force = np.maximum(np.append(b, [0.5] * ball), 0.1), np.ones(m + ball)
    best, kept, stale = np.inf, (x, force), 0
    for _ in range(_ITERATIONS):
        over = np.append(A @ x - b, [0.5 * float(x @ (curl * x)) - 0.5] * ball) + slack
        if ball:
            J[m] = curl * x
        push = H @ x + c + J.T @ force
        gap = float(slack @ force) / max(1, slack.size)
        off = max(float(np.abs(push).max()), float(np.abs(over).max(initial=0.0)), gap)
        if off < best:
            best, kept, stale = off, (x, force), 0
        stale += 1
        if off <= _GOOD or (stale > _STALE and best <= 1e-8):
            break
        W = H + (force[m] * np.diag(curl) if ball else 0.0)
        D = force / slack
        K = W + (J.T * D) @ J
        # A little ridge keeps directions without curvature and without constraints from blowing up.
        K[np.diag_indices(dim)] += 1e-14 * max(1.0, float(np.trace(K)))
        try:
            factor = scipy.linalg.cho_factor(K, check_finite=False)
        except (scipy.linalg.LinAlgError, ValueError):
            break

        target = np.zeros_like(slack)
        dx = scipy.linalg.cho_solve(factor, -push - J.T @ (-force + D * over), check_finite=False)
        ds = -over - J @ dx
        df = (target - force * ds) / slack - force
        step = _reach(slack, ds, force, df)
        ahead = float((slack + step * ds) @ (force + step * df)) / max(1, slack.size)
        centring = (ahead / gap) ** 3 if gap > 0 else 0.0
        target = centring * gap - ds * df
        dx = scipy.linalg.cho_solve(factor, -push - J.T @ (target / slack - force + D * over), check_finite=False)
        ds = -over - J @ dx
        df = (target - force * ds) / slack - force
        step = 0.995 * _reach(slack, ds, force, df)
        if not (np.isfinite(dx).all() and np.isfinite(df).all()) or step < 1e-10:
            break
        x = x + step * dx
        slack, force = slack + step * ds, force + step * df
    return kept[0], kept[1][:m]


def _reach(slack: Array, ds: Array, force: Array, df: Array) -> float:
    """Return the longest step, at most 1, that keeps slacks and forces from going negative."""
    both, move = np.concatenate([slack, force]), np.concatenate([ds, df])
    down = move < 0
    with np.errstate(over="ignore"):  # an infinite reach is cut to 1
        return min(1.0, float((both[down] / -move[down]).min(initial=np.inf)))
