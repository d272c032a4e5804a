"""Noisy descent as it runs: one release per block, nothing else used, no end, files, journals, interrupts."""

from itertools import pairwise

import numpy as np
import pytest
from interrupts import interrupted

import reticent as rt
from reticent.planning import NoisyDescentPlan, plan_descent

GOAL = {"epsilon": 1.0, "delta": 1e-6}


def stream(count, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dim))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows, np.where(rows[:, 0] + 0.3 * rng.normal(size=count) > 0, 1.0, -1.0)


def endless(loss=None, seed=1, dim=3, **options):
    return rt.make(plan_descent(rt.Ball(dim), None, 1.0, **GOAL), loss or rt.Logistic(), seed=seed, **options)


def test_it_goes_on_for_ever_at_one_price():
    learner = endless()
    assert learner.spent() == 0.0
    X, y = stream(learner.plan.batch - 1)
    learner.observe_many(X, y)
    assert learner.spent() == 0.0
    assert not learner.decision.any()
    for seed in range(3):
        learner.observe_many(*stream(20_000, seed=seed))
        assert learner.spent() == pytest.approx(1.0, abs=1e-6)
    assert learner.switches == learner.rounds // learner.plan.batch
    assert repr(learner) == f"<NoisyDescent Logistic(): {learner.rounds} rounds, {learner.switches} switches>"


def test_it_learns():
    learner, (X, y) = endless(), stream(60_000)
    trace = learner.observe_many(X, y)
    assert float(trace.regret()) <= learner.plan.regret_at(60_000)
    assert learner.decision[0] > 0.5


def test_the_releases_are_sums_of_rows_plus_noise_and_decisions_functions_of_them():
    plan = NoisyDescentPlan(rt.Ball(2), 60, 1.0, sigma=2.0, batch=20, lam=30.0)
    learner, release = rt.make(plan, rt.Linear(), seed=3), plan.release()
    X, _ = stream(60, dim=2)
    shadow, total = np.random.Generator(np.random.PCG64(3)), np.zeros(2)
    for k in range(3):
        block = X[20 * k : 20 * k + 20]
        learner.observe_many(block)
        h = release.released(release.rounded(block).sum(axis=0), shadow)
        assert np.array_equal(learner._walk.released, h)
        assert not learner._walk.open.any()
        total += release.real(h)
        aim = -total / plan.lam
        assert np.allclose(learner.decision, aim / max(1.0, np.linalg.norm(aim)), atol=1e-12)


def test_a_changed_row_moves_one_release_by_its_change_and_nothing_else():
    plan = NoisyDescentPlan(rt.Ball(2), 60, 1.0, sigma=2.0, batch=20, lam=1e9)
    X, _ = stream(60, dim=2)
    other = X.copy()
    other[25] = -other[25]
    seen = []
    for rows in (X, other):
        learner = rt.make(plan, rt.Linear(), seed=3)
        seen.append([(learner.observe_many(rows[20 * k : 20 * k + 20]), learner._walk.released)[1] for k in range(3)])
    release = plan.release()
    moved = np.array(seen[0]) - np.array(seen[1])
    assert not moved[0].any()
    assert not moved[2].any()
    assert (moved[1] ** 2).sum() <= 4 * release.most
    assert np.allclose(release.real(moved[1]), 2 * X[25], atol=4 * release.step)


@pytest.mark.parametrize(
    "loss", [rt.Logistic(), rt.Hinge(), rt.Huber(), rt.Linear()], ids=lambda loss: type(loss).__name__
)
@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 33, 130])
def test_cuts_do_not_matter_to_the_last_bit(loss, dim):
    """Sums over coordinates must not depend on the rows beside a row: privacy rests on it, too."""
    data = stream(700, dim)[: len(loss.data)]
    if isinstance(loss, rt.Huber):
        data = (data[0], 0.5 * data[1])
    plan = NoisyDescentPlan(rt.Ball(dim), 700, 1.5, sigma=1.0, batch=50, lam=40.0)
    whole = rt.make(plan, loss, seed=2)
    whole.observe_many(*data)
    cuts = [0, 1, 2, 3, 10, 27, 64, 65, 199, 333, 334, 700]
    parts = rt.make(plan, loss, seed=2)
    for a, b in pairwise(cuts):
        parts.observe_many(*(part[a:b] for part in data))
    single = rt.make(plan, loss, seed=2)
    for i in range(700):
        single.observe(*(part[i] for part in data))
    assert np.array_equal(whole.decision, parts.decision)
    assert np.array_equal(whole.decision, single.decision)
    assert np.array_equal(whole._walk.released, single._walk.released)


def test_steep_rows_are_refused_or_scaled_and_others_are_the_same_either_way():
    X, y = stream(500)
    raising, clipping = endless(), endless(on_steep="clip")
    raising.observe_many(X, y)
    clipping.observe_many(X, y)
    assert np.array_equal(raising.decision, clipping.decision)
    steep = X.copy()
    steep[3] *= 1e6
    with pytest.raises(ValueError, match="row 3 has Lipschitz constant"):
        raising.observe_many(steep, y)
    assert raising.rounds == 500
    clipping.observe_many(steep, y)
    assert clipping.rounds == 1000
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[5, 1] = bad
        for learner in (raising, clipping):
            before = learner.rounds
            with pytest.raises(ValueError, match="finite"):
                learner.observe_many(broken, y)
            assert learner.rounds == before


def test_a_custom_loss_that_lies_about_its_slope_is_clipped():
    liar = rt.Custom(lambda x, c: float(c * x[0]), lambda x, c: np.array([c * (1 + 9 * (x[0] != 0))]), lipschitz=1.0)
    plan = NoisyDescentPlan(rt.Interval(-1.0, 1.0), 60, 1.0, sigma=2.0, batch=5, lam=30.0)
    learner = rt.make(plan, liar, seed=1)
    learner.observe_many([1.0] * 58)
    assert learner.rounds == 58
    assert abs(learner._walk.open[0]) <= 3 * plan.release().largest


def test_files_and_journals_go_on_to_the_last_bit(tmp_path):
    X, y = stream(3_000)
    straight, saved = endless(), endless()
    straight.observe_many(X, y)
    saved.observe_many(X[:1234], y[:1234])
    saved.save(tmp_path / "state")
    resumed = rt.load(tmp_path / "state")
    resumed.observe_many(X[1234:], y[1234:])
    assert np.array_equal(straight.decision, resumed.decision)
    with rt.Journal(tmp_path / "journal") as journal:
        journal.start(endless()).observe_many(X[:1999], y[:1999])
    with rt.Journal(tmp_path / "journal") as journal:
        learner = journal.resume()
        learner.observe_many(X[1999:], y[1999:])
        assert np.array_equal(straight.decision, learner.decision)
        assert learner.spent() == straight.spent()


@pytest.mark.parametrize("part", ["lam", "open", "release", "batch"])
def test_states_that_were_put_together_are_refused(part, tmp_path):
    learner = endless()
    learner.observe_many(*stream(100))
    walk = learner._walk
    if part == "lam":
        walk.lam *= 2
    elif part == "open":
        walk.open = walk.open + 2**40
    elif part == "release":
        walk.release.shift -= 1
    else:
        walk.batch += 1
    learner.save(tmp_path / "state")
    with pytest.raises(ValueError, match=r"its (gate|walk|open)"):
        rt.load(tmp_path / "state")


def test_an_interrupt_never_lets_a_block_be_released_twice_or_not_at_all(monkeypatch):
    from reticent.systems.gate import BlockRelease

    plan = NoisyDescentPlan(rt.Ball(2), 100, 1.0, sigma=2.0, batch=4, lam=30.0)
    X, y = stream(20, dim=2)
    sums, honest = [], BlockRelease.released
    monkeypatch.setattr(
        BlockRelease, "released", lambda self, total, rng: sums.append(total) or honest(self, total, rng)
    )
    straight = rt.make(plan, rt.Logistic(), seed=1)
    straight.observe_many(X, y)
    went_on = refused = 0
    for after in range(1, 3000):
        learner = rt.make(plan, rt.Logistic(), seed=1)
        learner.observe_many(X[:3], y[:3])
        sums.clear()
        if not interrupted(lambda: learner.observe_many(X[3:9], y[3:9]), after):  # noqa: B023
            break
        if learner._torn():
            with pytest.raises(RuntimeError, match="was interrupted"):
                learner.observe_many(X, y)
            with pytest.raises((RuntimeError, ValueError), match="was interrupted"):
                learner.save("nowhere")
            refused += 1
            continue
        learner.observe_many(X[learner.rounds :], y[learner.rounds :])
        assert len(sums) == 5  # one for each block of four
        assert np.array_equal(learner.decision, straight.decision)
        went_on += 1
    assert went_on
    assert refused
