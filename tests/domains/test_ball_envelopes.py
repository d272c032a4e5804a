"""Every kind of envelope of a Gaussian on a ball lies above it, whether it was chosen or asked for."""

import math

import numpy as np
import pytest

from reticent.domains import Ball
from reticent.domains._gaussian import ANY, CAP, PLAIN, ROUND, TILTED, envelope, propose

BODY = Ball(3).body
P = np.array([[40.0, 3.0, 0.0], [3.0, 30.0, -2.0], [0.0, -2.0, 35.0]])


@pytest.mark.parametrize("wanted", [ANY, TILTED, CAP, ROUND])
@pytest.mark.parametrize("push", [25.0, 45.0, 300.0])
def test_draws_follow_the_gaussian_whatever_kind_is_wanted(wanted, push):
    h = push * np.array([0.6, -0.8, 0.0])
    env = envelope(h, P, 0.0, BODY, False, wanted)
    on_sphere = push > 40.0  # else the mode lies inside, where a cap does not apply
    assert env.kind == wanted or wanted == ANY or (wanted == CAP and not on_sphere)
    rng, out = np.random.default_rng(3), np.empty(3)
    axis = h / np.linalg.norm(h)
    heights = []
    while len(heights) < 4000:
        weight = propose(rng, env, BODY, out)
        assert weight <= 1e-12
        if rng.standard_exponential() >= -weight:
            assert out @ out <= 1.0
            heights.append(out @ axis)
    # The reference: the same density summed over a grid of the ball.
    grid = np.linspace(-1.0, 1.0, 121)
    x = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[(x * x).sum(axis=1) <= 1.0]
    log_density = x @ h - 0.5 * np.einsum("ij,jk,ik->i", x, P, x)
    density = np.exp(log_density - log_density.max())
    mean = density @ (x @ axis) / density.sum()
    # Five deviations of the mean, and the error of the grid.
    assert abs(np.mean(heights) - mean) < 5.0 * np.std(heights) / math.sqrt(len(heights)) + 0.01


def test_the_plain_one_is_taken_wherever_it_does():
    for wanted in (ANY, TILTED, CAP, ROUND):
        assert envelope(np.zeros(3), P, 20.0, BODY, False, wanted).kind == PLAIN


@pytest.mark.parametrize("floor", [1e-3, 1e-14])
def test_a_precision_that_is_flat_along_the_ball_has_an_envelope_however_small_its_least_eigenvalue(floor):
    """Doubles cannot factor it then: the Cholesky shortcut must not be tried."""
    rng = np.random.default_rng(0)
    a = np.array([0.6, 0.8, 1e-9])
    flat = 500.0 * np.outer(a, a) + floor * np.eye(3)
    heights, out = [], np.empty(3)
    while len(heights) < 2000:
        env = envelope(np.array([0.3, 0.4, 0.0]), flat, floor, BODY, False, ANY)
        weight = propose(rng, env, BODY, out)
        if rng.standard_exponential() >= -weight:
            heights.append(out[2])
    # Along the third axis a disc seen from its edge: the mean square is a quarter.
    assert abs(np.mean(np.square(heights)) - 0.25) < 0.03
