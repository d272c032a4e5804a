"""Laws in the plane against quadrature: cells and projections, modes inside, on an edge and in a corner."""

import numpy as np
import pytest
from laws import ALPHA, KINDS, PARAMETERS, against, check, data, draws, law_on, log_law, make_loss, observe

import reticent as rt

BODIES = {
    "ball": rt.Ball(2, center=[0.3, -0.2]),
    "box": rt.Box([-1.0, -0.5], [1.0, 0.8]),
    "simplex": rt.Simplex(3),
    "polytope": rt.Polytope([[-1, 0], [0, -1], [1, 2], [1, -1]], [0.5, 0.5, 1.0, 1.0]),
}
PULLS = {"inside": (0.1, 0.05), "edge": (2.5, 0.1), "corner": (4.0, 3.0)}

MORE = ("linear", "squared", "hinge", "huber")


def pull(domain, place):
    # In coordinates of the body: the simplex has one more than its plane has.
    return np.append(PULLS[place], -1.0 if place == "corner" else 0.0)[: domain.dim] + domain.center


@pytest.mark.parametrize("place", PULLS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    "kind", [k if k not in ("pinball", "hinge") else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
def test_thirty_rounds(kind, body, place):
    domain, parameter = BODIES[body], PARAMETERS.get(kind, ())
    a, y = data(kind, 30, domain.dim, towards=pull(domain, place))
    measure = rt.Gibbs(domain, make_loss(kind, *parameter), beta=0.25, lam=1.0)
    observe(measure, a, y)
    method = measure.methods[0]
    count = 800 if method == "tangent" or kind == "huber" else 1500
    assert against(measure, kind, parameter, a, y, method=method, count=count) > ALPHA


@pytest.mark.parametrize("place", PULLS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", ["absolute", "hinge", pytest.param("pinball", marks=pytest.mark.slow)])
def test_quartic_bound(kind, body, place):
    domain, parameter = BODIES[body], PARAMETERS.get(kind, ())
    a, y = data(kind, 1500, domain.dim, towards=pull(domain, place))
    assert (
        check(
            domain,
            kind,
            parameter,
            a,
            y,
            beta=0.02,
            lam=20.0,
            method="quartic",
            count=2000,
            points=200 if body == "polytope" else 80,
        )
        > ALPHA
    )


@pytest.mark.parametrize("place", PULLS)
@pytest.mark.parametrize("kind", ["absolute", "logistic", *(pytest.param(k, marks=pytest.mark.slow) for k in MORE)])
def test_ten_thousand_rounds(kind, place):
    domain = BODIES["ball"]
    a, y = data(kind, 10_000, 2, towards=pull(domain, place) * (1.0 if place == "inside" else 0.4))
    # Huber rows bend only where the body keeps them in their quadratic part: a wide one does.
    parameter = (6.0,) if kind == "huber" else PARAMETERS.get(kind, ())
    assert check(domain, kind, parameter, a, y, beta=0.02, lam=1.0, points=64, count=1500) > ALPHA


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", ["linear", "squared", "absolute", "huber", "logistic"])
def test_hardly_any_rounds(kind, body, rounds):
    domain = BODIES[body]
    a, y = data(kind, rounds, domain.dim, seed=3)
    for lam in (0.0, 2.0):
        assert check(domain, kind, PARAMETERS.get(kind, ()), a, y, beta=1.0, lam=lam, count=1200) > ALPHA


@pytest.mark.parametrize("body", BODIES)
def test_curved_and_tangent_agree_with_the_law(body):
    domain = BODIES[body]
    a, y = data("logistic", 60, domain.dim, towards=pull(domain, "edge"), seed=4)
    for method in ("curved", "tangent"):
        assert check(domain, "logistic", (), a, y, beta=1.0, lam=1.0, method=method, count=1500) > ALPHA


def test_custom_loss():
    a, y = data("absolute", 8, 2, seed=5)
    assert check(BODIES["ball"], "custom", (), a, y, beta=0.5, lam=1.0, count=400) > ALPHA


@pytest.mark.parametrize(
    ("kind", "body", "rounds", "beta", "lam", "method"),
    [
        ("linear", "ball", 30, 0.25, 1.0, None),
        ("squared", "simplex", 30, 1.0, 1.0, None),
        ("squared", "polytope", 30, 0.25, 1.0, None),
        ("logistic", "box", 60, 1.0, 1.0, "curved"),
        ("absolute", "ball", 1500, 0.02, 20.0, "quartic"),
        ("absolute", "box", 30, 0.25, 1.0, "tangent"),
    ],
)
def test_control_wrong_temperature(kind, body, rounds, beta, lam, method):
    domain, parameter = BODIES[body], PARAMETERS.get(kind, ())
    a, y = data(kind, rounds, domain.dim, towards=pull(domain, "edge"))
    found = check(domain, kind, parameter, a, y, beta=beta, lam=lam, method=method, count=4000, off=1.5)
    assert found < ALPHA


def test_control_that_accepts_every_proposal():
    # The Gaussian below the curvature, without the coin that corrects it.
    domain = BODIES["ball"]
    a, y = data("logistic", 60, 2, towards=pull(domain, "edge"), seed=4)
    a = 2 * a
    grid, place = law_on(domain, log_law("logistic", a, y, beta=1.0, lam=1.0, center=domain.center), 220)
    honest = rt.Gibbs(domain, rt.Logistic(), beta=1.0, lam=1.0)
    honest.observe_many(a, y)
    assert grid.p_value(place(draws(honest, 1500))) > ALPHA
    slope = -(y / (1 + np.exp(y * (a @ domain.center)))) @ a
    lazy = rt.Gibbs(domain, rt.Linear(), beta=1.0, lam=1.0)
    lazy.observe(slope)
    assert grid.p_value(place(draws(lazy, 1500))) < ALPHA
