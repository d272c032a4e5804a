"""Laws in one dimension against quadrature: every loss, every body, few and many rounds, modes inside and at an end."""

import numpy as np
import pytest
from laws import ALPHA, KINDS, PARAMETERS, against, check, data, make_loss

import reticent as rt

BETA = {0: 1.0, 1: 1.0, 30: 0.5, 10_000: 0.02}
BODIES = {
    "interval": rt.Interval(-0.5, 1.0),
    "ball": rt.Ball(1, radius=0.8),
    "simplex": rt.Simplex(2),
    "polytope": rt.Polytope([[2.0], [-1.0]], [1.0, 0.7]),
}


def fast(method, rounds):
    return not (method == "tangent" and rounds > 30)


@pytest.mark.parametrize("towards", [0.2, 4.0], ids=["inside", "end"])
@pytest.mark.parametrize("rounds", [0, 1, 30, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_on_an_interval(kind, rounds, towards):
    a, y = data(kind, rounds, 1, towards=[towards])
    domain, parameter = BODIES["interval"], PARAMETERS.get(kind, ())
    measure = rt.Gibbs(domain, make_loss(kind, *parameter), beta=BETA[rounds], lam=1.5)
    if rounds:
        measure.observe_many(*((a,) if y is None else (a, y)))
    for method in measure.methods:
        if method == "proximal" or not fast(method, rounds):
            continue
        count = 1000 if method == "tangent" else 2500
        assert against(measure, kind, parameter, a, y, method=method, count=count) > ALPHA, method


@pytest.mark.parametrize("kind", [*KINDS, "custom"])
@pytest.mark.parametrize("body", BODIES)
def test_body(body, kind):
    domain = BODIES[body]
    a, y = data("absolute" if kind == "custom" else kind, 30, domain.dim, seed=1)
    count = 150 if kind == "custom" else 2500
    assert check(domain, kind, PARAMETERS.get(kind, ()), a, y, beta=0.7, lam=0.5, count=count) > ALPHA


@pytest.mark.parametrize("kind", ["absolute", "huber", "logistic"])
def test_without_a_regulariser(kind):
    a, y = data(kind, 30, 1, seed=2)
    assert check(BODIES["interval"], kind, PARAMETERS.get(kind, ()), a, y, beta=0.7, lam=0.0) > ALPHA


@pytest.mark.parametrize("kind", KINDS)
def test_control_wrong_temperature(kind):
    # Draws at a temperature off by 70 percent must be told apart at the same sample size.
    a, y = data(kind, 30, 1, towards=[0.2])
    a = a * 3
    y = y * 3 if kind in ("squared", "absolute", "pinball", "huber") else y
    parameter = (2.0,) if kind == "huber" else PARAMETERS.get(kind, ())
    common = {"beta": 1.0, "lam": 1.0, "count": 2500}
    assert check(BODIES["interval"], kind, parameter, a, y, **common) > ALPHA
    assert check(BODIES["interval"], kind, parameter, a, y, off=1.7, **common) < ALPHA


def test_kinks_at_the_ends_and_doubled():
    # Breaks on both ends of the interval, at its middle, ten times each; rows of zeros among them.
    a = np.repeat([[1.0], [-1.0], [0.0], [1e-3], [2.0]], 10, axis=0)
    y = np.repeat([-0.5, -1.0, 0.3, 2.5e-4, 0.5], 10)
    for kind in ("absolute", "pinball", "huber"):
        assert check(BODIES["interval"], kind, PARAMETERS.get(kind, ()), a, y, beta=0.1, lam=1.0) > ALPHA
