"""Randomness belongs to one learner in one process: not to its caller, not to a fork; and decisions to nobody else."""

import os
import pickle

import numpy as np
import pytest
from journals import heard_words, in_child_words

import reticent as rt
from reticent._core._random import taken_over

# Later Pythons warn of forks beside other threads, such as those of pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 2))


def private(seed=1):
    return rt.make(rt.planning.plan_noisy_descent(rt.Ball(2), 400, 1.0, 3.0, 1e-5), rt.Linear(), seed=seed)


def open_learner(seed=1):
    return rt.make(rt.planning.plan_budgeted(rt.Ball(2), 400, 1.0, 20), rt.Linear(), seed=seed)


def tracker(seed=1):
    return rt.PrivateMean(0.0, 1.0, epsilon=1.0, window=20, seed=seed)


def refusal(use):
    try:
        use()
    except RuntimeError as error:
        return str(error)
    return "done"


@pytest.mark.parametrize("make", [private, tracker])
def test_a_fork_of_a_private_learner_can_do_nothing(make, tmp_path):
    thing = make()
    rows = ROWS if make is private else ROWS[:, 0]
    thing.observe_many(rows[:30])
    uses = [
        lambda: thing.observe(rows[0]),
        lambda: thing.observe_many(rows[:5]),
        lambda: thing.save(tmp_path / "state"),
        lambda: pickle.dumps(thing),
    ]
    told = heard_words(in_child_words(lambda: [refusal(use) for use in uses] + [str(thing.rounds)]))
    assert all("was made before the process was forked" in words for words in told[:-1])
    assert told[-1] == "30"
    for use in uses:
        assert refusal(use) == "done"  # the parent goes on


def test_a_fork_may_go_on_with_what_was_loaded_or_made_there(tmp_path):
    learner, plain = private(), open_learner()
    learner.observe_many(ROWS[:30])
    learner.save(tmp_path / "state")

    def job():
        again = rt.load(tmp_path / "state")
        moved = pickle.loads((tmp_path / "pickle").read_bytes())
        uses = [again, moved, private(), plain]
        return [refusal(lambda: use.observe_many(ROWS[30:90])) for use in uses]  # noqa: B023

    (tmp_path / "pickle").write_bytes(pickle.dumps(learner))
    assert heard_words(in_child_words(job)) == ["done"] * 4


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64", "ChaCha"])
def test_a_generator_is_copied_and_jumps_ahead(kind):
    def made():
        if kind == "ChaCha":
            from randomgen import ChaCha

            return np.random.Generator(ChaCha(key=7))
        return np.random.Generator(getattr(np.random, kind)(7))

    given, same = made(), made()
    for one in (given, same):
        one.integers(0, 10, dtype=np.int32)  # half a word is left over in some
    first, second = taken_over(given), taken_over(given)
    assert np.array_equal(first.random(50), same.random(50))
    assert not {*first.random(1000)} & ({*second.random(1000)} | {*given.random(1000)})


def test_a_learner_draws_nothing_that_its_caller_draws():
    given = np.random.default_rng(5)
    learner, alone = private(given), private(np.random.default_rng(5))
    given.random(1000)
    other = private(given)
    decisions = [one.observe_many(ROWS).decisions() for one in (learner, alone, other)]
    assert np.array_equal(decisions[0], decisions[1])  # as it was before there was a copy
    assert not np.array_equal(decisions[0], decisions[2])


@pytest.mark.parametrize("make", [private, open_learner])
@pytest.mark.parametrize("way", ["new", "pickled", "loaded"])
def test_nobody_writes_to_a_decision(make, way, tmp_path):
    learner, clean = make(), make()
    learner.observe_many(ROWS[:50])
    clean.observe_many(ROWS[:50])
    if way == "pickled":
        learner = pickle.loads(pickle.dumps(learner))
    elif way == "loaded":
        learner.save(tmp_path / "state")
        learner = rt.load(tmp_path / "state")
    shown = learner.decision
    assert not shown.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        shown.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        shown[0] = 7.0
    assert np.array_equal(learner.observe_many(ROWS[50:]).decisions(), clean.observe_many(ROWS[50:]).decisions())


def test_the_state_of_numpys_errors_changes_nothing():
    tiny = np.tile([[1e-200, 0.0], [1e-310, 0.0], [0.0, 0.0], [0.1, 1e-300]], (50, 1))
    for make in (private, open_learner):
        decisions = []
        for state in ("ignore", "raise"):
            with np.errstate(all=state):
                learner = make()
                for row in tiny[:20]:
                    learner.observe(row)
                decisions.append(learner.observe_many(tiny).decisions())
        assert np.array_equal(*decisions)
    with np.errstate(all="raise"):
        assert rt.plan_private(rt.Interval(-1.0, 1.0), 100, 1.0, 1.0, 1e-6).private
        mean = tracker()
        mean.update_many(np.full(100, 1e-310))
        assert mean.rounds == 100


def test_the_process_id_is_not_asked_in_every_round(monkeypatch):
    learner = private()
    monkeypatch.setattr(os, "getpid", lambda: pytest.fail("a system call in every round"))
    learner.observe(ROWS[0])
    assert learner.rounds == 1
