"""R6: decisions of lazy-to-private and of flat weights have the law of their measure, whatever y is and has been."""

import numpy as np
import pytest
from laws import ALPHA
from scipy import stats

from reticent import Absolute, Interval, Linear
from reticent.systems._decider import Changes
from reticent.systems._walk import Walk
from reticent.systems.l2p import _flat, _l2p
from reticent.systems.l2p._flat import FlatPlan
from reticent.systems.l2p._l2p import LazyToPrivate, LazyToPrivatePlan

ROUNDS, COUNT = 24, 1500
TIMES = (2, 7, 24)
LINE = Interval(-1.0, 1.0)
WAY = np.repeat([1.0, -1.0, 1.0], [6, 10, 8])


def plans(beta=0.3, p=0.02, batch=1):
    common = {"beta": beta, "p": p, "budget": ROUNDS, "batch": batch}
    return {
        "drawn": LazyToPrivatePlan(LINE, ROUNDS, 1.0, lam=0.5, **common),
        "published": LazyToPrivatePlan(LINE, ROUNDS, 1.0, lam=0.5, refresh=0.2, refreshes=3, **common),
        "centre": LazyToPrivatePlan(LINE, ROUNDS, 1.0, lam=0.5, anchor="centre", **common),
        "flat": FlatPlan(LINE, ROUNDS, 1.0, **common),
    }


def new_walk(plan, loss, rng):
    """The walk of a learner by itself: what is around it costs more than the walk over so few rounds."""
    if isinstance(plan, FlatPlan):
        return Walk(plan, _l2p.exact_measure(plan, 0.0, loss, "raise"), rng, _flat.DartboardCoin(plan))
    return _l2p._Compared(plan, _l2p.exact_measure(plan, plan.lam, loss, "raise"), rng)


def stream(kind):
    if kind == "linear":
        return Linear(), (-WAY[:, None],)
    return Absolute(), (np.ones((ROUNDS, 1)), WAY * 0.7)


def p_value(plan, kind, seed=0):
    """The least p-value, times their number, of decisions at fixed rounds and of those kept up to round 7."""
    loss, data = stream(kind)
    rng, rows = np.random.default_rng(seed), loss.prepare(LINE, *data)
    found, switches, still = {t: [] for t in TIMES}, [], []
    for _ in range(COUNT):
        walk, changes = new_walk(plan, loss, rng), Changes()
        first = walk.u[0]
        walk.take(rows, changes)
        places, points = changes.places(), np.append(first, changes.points(1))
        for t in TIMES:
            found[t].append(points[np.searchsorted(places, t - 1, "right")])
        switches.append(len(changes))
        if not (places <= 6).any():
            still.append(first)
    values = [law(plan, kind, t, x) for t, x in found.items()]
    values.append(law(plan, kind, 7, still) if len(still) > 100 else 1.0)
    return len(values) * min(values), np.array(switches)


def law(plan, kind, t, draws):
    edges = np.linspace(-1.0, 1.0, 4001)
    x = (edges[1:] + edges[:-1]) / 2
    known = (t - 1) // plan.batch * plan.batch
    total = -x * WAY[:known].sum() if kind == "linear" else np.abs(x[:, None] - 0.7 * WAY[:known]).sum(axis=1)
    weights = np.exp(-plan.beta * (total + getattr(plan, "lam", 0.0) * x**2 / 2))
    cdf = np.append(0.0, np.cumsum(weights) / weights.sum())
    return stats.kstest(draws, lambda z: np.interp(z, edges, cdf)).pvalue


@pytest.mark.parametrize("kind", ["linear", "absolute"])
@pytest.mark.parametrize("name", ["published", "centre", "flat"])
def test_decisions_follow_their_measure_and_switches_stay_below_the_bound(name, kind):
    plan = plans()[name]
    value, switches = p_value(plan, kind)
    assert value > ALPHA
    # Mean number of switches: at most that of the dominating binomial, up to five deviations.
    most = plan.coins * plan.most_switching
    assert switches.mean() <= most + 5 * switches.std() / np.sqrt(COUNT)
    assert switches.mean() > 0.1


def test_batches_and_a_point_that_never_moves_are_exact_too():
    value, _ = p_value(plans(batch=3)["drawn"], "linear")
    assert value > ALPHA


@pytest.mark.parametrize("name", ["centre", "flat"])
def test_a_coin_that_does_not_look_is_caught(name, monkeypatch):
    coin = {"centre": _l2p.ComparedCoin, "flat": _flat.DartboardCoin}[name]
    monkeypatch.setattr(coin, "keeps", lambda self, measure, rows, u, rng: np.exp(-0.3))
    value, _ = p_value(plans()[name], "linear")
    assert value < ALPHA


def test_a_point_that_is_the_decision_itself_is_caught(monkeypatch):
    """The coin is exact for every y that knows nothing of x; with y = x it keeps blindly."""

    class Copied(_l2p.ComparedCoin):
        def keeps(self, measure, rows, u, rng):
            self.y = u
            return super().keeps(measure, rows, u, rng)

    monkeypatch.setattr(_l2p, "ComparedCoin", Copied)  # super() keeps the class that is replaced
    value, _ = p_value(plans()["drawn"], "linear")
    assert value < ALPHA


def test_an_adversary_who_sees_decisions_stays_below_the_bound_too():
    """Losses that always point away from the decision: the rate 1 - (1-p) phi^-2 is nearly reached, never passed."""
    plan = LazyToPrivatePlan(LINE, 400, 1.0, beta=0.2, lam=0.01, p=0.02, budget=400, anchor="centre")
    counts = []
    for seed in range(40):
        learner = LazyToPrivate(plan, Linear(), seed)
        for _ in range(400):
            learner.observe([1.0 if learner.decision[0] >= 0 else -1.0])
        counts.append(learner.switches)
    most = plan.coins * plan.most_switching
    deviation = np.sqrt(400 * plan.most_switching * (1 - plan.most_switching) / 40)
    assert 0.7 * most < np.mean(counts) <= most + 5 * deviation
    # The coin of a decision at the centre, which is neither pushed nor pulled, would be too rare a bound.
    assert np.mean(counts) > 400 * (plan.p + (1 - plan.p) * -np.expm1(-plan.log_phi)) + 5 * deviation
