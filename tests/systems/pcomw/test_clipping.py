"""The clipping loss against quadrature, where it is exact and where several draws are averaged."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from reticent.systems.pcomw._switching import clipping, delta0, sigma

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def loss(a, width):
    """E (exp(h - a) - 1)_+ by quadrature over the standard normal variable behind h."""
    start = (a + width**2 / 2) / width
    density = lambda z: math.expm1(width * (z - start)) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    return quad(density, start, start + 15 + width, epsabs=0, epsrel=1e-11, limit=200)[0]


def averaged_loss(a, step, draws):
    """The loss for lognormal factors: one of the decision, and the mean of two or three independent draws."""
    width = math.sqrt(1 + 1 / draws) * step
    # The spread of the draws around their mean: an orthonormal basis of what sums to zero.
    basis = np.array([[1, -1]]) / math.sqrt(2) if draws == 2 else np.array([[1, -1, 0], [1, 1, -2]])
    basis = basis / np.linalg.norm(basis, axis=1, keepdims=True)
    grids = np.meshgrid(*[NODES] * (draws - 1), indexing="ij")
    weights = math.prod(np.meshgrid(*[WEIGHTS] * (draws - 1), indexing="ij")) / (2 * math.pi) ** ((draws - 1) / 2)
    spread = sum(z[..., None] * row for z, row in zip(grids, basis, strict=True))
    log_r = np.log(np.exp(step * spread).mean(axis=-1)) - step**2 * (1 - 1 / draws) / 2
    return float((weights * delta0(a - log_r, np.full(log_r.shape, width))).sum())


@pytest.mark.parametrize("width", [1e-8, 1e-4, 0.01, 0.3, 0.499, 0.501, 1.0, 3.0])
@pytest.mark.parametrize("c", [0.0, 0.5, 2.0, 5.0, 9.0])
def test_delta0_is_the_expected_overshoot(width, c):
    assert float(delta0(c * width, width)) == pytest.approx(loss(c * width, width), rel=1e-8)


def test_delta0_has_the_closed_form_and_its_simpler_bound():
    a, width = 0.7, 0.4
    c = a / width
    closed = math.exp(-a) * ndtr(-(c - width / 2)) - ndtr(-(c + width / 2))
    assert float(delta0(a, width)) == pytest.approx(closed, rel=1e-12)
    density = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    assert float(delta0(a, width)) <= width * (density - c * ndtr(-c))


@given(st.floats(0, 12), st.floats(0, 12), st.floats(-9, 1))
def test_delta0_falls_with_c(c1, c2, log_width):
    width = 10**log_width
    low, high = sorted((c1, c2))
    assert 0 <= float(delta0(high * width, width)) <= float(delta0(low * width, width)) * (1 + 1e-9)


@given(st.floats(-9, 1), st.floats(-9, 1), st.floats(-9, 1))
def test_delta0_grows_with_sigma_at_fixed_phi(log_a, log_1, log_2):
    low, high = sorted((10**log_1, 10**log_2))
    assert float(delta0(10**log_a, low)) <= float(delta0(10**log_a, high)) * (1 + 1e-9) <= 1 + 1e-9


def test_nothing_is_clipped_once_phi_covers_the_largest_ratio():
    assert float(clipping(0.2, 0.1, 1, reach=0.2)) == 0.0
    assert float(clipping(0.2, 0.1, 4, reach=0.2)) == 0.0
    assert float(clipping(0.2, 0.1, 1, reach=0.2001)) > 0.0


@pytest.mark.parametrize("draws", [2, 3])
@pytest.mark.parametrize("step", [1e-3, 0.01, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("c", [0.0, 0.5, 2.0, 4.0, 5.0])
def test_averaged_draws_stay_below_the_bound(draws, step, c):
    a = c * math.sqrt(1 + 1 / draws) * step
    exact = averaged_loss(a, step, draws)
    bound = float(clipping(a, step, draws))
    assert exact <= bound * (1 + 1e-9)
    if step <= 0.01:
        assert bound <= 1.005 * exact


def test_the_smaller_sigma_alone_is_no_bound():
    # The mean of lognormal variables has a heavier tail than the lognormal variable of the same log-variance.
    step, draws = 1.0, 2
    width = math.sqrt(1.5) * step
    assert averaged_loss(5 * width, step, draws) > 4 * float(delta0(5 * width, width))


def test_more_draws_never_hurt():
    for step in (1e-4, 0.01, 0.2, 2.0):
        losses = [float(clipping(3 * step, step, draws)) for draws in (1, 2, 4, 16)]
        assert all(later <= first for later, first in zip(losses[1:], losses[:1] * 3, strict=True))


def test_sigma_is_the_formula():
    assert sigma(2.0, 0.3, 7.0, batch=5, draws=4) == pytest.approx(5 * 2.0 * math.sqrt(1.25 * 0.3 / 7.0))
