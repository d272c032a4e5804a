"""Attacks on the quartic sampler that once succeeded (kept from the first hostile review)."""

import numpy as np
import pytest
from scipy import stats

import reticent as rt
from reticent.domains._gaussian import envelope


def test_rows_that_wait_count_with_their_slopes():
    # 12 rows that pull to one side come after the bound was built; the measure moves by most of its width.
    rng = np.random.default_rng(0)
    features = 0.3 * rng.normal(size=(400, 2))
    targets = features @ [0.1, 0.1] + 0.3 * rng.normal(size=400)
    m = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=0.3, lam=100.0)
    m.observe_many(features, targets)
    stale = np.array([m.draw(rng, "quartic").point for _ in range(2000)])
    m.observe_many(np.tile([1.0, 0.0], (12, 1)), np.full(12, 5.0))
    m._sampler("quartic").excess = -1e18  # so that no new bound is built, however slow this one is
    waiting = np.array([m.draw(rng, "quartic").point for _ in range(2000)])
    assert m._sampler("quartic").built.bound.rows == 400
    plain = np.array([m.draw(rng, "tangent").point for _ in range(2000)])
    assert stats.ks_2samp(waiting[:, 0], plain[:, 0]).pvalue > 1e-6
    # Negative control: a bound without the slopes of the new rows is noticed.
    assert stats.ks_2samp(stale[:, 0], plain[:, 0]).pvalue < 1e-6


def test_the_side_of_a_kink_and_its_slope_never_disagree():
    # Noiseless targets with the mode at a corner: z lies on every kink, up to rounding.
    rng = np.random.default_rng(1)
    features = rng.normal(size=(2000, 2))
    corner = np.array([0.7, 0.3])
    m = rt.Gibbs(rt.Box([-1.0, -1.0], corner), rt.Absolute(), beta=0.01, lam=1.0)
    m.observe_many(features, features @ corner)
    sampler = m._sampler("quartic")
    sampler._build()
    history = m._history
    z, columns = history.summary.z, history.columns
    from reticent.gibbs._phi import margin

    sides = np.array([margin(columns.vectors, columns.offsets, i, z) >= 0 for i in range(2000)])
    slopes = np.where(sides, 1.0, -1.0)
    np.testing.assert_allclose(history.summary.gradient, slopes @ columns.vectors, rtol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("pull", [0.0, 5.0, 60.0])
def test_the_mass_of_an_envelope_is_right_where_it_is_mixed(d, pull):
    # exp(log_mass) times the acceptance rate is the integral of f over the ball, the same for every envelope.
    rng = np.random.default_rng(d)
    body = rt.Ball(d).body
    from reticent.domains._gaussian import propose

    def integral(P, h, exact):
        env = envelope(h, P, 1.0, body, exact)
        out = np.empty(d)
        weights = np.array([propose(rng, env, body, out) for _ in range(40_000)])
        accepted = np.exp(weights)
        return env.kind, env.log_mass + np.log(accepted.mean()), accepted.std() / accepted.mean() / 200.0

    h = np.full(d, pull / np.sqrt(d))
    spread = np.diag(np.linspace(4.0, 12.0, d))
    kind, value, error = integral(spread, h, True)
    # A reference: uniform points of the ball, moved by rejection-free importance weights.
    points = rng.normal(size=(400_000, d))
    points *= (rng.random(400_000) ** (1.0 / d) / np.linalg.norm(points, axis=1))[:, None]
    logs = points @ h - 0.5 * np.einsum("ij,jk,ik->i", points, spread, points)
    volume = rt.Ball(d).log_z(0.0)
    reference = np.exp(logs - logs.max())
    expected = volume + logs.max() + np.log(reference.mean())
    tolerance = 6.0 * (error + reference.std() / reference.mean() / np.sqrt(400_000))
    assert value == pytest.approx(expected, abs=tolerance)
    assert kind != 3  # the round envelope's mass is only good for comparing
