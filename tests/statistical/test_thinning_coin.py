"""The coins that correct proposals, on their own: how often they survive against the exact chance."""

import numpy as np
import pytest
from laws import ALPHA
from scipy import stats

import reticent as rt
from reticent.gibbs._curved import survives
from reticent.gibbs._kinked import _gaps_survive

TOSSES = 20_000


def sigmoid(m):
    return 1 / (1 + np.exp(-m))


def curved_case(kind, u, rounds=25, seed=0):
    """The library's rows and the remainders r_i(u) written out by hand."""
    rng = np.random.default_rng(seed)
    a, labels = rng.normal(size=(rounds, 2)), rng.choice([-1.0, 1.0], size=rounds)
    a[3] = 0.0
    domain = rt.Ball(2)
    z = np.array([0.3, -0.2])
    if kind == "logistic":
        measure = rt.Gibbs(domain, rt.Logistic(), beta=1.0, lam=1.0)
        rows = a * labels[:, None]
        m, v = rows @ z, rows @ u
        far = np.linalg.norm(rows, axis=1)
        least = sigmoid(far) * sigmoid(-far)
        r = np.log1p(np.exp(-m - v)) - np.log1p(np.exp(-m)) + sigmoid(-m) * v
        bend = sigmoid(m) * sigmoid(-m)
        measure.observe_many(a, labels)
    else:
        measure = rt.Gibbs(domain, rt.Huber(0.5), beta=1.0, lam=1.0)
        y = 0.4 * labels
        m, v = a @ z - y, a @ u
        huber = [np.where(abs(t) <= 0.5, t * t / 2, 0.5 * abs(t) - 0.125) for t in (m + v, m)]
        r = huber[0] - huber[1] - np.clip(m, -0.5, 0.5) * v
        reach = np.linalg.norm(a, axis=1)
        least = ((reach + 0.4) <= 0.5).astype(float)
        bend = np.zeros(rounds)
        measure.observe_many(a, y)
    return measure, z, r, v, least, bend


def toss_curved(kind, u, beta, share, spoil=1.0):
    measure, z, r, v, least, bend = curved_case(kind, u)
    exact = r - 0.5 * (share * bend if share else least) * v * v
    assert (exact > -1e-12).all()
    columns, loss = measure._history.columns, measure.loss
    rng = np.random.default_rng(1)
    args = (loss.code, loss.parameter, columns.vectors, columns.offsets, columns.totals, measure.domain.body)
    kept = sum(survives(rng, *args, z, u, beta * spoil, 0.5 * float(u @ u), share, 1 << 60)[0] for _ in range(TOSSES))
    return stats.binomtest(int(kept), TOSSES, np.exp(-beta * exact.sum())).pvalue


@pytest.mark.parametrize("u", [(0.4, 0.5), (-1.1, 0.3), (1e-3, 0.0)], ids=str)
@pytest.mark.parametrize(("kind", "share"), [("logistic", 0.0), ("logistic", 0.3), ("huber", 0.0)])
def test_curved_coin(kind, share, u):
    assert toss_curved(kind, np.array(u), 0.8, share) > ALPHA


def test_curved_coin_control():
    assert toss_curved("logistic", np.array([0.6, 0.7]), 0.8, 0.0, spoil=1.15) < ALPHA


def quartic_case(seed=0, rounds=1000, late=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rounds, 2))
    y = a @ [0.2, 0.1] + rng.normal(size=rounds)
    measure = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=0.03, lam=30.0)
    measure.observe_many(a, y)
    measure.draw(0, method="quartic")
    if late:
        measure.observe_many(a[:late], y[:late] + 0.1)
        a, y = np.vstack([a, a[:late]]), np.concatenate([y, y[:late] + 0.1])
    return measure, a, y


def toss_gaps(u, s, late=0, spoil=1.0):
    measure, a, y = quartic_case(late=late)
    bound = measure._samplers["quartic"].built.bound
    z = measure._history.summary.z.copy()
    m = a @ z - y
    v = np.where(m < 0, 1.0, -1.0) * (a @ u)
    h = np.maximum(v - np.abs(m), 0.0)
    # The minorant of each row from the bin it lies in; late rows and far ones have none.
    p = np.zeros(len(a))
    for k in range(32):
        mine = np.flatnonzero((np.abs(m) > bound.edges[k]) & (np.abs(m) <= bound.edges[k + 1]))
        mine = mine[mine < 1000]
        w = v[mine] / s / bound.scale
        p[mine] = bound.scale * np.polyval(bound.coefficients[k][::-1] * [-1, 1, 1, 1, 1], w)
    gaps = 2.0 * (h - s * p)
    assert (gaps > -1e-9).all()
    columns = measure._history.columns
    rates = np.empty(bound.coefficients.shape[0] + 1)
    rng = np.random.default_rng(2)
    kept = 0
    for _ in range(TOSSES):
        rates[-1] = np.linalg.norm(a, axis=1).max()
        kept += _gaps_survive(rng, 0.03 * spoil, bound, columns.vectors, columns.offsets, z, u, s, rates)[0]
    return stats.binomtest(int(kept), TOSSES, np.exp(-0.03 * gaps.sum())).pvalue


@pytest.mark.parametrize("late", [0, 60])
@pytest.mark.parametrize(("u", "s"), [((0.1, 0.05), 1.0), ((-0.4, 0.2), 1.0), ((0.3, 0.5), 1.4)], ids=str)
def test_quartic_coin(u, s, late):
    assert toss_gaps(np.array(u), s, late) > ALPHA


def test_quartic_coin_control():
    assert toss_gaps(np.array([0.3, 0.5]), 1.4, spoil=1.3) < ALPHA
