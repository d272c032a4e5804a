"""Privacy of an epoch of the filtered gate (docs/theory, R10) by brute force on the lattice that it releases on.

Three blocks of the program's own mechanism on a coarse grid: curves of two worlds are sums over all releases. They are
compared with the curve of the Gaussian pair, in closed form.
"""

import math

import numpy as np
import pytest
from test_gate_privacy import EPSILONS, curve, gaussian_curve, once, pmf, policies

from reticent.systems.filtered import _release
from reticent.systems.filtered._buffers import Buffers
from reticent.systems.filtered._release import EpochRelease

SHIFT, SPAN, CLIP = 2, 32, 3
SHAPE = Buffers((0.21, 0.2), (0.3, 0.9))  # coefficients 1, 0.41, 0.243
COLUMN = math.sqrt(1 + 0.41**2 + 0.243**2)
LINEAR = 2 * CLIP / 2**SHIFT * COLUMN
MU = LINEAR + 2 * 0.5 * math.sqrt(2) / 2**SHIFT  # with the rounding of two mixed sums


@pytest.fixture
def release(monkeypatch):
    monkeypatch.setitem(_release.TABLE, 3, SHAPE)
    return EpochRelease(clip=1.0, noise=1.0, block=4, blocks=3, dim=1, change=2.0)


def world(release, policy, changed, sign, noise, before=0.0):
    """Return the law of three releases; see `test_gate_privacy.world`. `before` is what buffers start with."""
    values = np.arange(-SPAN, SPAN + 1)
    middle, none = len(noise) // 2, np.zeros(1, dtype=np.int64)

    def law(mean):
        return noise[middle + values - mean]

    def sums(k, past):
        return np.array([policy(k, past) + (sign * CLIP if changed(past, k) else 0)])

    def mean(totals):
        buffers = release.fresh() + before * sign
        for total in totals[:-1]:
            buffers = release.filled(buffers, total)
        return int(release.released(totals[-1], buffers, none)[0])

    first = sums(0, ())
    whole = np.zeros((values.size,) * 3)
    start = law(mean([first]))
    for i, a in enumerate(values):
        second = sums(1, (a,))
        middle_law = start[i] * law(mean([first, second]))
        means = [mean([first, second, sums(2, (a, b))]) for b in values]
        whole[i] = middle_law[:, None] * np.array([law(m) for m in means])
    return whole


def worst(P, Q, mu):
    return max(curve(a, b, e) / gaussian_curve(mu, e) for e in EPSILONS for a, b in ((P, Q), (Q, P)))


@pytest.mark.parametrize("where", [0, 1, (0,), (-4,)], ids=str)
def test_adaptive_rounds_stay_within_the_curve(release, where):
    noise, shares = pmf(span=3 * SPAN), []
    for policy in policies(CLIP, 3, seed=len(str(where))):
        P, Q = (world(release, policy, once(where), sign, noise) for sign in (1, -1))
        assert P.sum() > 1 - 1e-6
        shares.append(worst(P, Q, MU))
    assert 0.6 < max(shares) <= 1


def test_rounding_of_mixed_sums_must_be_paid_for(release):
    """Other rounds move the mixed sums across roundings: more than the linear part allows."""
    noise = pmf(span=3 * SPAN)
    P, Q = (world(release, lambda k, past: 0, once(0), sign, noise) for sign in (1, -1))
    assert worst(P, Q, LINEAR) <= 1  # here rounding happens to hide
    first = [lambda k, past, g=g: g if k < 2 else 0 for g in (1, 2)]
    laws = [[world(release, policy, once(0), sign, noise) for sign in (1, -1)] for policy in first]
    assert max(worst(*pair, LINEAR) for pair in laws) > 1.001
    assert max(worst(*pair, MU) for pair in laws) <= 1


def test_half_the_noise_and_buffers_that_are_kept_are_caught(release):
    noise, policy = pmf(span=3 * SPAN), next(iter(policies(CLIP, 1)))
    half = pmf(SHIFT - 1, 3 * SPAN)
    P, Q = (world(release, policy, once(0), sign, half) for sign in (1, -1))
    assert worst(P, Q, MU) > 1.2
    # A changed round of the epoch before, still in the buffers: it would be paid for again.
    P, Q = (world(release, policy, lambda past, k: False, sign, noise, before=CLIP) for sign in (1, -1))
    assert curve(P, Q, 0.5) > 0.05


def test_what_the_program_states_is_what_is_proved(release):
    grid = release.grid
    e = release.error
    assert 0.5 < e < 0.51
    stated = 2 * grid.clip / grid.sigma * COLUMN + 2 * e * math.sqrt(2) / 2**grid.shift
    assert release.mu == pytest.approx(stated, rel=1e-9)
    assert release.mu <= 1.0
