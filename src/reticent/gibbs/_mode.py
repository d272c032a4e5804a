"""A point near the mode, where draws are cheap; it need not be exact, since no law depends on it."""

from __future__ import annotations

import numpy as np

from reticent._check import Array
from reticent.domains import Domain

from ._history import RowHistory

_STEPS = 30


def project_in_chart(domain: Domain, u: Array) -> Array:
    """Return the point of the body nearest to the chart point u."""
    return domain.to_chart(domain.project(domain.from_chart(u)))


def quadratic_minimiser(domain: Domain, slope: Array, bend: Array, start: Array) -> Array:
    """Minimise slope.(x-start) + (x-start)'bend(x-start)/2 over the body, roughly, by accelerated projection."""
    top = float(np.linalg.norm(bend, 2))
    step = -np.linalg.lstsq(bend, slope, rcond=None)[0]
    if top == 0.0:
        return domain.to_chart(domain.support(_push_direction(domain, slope)))
    inside = project_in_chart(domain, start + step)
    if np.linalg.norm(inside - start - step) <= 1e-9 * domain.radius:
        return inside
    x = y = inside
    momentum = 1.0
    for _ in range(300):
        moved = project_in_chart(domain, y - (slope + bend @ (y - start)) / top)
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        y = moved + (momentum - 1.0) / faster * (moved - x)
        done = np.linalg.norm(moved - x) <= 1e-9 * domain.radius
        x, momentum = moved, faster
        if done:
            break
    return x


def _push_direction(domain: Domain, slope: Array) -> Array:
    """A linear function of user coordinates with the given slope in the chart (the chart is an isometry)."""
    return domain.from_chart(slope) - domain.center


def mode_on_body(history: RowHistory, beta: float, lam: float) -> tuple[Array, Array, Array]:
    """Return a point near the minimiser of the losses plus lam/2 |x|^2 on the body, with gradient and Hessian there."""
    x = history.summary.z.copy()
    gradient, hessian = history.summary.gradient.copy(), history.summary.hessian.copy()
    for _ in range(_STEPS):
        slope = gradient + lam * x
        goal = quadratic_minimiser(history.domain, slope, hessian + lam * np.eye(x.size), x)
        gain = -float(slope @ (goal - x))
        # Within a fifth of the width of the peak is near enough.
        if beta * gain < 0.05:
            break
        # A Newton step is cut while it leads well beyond the least value along it: every look is a pass over the past.
        fraction = 1.0
        while True:
            candidate = x + fraction * (goal - x)
            gradient, hessian = history.derivatives(candidate)
            if float((gradient + lam * candidate) @ (goal - x)) <= 0.5 * gain or fraction < 1e-3:
                break
            fraction *= 0.4
        x = candidate
    return x, gradient, hessian
