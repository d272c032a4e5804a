"""Experts: decisions have the law of multiplicative weights, or of a perturbed leader, in every round."""

import itertools
import math

import numpy as np
import pytest
from laws import ALPHA, chi_square
from scipy import integrate

from reticent.domains import Experts
from reticent.losses import Rows
from reticent.systems._decider import Changes
from reticent.systems.experts._leaders import (
    ExpertsLazyLeaderPlan,
    LazyPerturbedPlan,
    PerturbedPlan,
    _Gridded,
    _Perturbed,
    _Reflecting,
)
from reticent.systems.experts._learner import Dartboard

RUNS = 6_000
TIMES = (1, 2, 4, 8)
LOSSES = np.array(
    [[1, 0, 0.3], [0, 1, 1], [0.9, 0.2, 0], [0.5, 0, 1], [0, 1, 0.4], [1, 1, 0], [0, 0.7, 0.1], [1, 0, 1]], float
)
SUMS = np.vstack([np.zeros(3), np.cumsum(LOSSES, axis=0)])


def played(make, runs=RUNS, losses=LOSSES, seed=0):
    """The expert in play before the first and after every round, one row per run; walks as learners drive them."""
    rng = np.random.default_rng(seed)
    rows = Rows(losses, np.zeros(len(losses)))
    out = np.empty((runs, len(losses) + 1), np.int64)
    for run in range(runs):
        walk = make(rng)
        changes = Changes()
        first = walk.expert
        walk.take(rows, changes)
        places = np.concatenate([[0], changes.places(), [len(losses) + 1]])
        experts = np.concatenate([[first], np.argmax(changes.points(losses.shape[1]), axis=1)])
        out[run] = np.repeat(experts, np.diff(places))
    return out


def weights(sums, beta):
    w = np.exp(-beta * (sums - sums.min()))
    return w / w.sum()


def leader(sums, density, cdf, low, high):
    """The law of the argmin of sums plus independent noise, by quadrature."""

    def chance(i):
        others = [sums[i] - s for j, s in enumerate(sums) if j != i]
        ends = sorted({low, high, *(np.clip(-o + e, low, high) for o in others for e in (low, 0.0, high))})
        f = lambda z: density(z) * math.prod(1 - cdf(z + o) for o in others)  # noqa: E731
        return sum(integrate.quad(f, a, b)[0] for a, b in itertools.pairwise(ends))

    law = np.array([chance(i) for i in range(len(sums))])
    assert law.sum() == pytest.approx(1, abs=1e-6)
    return law / law.sum()


def laplace(sums, rate):
    return leader(
        sums,
        lambda z: rate / 2 * math.exp(-rate * abs(z)),
        lambda z: math.exp(rate * z) / 2 if z < 0 else 1 - math.exp(-rate * z) / 2,
        -40 / rate,
        40 / rate,
    )


def uniform(sums, rate):
    return leader(sums, lambda z: rate, lambda z: min(max(rate * z, 0.0), 1.0), 0.0, 1 / rate)


def least_p(experts, law):
    """The least p-value over rounds, times their number."""
    values = [chi_square(np.bincount(experts[:, t], minlength=3), len(experts) * law(SUMS[t])) for t in TIMES]
    return min(1.0, len(TIMES) * min(values))


def perturbed(kind, plan, rate, **more):
    return lambda rng: kind(plan(Experts(3), 8, 1.0, rate=rate, **more), rng)


# A parameter of 1 is right; another is a learner that is off by so much, and must be caught.
SYSTEMS = {
    "hedge": (lambda off: lambda rng: Dartboard(3, rng, beta=0.8 * off, p=1.0), lambda s: weights(s, 0.8)),
    "dartboard": (lambda off: lambda rng: Dartboard(3, rng, beta=0.8 * off, p=0.0), lambda s: weights(s, 0.8)),
    "forced": (lambda off: lambda rng: Dartboard(3, rng, beta=0.8 * off, p=0.3), lambda s: weights(s, 0.8)),
    "FPL*": (lambda off: perturbed(_Perturbed, PerturbedPlan, 0.9 * off), lambda s: laplace(s, 0.9)),
    "FPL": (
        lambda off: perturbed(_Perturbed, PerturbedPlan, 0.3 * off, noise="uniform"),
        lambda s: uniform(s, 0.3),
    ),
    "FLL*": (lambda off: perturbed(_Reflecting, LazyPerturbedPlan, 0.9 * off), lambda s: laplace(s, 0.9)),
    "FLL": (lambda off: perturbed(_Gridded, ExpertsLazyLeaderPlan, 0.3 * off), lambda s: uniform(s, 0.3)),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_round_has_its_law(name):
    make, law = SYSTEMS[name]
    assert least_p(played(make(1.0)), law) > ALPHA
    assert least_p(played(make(1.5)), law) < ALPHA


def test_lazy_leaders_switch_less_than_fresh_ones_and_than_their_bounds():
    flat = np.tile(LOSSES, (25, 1))
    for kind, plan_type, fresh, more in (
        (_Reflecting, LazyPerturbedPlan, PerturbedPlan, {}),
        (_Gridded, ExpertsLazyLeaderPlan, PerturbedPlan, {"noise": "uniform"}),
    ):
        plan = plan_type(Experts(3), len(flat), 1.0, rate=0.02)
        lazy = played(lambda rng, kind=kind, plan=plan: kind(plan, rng), 300, flat)
        often = played(perturbed(_Perturbed, fresh, 0.02, **more), 300, flat)
        switches = (np.diff(lazy, axis=1) != 0).sum(axis=1)
        # Six standard errors: a chance below 1e-8.
        assert switches.mean() - 6 * switches.std() / math.sqrt(300) < plan.expected_switches
        assert switches.mean() < 0.1 * (np.diff(often, axis=1) != 0).sum(axis=1).mean()


def enumerated(beta, p, batch, budget, losses):
    """The exact law of all sequences of experts at the ends of batches of a private dartboard, by enumeration."""
    n, law = losses.shape[1], {}

    def go(path, mass, k, draws):
        end = (k + 1) * batch
        if end > len(losses):
            law[path] = law.get(path, 0.0) + mass
            return
        x = path[-1]
        if draws == budget:
            go((*path, x), mass, k + 1, draws)
            return
        kept = (1 - p) * math.exp(-beta * losses[k * batch : end, x].sum())
        go((*path, x), mass * kept, k + 1, draws)
        for y, w in enumerate(weights(losses[:end].sum(axis=0), beta)):
            go((*path, y), mass * (1 - kept) * w, k + 1, draws + 1)

    for x in range(n):
        go((x,), 1 / n, 0, 0)
    return law


@pytest.mark.parametrize(("p", "batch", "budget"), [(0.3, 1, 2), (0.1, 2, 1), (0.0, 1, 100), (1.0, 2, 2)])
def test_whole_transcripts_have_the_law_of_the_proof(p, batch, budget):
    losses = LOSSES[:4]
    law = enumerated(0.8, p, batch, budget, losses)
    assert sum(law.values()) == pytest.approx(1)
    paths = list(law)
    for off, good in ((1.0, True), (1.5, False)):
        found = played(
            lambda rng, off=off: Dartboard(3, rng, beta=0.8 * off, p=p, batch=batch, budget=budget), losses=losses
        )
        ends = [tuple(row) for row in found[:, ::batch].tolist()]
        seen = np.array([ends.count(path) for path in paths])
        assert seen.sum() == RUNS
        assert (chi_square(seen, RUNS * np.array([law[path] for path in paths])) > ALPHA) == good
    # A learner that forgets its budget is caught where the budget matters.
    if budget == 1:
        free = played(lambda rng: Dartboard(3, rng, beta=0.8, p=p, batch=batch), losses=losses)
        ends = [tuple(row) for row in free[:, ::batch].tolist()]
        seen = np.array([ends.count(path) for path in paths])
        assert seen.sum() < RUNS or chi_square(seen, RUNS * np.array([law[path] for path in paths])) < ALPHA


def test_draws_of_the_dartboard_are_independent_with_known_chances():
    """Coins are independent, with the chance 1 - W_(t+1)/W_t: their number has the variance of independent coins."""
    beta, counts = 0.4, []
    rng = np.random.default_rng(5)
    losses = np.tile(LOSSES, (5, 1))
    rows = Rows(losses, np.zeros(len(losses)))
    for _ in range(4000):
        walk = Dartboard(3, rng, beta=beta, p=0.0)
        walk.take(rows, Changes())
        counts.append(walk.draws)
    totals = np.exp(-beta * np.vstack([np.zeros(3), np.cumsum(losses, axis=0)])).sum(axis=1)
    q = 1 - totals[1:] / totals[:-1]
    law = np.ones(1)
    for one in q:
        law = np.convolve(law, [1 - one, one])
    seen = np.bincount(counts, minlength=law.size)
    assert chi_square(seen, 4000 * law) > ALPHA
    assert chi_square(seen, 4000 * np.roll(law, 1)) < ALPHA
