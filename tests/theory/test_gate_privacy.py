"""Privacy of the gate (docs/theory, R8a and R8b) by brute force on the lattice that it releases on.

Curves of two worlds are sums over all releases of three blocks; nothing is sampled, and nothing is compared with the
library's own accountant but the curve of the Gaussian pair, in closed form.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from reticent.systems.gate import BlockRelease

SHIFT = 2  # deviations of the noise are 4 steps: coarse, so that all releases can be listed
SPAN = 26  # releases from -SPAN to SPAN: six deviations beyond any sum
EPSILONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


def pmf(shift=SHIFT, span=2 * SPAN):
    """The law of the rounded noise on -span..span."""
    edges = np.arange(-span, span + 2) - 0.5
    return np.diff(norm.cdf(edges / 2**shift))


def gaussian_curve(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def coarse(clip_steps, dim=1, checked=True):
    """A gate on a grid so coarse that all releases can be listed; its code is that of any other."""
    release = BlockRelease(1.0, 2.0**SHIFT / clip_steps, 4, dim)
    release.shift, release.step = SHIFT, 1.0 / clip_steps
    release.most = math.floor(clip_steps**2) if checked else 10**9
    release.largest = math.isqrt(release.most)
    if not checked:  # rows are not shortened before they are rounded either
        release.clip += 0.505 * math.sqrt(dim) * release.step
    return release


def world(policy, changed, sign, clip, noise):
    """Return the law of three releases: an array over -SPAN..SPAN in each; `policy` and `changed` read the past.

    `changed(past)` is the block of the changed round, known from the releases before it; the others' sums are
    `policy(k, past)`, integers of at most `clip` steps.
    """
    values = np.arange(-SPAN, SPAN + 1)
    size, middle = values.size, len(noise) // 2

    def law(mean):
        return noise[middle + values - mean]

    def mean(k, past):
        own = policy(k, past)
        return own + sign * clip if changed(past, k) else own

    whole = np.zeros((size, size, size))
    first = law(mean(0, ()))
    for i, a in enumerate(values):
        second = first[i] * law(mean(1, (a,)))
        # The third block's sum depends on the two releases before it through a few cases only.
        means = np.array([mean(2, (a, b)) for b in values])
        whole[i] = second[:, None] * np.array([law(m) for m in range(-3 * clip, 3 * clip + 1)])[means + 3 * clip]
    return whole


def once(where):
    """The changed round: in block `where`; or, for a level, in block 1 if release 0 is above it, else in block 2."""

    def fixed(past, k):
        return k == where

    def adaptive(past, k):
        return k > 0 and k == (1 if past[0] > where[0] else 2)

    return fixed if isinstance(where, int) else adaptive


def policies(clip, count, seed=0):
    """Random rules from what was released to the other rounds' sums."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        levels, signs = rng.integers(-6, 7, size=3), rng.choice([-1, 0, 1], size=(3, 4))

        def policy(k, past, levels=levels, signs=signs):
            if k == 0:
                return int(signs[0, 0]) * clip
            here = (past[-1] > levels[k]) + 2 * (sum(past) > levels[0])
            return int(signs[k, here]) * clip

        yield policy


def curve(P, Q, epsilon):
    return float(np.maximum(P - math.exp(epsilon) * Q, 0.0).sum())


def worst(P, Q, mu):
    """The largest share of the Gaussian curve that is reached, both ways."""
    return max(curve(a, b, e) / gaussian_curve(mu, e) for e in EPSILONS for a, b in ((P, Q), (Q, P)))


CLIP = 3  # steps: mu = 2 * 3/4
MU = 2 * CLIP / 2**SHIFT
PLACES = [0, 1, 2, (0,), (-4,), (5,)]


@pytest.mark.parametrize("where", PLACES, ids=str)
def test_three_blocks_with_adaptive_rounds_stay_within_the_gaussian_curve(where):
    noise, shares = pmf(), []
    for policy in policies(CLIP, 4, seed=len(str(where))):
        P, Q = (world(policy, once(where), sign, CLIP, noise) for sign in (1, -1))
        assert P.sum() > 1 - 1e-6
        shares.append(worst(P, Q, MU))
    assert max(shares) <= 1 + 1e-9
    assert max(shares) > 0.99  # rounding hides a little of a Gaussian mechanism on so coarse a grid


def test_half_the_noise_is_caught():
    noise = pmf(SHIFT - 1)
    policy = next(iter(policies(CLIP, 1)))
    P, Q = (world(policy, once(1), sign, CLIP, noise) for sign in (1, -1))
    assert worst(P, Q, MU) > 1.2


def test_a_second_release_of_a_block_is_caught():
    """A replay after a crash: the changed round enters two releases."""
    noise = pmf()
    policy = next(iter(policies(CLIP, 1)))
    P, Q = (world(policy, lambda past, k: k < 2, sign, CLIP, noise) for sign in (1, -1))
    assert worst(P, Q, MU) > 1.2
    assert worst(P, Q, MU * math.sqrt(2)) <= 1 + 1e-9


def test_insertion_moves_every_later_block_and_is_not_covered():
    """Blocks of one round, alternating signs: a round put in front turns every one of the three."""
    steps = 2  # mu = 2 * 2/4 = 1
    noise, signs = pmf(), (1, -1, 1)
    P, Q = (world(lambda k, past, s=s: s * steps * signs[k], lambda past, k: False, 1, steps, noise) for s in (1, -1))
    found = curve(P, Q, 1.0)
    assert found == pytest.approx(0.411, abs=0.01)
    assert gaussian_curve(1.0, 1.0) == pytest.approx(0.127, abs=0.001)
    replaced = [world(lambda k, past: 0, once(0), sign, steps, noise) for sign in (1, -1)]
    assert curve(*replaced, 1.0) <= gaussian_curve(1.0, 1.0)


@pytest.mark.parametrize("steps", [5.0, 4.3, 7.9])
def test_rows_on_the_grid_keep_the_sensitivity_in_two_dimensions_and_unchecked_rows_do_not(steps):
    """The largest distance of two rows' integers, over many rows, and the curve of that pair by listing."""
    angles = np.linspace(0, 2 * np.pi, 2001)
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    noise, span = pmf(), 2 * SPAN

    def share(release):
        found = release.rounded(rows)
        longest = found[int(np.argmax((found**2).sum(axis=1)))]
        laws = []
        for sign in (1, -1):
            sides = [np.roll(np.pad(noise, span), sign * int(m)) for m in longest]
            laws.append(np.outer(*sides))
        return worst(*laws, 2 * steps / 2**SHIFT)

    assert share(coarse(steps, 2)) <= 1 + 1e-9
    assert share(coarse(steps, 2, checked=False)) > 1.01


def test_every_row_of_a_small_grid_is_within_the_clip_in_integers():
    release = coarse(4.3, 3)
    axis = np.linspace(-1.5, 1.5, 13)
    rows = np.array(list(itertools.product(axis, repeat=3)))
    assert (release.rounded(rows) ** 2).sum(axis=1).max() <= release.most == 18
