"""A run among other releases: its event and its distribution in dp_accounting, beside the composition by hand."""

import math

import pytest
from dp_accounting import dp_event as events
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

import reticent as rt
from reticent.privacy import account, distribution

DELTA, STEP = 1e-6, 1e-4
PLAN = rt.plan_private(rt.Ball(3), 200_000, 1.0, epsilon=1.0, delta=DELTA)
BEFORE, AFTER = events.LaplaceDpEvent(4.0), events.GaussianDpEvent(10.0)


def composed(accountant, *parts):
    for part in parts:
        accountant.compose(part)
    return accountant.get_epsilon(DELTA)


def by_distribution():
    """The run by its own distribution, the queries by theirs: without the loss of stock events."""
    whole = distribution(PLAN, STEP)
    whole = whole.compose(pld.from_laplace_mechanism(4.0, value_discretization_interval=STEP))
    whole = whole.compose(pld.from_gaussian_mechanism(10.0, value_discretization_interval=STEP))
    return whole.get_epsilon_for_delta(DELTA)


def test_run_between_two_queries():
    alone = account(PLAN).epsilon(DELTA)
    sharp, stock = by_distribution(), composed(PLDAccountant(), BEFORE, PLAN.dp_event(), AFTER)
    assert alone < sharp <= stock
    # Less than the sum of all three: composition is not worse than adding up.
    added = alone + 0.25 + pld.from_gaussian_mechanism(10.0).get_epsilon_for_delta(DELTA)
    assert sharp < added
    # Stock events overstate this run by about 17 percent, as their docstring says, and so the whole by less.
    assert stock < 1.25 * sharp


def test_order_does_not_matter_and_renyi_is_an_upper_bound():
    gaussians = events.GaussianDpEvent(8.0), PLAN.dp_event(), AFTER
    stock = composed(PLDAccountant(), *gaussians)
    assert composed(PLDAccountant(), *reversed(gaussians)) == pytest.approx(stock, rel=1e-6)
    assert stock <= composed(RdpAccountant(), *gaussians) <= 1.3 * stock


def test_gaussian_systems_compose_in_closed_form():
    plan = rt.planning.plan_ftrl(rt.Ball(3), 5_000, 1.0, 1.0, DELTA)
    noise = 1 / math.sqrt(plan.mu() ** 2 + 0.1**2)
    closed = pld.from_gaussian_mechanism(noise, value_discretization_interval=STEP).get_epsilon_for_delta(DELTA)
    assert composed(PLDAccountant(), plan.dp_event(), AFTER) == pytest.approx(closed, rel=1e-3)


def test_two_runs_on_the_same_rows_cost_more_than_one_and_less_than_twice():
    both = composed(PLDAccountant(), PLAN.dp_event(), PLAN.dp_event())
    one = composed(PLDAccountant(), PLAN.dp_event())
    assert one < both < 2 * one
    sharp = distribution(PLAN, STEP).compose(distribution(PLAN, STEP)).get_epsilon_for_delta(DELTA)
    assert account(PLAN).epsilon(DELTA) < sharp < both
