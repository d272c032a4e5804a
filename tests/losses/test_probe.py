"""The probe: a derivative that is not that of the function is found by the values, and true ones are never refused."""

import numpy as np
import pytest

import reticent as rt
from reticent.losses._differentiated import check

LINE = rt.Interval(-1.0, 1.0)
BODIES = [LINE, rt.Ball(3), rt.Simplex(3), rt.Box([-1.0, 99.0], [1.0, 101.0])]


def seen(value, slope):
    """A function and what is said to be its derivative, at many points."""
    return lambda points: (np.array([value(x) for x in points]), np.array([slope(x) for x in points]))


def still(x):
    return np.zeros(x.size)


def tried(domain, value, slope, declared):
    check(domain, 0, seen(value, slope), declared, 16)


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_values_that_differ_by_more_than_declared_are_refused_whatever_the_derivative_says(domain):
    steep = 50.0 * np.eye(domain.dim)[0]
    with pytest.raises(ValueError, match=r"row 0 grows by \d+\.?\d* from \[.*declared Lipschitz constant 1 "):
        tried(domain, lambda x: abs(steep @ (x - domain.center)), still, 1.0)
    # The same function with its own derivative and a constant that holds is good.
    tried(
        domain, lambda x: abs(steep @ (x - domain.center)), lambda x: steep * np.sign(steep @ (x - domain.center)), 50
    )


@pytest.mark.parametrize("domain", BODIES, ids=repr)
def test_a_loss_below_its_tangent_is_refused(domain):
    middle = domain.center
    with pytest.raises(ValueError, match=r"is not convex, or its derivative is not its own: at \["):
        tried(domain, lambda x: 0.3 * np.linalg.norm(x - middle), still, 1.0)  # a detached part
    with pytest.raises(ValueError, match="its derivative is not its own"):
        tried(domain, lambda x: ((x - middle) ** 2).sum() / 4, lambda x: -(x - middle) / 2, 10.0)
    tried(domain, lambda x: ((x - middle) ** 2).sum() / 4, lambda x: (x - middle) / 2, 10.0)


def test_a_detached_part_that_is_steep_near_one_end_only_is_found():
    with pytest.raises(ValueError, match=r"grows by|derivative is not its own"):
        tried(LINE, lambda x: 50 * max(x[0] - 0.999999, 0.0), still, 1.0)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_rounding_is_not_taken_for_a_wrong_derivative(offset):
    far = rt.Box([1e6, 0.0], [1e6 + 1, 1e-3])
    for domain in (*BODIES, far):
        for sharp in (0.0, 1e-12, 1.0):
            middle = domain.center

            def value(x, sharp=sharp, middle=middle):
                return offset + np.sqrt(sharp + ((x - middle) ** 2).sum())

            def slope(x, sharp=sharp, middle=middle):
                return (x - middle) / max(np.sqrt(sharp + ((x - middle) ** 2).sum()), 1e-300)

            tried(domain, value, slope, 1.0)


def jax_cases():
    jnp = pytest.importorskip("jax.numpy")
    from jax.lax import stop_gradient

    yield (
        rt.losses.from_jax,
        [
            lambda x, c: 50 * jnp.sum(jnp.abs(stop_gradient(x) - c)),
            lambda x, c: 0.5 * jnp.sum(jnp.abs(stop_gradient(x) - c)),
            lambda x, c: jnp.round(20 * jnp.sum(jnp.abs(x - c))),
            lambda x, c: jnp.sum((9 * (x - c) ** 2).astype(int)) * 1.0,
        ],
    )


def torch_cases():
    pytest.importorskip("torch")
    yield (
        rt.losses.from_torch,
        [
            lambda x, c: 50 * (x.detach() - c).abs().sum(),
            lambda x, c: 0.5 * (x.detach() - c).abs().sum(),
            lambda x, c: (20 * (x - c).abs().sum()).round(),
            lambda x, c: (9 * (x - c) ** 2).long().sum().double() + 0 * x.sum(),
        ],
    )


@pytest.mark.parametrize("cases", [jax_cases, torch_cases])
def test_parts_that_automatic_differentiation_does_not_see_never_reach_a_private_learner(cases):
    plan = rt.Plan(LINE, 100, 1.0, beta=0.1, lam=9.0, p=0.1, phi=2.0)
    for make, functions in cases():
        for fn in functions:
            learner = rt.PCOMW(plan, make(fn, lipschitz=1.0), seed=1)
            with pytest.raises(ValueError, match=r"the loss of row 0 (grows by|is not convex)"):
                learner.observe(0.9)
            assert learner.rounds == 0
