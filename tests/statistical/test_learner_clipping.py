"""P4: what clipping does to decisions and switches, measured, against the bounds and against quadrature.

A switch is a fresh draw, so the blocks of a long run that begin with one are independent runs of their own: gradients
of 1 for a number of rounds and of -1 for as many give hundreds of thousands of runs in a second.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from laws import ALPHA, chi_square
from scipy import special, stats

import reticent as rt
from reticent.systems.pcomw._switching import Switching, clipping, expected_switches, log_tail, variation

COINS = 600_000
WIDE = rt.Interval(-40.0, 40.0)


def wide_plan(sigma, c, p=0.0, draws=1, batch=1):
    """A normal law of variance 1 on the line in practice; h has standard deviation sigma and log phi is c sigma."""
    beta = sigma / math.sqrt(1 + 1 / draws) / batch
    phi = math.exp(c * sigma)
    return rt.Plan(WIDE, COINS * batch, 1.0, beta=beta, lam=1 / beta, p=p, phi=phi, draws=draws, batch=batch)


def lost(plan):
    """Delta0 of the theory."""
    a = math.log(plan.phi)
    s = plan.batch * plan.lipschitz * math.sqrt((1 + 1 / plan.draws) * plan.beta / plan.lam)
    return float(special.ndtr(s / 2 - a / s) / plan.phi - special.ndtr(-a / s - s / 2))


def blocks(plan, n, seed=0):
    """Runs of n coins from a fresh start: decisions at the end, less the mean of their measure, and the switches."""
    way = np.where(np.arange(plan.coins) // n % 2 == 0, 1.0, -1.0)
    learner = rt.PCOMW(plan, rt.Linear(), seed)
    trace = learner.observe_many(np.repeat(way, plan.batch)[:, None])
    switched = np.zeros(plan.coins + 1, bool)
    switched[trace.switch_times // plan.batch] = True
    switched[0] = True
    played = np.arange(0, plan.coins - 2 * n, n)
    fresh = played[switched[played]]
    after = (fresh + n) * plan.batch
    x = trace.points[np.searchsorted(trace.starts, after, "right") - 1, 0]
    step = plan.beta * plan.batch
    up = way[fresh] > 0
    x = np.where(up, x + n * step, -x)
    return x, switched[fresh[:, None] + np.arange(1, n + 1)]


def above(count, runs, bound):
    """P-value of a chance being at most `bound` where it was seen so often."""
    return stats.binomtest(int(count), runs, min(1.0, bound), alternative="greater").pvalue


def variation_above(x, bound):
    """P-value of the law of x being within `bound` of normal: half of x shows where to look for the other."""
    cuts = stats.norm.ppf(np.arange(1, 40) / 40)
    half = len(x) // 2
    seen, tested = (np.bincount(np.searchsorted(cuts, part), minlength=40) for part in (x[:half], x[half:]))
    more = seen > half / 40
    return above(tested[more].sum(), tested.sum(), more.sum() / 40 + bound)


def clipped_law(plan, cells):
    """One coin by quadrature: chances of the decision's cells (with its mean moved to 0), and of a switch."""
    x = np.linspace(-10.0, 10.0, 3001)
    step = plan.beta * plan.batch
    now, following = (stats.norm.pdf(x, mean) * (x[1] - x[0]) for mean in (0.0, -step))
    keep = np.clip(np.exp(step * (x - x[:, None])) / plan.phi, plan.phi**-2, 1.0) @ following
    kept = (1 - plan.p) * now * keep
    law = kept + (1 - kept.sum()) * following
    return np.diff(np.interp(cells, x + step, np.cumsum(law) - law / 2)), 1 - kept.sum()


CELLS = np.linspace(-4.5, 4.5, 61)


@pytest.mark.parametrize(("sigma", "c", "p", "batch"), [(0.5, 1.0, 0.0, 1), (1.0, 1.0, 0.1, 3), (2.0, 1.0, 0.0, 1)])
def test_one_clipped_coin_against_quadrature(sigma, c, p, batch):
    plan = wide_plan(sigma, c, p, batch=batch)
    x, switched = blocks(plan, 1)
    law, chance = clipped_law(plan, CELLS)
    assert stats.binomtest(int(switched.sum()), len(x), chance).pvalue > ALPHA
    seen = np.histogram(x, CELLS)[0]
    assert chi_square(seen, len(x) * law) > ALPHA
    # Controls: the law without clipping, and with phi off by a quarter.
    assert stats.binomtest(int(switched.sum()), len(x), 1 - (1 - p) / plan.phi).pvalue < ALPHA
    assert chi_square(seen, len(x) * np.diff(stats.norm.cdf(CELLS))) < ALPHA
    off, _ = clipped_law(replace(plan, phi=1.25 * plan.phi), CELLS)
    assert chi_square(seen, len(x) * off) < ALPHA


@pytest.mark.parametrize(("sigma", "c"), [(0.5, 1.0), (0.25, 0.5), (1.0, 1.0)])
@pytest.mark.parametrize("p", [0.0, 0.1])
def test_drift_of_one_coin(sigma, c, p):
    plan = wide_plan(sigma, c, p)
    bound = (1 - p) * lost(plan)
    assert (1 - p) * Switching(plan).clip == pytest.approx(bound, rel=1e-9)
    x, switched = blocks(plan, 1)
    q = 1 - (1 - p) / plan.phi
    assert variation_above(x, bound) > ALPHA
    assert above(switched.sum(), len(x), q + bound) > ALPHA
    # Controls: the bounds are near (0.0229 of 0.0318 at sigma = 1/2, c = 1, p = 0), so a part of them is passed.
    if sigma == 0.5:
        assert variation_above(x, 0.4 * bound) < ALPHA
        assert above(switched.sum(), len(x), q + 0.2 * bound) < ALPHA


def test_excess_of_switches_is_nearly_the_bound_for_a_wide_coin():
    plan = wide_plan(3.0, 1.0)
    _, switched = blocks(plan, 1)
    q, runs = 1 - 1 / plan.phi, len(switched)
    assert above(switched.sum(), runs, q + lost(plan)) > ALPHA
    assert above(switched.sum(), runs, q + 0.85 * lost(plan)) < ALPHA


# sigma, c, forced switches, auxiliary draws, coins, share of the bound on the variation that must be seen to be passed
MANY = [
    (0.5, 1.0, 0.0, 1, 6, 0.1),
    (0.3, 2.0, 0.0, 1, 12, 0.0),
    (0.5, 1.0, 0.1, 1, 6, 0.1),
    (0.4, 0.5, 0.02, 3, 8, 0.0),
    (1.0, 1.5, 0.05, 8, 4, 0.0),
]


@pytest.mark.parametrize(("sigma", "c", "p", "draws", "n", "share"), MANY)
def test_many_coins(sigma, c, p, draws, n, share):
    plan = wide_plan(sigma, c, p, draws)
    clip = Switching(plan).clip
    assert clip >= lost(plan) * (1 - 1e-9)
    assert draws > 1 or clip == pytest.approx(lost(plan), rel=1e-9)
    x, switched = blocks(plan, n)
    law = Switching(replace(plan, horizon=n))
    bound = float(variation(n, p, clip))
    by_hand = min(n * lost(plan), (1 - p) * lost(plan) / p if p else math.inf)
    assert draws > 1 or bound <= by_hand * (1 + 1e-9)
    assert variation_above(x, bound) > ALPHA
    if share:
        assert variation_above(x, share * bound) < ALPHA
    count, runs, q = switched.sum(axis=1), len(x), 1 - (1 - p) / plan.phi
    # The mean: switches are bounded by n, so a normal limit is good enough at this size.
    error = count.std() / math.sqrt(runs)
    allowed = -stats.norm.ppf(ALPHA) * error
    assert count.mean() - allowed < float(expected_switches(n, p, math.log(plan.phi), clip)) <= law.expected
    bounds = np.exp(log_tail(np.arange(n + 1), n, p, math.log(plan.phi), clip))
    seen = [(count >= j).sum() for j in range(n + 1)]
    assert min(map(above, seen, [runs] * (n + 1), bounds)) > ALPHA
    assert all(law.tail(j) >= bounds[j] for j in range(n + 1))
    if c <= 1:
        # Without the terms for clipping, mean and tail are passed.
        assert count.mean() - allowed > n * q
        assert min(map(above, seen, [runs] * (n + 1), stats.binom.sf(np.arange(-1, n), n, q))) < ALPHA


@pytest.mark.parametrize("kind", ["absolute", "linear"])
def test_narrow_bodies_stay_below_the_bounds(kind):
    rounds, runs = 12, 1500
    domain = rt.Interval(-1.0, 1.0) if kind == "absolute" else rt.Ball(2)
    plan = rt.Plan(domain, rounds, 1.0, beta=0.8, lam=6.0, p=0.02, phi=1.15, batch=2)
    way = np.repeat([1.0, -1.0, 1.0], 4)
    data = (np.ones((rounds, 1)), way) if kind == "absolute" else (np.outer(way, [0.6, 0.8]),)
    loss = rt.Absolute() if kind == "absolute" else rt.Linear()
    rng, count = np.random.default_rng(0), np.zeros(runs, int)
    for i in range(runs):
        learner = rt.PCOMW(plan, loss, rng)
        learner.observe_many(*data)
        count[i] = learner.switches
    law = Switching(plan)
    step = plan.batch * math.sqrt(plan.beta / plan.lam)
    assert law.clip == pytest.approx(float(clipping(math.log(plan.phi), step)))
    assert law.clip > 0.01
    assert law.clip == pytest.approx(lost(plan))
    allowed = -stats.norm.ppf(ALPHA) * count.std() / math.sqrt(runs)
    assert count.mean() - allowed < law.expected
    assert min(above((count >= j).sum(), runs, law.tail(j)) for j in range(plan.coins + 1)) > ALPHA
    # Control: the law without clipping, with a chance that is a fifth too small.
    q = 0.8 * (1 - (1 - plan.p) / plan.phi)
    assert min(above((count >= j).sum(), runs, stats.binom.sf(j - 1, plan.coins, q)) for j in range(4)) < ALPHA
