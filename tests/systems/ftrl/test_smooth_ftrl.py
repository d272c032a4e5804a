"""DP-FTRL for smooth losses (docs/theory, R9): certificates, where decisions live, refusals, runs."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent.losses._limit import SLACK
from reticent.planning import SmoothFTRLPlan, plan_ftrl
from reticent.systems.ftrl._noise import SquareRoot

GOAL = (1.0, 1.0, 1e-6)
BALL = rt.Ball(10)

# epsilon, rounds, dimension, certificates per round for smoothness 1/4 and 1 (issue 14, from the formula alone).
TABLE = [
    (1.0, 10**4, 10, 0.0294, 0.0446),
    (1.0, 10**5, 10, 0.0073, 0.0111),
    (1.0, 10**6, 1, 0.0012, 0.0015),
    (1.0, 10**6, 10, 0.0018, 0.0027),
    (1.0, 10**6, 100, 0.0036, 0.0055),
    (3.0, 10**6, 10, 0.0012, 0.0016),
]


@pytest.mark.parametrize(("epsilon", "T", "d", "quarter", "one"), TABLE)
def test_certificates_are_those_of_the_table(epsilon, T, d, quarter, one):
    for smoothness, figure in ((0.25, quarter), (1.0, one)):
        plan = plan_ftrl(rt.Ball(d), T, 1.0, epsilon, 1e-6, smoothness=smoothness)
        # Figures have four decimals: half of the last, and two percent.
        assert abs(plan.regret_bound / T - figure) <= 0.00005 + 0.02 * figure
        assert epsilon * (1 - 1e-8) < plan.account().epsilon(1e-6) <= epsilon
        assert 0 < plan.excess <= 1.005
        assert plan.regret_bound < 0.4 * plan_ftrl(rt.Ball(d), T, 1.0, epsilon, 1e-6).regret_bound


def test_the_bound_is_the_formula():
    """From the definitions: deviations of each prefix added one by one, a short batch at the end."""
    T, b, R, G, beta, d = 1003, 5, 2.0, 3.0, 0.7, 4
    plan = plan_ftrl(rt.Ball(d, R), T, G, 1.0, 1e-6, smoothness=beta, batch=b, noise="toeplitz-exact")
    noise, n = SquareRoot(), T // b
    lengths = [b] * n + [T - n * b]
    power = sum(length * noise.deviation(k) ** 2 for k, length in enumerate(lengths))
    lam, sigma = plan.lam, plan.sigma
    squares = sum(length**2 for length in lengths)
    terms = lam * R**2 / 2 + squares * G**2 / (2 * lam) + beta * d * sigma**2 * power / (2 * lam**2)
    assert plan.regret_bound == pytest.approx(terms + plan.grid_regret, rel=1e-9)
    assert plan.mu() == pytest.approx(2 * G * noise.sensitivity(n) / sigma, rel=1e-12)
    for factor in (0.97, 1.03):
        assert plan.regret_bound < replace(plan, lam=factor * lam, domain=rt.Ball(d, 1e4)).regret_bound


@pytest.mark.parametrize("noise", ["toeplitz", "toeplitz-exact", "tree"])
def test_batches_are_the_best(noise):
    goal = (rt.Ball(30), 2000, 1.0, 0.3, 1e-6)
    plan = plan_ftrl(*goal, smoothness=1.0, noise=noise)
    for batch in (1, 2, 3, 5, 8, 13, 40, 200, 2000):
        assert plan.regret_bound <= 1.004 * plan_ftrl(*goal, smoothness=1.0, noise=noise, batch=batch).regret_bound


def test_more_privacy_more_changes_and_less_smoothness_never_cost_less():
    def bound(epsilon=1.0, cap=None, beta=0.25):
        return plan_ftrl(BALL, 10**5, 1.0, epsilon, 1e-6, smoothness=beta, max_switches=cap).regret_bound

    assert bound(3.0) <= bound(1.0) <= bound(0.1)
    caps = [bound(cap=cap) for cap in (10, 100, 1000, 10**4, None)]
    assert caps == sorted(caps, reverse=True)
    assert bound(beta=0.01) <= bound() <= bound(beta=4.0)


@pytest.mark.parametrize("cap", [0, 1, 7, 100, 999, 1000])
def test_a_cap_on_switches_is_kept(cap):
    plan = plan_ftrl(BALL, 1000, *GOAL, max_switches=cap, smoothness=0.25)
    assert plan.max_switches <= cap
    assert math.isfinite(plan.regret_bound)
    if cap == 0:
        assert plan.account().epsilon(1e-6) == 0.0


def test_the_domain_is_a_larger_ball_and_the_plan_says_so():
    body = rt.Box([-1, 0], [1, 2])
    plan = plan_ftrl(body, 10**4, *GOAL, smoothness=0.25)
    assert plan.comparators == plan.body == body
    assert isinstance(plan.domain, rt.Ball)
    assert np.array_equal(plan.domain.center, body.center)
    assert plan.domain.radius > 10 * body.radius
    assert plan.trivial_regret == plan.lipschitz * (plan.domain.radius + body.radius) * plan.horizon
    assert plan.idle_regret == plan.lipschitz * body.radius * plan.horizon
    for text in (str(plan), plan.explain()):
        assert repr(body) in text
        assert "leave" in text
    assert plan.adversary == "oblivious"
    assert "smooth" in plan.assumes
    assert plan_ftrl(body, 10**4, *GOAL).comparators == body


def test_too_small_a_ball_is_paid_for():
    """What a certificate claims for the chance of the surface is what runs show, by independent noise of its law."""
    plan = plan_ftrl(rt.Ball(2), 400, *GOAL, smoothness=0.25)
    assert plan.astray < 1e-18
    sure = plan.regret_bound
    deviation = plan.sigma * plan.mechanism.largest(plan.batches - 1)
    for wide in (1.0, 2.0, 3.0):
        # Less half a diagonal of the grid, which decisions may move by.
        step = np.linalg.norm(plan.grid) / 2
        domain = rt.Ball(2, (400 * (1 + 2 * SLACK) + wide * deviation) / plan.lam + step)
        small = replace(plan, domain=domain)
        assert small.astray == pytest.approx(min(1.0, small.batches * math.exp(-(wide**2) / 2)), rel=1e-6)
        worst = domain.radius + 1.0
        expected = min(small.regret.convex(small.lam) + small.grid_regret, sure + small.astray * worst * 400)
        assert small.regret_bound == pytest.approx(expected, rel=1e-9)
    assert replace(plan, domain=rt.Ball(2, 1.0)).astray == 1.0


def test_adversarial_runs_are_never_stopped_at_the_surface():
    """Gradients that all point one way take decisions as far as they go; without a domain so large they would stop."""
    plan = plan_ftrl(rt.Ball(2), 2000, *GOAL, smoothness=0.25)
    trace = rt.make(plan, rt.Linear(), seed=1).observe_many(np.tile([1.0, 0.0], (2000, 1)))
    lengths = np.linalg.norm(np.vstack([trace.points, trace.final]), axis=1)
    assert lengths.max() < plan.domain.radius * (1 - 1e-9)
    assert lengths.max() > 0.5 * plan.domain.radius
    assert float(trace.regret()) <= plan.regret_bound
    # Against the larger ball this stream's regret would be of another order.
    assert np.linalg.norm(trace.regret().comparator.point) <= 1 + 1e-9


@pytest.mark.parametrize("reach", [1.5, 3.0, 10.0])
def test_decisions_that_are_pulled_back_stay_within_reach(reach):
    """Gradients that all point one way, again: now they are held, and never stopped at the surface."""
    plan = plan_ftrl(rt.Ball(2), 2000, *GOAL, smoothness=0.25, reach=reach)
    free = plan_ftrl(rt.Ball(2), 2000, *GOAL, smoothness=0.25)
    assert plan.domain.radius == reach < free.domain.radius
    assert plan.pull > 0 == free.pull
    assert plan.astray < 1e-18
    assert plan.regret_bound > free.regret_bound
    assert plan.account().epsilon(1e-6) <= 1.0
    regrets = []
    for seed in range(4):
        trace = rt.make(plan, rt.Linear(), seed=seed).observe_many(np.tile([1.0, 0.0], (2000, 1)))
        lengths = np.linalg.norm(np.vstack([trace.points, trace.final]), axis=1)
        assert lengths.max() < reach * (1 - 1e-6)
        assert lengths.max() > 1.0
        regrets.append(float(trace.regret()))
    assert np.mean(regrets) <= plan.regret_bound


def test_the_bound_with_a_pull_is_the_formula():
    plan = plan_ftrl(rt.Ball(4), 1000, *GOAL, smoothness=0.5, batch=4, reach=4.0, noise="toeplitz-exact")
    lam, steps = plan.lam, 4 * plan.pull
    power = sum(4 * SquareRoot().deviation(k) ** 2 for k in range(250))
    terms = lam / 2 + 1000 * 4 / (2 * lam) / (1 - steps / lam)
    terms += (0.5 + plan.pull) * 4 * plan.sigma**2 * power / (2 * lam**2)
    assert plan.regret_bound == pytest.approx(terms + plan.grid_regret, rel=1e-9)
    far = [plan_ftrl(rt.Ball(4), 1000, *GOAL, smoothness=0.5, reach=r).regret_bound for r in (1.2, 2.0, 5.0, 50.0)]
    assert far == sorted(far, reverse=True)


def test_decisions_far_from_the_body_suffer_more_than_its_diameter_and_no_certificate_says_less():
    """Certificates are capped at what any decisions suffer: these ones are not in the body."""
    plan = SmoothFTRLPlan(rt.Ball(1, 1e4), 100, 1.0, lam=1.0, sigma=1e3, smoothness=100.0, body=rt.Ball(1))
    rows, targets = np.full((100, 1), 10.0), np.zeros(100)
    regrets = [float(rt.make(plan, rt.Huber(0.1), seed=k).observe_many(rows, targets).regret()) for k in range(5)]
    assert 100 * plan.body.diameter < min(regrets)  # what was claimed
    assert np.mean(regrets) <= plan.certified_regret <= plan.regret_bound
    assert plan.vacuous
    assert "radius of the body" in plan.vacuous_in_words()


def test_noise_whose_last_bits_show_is_charged_or_refused():
    """Noise far larger than lam times a step is a multiple of many steps: what is left of a release is the data."""
    lam, sigma = 2.0**-27, 1e4
    unit = Fraction(lam) * Fraction(2.0**-18)
    noise = [Fraction(abs(x)) for x in sigma * np.random.default_rng(1).standard_normal(1000)]
    # From 256 on noise is an even number of steps: whether the sum is odd tells a gradient of one step from none.
    odd = [np.mean([round((gradient + x) / unit) % 2 for x in noise]) for gradient in (0, unit)]
    assert odd[0] < 0.03
    assert odd[1] > 0.97
    made = {"lam": lam, "sigma": sigma, "smoothness": 1e-30, "body": rt.Ball(1)}
    with pytest.raises(ValueError, match="epsilon must be at least"):
        SmoothFTRLPlan(rt.Ball(1, 1e15), 2, 1.0, **made, epsilon=1.0, delta=1e-6)
    # Small epsilon, little smoothness: the planner keeps noise within what rounding allows for.
    plan = plan_ftrl(rt.Ball(1), 10**6, 1.0, 1e-4, 1e-6, smoothness=1e-12)
    rough = max(1.0, plan.least_lam / plan.lam)
    assert plan.least_lam == plan.sigma * plan.mechanism.deviation(plan.batches) / (2.0**22 * plan.grid[0])
    assert plan.rounding(10**6).distance == pytest.approx(rough * 2.0**-25 * math.sqrt(plan.batches), rel=1e-9)
    assert rough == 1.0 or 2 * plan.rounding(10**6).distance <= 0.06 * plan.mu()
    # A thin box has steps that are short: some of mu is spent on them.
    thin = plan_ftrl(rt.Box([-1, -0.01], [1, 0.01]), 10**4, 1.0, 0.1, 1e-6, linear=True)
    wide = plan_ftrl(rt.Box([-1, -1], [1, 1]), 10**4, 1.0, 0.1, 1e-6, linear=True)
    assert thin.regret_bound < wide.regret_bound
    looser = replace(plan, lam=plan.least_lam / 10, epsilon=None, delta=None, domain=rt.Ball(1, 1e9))
    assert looser.rounding(10**6).distance == pytest.approx(10 * 2.0**-25 * math.sqrt(plan.batches), rel=1e-9)


def test_the_grid_costs_more_where_decisions_are_pulled_back():
    plan = plan_ftrl(rt.Ball(2), 1000, *GOAL, smoothness=0.25, reach=1.5)
    step, kept = np.linalg.norm(plan.grid) / 2, 1 - plan.batch * plan.pull / plan.lam
    second = -(-1000 // plan.batch) * plan.lam * step**2 / 2
    assert plan.grid_regret == pytest.approx((1000 * step + second) / kept, rel=1e-12)
    assert kept < 0.99
    # From the proof: the worst length of a pulled gradient, with the grid's step along it.
    b, lam, pull = plan.batch, plan.lam, plan.pull
    w = np.linspace(0.0, 100 * b / lam / kept, 10**5)
    worst = (b**2 * (1 + pull * w) ** 2 / (2 * lam) + b * (1 + pull * w) * step - b * pull * w**2 / 2).max()
    allowed = b**2 / (2 * lam) / kept
    assert allowed + b * step < worst <= allowed + (b * step + lam * step**2 / 2) / kept


def test_a_run_without_the_pull_of_its_plan_would_leave():
    plan = plan_ftrl(rt.Ball(2), 2000, *GOAL, smoothness=0.25, reach=3.0)
    learner = rt.make(plan, rt.Linear(), seed=1)
    learner._walk._pulled = (0.0, 1.0)
    trace = learner.observe_many(np.tile([1.0, 0.0], (2000, 1)))
    assert np.linalg.norm(trace.points, axis=1).max() >= 3.0 * (1 - 1e-12)


def test_mean_regret_is_below_the_certificate_and_noise_matters():
    rng = np.random.default_rng(5)
    plan = plan_ftrl(rt.Ball(5), 2000, *GOAL, smoothness=0.25)
    features = rng.normal(size=(2000, 5))
    features /= np.linalg.norm(features, axis=1)[:, None]
    labels = np.where(features[:, 0] + 0.3 * rng.normal(size=2000) > 0, 1.0, -1.0)
    regrets = [float(rt.make(plan, rt.Logistic(), seed=k).observe_many(features, labels).regret()) for k in range(20)]
    assert np.mean(regrets) <= plan.regret_bound
    silent = plan.regret._noiseless(plan.lam)
    assert silent < plan.regret_bound / 1.4  # the term of the noise is a good part of it


def test_traces_keep_their_comparators():
    plan = plan_ftrl(rt.Ball(2), 400, *GOAL, smoothness=0.25)
    learner = rt.make(plan, rt.Logistic(), seed=1)
    rows = np.tile([0.6, 0.8], (200, 1))
    a, b = learner.observe_many(rows, np.ones(200)), learner.observe_many(rows, -np.ones(200))
    assert a.domain == plan.domain
    assert (a + b).comparators == a.comparators == rt.Ball(2)
    assert (a + b).regret().value == pytest.approx((a + b).curve()[-1], abs=1e-6)
    other = rt.make(plan_ftrl(rt.Ball(2), 400, *GOAL), rt.Logistic(), seed=1).observe_many(rows, np.ones(200))
    assert other.comparators == other.domain == rt.Ball(2)
    parts = [getattr(a, name) for name in a.__slots__]
    with pytest.raises(ValueError, match="comparators must be"):
        rt.Trace(*parts[:-1], rt.Ball(2, center=[1.0, 0.0]))


def test_rows_that_bend_too_much_are_refused_one_by_one_and_in_blocks():
    plan = plan_ftrl(rt.Ball(2), 400, 2.0, 1.0, 1e-6, smoothness=0.25)
    for take in ("observe", "observe_many"):
        learner = rt.make(plan, rt.Logistic(), seed=1)
        good, bad = np.array([0.9, 0.0]), np.array([1.1, 0.0])
        getattr(learner, take)(*((good, 1.0) if take == "observe" else (good[None], [1.0])))
        with pytest.raises(ValueError, match="smoothness"):
            getattr(learner, take)(*((bad, 1.0) if take == "observe" else (bad[None], [1.0])))
        assert learner.rounds == 1


@pytest.mark.parametrize("loss", [rt.Squared(), rt.Absolute(), rt.Hinge()])
def test_losses_that_are_not_smooth_everywhere_are_refused(loss):
    with pytest.raises(ValueError, match=r"bounded everywhere.*PCOMW"):
        rt.make(plan_ftrl(rt.Ball(2), 400, *GOAL, smoothness=1.0), loss)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"smoothness": 0.0}, "smoothness must be"),
        ({"smoothness": math.nan}, "smoothness must be"),
        ({"linear": True}, "linear must be False"),
        ({"pull": -1.0}, "pull must be"),
        ({"pull": 50.0}, "pull must be less than lam/batch"),
        ({"domain": rt.Ball(3, 0.5)}, "domain must be a ball around"),
        ({"domain": rt.Ball(3, 9.0, [1.0, 0.0, 0.0])}, "domain must be a ball around"),
        ({"domain": rt.Box([-9] * 3, [9] * 3)}, "domain must be a ball around"),
        ({"body": rt.Simplex(3)}, "must have an inside"),
        ({"body": rt.Experts(3)}, "convex body"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    good = {"domain": rt.Ball(3, 9.0), "horizon": 100, "lipschitz": 1.0, "lam": 50.0, "sigma": 1.0}
    good |= {"smoothness": 1.0, "body": rt.Ball(3)}
    assert SmoothFTRLPlan(**good).regret_bound > 0
    with pytest.raises(ValueError, match=message):
        SmoothFTRLPlan(**{**good, **change})


def test_bad_goals_are_refused():
    with pytest.raises(ValueError, match="smoothness must be left out"):
        plan_ftrl(BALL, 100, *GOAL, smoothness=1.0, linear=True)
    with pytest.raises(ValueError, match="must have an inside"):
        plan_ftrl(rt.Simplex(3), 100, *GOAL, smoothness=1.0)
    with pytest.raises(ValueError, match="reach is for plans with smoothness"):
        plan_ftrl(BALL, 100, *GOAL, reach=2.0)
    for reach in (0.5, 1.0):
        with pytest.raises(ValueError, match="reach must be greater than the radius"):
            plan_ftrl(BALL, 1000, *GOAL, smoothness=1.0, reach=reach)


def test_it_is_listed_with_what_it_assumes_and_not_chosen_for_decisions_in_the_domain():
    goal = (rt.Ball(3), 10**4, 1.0)
    found = rt.compare_plans(*goal, rt.Logistic(), epsilon=1.0, delta=1e-6)
    offer = found["DP-FTRL, smooth losses"]
    assert offer.plan == plan_ftrl(*goal, 1.0, 1e-6, smoothness=0.25)
    assert offer is found.offers[0]
    assert "from the centre, fixed in advance" in offer.assumes
    assert found.best.domain == rt.Ball(3)
    known = rt.compare_plans(*goal, rt.Huber(0.5), epsilon=1.0, delta=1e-6, max_switches=50)
    assert known["DP-FTRL, smooth losses"].plan.smoothness == 4.0
    assert known["DP-FTRL, smooth losses"].plan.max_switches <= 50


def test_saved_learners_go_on(tmp_path):
    plan = plan_ftrl(rt.Ball(2), 400, *GOAL, smoothness=0.25)
    rows, labels = np.tile([0.6, 0.8], (200, 1)), np.ones(200)
    straight, stopped = (rt.make(plan, rt.Logistic(), seed=3) for _ in range(2))
    for learner in (straight, stopped):
        learner.observe_many(rows, labels)
    stopped.save(tmp_path / "state")
    resumed = rt.load(tmp_path / "state")
    assert resumed.plan == plan
    ours, theirs = (learner.observe_many(rows, labels).decisions() for learner in (straight, resumed))
    assert np.array_equal(ours, theirs)
