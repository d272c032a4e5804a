"""Beliefs after everything was seen, by brute force over finite pairs of laws (docs/theory, Q16)."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import reticent as rt
from reticent.privacy import best_guess, group, posterior
from reticent.privacy._account import Certificate, SystemAccount, gaussian
from reticent.privacy._losses import hockey_stick
from reticent.privacy._meaning import beliefs_in_words, meaning
from reticent.privacy._pure import PureAccount

PRIORS = (0.001, 0.1, 0.5, 0.8, 0.99)


class Exact(Certificate):
    """The curve of two laws on finitely many outcomes, the worse of both ways."""

    def heading(self):
        return "Two laws"

    def __init__(self, p, q):
        self.p, self.q = np.asarray(p), np.asarray(q)

    def delta(self, epsilon):
        a = math.exp(epsilon)
        return float(max(np.maximum(self.p - a * self.q, 0).sum(), np.maximum(self.q - a * self.p, 0).sum()))

    def epsilon(self, delta):
        low, high = 0.0, 60.0
        if self.delta(high) > delta:
            return math.inf
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high


def pairs(seed, count, outcomes=5):
    """Random pairs of laws, some of whose outcomes one world does not have."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p, q = rng.dirichlet([0.7] * outcomes, 2)
        if rng.random() < 0.5:
            tiny = rng.integers(outcomes)
            q[tiny] *= 10.0 ** -rng.integers(2, 9)
            q /= q.sum()
        yield p, q


def best_by_all_rules(p, q, prior):
    """The best chance of a right guess over all rules that map outcomes to guesses."""
    rules = np.array(np.meshgrid(*[[0, 1]] * len(p))).reshape(len(p), -1).T
    return max(prior * (p * rule).sum() + (1 - prior) * (q * (1 - rule)).sum() for rule in rules)


@pytest.mark.parametrize("prior", PRIORS)
def test_no_rule_is_right_more_often_and_the_best_is_as_often(prior):
    for p, q in pairs(1, 30):
        curve = Exact(p, q)
        found = max(best_by_all_rules(p, q, prior), best_by_all_rules(q, p, prior))
        assert found <= best_guess(curve, prior) + 1e-12
        assert found >= best_guess(curve, prior) - 1e-12, "it is the truth, not only a bound"


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("chance", [1e-3, *(pytest.param(c, marks=pytest.mark.slow) for c in (1e-6, 0.05))])
def test_beliefs_rise_no_higher_but_for_the_chance(prior, chance):
    close = 0.0
    for p, q in pairs(2, 60):
        for one, other in ((p, q), (q, p)):
            after = prior * one / (prior * one + (1 - prior) * other)
            bound = posterior(Exact(p, q), prior, chance)
            assert one[after > bound * (1 + 1e-9)].sum() <= chance, "whatever the truth is"
            assert other[after > bound * (1 + 1e-9)].sum() <= chance
            # What is reached with more than that chance: the bound is not far above it.
            order = np.argsort(-after)
            reached = after[order][np.searchsorted(np.cumsum(one[order]), chance)]
            close = max(close, reached / bound)
    assert close > 0.9


def test_taking_epsilon_at_the_chance_itself_is_caught():
    """A belief above what epsilon(chance) allows comes more often than that: the factor 1/(1 - part) is needed."""
    p, q = np.array([0.02, 0.98]), np.array([0.001, 0.999])
    curve, prior = Exact(p, q), 0.5
    naive = 1 / (1 + math.exp(-curve.epsilon(0.0195)))
    after = prior * p / (prior * p + (1 - prior) * q)
    assert p[after > naive].sum() > 0.0195
    assert not p[after > posterior(curve, prior, 0.0195)].sum()


def test_randomised_response_reaches_its_bounds():
    for epsilon in (0.1, 1.0, 4.0):
        true = 1 / (1 + math.exp(-epsilon))
        assert best_guess((epsilon, 0.0)) == pytest.approx(true)
        assert posterior((epsilon, 0.0), 0.5) == pytest.approx(true)
        exact = 0.2 * true / (0.2 * true + 0.8 * (1 - true))
        assert posterior((epsilon, 0.0), 0.2) == pytest.approx(exact)


def test_a_whole_curve_says_more_than_one_point_of_it():
    plan = rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6)
    mu = math.sqrt(sum(term.mu**2 for _, bound in plan.account().statements for (term,) in bound.alternatives))
    normal = 0.5 * (1 + math.erf(mu / 2 / math.sqrt(2)))
    assert best_guess(plan) == pytest.approx(normal, rel=1e-9)
    assert best_guess(plan) < best_guess((1.0, 1e-6))
    assert posterior(plan, 0.1, 1e-3) < posterior((1.0, 1e-6), 0.1, 1e-3)


def test_more_is_never_less():
    plan = rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6)
    for which in (best_guess, lambda what, prior: posterior(what, prior, 1e-3)):
        found = [which(plan, prior) for prior in (0.5, 0.7, 0.9, 0.999)]
        assert found == sorted(found)
        assert all(value >= prior for value, prior in zip(found, (0.5, 0.7, 0.9, 0.999), strict=True))
    chances = [posterior(plan, 0.1, chance) for chance in (1e-9, 1e-6, 1e-3, 0.1)]
    assert chances == sorted(chances, reverse=True)
    assert posterior(plan, 0.1) == 1.0, "nothing is certain where delta is not 0"


@pytest.mark.parametrize("delta", [0.015, 0.04, 0.099, 0.1, 0.12, 0.5])
def test_any_delta_that_is_planned_with_is_explained(delta):
    plan = rt.planning.plan_noisy_descent(rt.Ball(1), 100, 1.0, 1.0, delta)
    assert meaning(plan, delta).rare < 1
    assert f"delta = {delta:g}" in plan.explain()
    one_in = 1 / meaning(plan, delta).rare
    assert f"one case in {int(one_in)}:" in beliefs_in_words(meaning(plan, delta)), "never said to be rarer"
    assert 0.5 < posterior(plan, 0.5, meaning(plan, delta).rare) <= 1.0


# Groups.


def chain(rng, k):
    """k + 1 laws in a row, each near the one before, and the worst curve of neighbours."""
    laws = [rng.dirichlet([3.0] * 4)]
    for _ in range(k):
        laws.append(laws[-1] * np.exp(rng.uniform(-0.3, 0.3, 4)))
        laws[-1] /= laws[-1].sum()
    return laws


@pytest.mark.parametrize("size", [2, 3, 5])
def test_groups_are_below_the_bound(size):
    rng = np.random.default_rng(size)
    for _ in range(20):
        laws = chain(rng, size)
        steps = [Exact(p, q) for p, q in itertools.pairwise(laws)]

        class Worst(Exact):
            def __init__(self, curves):
                self.curves = curves

            def delta(self, epsilon):
                return max(curve.delta(epsilon) for curve in self.curves)

        bound, truth = group(Worst(steps), size), Exact(laws[0], laws[-1])
        for epsilon in (0.0, 0.1, 0.5, 1.0):
            assert truth.delta(epsilon) <= bound.delta(epsilon) + 1e-12


def test_groups_of_gaussian_and_pure_releases_are_exact():
    account = SystemAccount(10, "replace", (gaussian(0.2),))
    assert group(account, 5).delta(1.0) == pytest.approx(float(hockey_stick(1.0, 1.0)))
    assert group(PureAccount.of(None, "replace", 0.2), 5).epsilon(0.0) == pytest.approx(1.0)
    crude = group((account.epsilon(1e-6), 1e-6), 2)
    assert group(account, 2).epsilon(1e-5) < crude.epsilon(1e-5)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: best_guess((1.0, 1e-6), 1.5), "probability"),
        (lambda: posterior((1.0, 1e-6), 0.5, 1.0), "chance must be"),
        (lambda: best_guess((1.0, 1.0)), "delta must be"),
        (lambda: best_guess((math.nan, 0.0)), "finite"),
        (lambda: best_guess(0.5), "an account, a plan or a pair"),
        (lambda: best_guess(rt.plan_lazy(rt.Ball(2), 100, 1.0, max_switches=5)), "no privacy claim"),
        (lambda: group((1.0, 0.0), 0), "size must be"),
    ],
)
def test_what_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# The tables of the guide are what the functions say.

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "epsilon.md"


def numbers(row):
    return [float(cell.strip(" %")) for cell in row.strip("|").split("|")[1:]]


def test_the_guide_has_the_right_beliefs():
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| ") and line.count(" % |") == 6]
    assert len(rows) == 5
    for row in rows:
        prior = float(row.split("|")[1].strip(" %")) / 100
        exact = [100 * posterior((epsilon, 0.0), prior) for epsilon in (0.1, 0.3, 1, 3, 10)]
        assert numbers(row) == [float(f"{belief:.3g}") for belief in exact]


def test_the_guide_has_the_right_groups():
    rows = [line for line in GUIDE.read_text().splitlines() if line.startswith("| planned for epsilon")]
    assert len(rows) == 3
    for row in rows:
        epsilon = float(row.split("|")[1].split()[-1])
        plan = rt.private_learner(rt.Logistic(), rt.Ball(10), epsilon=epsilon, delta=1e-6).plan
        exact = [group(plan, k).epsilon(1e-6) for k in (1, 2, 5, 10)]
        assert numbers(row) == [float(f"{value:.3g}") for value in exact]


def test_promises_and_groups_can_be_printed():
    told = str(group((1.0, 1e-6), 3))
    assert told.startswith("Whatever is (epsilon 1, delta 1e-06)-private; 3 such changes at once:")
    assert "inf at delta = 1e-08" in told
