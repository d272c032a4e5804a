"""P2: where nothing is clipped, a decision has the law of its measure, whatever the switches before it were."""

import functools
import math

import numpy as np
import pytest
from laws import ALPHA, law_on, log_law, make_loss
from scipy import stats

import reticent as rt
from reticent.gibbs import Gibbs
from reticent.systems._walk import Walk
from reticent.systems.pcomw import _learner
from reticent.systems.pcomw._walk import AuxiliaryCoin

ROUNDS = 60
TIMES = (1, 2, 10, 60)
ALONG = np.array([[0.6, 0.8], [0.8, -0.6]])  # of the pull in the plane, and across
INTERVAL, DISC = rt.Interval(-1.0, 1.0), rt.Ball(2, center=[0.2, -0.1])


def drifting(kind):
    """Rounds of slope 1 or less that pull one way up to round 9, then the other way and back."""
    way = np.repeat([1.0, -1.0, 1.0], [9, 25, 26])
    if kind in ("linear", "logistic2"):
        a = np.where(np.arange(ROUNDS)[:, None] % 5 == 3, 0.5 * ALONG[1], ALONG[0])
        return (-way[:, None] * a, None) if kind == "linear" else (a, way)
    if kind == "logistic":
        return np.ones((ROUNDS, 1)), way
    if kind == "squared":
        return np.full((ROUNDS, 1), 0.6), way
    sign = np.where(np.arange(ROUNDS) % 3 == 1, -1.0, 1.0)
    return sign[:, None], sign * way * np.where(np.arange(ROUNDS) % 4 == 3, 0.5, 1.0)


def unclipped(domain, beta, batch=1, draws=1, p=0.0):
    phi = math.exp(beta * batch * domain.diameter) * (1 + 1e-12)
    return rt.Plan(domain, ROUNDS, 1.0, beta=beta, lam=0.5, p=p, phi=phi, batch=batch, draws=draws)


def transcripts(plan, loss, data, count, seed, times):
    """Decisions at the given rounds (counted from 1), and which of the coins said 'switch'."""
    rng = np.random.default_rng(seed)
    points = np.empty((len(times), count, plan.domain.dim))
    switched = np.zeros((count, plan.coins + 1), bool)
    for i in range(count):
        learner = rt.PCOMW(plan, loss, rng)
        trace = learner.observe_many(*(part[: max(times)] for part in data if part is not None))
        points[:, i] = trace.points[np.searchsorted(trace.starts, np.array(times) - 1, "right") - 1]
        switched[i, trace.starts[1:] // plan.batch] = True
        assert (trace.starts % plan.batch == 0).all()
    return dict(zip(times, points, strict=True)), switched[:, 1:]


class Laws:
    """The measure of every round by quadrature."""

    def __init__(self, plan, kind, data):
        self.plan, self.kind, (self.a, self.y) = plan, kind.rstrip("2"), data

    def p_value(self, t, draws):
        plan = self.plan
        known = (t - 1) // plan.batch * plan.batch
        y = None if self.y is None else self.y[:known]
        density = log_law(self.kind, self.a[:known], y, beta=plan.beta, lam=plan.lam, center=plan.domain.center)
        grid, place = law_on(plan.domain, density, {1: 1500, 2: 160}[plan.domain.dim])
        value = grid.p_value(place(draws))
        return value if plan.domain.dim == 1 else min(1.0, 2 * value, 2 * projections(plan.domain, density, draws))


def projections(disc, density, draws):
    """Twice the lesser p-value of draws on a disc along two directions, by quadrature in polar coordinates."""
    r, angle = (np.arange(200) + 0.5) / 200 * disc.radius, np.arange(300) * np.pi / 150
    x = np.stack([np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle))], axis=2).reshape(-1, 2) + disc.center
    weights = np.exp(density(x)) * np.repeat(r, 300)
    values = []
    for e in ALONG:
        order = np.argsort(x @ e)
        cdf = np.cumsum(weights[order]) - weights[order] / 2
        z, share = (x @ e)[order], cdf / weights.sum()
        known = functools.partial(np.interp, xp=z, fp=share, left=0.0, right=1.0)
        values.append(stats.kstest(draws @ e, known).pvalue)
    return 2 * min(values)


def marginals(plan, kind, count, seed=0, times=TIMES):
    """P-values: of decisions at `times`, and in round 10 given that no coin, or one, has switched so far."""
    data = drifting(kind)
    loss = make_loss(kind.rstrip("2"))
    points, switched = transcripts(plan, loss, data, count, seed, times)
    laws = Laws(plan, kind, data)
    values = {t: laws.p_value(t, points[t]) for t in times}
    so_far = switched[:, : 9 // plan.batch].sum(axis=1)
    for number, name in ((0, "no switch"), (1, "one switch")):
        chosen = points[10][so_far == number]
        if len(chosen) > 100:
            values[name] = laws.p_value(10, chosen)
    return values


def reusing(plan, loss, rng, on_steep, length):
    """A walk that takes the auxiliary draw of a coin for the new decision."""

    class Reusing(Walk):
        def _settle(self, changes):
            measure, seen = self.measure, []

            def draw(rng, method=None):
                if not seen:
                    seen.append(Gibbs.draw_in_chart(measure, rng, method))
                return seen[0]

            measure.draw_in_chart = draw
            measure.draws_in_chart = lambda rng, count: np.tile(draw(rng)[0], (count, 1))
            super()._settle(changes)
            del measure.draw_in_chart, measure.draws_in_chart

    measure = Gibbs(plan.domain, loss, plan.beta, plan.lam, lipschitz=plan.lipschitz, distance=plan.distance)
    return Reusing(plan, measure, rng, AuxiliaryCoin(plan), length)


class Blind(AuxiliaryCoin):
    """Keeps with the right probability 1/phi on average, but without looking at the decision."""

    def switches(self, toss, measure, rows, u, rng):
        return toss.forced or toss.level > 1 / self.phi


def blind(plan, loss, rng, on_steep, length):
    measure = Gibbs(plan.domain, loss, plan.beta, plan.lam, lipschitz=plan.lipschitz, distance=plan.distance)
    return Walk(plan, measure, rng, Blind(plan), length)


def spoil(monkeypatch, how):
    monkeypatch.setattr(_learner, "new_walk", {"reusing": reusing, "blind": blind}[how])


LINE = {"count": 1500, "beta": 0.12}
PLANE = {"count": 4000, "beta": 0.12}


def absolute(batch, draws, p, times=TIMES):
    return marginals(unclipped(INTERVAL, LINE["beta"], batch, draws, p), "absolute", LINE["count"], times=times)


def disc(batch, draws, p, times=TIMES):
    return marginals(unclipped(DISC, PLANE["beta"], batch, draws, p), "linear", PLANE["count"], times=times)


@pytest.mark.parametrize(("batch", "draws", "p"), [(1, 1, 0.0), (3, 3, 0.1)])
def test_absolute_losses_on_an_interval(batch, draws, p):
    values = absolute(batch, draws, p)
    assert min(values.values()) > ALPHA, values
    assert len(values) == 6


@pytest.mark.parametrize(("batch", "draws", "p"), [(1, 1, 0.0), (3, 1, 0.1), (3, 3, 0.0), (1, 3, 0.1)])
def test_linear_losses_on_a_disc(batch, draws, p):
    values = disc(batch, draws, p)
    assert min(values.values()) > ALPHA, values
    assert len(values) == 6


@pytest.mark.parametrize("kind", ["logistic", "logistic2", "squared"])
def test_curved_losses(kind):
    domain = DISC if kind == "logistic2" else INTERVAL
    values = marginals(unclipped(domain, 0.2, 1, 1, 0.05), kind, 1000, times=(1, 2, 10))
    assert min(values.values()) > ALPHA, values


@pytest.mark.parametrize("how", ["reusing", "blind"])
@pytest.mark.parametrize("law", [absolute, disc])
def test_controls(monkeypatch, how, law):
    spoil(monkeypatch, how)
    values = law(1, 1, 0.0, times=(1, 10, 60) if law is absolute else (1, 10))
    assert values[1] > ALPHA  # the first decision is untouched
    assert values[10] < ALPHA, values
    assert values.get(60, 0.0) < ALPHA, values
    if how == "blind":
        assert values["no switch"] < ALPHA, values
