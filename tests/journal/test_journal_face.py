"""The face of a journal: starting, resuming, batches, refusals, and one writer at a time."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
from journals import ROUNDS, heard, in_child, run

import reticent as rt
from reticent.journal import Reader, _blocks

# Later Pythons warn of forks beside other threads, such as those of pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


@pytest.fixture(params=["linear", "logistic"])
def this(request):
    return run(request.param)


def test_with_a_batch_of_one_it_is_a_learner_on_disk(this, path):
    with rt.Journal(path) as journal:
        assert not journal.started
        learner = journal.start(this.plan, this.loss, seed=3)
        assert journal.started
        for i in range(40):
            assert np.array_equal(learner.decision, this.decisions[i])
            assert not learner.decision.flags.writeable
            learner.observe(*this.row(i))
            assert (learner.rounds, learner.waiting, journal.acknowledged) == (i + 1, 0, i + 1)
        trace = learner.observe_many(*this.block(40, ROUNDS))
        assert np.array_equal(trace.decisions(), np.array(this.decisions[40:ROUNDS]))
        assert learner.switches == this.switches
        assert learner.plan is this.plan
        assert learner.loss == this.loss
        assert "Journaled" in repr(learner)
        assert f"{ROUNDS} rounds" in repr(journal)
    assert repr(journal).endswith("closed>")


def test_with_a_batch_decisions_rest_on_what_is_on_disk(this, path):
    with rt.Journal(path, batch=16) as journal:
        learner = journal.start(this.plan, this.loss, seed=3)
        for i in range(50):
            learner.observe(*this.row(i))
            assert learner.rounds == journal.acknowledged == (i + 1) // 16 * 16
            assert learner.rounds + learner.waiting == i + 1
            this.check(learner)
        learner.flush()
        assert (learner.rounds, learner.waiting) == (50, 0)
        this.check(learner)
        learner.observe(*this.row(50))
        learner.observe_many(*this.block(51, 60))
        assert (learner.rounds, learner.waiting) == (60, 0)
        learner.observe(*this.row(60))
    with rt.Journal(path) as journal:
        assert journal.acknowledged == 61  # closing brings everything to the disk
    assert this.finish(path) == 61


def test_a_prompt_journal_shows_what_a_bare_learner_shows(this, path):
    with rt.Journal(path, batch=1000, prompt=True) as journal:
        learner = journal.start(this.plan, this.loss, seed=3)
        waited = 0
        for i in range(ROUNDS):
            assert np.array_equal(learner.decision, this.decisions[i])
            learner.observe(*this.row(i))
            waited = max(waited, learner.waiting)
        assert waited > 1


def test_refused_rounds_leave_no_mark(this, path):
    with rt.Journal(path, batch=5) as journal:
        learner = journal.start(this.plan, this.loss, seed=3)
        for i in range(7):
            learner.observe(*this.row(i))
        seal = journal._store.head
        row, *rest = this.row(7)
        for bad in (row * np.nan, row * 1e6, np.zeros(5), "text"):
            with pytest.raises((ValueError, TypeError)):
                learner.observe(bad, *rest)
            assert (learner.rounds, learner.waiting) == (5, 2)
        assert journal._store.head == seal
        learner.flush()
        seal = journal._store.head
        rows, *others = this.block(7, 12)
        rows = rows.copy()
        rows[3] *= 1e6
        for bad in (rows, rows[:, :1], rows * np.nan):
            with pytest.raises((ValueError, TypeError)):
                learner.observe_many(bad, *others)
        with pytest.raises(ValueError, match="must be given as"):
            learner.observe_many()
        assert journal._store.head == seal
    assert this.finish(path) == 7


def test_the_horizon_holds_with_rounds_that_wait(path):
    this = run("logistic")
    with rt.Journal(path, batch=1000) as journal:
        learner = journal.start(this.plan, this.loss, seed=3)
        for i in range(ROUNDS):
            learner.observe(*this.row(i))
        assert learner.waiting
        with pytest.raises(ValueError, match="horizon"):
            learner.observe(*this.row(0))
        assert (learner.rounds, learner.waiting) == (ROUNDS, 0)
        with pytest.raises(ValueError, match="horizon"):
            learner.observe_many(*this.block(0, 3))
    assert this.finish(path) == ROUNDS


def test_rounds_may_come_as_lists_and_whole_numbers(path):
    plan = rt.Plan(rt.Interval(0.0, 5.0), 50, 1.0, beta=0.1, lam=5.0, p=0.3, phi=1.2)
    bare = rt.PCOMW(plan, rt.Absolute(), seed=1)
    with rt.Journal(path, batch=3) as journal:
        learner = journal.start(plan, rt.Absolute(), seed=1)
        for one in (bare, learner):
            one.observe(1, 2)
            one.observe([0.5], True)
            one.observe(np.float32(0.25), 3)
            one.observe_many([1, 1, 0.5], [4, 4, 4])
            one.observe_many(np.ones((4, 1), dtype=np.float32), range(4))
        assert np.array_equal(bare.decision, learner.decision)
    with Reader(path) as reader:
        assert reader.verify().rounds == 10


def test_steep_rounds_are_clipped_as_without_a_journal(path):
    plan = rt.plan_lazy(rt.Ball(2), 60, 1.0, max_switches=30)
    rows = 3 * np.random.default_rng(0).normal(size=(60, 2))
    bare = rt.PCOMW(plan, rt.Linear(), seed=1, on_steep="clip")
    bare.observe_many(rows)
    with rt.Journal(path, batch=7) as journal:
        learner = journal.start(plan, rt.Linear(), seed=1, on_steep="clip")
        for row in rows:
            learner.observe(row)
        learner.flush()
        assert np.array_equal(bare.decision, learner.decision)


def test_long_blocks_are_cut_into_records(this, path, monkeypatch):
    monkeypatch.setattr(_blocks, "_LONGEST", 7)
    with rt.Journal(path, checkpoint=10**9) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 100))
        assert journal._store.head.records == 1 + 15
        learner._end("crash")
    assert this.finish(path) == 100


def value(x, c):
    if c == "bad":
        raise ArithmeticError("a loss that fails")
    return abs(float(x[0]) - c["at"][0])


def slope(x, c):
    return np.sign(x - c["at"][0])


def test_rounds_of_the_callers_own_losses(path):
    loss = rt.Custom(value, slope, lipschitz=1.0)
    plan = rt.planning.plan_leader(rt.Interval(-1.0, 1.0), 50, 1.0)
    bare = rt.make(plan, loss, seed=1)
    with rt.Journal(path, batch=4) as journal:
        learner = journal.start(plan, loss, seed=1)
        for i in range(10):
            datum = {"at": (i / 10, "note")}
            bare.observe(datum)
            learner.observe(datum)
            datum["at"] = (99, "what the caller changes later does not matter")
        learner.observe_many([{"at": [0.5]}])
        bare.observe_many([{"at": [0.5]}])
        with pytest.raises(ValueError, match="can be saved, got an object of type"):
            learner.observe(object())
        with pytest.raises(ArithmeticError):
            learner.observe("bad")
        assert np.array_equal(bare.decision, learner.decision)
        learner._end("crash")
    with rt.Journal(path) as journal:
        with pytest.raises(ValueError, match="loss must be given"):
            journal.resume()
        assert np.array_equal(journal.open_or_start(plan, loss).decision, bare.decision)


def fragile(monkeypatch, at):
    """Make draws fail, the first time, once so many rounds are in."""
    from reticent.gibbs import Gibbs

    honest, failed = Gibbs.draw_in_chart, []

    def draw(self, rng, *given):
        if len(self._history) >= at and not failed:
            failed.append(rng.random())
            raise rt.WorkLimitError("too much work")
        return honest(self, rng, *given)

    monkeypatch.setattr(Gibbs, "draw_in_chart", draw)


@pytest.mark.parametrize("many", [True, False])
def test_a_draw_that_fails_leaves_a_journal_that_goes_on(many, path, monkeypatch):
    this = run("hinge")
    fragile(monkeypatch, 20)
    bare = rt.make(this.plan, this.loss, seed=3)
    with pytest.raises(rt.WorkLimitError):
        bare.observe_many(*this.block(0, 90))
    taken = bare.rounds
    bare.observe_many(*this.block(taken, 90))

    monkeypatch.undo()
    fragile(monkeypatch, 20)
    with rt.Journal(path, batch=1000) as journal:
        learner = this.start(journal)
        if not many:
            for i in range(90):
                learner.observe(*this.row(i))
        with pytest.raises(rt.WorkLimitError) as told:
            learner.observe_many(*this.block(0, 90)) if many else learner.flush()
        assert "are in the journal" in told.value.__notes__[-1]
        assert learner.rounds == taken
        assert learner.waiting == 0
        learner._end("crash")
    with rt.Journal(path) as journal:
        learner = journal.resume()
        assert learner.rounds == taken
        learner.observe_many(*this.block(taken, 90))
        assert np.array_equal(learner.decision, bare.decision)
        assert learner.switches == bare.switches


def test_one_writer_at_a_time(this, path):
    with rt.Journal(path) as journal:
        this.start(journal)
        with pytest.raises(BlockingIOError, match=f"is open already in process {os.getpid()}.*close it there"):
            rt.Journal(path)
        link = path.with_name("link")
        link.symlink_to(path)
        with pytest.raises(BlockingIOError, match="is open already"):
            rt.Journal(link)
        child = f"import reticent as rt; rt.Journal({str(path)!r})"
        told = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=False, timeout=300)
        assert f"BlockingIOError: [Errno 11] the journal is open already in process {os.getpid()}" in told.stderr
        with Reader(path) as reader:  # reading is no writing
            assert reader.rounds == 0
    with rt.Journal(path) as journal:
        journal.resume()


def test_a_fork_cannot_use_it(this, path):
    with rt.Journal(path) as journal:
        learner = this.start(journal)

        def job(tell):
            for use in (lambda: learner.observe(*this.row(0)), lambda: learner.decision, learner.spent):
                with pytest.raises(RuntimeError, match="a fork of it cannot use it"):
                    use()

        assert heard(*in_child(job))[1] == 0
        learner.observe(*this.row(0))
        with pytest.raises(BlockingIOError):
            rt.Journal(path)


def test_nobody_closed_it(this, path):
    journal = rt.Journal(path)
    learner = this.start(journal)
    learner.observe(*this.row(0))
    with pytest.warns(ResourceWarning) if sys.version_info >= (3, 13) else _nothing():
        del journal, learner
    assert this.finish(path) == 1


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def test_only_the_owner_can_read_it(this, path):
    before = os.umask(0)
    try:
        with rt.Journal(path) as journal:
            learner = this.start(journal)
            learner.observe(*this.row(0))
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["journal", "journal-wal", "journal-shm", "journal-lock"], 0o600)


def test_what_does_not_go_together_is_refused(path):
    this, other = run("linear"), run("logistic")
    with rt.Journal(path) as journal:
        with pytest.raises(ValueError, match="nothing to resume"):
            journal.resume()
        with pytest.raises(ValueError, match="plan must be"):
            journal.start("plan", this.loss)
        with pytest.raises(ValueError, match="loss must be"):
            journal.start(this.plan)
        with pytest.raises(ValueError, match="give start the learner alone"):
            journal.start(rt.make(this.plan, this.loss), this.loss)
        assert not journal.started
        this.start(journal)
        with pytest.raises(ValueError, match="holds one learner"):
            journal.start(this.plan, this.loss)
        with pytest.raises(ValueError, match="was taken already"):
            journal.resume()
    with rt.Journal(path) as journal, pytest.raises(ValueError, match="plan must be that of the learner"):
        journal.open_or_start(other.plan, other.loss)
    with rt.Journal(path) as journal, pytest.raises(ValueError, match="loss must be that of the learner"):
        journal.open_or_start(this.plan, rt.Logistic())
    for name in ("batch", "checkpoint"):
        with pytest.raises(ValueError, match=f"{name} must be a whole number"):
            rt.Journal(path, **{name: 0})


def test_after_closing_nothing_goes(this, path):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
    for use in (lambda: learner.observe(*this.row(0)), learner.flush, lambda: learner.decision, learner.spent):
        with pytest.raises(RuntimeError, match="it is closed"):
            use()
    with pytest.raises(ValueError, match="is closed"):
        journal.resume()
    journal.close()


def test_a_learner_that_is_given_belongs_to_the_journal(this, path):
    inner = rt.make(this.plan, this.loss, seed=3)
    inner.observe_many(*this.block(0, 10))
    with rt.Journal(path) as journal:
        learner = journal.start(inner)
        assert learner.rounds == 10
        learner.observe(*this.row(10))
        inner.observe(*this.row(11))
        with pytest.raises(RuntimeError, match="behind its back"):
            learner.observe(*this.row(11))
        learner._end("crash")
    assert this.finish(path) == 11


def test_a_checkpoint_replaces_what_came_before(this, path, monkeypatch):
    with rt.Journal(path, checkpoint=30) as journal:
        learner = this.start(journal)
        for i in range(100):
            learner.observe(*this.row(i))
        learner._end("crash")
    with Reader(path) as reader:
        assert reader._store.latest_state() > 60
        assert [n for (n,) in reader._store._run("SELECT DISTINCT number FROM states")] == [
            1,
            reader._store.latest_state(),
        ]
    assert this.finish(path) == 100


def test_saving_from_a_journal(this, path):
    with rt.Journal(path, batch=50) as journal:
        learner = this.start(journal)
        for i in range(20):
            learner.observe(*this.row(i))
        learner.save(path.with_name("state"))
        assert learner.waiting == 0
    loaded = rt.load(path.with_name("state"))
    assert loaded.rounds == 20
    this.check(loaded)


def test_an_interrupt_ends_it_and_the_file_goes_on(this, path, monkeypatch):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 10))

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as during:
            during.setattr(type(journal._store), "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                learner.observe_many(*this.block(10, 20))
        with pytest.raises(RuntimeError, match="cannot go on"):
            _ = learner.decision
        with pytest.raises(RuntimeError, match="cannot go on"):
            learner.observe(*this.row(10))
    assert this.finish(path) == 10


def test_a_reader_tells_what_observe_many_told(tmp_path):
    """Decisions, losses and the rounds themselves, record by record: whoever resumes can tell a run as a whole."""
    path, rng = tmp_path / "run.journal", np.random.default_rng(0)
    plan = rt.plan_lazy(rt.Ball(dim=2), horizon=400, lipschitz=1.0, max_switches=60)
    blocks = [rng.uniform(-0.7, 0.7, size=(count, 2)) for count in (1, 150, 200)]
    with rt.Journal(path) as journal:
        learner = journal.start(plan, rt.Linear(), seed=1, on_steep="clip")
        told = rt.Trace.join([learner.observe_many(block) for block in blocks])
    with Reader(path) as reader:
        found = rt.Trace.join(reader.traces(rt.Linear(), "clip"))
    for name in ("starts", "points", "final"):
        assert np.array_equal(getattr(found, name), getattr(told, name))
    np.testing.assert_allclose(found.losses, told.losses, rtol=0, atol=1e-12)
    assert np.array_equal(np.concatenate([block[0] for block in found.data]), np.concatenate(blocks))
    assert told.switches > 5
