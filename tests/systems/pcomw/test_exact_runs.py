"""Whole runs, computed exactly on a fine grid of an interval, against the bounds on switches, drift and regret."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom

from reticent.domains import Interval
from reticent.planning import Plan
from reticent.systems.pcomw._regret import regret_bound
from reticent.systems.pcomw._switching import Switching, expected_switches, log_tail, overrun, variation, variation_sum

POINTS = 101
LINE = np.linspace(-1.0, 1.0, POINTS)


def coin(ratio, plan, weights):
    """The chance of 'keep' at each point: the mean over the auxiliary draws of the clipped ratio."""
    phi = plan.phi
    if plan.draws == 1:
        return np.clip(ratio / phi, phi**-2, 1.0) @ weights
    mean = (ratio[:, :, None] + ratio[:, None, :]) / 2
    return np.clip(mean / phi, phi**-2, 1.0) @ weights @ weights


class Run:
    """One run with losses slope * x, slope by slope: law of decisions, of the number of switches, and regret."""

    def __init__(self, plan, slopes):
        losses = slopes[:, None] * LINE
        level = -plan.beta * plan.lam * LINE**2 / 2
        measure = np.exp(level) / np.exp(level).sum()
        n = plan.coins
        cap = n if plan.budget is None else plan.budget
        law = np.zeros((n + 1, POINTS))  # number of switches, place
        law[0] = measure
        self.distance, paid, past = [], 0.0, np.zeros(POINTS)
        for start in range(0, len(slopes), plan.batch):
            place = law.sum(axis=0)
            self.distance.append(0.5 * np.abs(place - measure).sum())
            batch = losses[start : start + plan.batch].sum(axis=0)
            paid += float(place @ batch)
            past += batch
            if start + plan.batch > len(slopes):
                break
            level = -plan.beta * (past + plan.lam * LINE**2 / 2)
            fresh = np.exp(level - level.max())
            fresh /= fresh.sum()
            ratio = np.exp(plan.beta * (batch[None, :] - batch[:, None]))
            keep = (1 - plan.p) * coin(ratio, plan, fresh)
            moved = law * keep
            switching = (law * (1 - keep)).sum(axis=1)
            moved[1:] += switching[:-1, None] * fresh
            moved[cap:] = law[cap:]  # the budget is spent: the decision stays
            if cap > 0:
                moved[cap] += switching[cap - 1] * fresh
            law, measure = moved, fresh
        self.count = law.sum(axis=1)
        self.regret = paid - float((slopes[:, None] * LINE).sum(axis=0).min())

    @property
    def mean(self):
        return float(np.arange(len(self.count)) @ self.count)

    def tail(self, j):
        return float(self.count[j:].sum())


def slopes(kind, n=40):
    rng = np.random.default_rng(5)
    return {
        "constant": np.ones(n),
        "alternating": np.tile([1.0, -1.0], n)[:n],
        "blocks": np.where(np.arange(n) // 10 % 2 == 0, 1.0, -1.0),
        "random": rng.choice([-1.0, 1.0], n),
        "late": np.where(np.arange(n) < n // 3, 1.0, -1.0),
    }[kind]


def plan(**changes):
    values = {"beta": 0.5, "lam": 8.0, "p": 0.05, "phi": 1.3, "distance": 0.0, **changes}
    return Plan(Interval(-1.0, 1.0), values.pop("horizon", 40), 1.0, **values)


KINDS = ["constant", "alternating", "blocks", "random", "late"]
PLANS = [
    plan(),
    plan(p=0.0),
    plan(phi=1.05),
    plan(phi=1.0, p=0.2),
    plan(phi=math.e),  # nothing is clipped
    plan(beta=0.05, lam=80.0, phi=1.06),
    plan(draws=2, phi=1.2),
    plan(batch=3, beta=0.2, phi=1.4),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", PLANS, ids=range(len(PLANS)))
def test_drift_and_switches_stay_below_their_bounds(made, kind):
    run, law = Run(made, slopes(kind)), Switching(made)
    for k, distance in enumerate(run.distance):
        assert distance <= float(variation(k, made.p, law.clip)) + 1e-12
    assert run.mean <= law.expected + 1e-9
    for j in range(made.coins + 1):
        assert run.tail(j) <= law.tail(j) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", PLANS, ids=range(len(PLANS)))
def test_regret_stays_below_the_certificate(made, kind):
    assert Run(made, slopes(kind)).regret <= regret_bound(made).total


@pytest.mark.parametrize("budget", [0, 2, 5, 9, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_regret_with_a_budget_stays_below_the_certificate(budget, kind):
    made = plan(budget=budget)
    run = Run(made, slopes(kind))
    assert run.count[budget + 1 :].sum() == 0
    assert run.mean <= Switching(made).expected + 1e-9
    assert run.regret <= regret_bound(made).total


def test_the_certificate_is_not_far_off():
    # Nothing is clipped and every round resampled: what is left is the first term and stability.
    made = plan(p=1.0, beta=5.0, lam=7.0)
    assert Run(made, slopes("constant")).regret > 0.3 * regret_bound(made).total


def test_without_clipping_switches_are_binomial():
    made = plan(phi=math.e, p=0.05)
    run, law = Run(made, slopes("random")), Switching(made)
    assert law.clip == 0.0
    assert np.abs(run.count - binom.pmf(np.arange(41), 40, law.q)).max() < 1e-12
    assert max(run.distance) < 1e-12
    assert run.mean == pytest.approx(law.expected, abs=1e-9)


def test_ignoring_the_clipping_is_caught():
    # Negative control: the same assertions with a clipping loss of zero must fail.
    made = plan(p=0.0, phi=1.05)
    run, law = Run(made, slopes("constant")), Switching(made)
    assert max(run.distance) > 0.01
    assert run.mean > 40 * law.q * 1.02
    assert any(run.tail(j) > binom.sf(j - 1, 40, law.q) * 1.05 for j in range(1, 10))


def test_variation_solves_its_recursion():
    for p in (0.0, 1e-9, 0.01, 0.7, 1.0):
        value, total = 0.0, 0.0
        for k in range(200):
            assert float(variation(k, p, 1e-4)) == pytest.approx(value, rel=1e-9, abs=1e-18)
            assert float(variation_sum(k, p, 1e-4)) == pytest.approx(total, rel=1e-8, abs=1e-18)
            total += value
            value = (1 - p) * (value + 1e-4)


def test_variation_sum_has_no_seam():
    n = 10**8
    sums = [float(variation_sum(n, p, 1e-25)) for p in np.geomspace(5e-12, 2e-11, 41)]
    assert all(later < first for first, later in pairwise(sums))
    assert max(abs(a / b - 1) for a, b in pairwise(sums)) < 1e-4


def test_the_tail_is_stable_for_many_coins():
    n, log_phi = 10**8, 1e-3
    q = -math.expm1(-log_phi)
    for j in (99_000, 100_000, 101_000, 105_000):
        assert float(log_tail(j, n, 0.0, log_phi, 0.0)) == pytest.approx(binom.logsf(j - 1, n, q), rel=1e-6)
    # Far out the exact tail underflows; a bound remains, and it falls.
    far = [float(log_tail(j, n, 0.0, log_phi, 0.0)) for j in (10**5, 2 * 10**5, 10**6, 10**8, 10**8 + 1)]
    assert all(later < first for first, later in pairwise(far))
    assert far[-1] == -math.inf
    assert math.isfinite(far[2])


def test_the_tail_takes_the_better_of_its_two_bounds():
    # Much clipping: the factor (1 + drift)^n is useless, the crude rate 1 - (1-p)/phi^2 is not.
    assert float(log_tail(30, 100, 0.0, 0.02, 0.3)) == pytest.approx(binom.logsf(29, 100, -math.expm1(-0.04)))
    assert float(log_tail(30, 100, 0.0, 0.2, 0.0)) == pytest.approx(binom.logsf(29, 100, -math.expm1(-0.2)))


@pytest.mark.parametrize(
    ("budget", "n", "log_phi"), [(110, 1000, 0.1), (20, 1000, 0.01), (1050, 100_000, 0.01), (0, 9, 0.1)]
)
def test_the_sum_of_overruns_is_a_close_bound(budget, n, log_phi):
    exact = float(binom.sf(budget, np.arange(n + 1), -math.expm1(-log_phi)).sum())
    bound = float(overrun(budget, n, 0.0, log_phi, 0.0))
    assert exact * (1 - 1e-9) <= bound <= 1.05 * exact


def test_expected_switches_never_pass_the_crude_rate():
    assert float(expected_switches(10**6, 0.0, 1e-3, 0.4)) == pytest.approx(-(10**6) * math.expm1(-2e-3))


def test_inexact_draws_are_paid_for():
    exact, near = plan(phi=math.e), plan(phi=math.e, distance=1e-5)
    gap = math.erf(1e-5 / math.sqrt(8)) * Switching(near).draws
    assert Switching(near).failure == pytest.approx(gap)
    assert Switching(near).expected == pytest.approx(Switching(exact).expected + 40 * gap)
    assert regret_bound(near).inexact == pytest.approx(2.0 * 40 * gap)
    assert regret_bound(exact).inexact == 0.0
