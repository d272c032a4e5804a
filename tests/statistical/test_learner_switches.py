"""P2 and P5: how many switches, when, and on which coins the learner looks."""

import math
from dataclasses import replace

import numpy as np
import pytest
from laws import ALPHA, chi_square
from ratio import RatioPCOMW
from scipy import stats

import reticent as rt
from reticent.systems.pcomw._walk import AuxiliaryCoin

INTERVAL, SQUARE = rt.Interval(-1.0, 1.0), rt.Box([-1.0, 0.0], [0.5, 1.0])
LONG = 300_000


def unclipped(domain, horizon, beta, batch=1, draws=1, p=0.0, times=1.0, budget=None):
    phi = times * math.exp(beta * batch * domain.diameter)
    return rt.Plan(domain, horizon, 1.0, beta=beta, lam=1.0, p=p, phi=phi, batch=batch, draws=draws, budget=budget)


def rate(plan, off=1.0):
    return off * (1 - (1 - plan.p) / plan.phi)


def gradients(rounds, dim, seed=0):
    """Gradients of very different lengths, 1 at most, whose sum swings widely and comes back."""
    rng, turn = np.random.default_rng(seed), np.arange(rounds + 1) / 9
    total = 3 * np.stack([np.sin(turn), np.cos(turn)][:dim], axis=1) + rng.uniform(-0.22, 0.22, (rounds + 1, dim))
    g = np.diff(total, axis=0)
    assert np.linalg.norm(g, axis=1).max() <= 1.0
    return g


def counts(plan, loss, data, runs, seed=0):
    rng = np.random.default_rng(seed)
    found = np.empty(runs, int)
    for i in range(runs):
        learner = rt.PCOMW(plan, loss, rng)
        learner.observe_many(*data)
        found[i] = learner.switches
    return found


def binomial(seen, n, q):
    """P-value of a sample of numbers of switches against Binomial(n, q)."""
    expected = len(seen) * stats.binom.pmf(np.arange(n + 1), n, q)
    assert (seen <= n).all()
    return chi_square(np.bincount(seen, minlength=n + 1), expected, least=10.0)


# horizon, batch, auxiliary draws, forced switches, phi in units of the least without clipping
CASES = [(20, 1, 1, 0.0, 1.0), (23, 4, 1, 0.2, 1.0), (31, 3, 3, 0.05, 1.3), (3, 4, 1, 0.3, 1.0)]


@pytest.mark.parametrize(("horizon", "batch", "draws", "p", "times"), CASES)
def test_counts_are_binomial_for_linear_losses(horizon, batch, draws, p, times):
    plan = unclipped(SQUARE, horizon, 0.3, batch, draws, p, times)
    seen = counts(plan, rt.Linear(), (gradients(horizon, 2),), 4000)
    assert plan.coins == horizon // batch
    assert binomial(seen, plan.coins, rate(plan)) > ALPHA
    if plan.coins > 1:
        for off in (0.95, 1.05):
            assert binomial(seen, plan.coins, rate(plan, off)) < ALPHA
        assert binomial(seen, plan.coins + 1, rate(plan)) < ALPHA  # a coin for the partial batch


@pytest.mark.parametrize(("p", "draws"), [(0.0, 1), pytest.param(0.2, 2, marks=pytest.mark.slow)])
def test_constant_work_changes_no_law(p, draws):
    plan = replace(unclipped(SQUARE, 12, 0.3, 2, draws, p), constant_work=True)
    g = (gradients(12, 2),)
    seen = counts(plan, rt.Linear(), g, 1500)
    assert binomial(seen, 6, rate(plan)) > ALPHA
    assert binomial(seen, 6, rate(plan, off=1.1)) < ALPHA
    # The decisions too: against the walk that looks at few coins, and against one whose phi is another.
    last = {}
    for name, one in (
        ("steady", plan),
        ("lazy", replace(plan, constant_work=False)),
        ("other", replace(plan, beta=2.5 * plan.beta)),
    ):
        rng, ends = np.random.default_rng(3), []
        for _ in range(1500):
            learner = rt.PCOMW(one, rt.Linear(), rng)
            learner.observe_many(*g)
            ends.append(learner.decision)
        last[name] = np.array(ends)
    assert min(stats.ks_2samp(*(last[n][:, k] for n in ("steady", "lazy"))).pvalue for k in (0, 1)) > ALPHA
    assert min(stats.ks_2samp(*(last[n][:, k] for n in ("steady", "other"))).pvalue for k in (0, 1)) < ALPHA


@pytest.mark.parametrize(("kind", "batch", "p"), [("absolute", 1, 0.0), ("logistic", 2, 0.1)])
def test_counts_are_binomial_for_other_losses(kind, batch, p):
    plan = unclipped(INTERVAL, 13, 0.2, batch, 1, p)
    x = gradients(13, 1)
    y = np.sign(np.sin(np.arange(13.0) / 3 + 0.1))
    seen = counts(plan, {"absolute": rt.Absolute, "logistic": rt.Logistic}[kind](), (x, y), 1800)
    assert binomial(seen, plan.coins, rate(plan)) > ALPHA
    assert binomial(seen, plan.coins, rate(plan, 1.15)) < ALPHA


def indicators(plan, g, seed=0):
    """Which coins of one long run said 'switch'."""
    learner = rt.PCOMW(plan, rt.Linear(), seed)
    trace = learner.observe_many(g)
    switched = np.zeros(plan.coins + 1, bool)
    switched[trace.switch_times // plan.batch] = True
    assert switched.sum() == learner.switches
    return switched[1:]


def runs_p_value(switched, q):
    """P-value of the distances between switches against the geometric law."""
    gaps = np.diff(np.flatnonzero(switched))
    most = gaps.max()
    expected = len(gaps) * stats.geom.pmf(np.arange(1, most + 1), q)
    return chi_square(np.bincount(gaps, minlength=most + 1)[1:], expected, least=10.0)


def table(a, b):
    """P-value of independence of two samples of small whole numbers."""
    seen = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(seen, (a, b), 1)
    return stats.chi2_contingency(seen[seen.any(axis=1)][:, seen.any(axis=0)]).pvalue


@pytest.mark.parametrize(("batch", "draws", "p"), [(1, 1, 0.0), (3, 1, 0.1), (1, 3, 0.02)])
def test_indicators_are_independent_of_each_other_and_of_the_data(batch, draws, p):
    plan = unclipped(SQUARE, LONG, 0.3, batch, draws, p)
    g = gradients(LONG, 2)
    switched = indicators(plan, g)
    q = rate(plan)
    assert stats.binomtest(int(switched.sum()), plan.coins, q).pvalue > ALPHA
    assert runs_p_value(switched, q) > ALPHA
    assert table(switched[1:].astype(int), switched[:-1].astype(int)) > ALPHA
    words = np.lib.stride_tricks.sliding_window_view(switched, 6)[::6] @ (1 << np.arange(6))
    expected = np.array([q ** w.bit_count() * (1 - q) ** (6 - w.bit_count()) for w in range(64)]) * len(words)
    assert chi_square(np.bincount(words, minlength=64), expected) > ALPHA
    assert table(switched.astype(int), groups(plan, g)) > ALPHA


def groups(plan, g):
    """Coins by the length and the direction of the gradient of their batch."""
    total = g[: plan.coins * plan.batch].reshape(plan.coins, plan.batch, -1).sum(axis=1)
    length = np.linalg.norm(total, axis=1)
    return 2 * np.searchsorted(np.quantile(length, [0.25, 0.5, 0.75]), length) + (total[:, 0] > 0)


def test_control_clipping_ties_switches_to_data_and_to_each_other():
    plan = rt.Plan(SQUARE, LONG, 1.0, beta=3.0, lam=0.3, p=0.0, phi=1.3)
    g = gradients(LONG, 2)
    switched = indicators(plan, g)
    assert table(switched.astype(int), groups(plan, g)) < ALPHA
    assert runs_p_value(switched, switched.mean()) < ALPHA
    assert table(switched[1:].astype(int), switched[:-1].astype(int)) < ALPHA


def test_first_and_last_coin_are_independent():
    plan = unclipped(SQUARE, 8, 0.3)
    rng, first, last = np.random.default_rng(5), [], []
    g = gradients(8, 2)
    for _ in range(4000):
        learner = rt.PCOMW(plan, rt.Linear(), rng)
        trace = learner.observe_many(g)
        first.append(1 in trace.switch_times)
        last.append(8 in trace.switch_times)
    first, last = np.array(first, int), np.array(last, int)
    for indicator in (first, last):
        assert stats.binomtest(int(indicator.sum()), 4000, rate(plan)).pvalue > ALPHA
    assert table(first, last) > ALPHA
    forged = np.where(np.random.default_rng(1).random(4000) < 0.15, first, last)
    assert table(first, forged) < ALPHA


def test_control_losses_that_look_at_the_decision_break_the_law():
    # l_1 = sign(x_1) x switches more often than q: the law needs losses chosen without looking.
    plan, rng, switched = unclipped(INTERVAL, 1, 0.5), np.random.default_rng(2), [0, 0]
    for looks in (False, True):
        for _ in range(4000):
            learner = rt.PCOMW(plan, rt.Linear(), rng)
            learner.observe(np.sign(learner.decision) if looks else [1.0])
            switched[looks] += learner.switches
    assert stats.binomtest(switched[False], 4000, rate(plan)).pvalue > ALPHA
    assert stats.binomtest(switched[True], 4000, rate(plan)).pvalue < ALPHA


def tosses(p, phi, count=40_000):
    coin = AuxiliaryCoin(rt.Plan(INTERVAL, 10, 1.0, beta=1.0, lam=1.0, p=p, phi=phi))
    rng = np.random.default_rng(7)
    return [coin.next(rng) for _ in range(count)]


@pytest.mark.parametrize(("p", "phi"), [(0.0, 1.2), (0.3, 1.01), (0.02, 4.0), (0.5, 1.0), (0.9, 1e6), (0.0, 1e150)])
def test_looked_at_coins(p, phi):
    """Distances geometric, forced coins with their share, levels uniform above phi^-2, all independent."""
    found = tosses(p, phi)
    look = p + (1 - p) * (1 - phi**-2)
    after, forced = np.array([t.after for t in found]), np.array([t.forced for t in found])
    level = np.array([t.level for t in found if not t.forced])

    def distances(chance):
        expected = len(after) * stats.geom.pmf(np.arange(1, after.max() + 1), chance)
        return chi_square(np.bincount(after)[1:], expected, least=10.0)

    assert distances(look) > ALPHA
    if look < 0.99:
        assert distances(0.95 * look) < ALPHA
    assert stats.binomtest(int(forced.sum()), len(found), p / look).pvalue > ALPHA
    if len(level):
        assert level.min() > phi**-2
        assert level.max() <= 1.0
        assert stats.kstest(level, stats.uniform(phi**-2, 1 - phi**-2).cdf).pvalue > ALPHA
        lower = phi**-2 - 0.1 * (1 - phi**-2)
        assert stats.kstest(level, stats.uniform(lower, 1 - lower).cdf).pvalue < ALPHA
    if 0 < forced.sum() < len(found) and after.max() > 1:
        assert table(forced.astype(int), np.minimum(after, 4)) > ALPHA


@pytest.mark.parametrize("coin", [rt.PCOMW, RatioPCOMW])
@pytest.mark.parametrize("kind", ["linear", "absolute"])
def test_extremes(kind, coin):
    rounds = 200
    g = gradients(rounds, 1)
    data, loss = ((g,), rt.Linear()) if kind == "linear" else ((g, np.ones(rounds)), rt.Absolute())

    def switches(batch=1, **values):
        plan = rt.Plan(INTERVAL, rounds, 1.0, beta=0.5, lam=1.0, batch=batch, **values)
        learner = coin(plan, loss, 3)
        trace = learner.observe_many(*data)
        assert len(trace.switch_times) == learner.switches
        return learner.switches

    assert switches(p=1.0, phi=1.0) == rounds
    assert switches(p=1.0, phi=1e6, batch=7) == rounds // 7
    assert switches(p=0.0, phi=1.0) == 0
    assert switches(p=0.0, phi=1e150) == rounds
    assert switches(p=0.0, phi=1e12) == rounds
    assert rounds - 5 <= switches(p=0.0, phi=1e6) <= rounds
    assert switches(p=1e-15, phi=1.0) == 0
    assert switches(p=1e-320, phi=1.0) == 0
    assert switches(p=0.0, phi=1 + 1e-15) == 0
    assert switches(p=5e-324, phi=1.0, batch=7) == 0


def test_rare_switches_come_as_often_as_they_should():
    # About 30 switches in ten million coins, most of them in batches that were skipped over in one step.
    q, n = 3e-6, 1_000_000
    plan = rt.Plan(INTERVAL, None, 1.0, beta=q / 4, lam=1.0, p=q / 2, phi=math.exp(q / 2), first_epoch=1 << 40)
    learner = rt.PCOMW(plan, rt.Linear(), 11)
    g = np.where(np.arange(n)[:, None] % 2, 1.0, -1.0)
    for _ in range(10):
        learner.observe_many(g)
    assert stats.poisson.cdf(learner.switches, 10 * n * q) > ALPHA
    assert stats.poisson.sf(learner.switches - 1, 10 * n * q) > ALPHA
    assert stats.poisson.sf(learner.switches - 1, n * q) < ALPHA
