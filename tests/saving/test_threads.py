"""Two threads on one learner: refused without a journal, in turns with one."""

import sys
import threading

import numpy as np
import pytest

import reticent as rt

ROWS = np.random.default_rng(1).uniform(-0.5, 0.5, size=(3000, 2))
PLAN = rt.plan_lazy(rt.Ball(2), 6000, 1.0, max_switches=600)


@pytest.fixture
def hasty():
    """Threads that change all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def hammered(observe, rows=ROWS, threads=2):
    """Call `observe` from threads; return what each one got through, and how often one was refused."""
    taken, refused, ready = [], [], threading.Barrier(threads, timeout=60)

    def work():
        ready.wait(60)
        for row in rows:
            try:
                observe(row)
                taken.append(1)
            except RuntimeError as error:
                refused.append(str(error))

    crowd = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in crowd)
    assert all("at work in another call" in words for words in refused)
    return len(taken), len(refused)


@pytest.mark.usefixtures("hasty")
def test_a_bare_learner_refuses_what_overlaps_and_counts_the_rest():
    learner = rt.PCOMW(PLAN, rt.Linear(), seed=1)
    refused = 0
    for _ in range(20):
        _, refused = hammered(learner.observe, ROWS[:100])
        if refused:
            break
    assert refused  # else this test says nothing
    while learner.rounds < 6000:  # nothing is left locked
        learner.observe(ROWS[0])


@pytest.mark.usefixtures("hasty")
def test_no_round_is_lost_or_taken_twice():
    learner = rt.PCOMW(PLAN, rt.Linear(), seed=1)
    taken, refused = hammered(learner.observe)
    assert taken + refused == 6000
    assert learner.rounds == taken


@pytest.mark.usefixtures("hasty")
def test_in_a_journal_threads_take_turns(tmp_path):
    with rt.Journal(tmp_path / "journal", batch=100) as journal:
        learner = journal.start(PLAN, rt.Linear(), seed=1)
        assert hammered(learner.observe) == (6000, 0)
        learner.flush()
        assert learner.rounds == journal.acknowledged == 6000
    with rt.Journal(tmp_path / "journal") as journal:
        assert np.array_equal(journal.resume().decision, learner._x)


@pytest.mark.usefixtures("hasty")
def test_a_decision_is_read_while_another_thread_writes(tmp_path):
    with rt.Journal(tmp_path / "journal") as journal:
        learner = journal.start(PLAN, rt.Linear(), seed=1)
        done, seen = threading.Event(), []

        def look():
            while not done.is_set():
                seen.append(learner.decision)

        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        for start in range(0, 2000, 20):
            learner.observe_many(ROWS[start : start + 20])
        done.set()
        reader.join(timeout=60)
        assert not reader.is_alive()
        assert seen
        assert learner.rounds == 2000


def test_a_loss_cannot_give_rounds_to_its_own_learner():
    plan = rt.planning.plan_leader(rt.Ball(2), 50, 1.0)

    def value(x, c):
        if learner is not None:
            learner.observe(c)
        return 0.0

    learner = None
    learner = rt.make(plan, rt.Custom(value, lambda x, c: np.zeros(2), lipschitz=1.0), seed=1)
    with pytest.raises(RuntimeError, match="at work in another call"):
        learner.observe(np.zeros(2))
    assert learner.rounds == 0
