"""The filtered gate as it runs: releases, one price for ever, caps, files, interrupts, and the front door."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from interrupts import interrupted

import reticent as rt
from reticent.planning import FilteredPlan, plan_filtered
from reticent.systems.filtered._buffers import TABLE
from reticent.systems.gate._normal import rounded_normals

GOAL = {"epsilon": 1.0, "delta": 1e-6}


def stream(count, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dim))
    rows /= 1.0001 * np.linalg.norm(rows, axis=1)[:, None]
    return rows, np.where(rows[:, 0] + 0.3 * rng.normal(size=count) > 0, 1.0, -1.0)


def door(loss=None, domain=None, seed=1, **options):
    return rt.private_learner(loss or rt.Logistic(), domain or rt.Ball(3), seed=seed, **(GOAL | options))


def test_it_goes_on_for_ever_at_one_price_and_learns():
    learner, (X, y) = door(), stream(30_000)
    batch = learner.plan.batch
    learner.observe_many(X[: batch - 1], y[: batch - 1])
    assert learner.spent() == 0.0
    assert not learner.decision.any()
    trace = learner.observe_many(X[batch - 1 :], y[batch - 1 :])
    assert learner.spent() == pytest.approx(1.0, abs=1e-6)
    assert learner.plan.account(10**15).epsilon(1e-6) <= 1.0
    # Further than half of the way from never moving to the best fixed decision.
    assert float(trace.regret()) < 0.5 * (len(trace) * np.log(2) - trace.total + float(trace.regret()))
    assert learner.switches < 300


def test_releases_are_mixed_sums_plus_noise_and_a_changed_row_moves_those_of_its_epoch_only():
    plan = FilteredPlan(rt.Ball(2), None, 1.0, noise=2.0, clip=1.0, batch=5)
    rows, _ = stream(300, dim=2)
    other = rows.copy()
    other[12] = -other[12]  # in the third block of the first epoch
    seen = []
    for data in (rows, other):
        learner = rt.make(plan, rt.Linear(), seed=3)
        seen.append([(learner.observe_many(data[k : k + 5]), learner._walk.released)[1] for k in range(0, 40, 5)])
        learner.observe_many(data[40:])
        seen[-1].append(learner._walk.released)
    mechanism = plan.release(plan.epoch(0))
    weights, decays = TABLE[8]
    column = [1.0, *(sum(w * r**k for w, r in zip(weights, decays, strict=True)) for k in range(7))]
    noise = rounded_normals(np.random.Generator(np.random.PCG64(3)), 16, mechanism.grid.shift).reshape(8, 2)
    sums = np.array([mechanism.grid.rounded(rows[k : k + 5]).sum(axis=0) for k in range(0, 40, 5)])
    mixed = np.array([sum(column[k - i] * sums[i] for i in range(k + 1)) for k in range(8)])
    assert np.abs(np.array(seen[0][:8]) - noise - mixed).max() <= 1
    moved = np.array(seen[0]) - np.array(seen[1])
    assert not moved[:2].any()
    assert not moved[8].any()  # the next epoch knows nothing of it
    apart = mechanism.grid.rounded(rows[12:13])[0] - mechanism.grid.rounded(other[12:13])[0]
    assert np.abs(moved[2:8] - np.outer(column[:6], apart)).max() <= 2


@pytest.mark.parametrize("dim", [1, 8, 33])
def test_cuts_do_not_matter_to_the_last_bit(dim):
    X, y = stream(900, dim)
    plan = FilteredPlan(rt.Ball(dim), None, 1.0, noise=0.5, clip=0.5, batch=7)
    whole, parts, single = (rt.make(plan, rt.Logistic(), seed=2) for _ in range(3))
    whole.observe_many(X, y)
    for a, b in pairwise([0, 1, 2, 10, 27, 64, 199, 333, 334, 900]):
        parts.observe_many(X[a:b], y[a:b])
    for row, label in zip(X, y, strict=True):
        single.observe(row, label)
    for learner in (parts, single):
        assert np.array_equal(whole.decision, learner.decision)
        assert np.array_equal(whole._walk.released, learner._walk.released)


@pytest.mark.parametrize("most", [0, 1, 7, 40, 10_000])
def test_a_cap_on_changes_never_breaks(most):
    learner = door(horizon=5_000, max_switches=most)
    assert learner.plan.max_switches <= most
    learner.observe_many(*stream(5_000))
    assert learner.switches <= most
    with pytest.raises(ValueError, match="horizon"):
        learner.observe_many(*stream(1))


def test_steep_rounds_are_scaled_down_and_odd_ones_leave_no_mark_if_they_are_refused():
    X, y = stream(500)
    learner = door(on_bad="raise")
    learner.observe_many(1e6 * X, y)
    learner.observe(1e100 * X[0], y[0])
    assert learner.rounds == 501
    with pytest.raises(ValueError, match="finite"):
        learner.observe_many(np.full((3, 3), np.nan), y[:3])
    assert learner.rounds == 501


@pytest.mark.parametrize(
    ("loss", "lipschitz", "clip"),
    [
        (rt.Logistic(), 1.0, 0.5),
        (rt.Hinge(), 1.0, 1.0),
        (rt.Absolute(), 1.0, 1.0),
        (rt.Pinball(0.95), 0.95, 0.95),
        (rt.Huber(width=0.3), 0.3, 0.15),
        (rt.Linear(), 1.0, 1.0),
        (rt.Custom(lambda x, c: 0.0, lambda x, c: 0 * x, lipschitz=2.0), 2.0, 2.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_scale_is_what_the_loss_has_for_rows_of_length_one(loss, lipschitz, clip):
    plan = door(loss).plan
    assert (plan.lipschitz, plan.clip, plan.horizon) == (lipschitz, clip, None)
    assert door(loss, lipschitz=3.0).plan.lipschitz == 3.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": 0}, "delta must be greater than 0"),
        ({"loss": rt.Squared()}, "lipschitz must be given for"),
        ({"loss": "logistic"}, "loss must be one of"),
        ({"domain": rt.Experts(3)}, "loss must be Linear"),
        ({"max_switches": 5}, "give a horizon"),
        ({"lipschitz": -1.0}, "lipschitz"),
        ({"neighbors": "add"}, "neighbors"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        door(**given)


@pytest.mark.parametrize(
    "domain",
    [
        rt.Interval(-2.0, 5.0),
        rt.Box([-1, 0], [1, 2]),
        rt.Simplex(4),
        rt.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]),
    ],
    ids=lambda domain: type(domain).__name__,
)
def test_any_body_will_do(domain):
    learner = door(rt.Linear(), domain)
    X, _ = stream(4_000, domain.dim)
    trace = learner.observe_many(0.3 * X + 0.5 * np.eye(domain.dim)[0])
    assert all(domain.contains(x) for x in trace.points)
    assert learner.decision[0] < domain.center[0]


def test_plans_say_what_is_promised_and_what_is_not():
    plan = door().plan
    assert plan.regret_bound is None
    for shown in (plan, door(horizon=1_000).plan):
        text = " ".join((str(shown) + shown.explain()).split())
        assert "plan_descent" in text
        assert "Nothing is proved of the decisions" in text
        assert "epsilon 1, delta 1e-06" in text
    assert plan.dp_event().noise_multiplier == pytest.approx(plan.noise)
    assert plan_filtered(rt.Ball(3), None, 1.0, 1.0, 1e-6, neighbors="zero-out").batch < plan.batch
    with pytest.raises(ValueError, match="clip must be at most"):
        FilteredPlan(rt.Ball(2), None, 1.0, noise=2.0, clip=1.5, batch=5)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        FilteredPlan(rt.Ball(2), None, 1.0, noise=0.1, clip=0.5, batch=5, **GOAL)


@pytest.mark.parametrize("part", ["open", "noise", "grid", "epoch", "buffers"])
def test_states_that_were_put_together_are_refused(part, tmp_path):
    learner = door()
    learner.observe_many(*stream(500))
    walk = learner._walk
    if part == "open":
        walk.open = walk.open + 2**50
    elif part == "noise":
        walk.ahead = walk.ahead.astype(float)
    elif part == "grid":
        walk.mechanism.grid.shift -= 1
    elif part == "epoch":
        walk._begin(walk.epoch.number + 1)
    else:
        walk.buffers = walk.buffers[:1]
    learner.save(tmp_path / "state")
    with pytest.raises(ValueError, match=r"its (walk|gate|sums|open|epoch|buffers)"):
        rt.load(tmp_path / "state")


def test_an_interrupt_never_lets_a_block_be_released_twice():
    plan = FilteredPlan(rt.Ball(2), None, 1.0, noise=2.0, clip=0.5, batch=4)
    X, y = stream(20, dim=2)
    straight = rt.make(plan, rt.Logistic(), seed=1)
    straight.observe_many(X, y)
    went_on = refused = 0
    for after in range(1, 3000):
        learner = rt.make(plan, rt.Logistic(), seed=1)
        learner.observe_many(X[:3], y[:3])
        if not interrupted(lambda: learner.observe_many(X[3:9], y[3:9]), after):  # noqa: B023
            break
        if learner._torn():
            with pytest.raises(RuntimeError, match="was interrupted"):
                learner.observe_many(X, y)
            refused += 1
            continue
        learner.observe_many(X[learner.rounds :], y[learner.rounds :])
        assert np.array_equal(learner.decision, straight.decision)
        went_on += 1
    assert went_on
    assert refused


def test_no_compiled_code_is_loaded_on_the_way():
    code = (
        "import sys, numpy as np, reticent as rt\n"
        "learner = rt.private_learner(rt.Logistic(), rt.Ball(10), epsilon=1.0, delta=1e-6)\n"
        "learner.observe_many(np.full((500, 10), 0.1), np.ones(500))\n"
        "learner.observe(np.full(10, 0.1), 1)\n"
        "assert learner.switches and learner.spent() > 0.9\n"
        "assert not {'numba', 'dp_accounting', 'pandas', 'matplotlib', 'scipy.stats'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
