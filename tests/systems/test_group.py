"""Persons with several rows in systems without an account of their own: by the bound for groups (docs/theory, R14e)."""

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import reticent as rt
from reticent.planning import for_persons, plan_doubling, plan_filtered, plan_ftrl, plan_implicit
from reticent.privacy import group
from reticent.privacy._account import gaussian
from reticent.privacy._group import group_account, group_factor
from reticent.systems._persons import check_cap

GOAL = {"epsilon": 1.0, "delta": 1e-6}


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("size", [2, 5])
def test_gaussian_releases_add_up_and_no_less_will_do(size):
    found = group_account(None, "replace", (gaussian(0.2),), size)
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        assert found.delta(epsilon) == pytest.approx(gaussian_delta(0.2 * size, epsilon), rel=1e-6)
    assert found.delta(found.epsilon(1e-6)) <= 1e-6 * (1 + 1e-6)
    # A group of persons is a group of all their rows.
    more = group_account(None, "replace", (gaussian(0.2),), 3 * size)
    assert group(found, 3).epsilon(1e-6) == pytest.approx(more.epsilon(1e-6))


def test_the_bound_for_any_certificate_holds_for_chains_of_laws_and_is_reached():
    """Randomised responses, one after the other: (epsilon, 0) steps reach k epsilon; leaks of delta reach the sum."""
    epsilon, size = 0.3, 4
    assert group((epsilon, 0.0), size).delta(size * epsilon) == pytest.approx(0.0, abs=1e-12)
    chain = [np.array([math.exp(epsilon * i), 1.0]) for i in range(size + 1)]
    chain = [law / law.sum() for law in chain]
    ends = np.abs(np.log(chain[0] / chain[-1])).max()
    assert ends <= size * epsilon
    # Laws that are (epsilon, delta)-close step by step, and as far apart in the end as the bound allows.
    delta, law, laws = 0.01, np.array([0.0, 1.0]), []
    for _ in range(size + 1):
        laws.append(law)
        first = min(1.0, math.exp(epsilon) * law[0] + delta)
        law = np.array([first, 1 - first])
    for one, two in itertools.pairwise(laws):
        assert np.maximum(two - math.exp(epsilon) * one, 0).sum() <= delta + 1e-12
    reached = np.maximum(laws[-1] - math.exp(size * epsilon) * laws[0], 0).sum()
    assert reached == pytest.approx(delta * group_factor(epsilon, size), rel=1e-9)
    too_little = delta * size
    assert reached > too_little


@pytest.mark.parametrize("planner", [plan_ftrl, plan_implicit], ids=lambda planner: planner.__name__)
def test_planners_meet_a_goal_for_persons_and_less_noise_does_not(planner):
    plan = for_persons(planner, max_rows=4)(rt.Ball(2), 500, 1.0, **GOAL)
    assert plan.epsilon == 1.0
    assert plan.max_rows == 4
    assert 0.8 < plan.account().epsilon(1e-6) <= 1.0 + 1e-9
    single = planner(rt.Ball(2), 500, 1.0, **GOAL)
    assert single.for_group(1.0, 1e-6, plan.cap) is None
    assert plan.at_stake == 4
    told = " ".join(plan.explain().split())
    assert "The same rounds are theirs in both streams" in told
    assert "bound for groups" in told
    with pytest.raises(ValueError, match="no event"):
        plan.dp_event()
    assert for_persons(planner, max_rows=None) is planner


def test_pcomw_meets_a_goal_for_persons_with_and_without_a_horizon():
    plan = for_persons(rt.plan_private, max_rows=2)(rt.Interval(0.0, 1.0), 20_000, 1.0, **GOAL)
    assert plan.seal is not None
    assert 0.8 < plan.account().epsilon(1e-6) <= 1.0
    with pytest.raises(ValueError, match="no event"):
        plan.dp_event()
    endless = for_persons(rt.plan_private, max_rows=2, window=1000)(rt.Interval(0.0, 1.0), None, 1.0, **GOAL)
    first = endless.epoch(0)
    assert first.max_rows == 2
    assert first.window == 1000
    assert first.account().epsilon(1e-6) <= 1.0
    assert "in any 1,000 rounds in a row" in " ".join(endless.explain().split())


ONE_PERSON = {
    "DP-FTRL": (rt.planning.plan_ftrl, rt.Interval(-1.0, 1.0), -np.ones((20_000, 1))),
    "P-COMW": (rt.plan_private, rt.Interval(-1.0, 1.0), -np.ones((20_000, 1))),
    "private dartboard": (rt.planning.plan_private_dartboard, rt.Experts(2), np.tile([1.0, 0.0], (20_000, 1))),
}


@pytest.mark.parametrize("system", ONE_PERSON)
def test_no_bound_on_regret_is_stated_where_rows_are_left_out(system):
    """All rows are one person's: two are learned from, and the regret of the run is nearly all there can be."""
    planner, domain, rows = ONE_PERSON[system]
    row = planner(domain, 20_000, 1.0, epsilon=4.0, delta=5e-7)
    assert row.regret_bound is not None
    plan = for_persons(planner, max_rows=2)(domain, 20_000, 1.0, epsilon=8.0, delta=1e-6)
    learner = plan.learner(plan, rt.Linear(), seed=1)
    trace = learner.observe_many(rows, persons=["anna"] * 20_000)
    paid = float((rows * trace.decisions()[:20_000]).sum())
    least = rows.sum() if domain.dim == 1 else rows.sum(axis=0).min()
    assert paid - least > 5 * row.regret_bound
    assert plan.regret_bound is plan.certified_regret is None
    assert not plan.vacuous
    told = "rows of a person beyond the cap are not learned from, and regret counts them"
    assert told in " ".join(plan.explain().split())
    assert "not stated: rows beyond the cap are not learned from" in str(plan)
    assert "regret bound is" not in str(plan)
    again = copy.deepcopy(plan)
    assert again == plan
    again.check_as_written()


def test_epochs_and_experts_for_persons_state_no_bound_either():
    endless = for_persons(rt.plan_private, max_rows=2)(rt.Interval(0.0, 1.0), None, 1.0, **GOAL)
    assert endless.epoch(3).regret_bound is None
    assert "not learned from" in str(endless)
    experts = for_persons(plan_doubling, max_rows=2)(rt.Experts(3), None, 1.0, epsilon=1.0, delta=0.0)
    assert "not learned from" in str(experts)
    assert "not learned from" in " ".join(experts.explain().split())
    with pytest.raises(ValueError, match="max_rows=2"):
        experts.regret_at(1000)
    assert for_persons(plan_doubling, max_rows=2)(rt.Experts(3), 1000, 1.0, 1.0, 0.0).regret_bound is None


def test_plans_for_persons_of_older_versions_load_without_their_bound():
    """They stated the bound of the plan of one row, under a seal; one that was edited by hand stays so."""
    plan = for_persons(rt.plan_private, max_rows=2)(rt.Interval(0.0, 1.0), 1000, 1.0, **GOAL)
    for seal, whole in ((True, True), (False, False)):
        old = copy.copy(plan)
        old._set(regret_bound=123.0)
        old._set(seal=old._fingerprint() if seal else "of another plan")
        again = copy.deepcopy(old)
        assert again.regret_bound is None
        assert (again.seal == again._fingerprint()) is whole
        if whole:
            again.check_as_written()
            assert again == plan
    with pytest.raises(ValueError, match="regret_bound must be None in a plan for persons, got 5"):
        dataclasses.replace(plan, regret_bound=5.0)


def test_experts_count_persons_and_leave_the_rest_out():
    learner = rt.private_learner(rt.Linear(), rt.Experts(3), epsilon=1.0, delta=0, max_rows=2, seed=1)
    assert learner.plan.account().epsilon(0.0) <= 1.0
    assert learner.plan.rate <= plan_doubling(rt.Experts(3), None, 1.0, 1.0).rate / 2
    rng = np.random.default_rng(0)
    rows, keys = rng.random((200, 3)), rng.integers(0, 60, size=200)
    twin = rt.private_learner(rt.Linear(), rt.Experts(3), epsilon=1.0, delta=0, max_rows=2, seed=1)
    learner.observe_many(rows, persons=keys)
    seen: dict = {}
    counts = np.array([seen.setdefault(key, []).append(1) or len(seen[key]) <= 2 for key in keys.tolist()])
    assert learner.left_out == 200 - counts.sum() > 0
    emptied = np.where(counts[:, None], rows, 0.0)
    twin.observe_many(emptied, persons=np.arange(200))
    assert np.array_equal(learner.decision, twin.decision)
    assert learner.switches == twin.switches


def test_a_sharper_account_is_not_traded_for_the_bound_for_groups():
    with pytest.raises(ValueError, match="takes max_rows= itself"):
        for_persons(rt.planning.plan_filtered, max_rows=3)(rt.Ball(2), 500, 1.0, **GOAL)


def test_groups_of_persons_are_groups_of_all_their_rows():
    """What is said of two persons must not be what is true of two rows."""
    plan = for_persons(plan_ftrl, max_rows=4)(rt.Ball(2), 500, 1.0, **GOAL)
    assert group(plan, 2).epsilon(1e-6) > 2.0
    gate = rt.planning.plan_filtered(rt.Ball(2), None, 1.0, **GOAL, max_rows=4)
    assert group(gate, 2).epsilon(1e-6) > 2.0
    assert group(rt.planning.plan_filtered(rt.Ball(2), None, 1.0, **GOAL), 2).epsilon(1e-6) == pytest.approx(
        group(gate, 2).epsilon(1e-6), rel=1e-3
    )


def test_plans_without_an_end_claim_no_more_for_persons_than_their_epochs_have():
    """The claim of every epoch is that of one row: a plan for many must not be sealed with it."""
    row = rt.plan_private(rt.Interval(0.0, 1.0), None, 1.0, **GOAL)
    assert row.for_group(1.0, 1e-6, check_cap(2, None)) is None
    assert row.for_group(2.0, 1e-6, check_cap(2, None)) is None  # delta grows too
    pair = row.for_group(2.0, 1e-6 * group_factor(1.0, 2), check_cap(2, None))
    assert pair.max_rows == 2
    assert pair.seal is not None


def test_a_planner_that_misses_the_goal_for_persons_says_so():
    def stubborn(domain, horizon, lipschitz, epsilon, delta, **options):
        return plan_ftrl(domain, horizon, lipschitz, 1.0, 1e-6)

    with pytest.raises(ValueError, match=r"no plan was found whose account shows epsilon=1\.0"):
        for_persons(stubborn, max_rows=3)(rt.Ball(2), 500, 1.0, **GOAL)


def test_a_ledger_knows_whom_a_plan_protects(tmp_path):
    wide = {"window": 100}
    assert plan_filtered(rt.Ball(2), None, 1.0, **GOAL).unit == "row"
    assert plan_filtered(rt.Ball(2), None, 1.0, **GOAL, max_rows=2).unit == "person"
    assert for_persons(plan_ftrl, max_rows=2, **wide)(rt.Ball(2), 500, 1.0, **GOAL).unit == "person-window"
    assert rt.PrivateMean(0.0, 1.0, 1.0, max_rows=2).plan.unit == "person"
    ledger = rt.Ledger(tmp_path / "ledger.db")
    ledger.add("people", 3.0, 1e-5, unit="person")
    entry = ledger.spend("people", plan_filtered(rt.Ball(2), None, 1.0, **GOAL, max_rows=2))
    assert entry.factor == 1
    for other in ({}, {"max_rows": 2, **wide}):  # of such a person has many
        with pytest.raises(ValueError, match="give factor="):
            ledger.spend("people", plan_filtered(rt.Ball(2), None, 1.0, **GOAL, **other))
