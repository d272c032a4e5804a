"""Q13: every policy and every stopping rule on small trees, against the filter and the odometer of the code."""

from __future__ import annotations

import copy
import functools
import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from reticent.privacy import Cost, Filter, Odometer
from reticent.privacy._account import smallest

# An action: its cost, and the outcomes as (P, Q). Outcomes that Q cannot have are worth their P-mass at once.
Action = tuple[Cost, tuple[tuple[float, float], ...]]


def response(epsilon: float, delta: float = 0.0) -> Action:
    """Randomised response; with a delta the extreme pair that is (epsilon, delta)-private both ways."""
    high, low = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    ends = ((delta, 0.0), (0.0, delta)) if delta else ()
    return Cost(epsilon=epsilon, delta=delta), ((high, low), (low, high), *ends)


def threshold(mu: float, at: float) -> Action:
    """Whether a normal variable with mean mu (in P) or 0 (in Q) exceeds `at`: an image of the Gaussian pair."""
    one, two = float(ndtr(mu - at)), float(ndtr(-at))
    return Cost(mu=mu), ((one, two), (1 - one, 1 - two))


class Refunds(Filter):
    """A broken filter: what a release cost is given back if the answer was "yes" (the first outcome)."""

    def see(self, before: Filter, outcome: int) -> None:
        if outcome == 0:
            self.__dict__.update(before.__dict__)


def most(budget: Filter, actions: list[Action], steps: int, ratio: float = 1.0) -> float:
    """Return the largest P(O) - e^epsilon Q(O) over all policies and events, `ratio` being dP/dQ of the prefix.

    In units of the P-mass of the prefix: (1 - e^epsilon Q/P)+ at the end.
    """
    best = max(1 - math.exp(budget.epsilon) / ratio, 0.0)
    if steps == 0:
        return best
    for cost, outcomes in actions:
        if not budget.allows(cost):
            continue
        value = 0.0
        for number, (one, two) in enumerate(outcomes):
            if one == 0:
                continue
            if two == 0:
                value += one
                continue
            after = copy.copy(budget)
            after.charge(cost)
            if isinstance(after, Refunds):
                after.see(budget, number)
            value += one * most(after, actions, steps - 1, ratio * one / two)
        best = max(best, value)
    return best


RESPONSES = [response(e) for e in (0.15, 0.3, 0.45, 0.6, 0.9)]
MIXED = [response(0.2), response(0.5, 0.01), response(0.3, 0.02), threshold(0.3, 0.4), threshold(0.5, 1.0)]


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (0.8, 0.02), (0.3, 0.2)])
def test_no_policy_of_responses_breaks_the_goal(kind, epsilon, delta):
    assert most(Filter(epsilon, delta, kind=kind), RESPONSES, 4) <= delta


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
def test_no_mixed_policy_breaks_the_goal(kind):
    reached = most(Filter(0.6, 0.1, slack=0.03, kind=kind), MIXED, 3)
    assert 0.03 <= reached <= 0.1  # the slack alone can be used up


def test_pure_costs_up_to_epsilon_reveal_nothing_beyond_it():
    tiny = Filter(0.9, 1e-12)
    assert most(tiny, RESPONSES, 4) <= 1e-15
    for _ in range(3):
        tiny.charge(Cost(epsilon=0.3))
    assert tiny.spent > 1
    assert not tiny.allows(Cost(epsilon=0.001))
    assert not tiny.allows(Cost(mu=1e-9))


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
def test_charging_what_came_out_is_caught(kind):
    delta = 0.05
    assert most(Filter(0.5, delta, kind=kind), RESPONSES[1:3], 4) <= delta
    assert most(Refunds(0.5, delta, kind=kind), RESPONSES[1:3], 4) > 1.5 * delta


def most_in_long_runs(goal: tuple[float, float], kind: str, unit: float, larger: float = 1.0) -> float:
    """Return the largest P(O) - e^epsilon Q(O) over policies of responses of `unit` and twice that, of any length.

    Whenever it likes, a policy ends with one Gaussian release that takes what is left. The logarithm of dP/dQ is a
    whole number of units, so that three numbers say all of the past. `larger` is how much more may be spent.
    """
    epsilon = goal[0]
    budget = Filter(*goal, kind=kind)
    prices = [budget.price(Cost(epsilon=k * unit)).spent for k in (1, 2)]
    full = budget.price(Cost(mu=budget.left_mu)).spent * larger
    one = budget.price(Cost(mu=1.0)).spent  # of the square of mu
    chances = [1 / (1 + math.exp(k * unit)) for k in (1, 2)]  # of "yes" in Q, and of "no" in P

    @functools.cache
    def value(few: int, many: int, place: int) -> float:
        """Return what is to be had, per Q-mass of the prefix."""
        spent, ratio = few * prices[0] + many * prices[1], math.exp(place * unit)
        best = max(ratio - math.exp(epsilon), 0.0)
        mu = math.sqrt(max(full - spent, 0.0) / one)
        if mu > 0:
            room = (epsilon - place * unit) / mu
            best = max(best, float(ratio * ndtr(mu / 2 - room) - math.exp(epsilon) * ndtr(-mu / 2 - room)))
        for k, chance in enumerate(chances):
            pure = (few + 2 * many + k + 1) * unit <= epsilon
            if pure or spent + prices[k] <= full:
                then = few + (k == 0), many + (k == 1)
                up, down = value(*then, place + k + 1), value(*then, place - k - 1)
                best = max(best, chance * up + (1 - chance) * down)
        return best

    return value(0, 0, 0)


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta", "unit"), [(1.0, 1e-4, 0.05), (3.0, 1e-3, 0.17)])
def test_no_policy_of_a_long_run_breaks_the_goal_and_a_larger_budget_does(kind, epsilon, delta, unit):
    assert most_in_long_runs((epsilon, delta), kind, unit) <= delta * (1 + 1e-9)
    assert most_in_long_runs((epsilon, delta), kind, unit, 1.5) > delta


def test_the_gaussian_filter_is_tight_and_a_larger_budget_is_caught():
    epsilon, delta = 0.5, 0.05
    budget = Filter(epsilon, delta, kind="gaussian")
    mu = budget.left_mu

    def actions(scale):
        # All at once or in two to four parts; the best threshold of one step is where the likelihoods' ratio is e^eps.
        steps = [scale * mu * math.sqrt(part) for part in (1.0, 0.75, 0.5, 0.25)]
        return [threshold(step, epsilon / step + step / 2 + shift) for step in steps for shift in (-1.0, -0.5, 0.0)]

    assert most(budget, actions(1 - 1e-9), 3) == pytest.approx(delta, rel=1e-6)
    assert most(budget, actions(1 - 1e-9), 3) <= delta
    budget._budget *= 1.02
    assert most(budget, actions(math.sqrt(1.02) * (1 - 1e-9)), 3) > 1.005 * delta


# --- the odometer ----------------------------------------------------------------------------------------------------


class FixedTimes:
    """A broken odometer: after n equal responses, the exact epsilon of n of them at `delta`, as if n were fixed."""

    def __init__(self, delta, epsilon):
        self.delta, self.step, self.releases = delta, epsilon, 0

    def charge(self, cost):
        assert cost.epsilon == self.step
        self.releases += 1

    @property
    def epsilon(self):
        n, high = self.releases, 1 / (1 + math.exp(-self.step))
        ups = np.arange(n + 1)
        mass, loss = binom.pmf(ups, n, high), (2 * ups - n) * self.step
        return smallest(lambda e: float(mass @ np.maximum(-np.expm1(e - loss), 0)), self.delta)


def collected(meter, actions, steps, ratio=1.0):
    """Return the largest P(O) - E_Q[exp(reading at the stop); O] over all policies, stopping rules and events."""
    best = max(1 - math.exp(meter.epsilon) / ratio, 0.0)
    if steps == 0:
        return best
    for cost, outcomes in actions:
        value = 0.0
        for one, two in outcomes:
            if two == 0:
                value += one
            elif one:
                after = copy.copy(meter)
                after.charge(cost)
                value += one * collected(after, actions, steps - 1, ratio * one / two)
        best = max(best, value)
    return best


def test_no_policy_and_no_stop_beats_the_odometer_and_fixed_times_are_caught():
    delta = 0.1
    few = [response(0.4), threshold(0.7, 1.2), threshold(1.2, 1.5)]
    assert collected(Odometer(delta, around=1.5), few, 5) <= delta
    equal = [response(0.5)]
    assert collected(Odometer(delta), equal, 9) <= delta
    assert collected(FixedTimes(delta, 0.5), equal, 9) > 1.3 * delta


def test_the_odometer_holds_at_all_times_of_long_gaussian_runs():
    """20,000 paths of 400 releases, fixed seed; a boundary for each time alone is crossed far too often."""
    delta, mu, n, paths = 0.05, 0.05, 400, 20_000
    meter, readings, alone = Odometer(delta, around=1.0), [], []
    for k in range(1, n + 1):
        meter.charge(Cost(mu=mu))
        readings.append(meter.epsilon)
        # the loss after k releases is normal with mean and half of the variance k mu^2/2
        alone.append(k * mu**2 / 2 + mu * math.sqrt(k) * 1.6448536269514722)
    steps = np.random.default_rng(12).normal(mu**2 / 2, mu, (paths, n))
    losses = np.cumsum(steps, axis=1)
    limit = binom.ppf(1 - 1e-6, paths, delta)
    assert (losses > readings).any(axis=1).sum() <= limit
    assert (losses > alone).any(axis=1).sum() > limit


# --- what the paper's filter admits, ours does ------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-5), (1.0, 0.1)])
def test_whatever_the_published_filter_admits_is_admitted(epsilon, delta):
    draws = np.random.default_rng(3)
    for scale in (0.001, 0.01, 0.1):
        budget, squares = Filter(epsilon, delta), 0.0
        for _ in range(3000):
            cost = scale * epsilon * float(draws.exponential())
            squares += cost**2
            if math.sqrt(2 * math.log(1 / delta) * squares) + squares / 2 > epsilon:
                break
            budget.charge(Cost(epsilon=cost))
        assert budget.spent < 1


def test_order_matters_not_and_adaptive_costs_nothing_for_gaussians():
    budget = Filter(1.0, 1e-6, kind="gaussian")
    parts = [0.5, 0.3, 0.2 - 1e-9]
    for order in itertools.permutations(parts):
        one = copy.copy(budget)
        for part in order:
            one.charge(Cost(mu=budget.left_mu * math.sqrt(part)))
        assert one.spent == pytest.approx(1.0, abs=1e-8)
