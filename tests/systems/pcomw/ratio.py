"""P-COMW with the coin as the paper writes it, a ratio of densities by quadrature: a reference for tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.gibbs import Gibbs
from reticent.learners import PCOMW
from reticent.planning import Plan
from reticent.systems._decider import NEVER
from reticent.systems._walk import Toss, Walk

_NODES = 8  # of a Gauss-Legendre rule, per panel
_PANELS = {1: 400, 2: 40}  # kinks in the losses leave errors of the order of a panel squared


class RatioCoin:
    """Keeps x with probability clip(next density / (phi present density), phi^-2, 1), in one and two dimensions."""

    always_draws = False

    def __init__(self, plan: Plan) -> None:
        if plan.domain.chart_dim > 2:
            raise ValueError(
                f"this coin integrates over the domain and takes one or two dimensions, got {plan.domain!r}"
            )
        self.p, self.phi, self.beta = plan.p, plan.phi, plan.beta
        self.nodes, weights = quadrature(plan.domain)
        # The logarithm of weight times density, up to a constant, at every node.
        self.logs = np.log(weights) - 0.5 * plan.beta * plan.lam * np.square(self.nodes).sum(axis=1)

    def next(self, rng: np.random.Generator) -> Toss:
        """Return the next coin: every batch has one."""
        return Toss(1, bool(rng.random() < self.p), 1.0 - rng.random())

    def wants_rounds(self, toss: Toss) -> bool:
        """Say that every batch is read: the densities must be kept up to date."""
        return True

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision changes."""
        losses = measure.loss.total(measure.domain, rows, np.vstack([self.nodes, u]))
        before = _log_sum(self.logs)
        self.logs -= self.beta * losses[:-1]
        ratio = math.exp(before - _log_sum(self.logs) - self.beta * float(losses[-1]))
        keep = min(1.0, max(self.phi**-2, ratio / self.phi))
        return toss.forced or toss.level > keep


class RatioPCOMW(PCOMW):
    """P-COMW over one epoch, with that coin."""

    def _new_walk(self):
        plan = self.plan
        options = {"lipschitz": plan.lipschitz, "on_steep": self._on_steep, "distance": plan.distance}
        measure = Gibbs(plan.domain, self.loss, plan.beta, plan.lam, **options)
        return Walk(plan, measure, self._rng, RatioCoin(plan), NEVER)


def quadrature(domain: Domain) -> tuple[Array, Array]:
    """Return points in the chart of a domain of one or two dimensions, and positive weights that add up to its volume.

    >>> import reticent as rt
    >>> round(float(quadrature(rt.Ball(2))[1].sum()), 6)
    3.141593
    """
    body = domain.body
    if body.dim == 1:
        x, w = _panels(body.lo[0], body.hi[0], _PANELS[1])
        return x[:, None], w
    if body.ball:
        r, w = _panels(0.0, body.radius, _PANELS[2])
        angles = 2.0 * math.pi * np.arange(_NODES * _PANELS[2]) / (_NODES * _PANELS[2])
        points = r[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        weights = np.repeat(r * w * 2.0 * math.pi / angles.size, angles.size)
        return points.reshape(-1, 2), weights
    xs, outer = _panels(body.lo[0], body.hi[0], _PANELS[2])
    t, inner = _panels(0.0, 1.0, _PANELS[2])
    low, high = _chords(domain, xs)
    ys = low[:, None] + (high - low)[:, None] * t
    weights = outer[:, None] * (high - low)[:, None] * inner
    points = np.stack(np.broadcast_arrays(xs[:, None], ys), axis=-1)
    inside = weights.ravel() > 0.0
    return points.reshape(-1, 2)[inside], weights.ravel()[inside]


def _panels(low: float, high: float, count: int) -> tuple[Array, Array]:
    x, w = np.polynomial.legendre.leggauss(_NODES)
    edges = np.linspace(low, high, count + 1)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * x).ravel(), (half * w).ravel()


def _chords(domain: Domain, xs: Array) -> tuple[Array, Array]:
    """Return the ends of the body along the second coordinate at each value of the first."""
    body = domain.body
    low, high = np.full(xs.size, body.lo[1]), np.full(xs.size, body.hi[1])
    for (a, c), b in zip(body.A, body.b, strict=True):
        if c > 0.0:
            high = np.minimum(high, (b - a * xs) / c)
        elif c < 0.0:
            low = np.maximum(low, (b - a * xs) / c)
    return low, np.maximum(low, high)


def _log_sum(logs: Array) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
