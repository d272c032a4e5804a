"""Laws in three dimensions against quadrature."""

import numpy as np
import pytest
from laws import ALPHA, KINDS, PARAMETERS, check, data

import reticent as rt

OCTANTS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
BODIES = {
    "ball": rt.Ball(3, radius=1.2),
    "box": rt.Box([-1.0, 0.0, -0.5], [1.0, 0.7, 0.8]),
    "simplex": rt.Simplex(4),
    "polytope": rt.Polytope(OCTANTS, np.ones(8)),
}
FEW = ("linear", "absolute", "logistic")
PULLS = {"inside": (0.05, 0.1, 0.0, 0.0), "corner": (4.0, 2.5, 1.5, -1.0)}


@pytest.mark.parametrize("place", PULLS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", [k if k in FEW else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_thirty_rounds(kind, body, place):
    domain = BODIES[body]
    a, y = data(kind, 30, domain.dim, towards=np.array(PULLS[place])[: domain.dim] + domain.center)
    count = 600 if kind in ("absolute", "pinball", "hinge", "huber") else 1500
    # Slanted faces meet in the corner of the octahedron: a fine grid or a false alarm.
    points = 80 if (body, place) == ("polytope", "corner") else 40
    assert check(domain, kind, PARAMETERS.get(kind, ()), a, y, beta=0.15, lam=1.0, count=count, points=points) > ALPHA


@pytest.mark.parametrize("place", PULLS)
@pytest.mark.parametrize("body", BODIES)
def test_quartic_bound(body, place):
    domain = BODIES[body]
    a, y = data("absolute", 800, domain.dim, towards=np.array(PULLS[place])[: domain.dim] + domain.center)
    found = check(domain, "absolute", (), a, y, beta=0.02, lam=30.0, method="quartic", count=2500, points=32)
    assert found > ALPHA


@pytest.mark.parametrize("body", BODIES)
def test_control_wrong_temperature(body):
    domain = BODIES[body]
    a, y = data("squared", 30, domain.dim, towards=np.array(PULLS["corner"])[: domain.dim] + domain.center)
    assert check(domain, "squared", (), a, y, beta=0.15, lam=1.0, off=1.5, count=2500) < ALPHA
