"""Losses over the domains of the library, not stand-ins."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.domains import Ball, Box, Domain, Interval, Polytope, Simplex
from reticent.losses import GeneralisedLinear, Linear, Squared
from reticent.losses._base import Charted
from reticent.losses._label import Label

DOMAINS: list[Domain] = [
    Interval(-1.0, 3.0),
    Box([0.0, -1.0], [2.0, 5.0]),
    Ball(3),
    Simplex(4),
    Polytope(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([1.0, 1.0, 1.0])),
]


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: type(d).__name__)
def test_normal_form_lipschitz_and_clipping(glm: GeneralisedLinear, domain: Domain) -> None:
    reader: Charted = domain
    rng = np.random.default_rng(17)
    features = rng.normal(size=(30, domain.dim)) * 10.0 ** rng.uniform(-1, 1, size=(30, 1))
    targets = rng.choice([-1.0, 1.0], size=30) if isinstance(glm, Label) else rng.normal(size=30)
    rows = glm.prepare(reader, features, targets)
    clipped = glm.prepare(domain, features, targets, lipschitz=0.5, on_steep="clip")
    constants = glm.lipschitz(domain, features, targets)
    assert np.all(glm.rows_lipschitz(domain, clipped) <= 0.5 * (1 + 1e-12))
    points = [domain.project(domain.center + rng.normal(size=domain.dim) * 3) for _ in range(12)]
    losses = np.array([glm.values(x, features, targets) for x in points])
    charts = np.array([domain.to_chart(x) for x in points])
    margins = charts @ rows.vectors.T + rows.offsets
    np.testing.assert_allclose(losses, glm.phi(margins), rtol=1e-7, atol=1e-9)
    short = glm.phi(charts @ clipped.vectors.T + clipped.offsets)
    for i in range(len(points)):
        distance = np.linalg.norm(np.array(points) - points[i], axis=1)[:, None]
        assert np.all(np.abs(losses - losses[i]) <= constants * distance * (1 + 1e-7) + 1e-9)
        assert np.all(np.abs(short - short[i]) <= 0.5 * distance * (1 + 1e-7) + 1e-9)


def test_constant_gradients_cost_nothing_on_the_simplex() -> None:
    assert Linear().lipschitz(Simplex(3), [5.0, 5.0, 5.0]) == pytest.approx(0.0, abs=1e-12)


def test_rows_share_memory_where_the_chart_only_shifts() -> None:
    features = np.random.default_rng(0).normal(size=(10, 2))
    rows = Squared().prepare(Box([0.0, 0.0], [1.0, 1.0]), features, np.zeros(10))
    assert np.shares_memory(rows.vectors, features)
