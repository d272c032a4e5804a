"""The coin without partition functions against the coin of the paper, the compiled walk against the plain, budgets."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import ratio
from coin_settings import COINS
from laws import ALPHA
from scipy import stats

import reticent as rt
from reticent.gibbs import Gibbs
from reticent.systems._decider import NEVER, Changes
from reticent.systems._walk import Walk
from reticent.systems.pcomw._walk import AuxiliaryCoin, LinearWalk

ROUNDS = 6
LEARNERS = {"auxiliary": rt.PCOMW, "ratio": ratio.RatioPCOMW}
INTERVAL = rt.Interval(-1.0, 1.0)


@pytest.fixture(autouse=True)
def _quadrature_once(monkeypatch):
    monkeypatch.setattr(ratio, "quadrature", functools.cache(ratio.quadrature))


def plan_for(domain, beta, rounds=ROUNDS, p=0.05, times=1.0, **values):
    phi = times * math.exp(beta * values.get("batch", 1) * domain.diameter)
    return rt.Plan(domain, rounds, 1.0, beta=beta, lam=0.5, p=p, phi=phi, **values)


def transcripts(plan, loss, data, coin, runs, seed):
    """Which coins switched, and the decisions of every round and after the last."""
    rng = np.random.default_rng(seed)
    switched = np.zeros((runs, ROUNDS + 1), int)
    points = np.empty((runs, ROUNDS + 1, plan.domain.dim))
    for i in range(runs):
        learner = LEARNERS[coin](plan, loss, rng)
        trace = learner.observe_many(*data)
        switched[i, trace.switch_times] = 1
        points[i, :-1], points[i, -1] = trace.decisions(), trace.final
    return switched[:, 1:], points


def same_table(one, two, least=10):
    """P-value of two samples of whole numbers having one law, rare numbers put together."""
    size = max(one.max(), two.max()) + 1
    seen = np.array([np.bincount(one, minlength=size), np.bincount(two, minlength=size)])
    rare = seen.sum(axis=0) < 2 * least
    seen = np.column_stack([seen[:, ~rare], seen[:, rare].sum(axis=1)])
    return stats.chi2_contingency(seen[:, seen.any(axis=0)]).pvalue


def compare(one, two):
    """The least p-value, times their number, of tests of switches and decisions together."""
    (s, x), (r, y) = one, two
    n = s.shape[1]
    values = [same_table(s @ (1 << np.arange(n)), r @ (1 << np.arange(n))), same_table(s.sum(axis=1), r.sum(axis=1))]
    # The last switch together with the cells of the last decision; the first switch with the first decision.
    cuts = [np.quantile(np.vstack([x, y])[..., j], np.arange(1, 5) / 5) for j in range(min(2, x.shape[2]))]

    def cells(points):
        return sum(5**j * np.searchsorted(cut, points[:, j]) for j, cut in enumerate(cuts))

    def when(switched):
        return np.where(switched.any(axis=1), 1 + switched.argmax(axis=1), 0)

    values.append(same_table(when(s[:, ::-1]) * 25 + cells(x[:, -1]), when(r[:, ::-1]) * 25 + cells(y[:, -1])))
    values.append(same_table(when(s) * 25 + cells(x[:, 0]), when(r) * 25 + cells(y[:, 0])))
    for t in (0, 1, n // 2, n):
        values += [stats.ks_2samp(x[:, t, j], y[:, t, j]).pvalue for j in range(x.shape[2])]
    for few in (0, 1, 2):
        a, b = x[s.sum(axis=1) == few, -1], y[r.sum(axis=1) == few, -1]
        if min(len(a), len(b)) > 50:
            values += [stats.ks_2samp(a[:, j], b[:, j]).pvalue for j in range(x.shape[2])]
    return min(1.0, len(values) * min(values))


LINE = np.ones((ROUNDS, 1)), np.array([1.0, 0.9, 1.0, -0.2, -1.0, -0.9])


@pytest.mark.slow
def test_ratio_coin_on_a_line():
    plan, runs = plan_for(INTERVAL, 0.25), 2000
    reference = transcripts(plan, rt.Absolute(), LINE, "ratio", runs, 1)
    assert compare(transcripts(plan, rt.Absolute(), LINE, "auxiliary", runs, 2), reference) > ALPHA
    averaged = replace(plan, draws=2)
    assert compare(transcripts(averaged, rt.Absolute(), LINE, "auxiliary", runs, 3), reference) > ALPHA
    # Controls: phi off by 10 percent; beta twice as large with phi as it was.
    off = replace(plan, phi=1.1 * plan.phi)
    assert compare(transcripts(off, rt.Absolute(), LINE, "auxiliary", runs, 4), reference) < ALPHA
    off = replace(plan, beta=2 * plan.beta)
    assert compare(transcripts(off, rt.Absolute(), LINE, "auxiliary", runs, 5), reference) < ALPHA


PLANE = {
    "disc": rt.Ball(2),
    "triangle": rt.Polytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.4, 0.4, 0.6]),
    "simplex": rt.Simplex(3),
}


@pytest.mark.parametrize("body", PLANE)
def test_ratio_coin_in_the_plane(body):
    domain, loss = PLANE[body], rt.Linear()
    rng = np.random.default_rng(0)
    a = rng.normal(size=(ROUNDS, domain.dim))
    a /= np.linalg.norm(a, axis=1)[:, None]
    plan, runs = plan_for(domain, 0.5 / domain.diameter), 200
    reference = transcripts(plan, loss, (a,), "ratio", runs, 1)
    assert compare(transcripts(plan, loss, (a,), "auxiliary", 4 * runs, 2), reference) > ALPHA
    off = replace(plan, phi=1.4 * plan.phi)
    assert compare(transcripts(off, loss, (a,), "auxiliary", 4 * runs, 3), reference) < ALPHA


def walk(kind, plan, seed, rows, sizes, length=NEVER):
    measure = Gibbs(plan.domain, rt.Linear(), plan.beta, plan.lam, lipschitz=plan.lipschitz, distance=plan.distance)
    made, changes = kind(plan, measure, np.random.default_rng(seed), AuxiliaryCoin(plan), length), Changes()
    first = made.u.copy()
    (part,) = measure.gate.prepare(rows)
    for start in range(0, len(rows), sizes):
        made.take(part[start : start + sizes], changes)
    return np.vstack([first, changes.points(first.size)]), changes.places().tolist(), made


BODIES = [rt.Ball(3, center=[0.5, 0.0, 0.0]), rt.Box([-1.0, 0.0], [0.5, 1.0]), INTERVAL, rt.Ball(1), rt.Simplex(2)]


@pytest.mark.parametrize("domain", BODIES, ids=str)
@pytest.mark.parametrize(("p", "phi", "batch", "draws", "budget"), COINS)
def test_compiled_walk_makes_the_same_transcript(domain, p, phi, batch, draws, budget):
    plan = rt.Plan(domain, 603, 1.0, beta=0.3, lam=2.0, p=p, phi=phi, batch=batch, draws=draws, budget=budget)
    rows = np.random.default_rng(1).normal(size=(603, domain.dim)) + 0.3
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    for length in (NEVER, 600):
        for sizes in (603, 7):
            plain = walk(Walk, plan, 5, rows, 603, length)
            compiled = walk(LinearWalk, plan, 5, rows, sizes, length)
            assert plain[1] == compiled[1]
            np.testing.assert_array_equal(plain[0], compiled[0])
            assert (plain[2].done, plain[2].due, plain[2].spent) == (603, compiled[2].due, compiled[2].spent)
            assert plain[2].frozen == compiled[2].frozen
            # Nothing is left in a different state: both generators go on alike.
            assert plain[2].rng.random() == compiled[2].rng.random()
    assert len(plain[1]) > 10 or budget == 0
    other = walk(Walk, plan, 6, rows, 603)
    assert budget == 0 or p == 1.0 or phi > 1e100 or other[1] != plain[1]


@pytest.mark.parametrize("kind", ["linear", "absolute"])
@pytest.mark.parametrize("coin", ["auxiliary", "ratio"])
def test_budget_cuts_the_transcript_short(kind, coin):
    rounds = 300
    rng = np.random.default_rng(3)
    a, y = np.sign(rng.normal(size=(rounds, 1))), rng.uniform(-1, 1, rounds)
    data, loss = ((a,), rt.Linear()) if kind == "linear" else ((a, y), rt.Absolute())
    free = plan_for(INTERVAL, 0.1, rounds, p=0.02, batch=2)
    whole = LEARNERS[coin](free, loss, 9).observe_many(*data)
    times, decisions = whole.switch_times, whole.decisions()
    assert len(times) > 20
    for budget in (0, 1, 5, len(times) - 1, len(times), len(times) + 1):
        learner = LEARNERS[coin](replace(free, budget=budget), loss, 9)
        trace = learner.observe_many(*data)
        assert trace.switch_times.tolist() == times[:budget].tolist()
        last = rounds if budget >= len(times) else times[budget]
        np.testing.assert_array_equal(trace.decisions()[:last], decisions[:last])
        assert (trace.decisions()[last:] == trace.decisions()[last - 1]).all()
        assert learner.switches == min(budget, len(times))
        assert learner.frozen == (budget <= len(times))
        assert learner.budget_left == max(0, budget - len(times))
        learner.observe_many(*data)  # beyond the horizon: a plan without a privacy claim goes on
        assert learner.switches <= budget
