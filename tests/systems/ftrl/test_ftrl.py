"""DP-FTRL and Agarwal and Singh's FTRL: what enters the sums, memory, regret below the certificates, going on."""

import pickle

import numpy as np
import pytest

import reticent as rt
from reticent.systems.descent._descent import LeaderPlan, RegularisedLeader
from reticent.systems.ftrl import FTRLPlan, TreeLeaderPlan, plan_agarwal_singh, plan_ftrl
from reticent.systems.ftrl._learner import DPFTRL, AgarwalSingh

BALL = rt.Ball(3)
KINDS = (
    {"noise": "toeplitz"},
    {"noise": "toeplitz-exact"},
    {"noise": "tree"},
    {"noise": "tree", "linear": True},
)


def plans(horizon, batch=1, domain=BALL, lam=1e4, sigma=1.0):
    for options in KINDS:
        yield FTRLPlan(domain, horizon, 1.0, lam=lam, sigma=sigma, batch=batch, **options), DPFTRL
    if batch == 1:
        yield TreeLeaderPlan(domain, horizon, 1.0, lam=lam, sigma=sigma), AgarwalSingh


def unit_rows(count, dim=3, seed=0):
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize("batch", [1, 5])
def test_a_changed_round_moves_later_sums_by_its_change_and_nothing_else(batch):
    """With the same noise, sums differ by the changed gradient from its batch on: what the proof of privacy needs."""
    rows = unit_rows(60)
    other = rows.copy()
    other[23] = -rows[23]
    for plan, kind in plans(60, batch):
        one, two = (kind(plan, rt.Linear(), seed=5).observe_many(data) for data in (rows, other))
        moved = -plan.lam * (np.vstack([one.decisions(), one.final]) - np.vstack([two.decisions(), two.final]))
        wanted = np.where(np.arange(61)[:, None] // batch > 23 // batch, 2 * rows[23], 0.0)
        assert np.allclose(moved, wanted, atol=1e-9)


def test_without_noise_it_is_the_regularised_leader():
    y = np.where(np.arange(300) % 3 == 0, -1.0, 1.0)
    rows = unit_rows(300)
    wanted = RegularisedLeader(LeaderPlan(BALL, 300, 1.0, lam=8.0), rt.Logistic()).observe_many(rows, y)
    for plan, kind in plans(300, lam=8.0, sigma=1e-12):
        if plan.assumes == "convex losses":
            found = kind(plan, rt.Logistic(), seed=1).observe_many(rows, y)
            assert np.allclose(found.decisions(), wanted.decisions(), atol=1e-9)


def test_noise_streams_in_logarithmic_memory():
    T = 1_000_000
    levels = T.bit_length()
    for options, most in (({}, 8), ({"noise": "tree"}, levels), ({"noise": "tree", "linear": True}, levels)):
        walk = DPFTRL(plan_ftrl(BALL, T, 1.0, 1.0, 1e-6, batch=1, **options), rt.Linear(), seed=1)._walk
        assert walk.state.shape[0] <= most
    assert AgarwalSingh(plan_agarwal_singh(BALL, T, 1.0, 1.0, 1e-6), rt.Linear(), seed=1)._walk.state.shape == (
        levels,
        3,
    )


T, RUNS = 1500, 40  # prefixes share most of their noise, so that regret varies a lot from run to run
NOISES = ("toeplitz", "toeplitz-exact", "tree")


def streams(kind, dim):
    rng = np.random.default_rng([dim, len(kind)])
    first = rng.normal(size=dim)
    if kind == "constant":
        rows = np.tile(first, (T, 1))
    elif kind == "turning":
        rows = np.where(np.arange(T) < 0.4 * T, 1.0, -1.0)[:, None] * first
    else:
        rows = first + 3 * rng.normal(size=(T, dim))
    return rows / np.linalg.norm(rows, axis=1)[:, None]


DOMAINS = [rt.Interval(-1.0, 1.0), rt.Ball(4), rt.Box([-1, 0], [1, 1]), rt.Simplex(3)]


@pytest.mark.parametrize("kind", ["constant", "turning", "random"])
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_linear_losses_stay_below_the_certificates(kind, domain):
    rows = streams(kind, domain.dim)
    goal = (domain, T, 1.0, 2.0, 1e-5)
    cases = [(plan_ftrl(*goal, linear=linear, noise=noise), DPFTRL) for linear in (True, False) for noise in NOISES]
    for plan, learner in [*cases, (plan_agarwal_singh(*goal), AgarwalSingh)]:
        regrets = [float(learner(plan, rt.Linear(), seed=seed).observe_many(rows).regret()) for seed in range(RUNS)]
        assert np.mean(regrets) <= plan.regret_bound


def test_the_certificate_for_linear_losses_is_nearly_reached():
    plan = plan_ftrl(rt.Interval(-1.0, 1.0), T, 1.0, 2.0, 1e-5, linear=True)
    signs = np.where(np.arange(T) % 2 == 0, 1.0, -1.0)[:, None]  # stability is what it costs
    regrets = [float(DPFTRL(plan, rt.Linear(), seed=s).observe_many(signs).regret()) for s in range(20)]
    constant = [float(DPFTRL(plan, rt.Linear(), seed=s).observe_many(np.ones((T, 1))).regret()) for s in range(20)]
    assert max(np.mean(regrets), np.mean(constant)) > 0.3 * plan.regret_bound


@pytest.mark.parametrize("noise", NOISES)
def test_losses_that_react_stay_below_the_certificate(noise):
    """Each round pushes away from where the noise has put the decision."""
    plan = plan_ftrl(rt.Ball(3), 600, 1.0, 4.0, 1e-5, noise=noise)
    regrets = []
    for seed in range(3):
        learner = DPFTRL(plan, rt.Linear(), seed=seed)
        lost, total = 0.0, np.zeros(3)
        for _ in range(600):
            x = learner.decision
            g = x / max(float(np.linalg.norm(x)), 1e-9)
            lost += float(g @ x)
            total += g
            learner.observe(g)
        regrets.append(lost + float(np.linalg.norm(total)))
    assert np.mean(regrets) <= plan.regret_bound


def test_plans_without_a_claim_go_on_and_cuts_make_no_difference():
    rows = unit_rows(1000)
    for batch in (1, 3):
        for plan, kind in plans(40, batch, lam=20.0):
            whole = kind(plan, rt.Linear(), seed=3).observe_many(rows)
            learner = kind(plan, rt.Linear(), seed=3)
            parts = []
            for a, b in ((0, 1), (1, 39), (39, 40), (40, 41), (41, 500), (500, 1000)):
                parts.append(learner.observe_many(rows[a:b]).decisions())
                learner = pickle.loads(pickle.dumps(learner))
            assert np.array_equal(whole.decisions(), np.vstack(parts))
            assert all(plan.domain.contains(x) for x in whole.points)
            single = kind(plan, rt.Linear(), seed=3)
            for row in rows[:200]:
                single.observe(row)
            assert np.array_equal(single.decision, whole.decisions()[200])


def test_private_runs_end_at_the_horizon_and_spend_what_they_may():
    plan = plan_ftrl(BALL, 100, 1.0, 1.0, 1e-6, batch=7)
    learner = DPFTRL(plan, rt.Linear(), seed=1)
    learner.observe_many(unit_rows(6))
    assert learner.spent() == 0.0
    learner.observe_many(unit_rows(94))
    assert 1 - 1e-8 < learner.spent() <= 1.0
    assert learner.switches == 14
    with pytest.raises(ValueError, match="horizon"):
        learner.observe(np.zeros(3))


def test_wrong_losses_are_refused_by_name():
    with pytest.raises(ValueError, match=r"DPFTRL.*PCOMW"):
        AgarwalSingh(plan_agarwal_singh(BALL, 100, 1.0, 1.0, 1e-6), rt.Logistic())
    with pytest.raises(ValueError, match=r"DPFTRL.*PCOMW"):
        DPFTRL(plan_ftrl(BALL, 100, 1.0, 1.0, 1e-6, linear=True), rt.Logistic())
