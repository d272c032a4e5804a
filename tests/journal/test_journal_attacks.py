"""What a hostile review tried: forks, interrupts, signal handlers, files taken away, and rounds that are too large."""

import copy
import os
import pickle
import signal
import sqlite3
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from journals import ROUNDS, heard, in_child, run
from patient import patience

import reticent as rt
from reticent.journal import Reader, _blocks
from reticent.journal._replay import rounds_of

# Later Pythons warn of forks beside other threads, such as those of pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def this():
    return run("linear")


def far(x, c):
    return abs(float(x[0]) - float(c[0]))


def slope(x, c):
    return np.sign(x - c[0])


def written(path):
    with Reader(path) as reader:
        return np.concatenate([rounds.block[0][: rounds.taken] for _, rounds in rounds_of(reader._store)])


def test_the_end_of_a_forked_worker_takes_nothing_of_a_later_life(this, path):
    """The worker was forked while the journal was open, and ends while the log of another writer is in use."""
    ends, end = os.pipe()
    script = (
        f"import os, signal, sys; sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "from journals import run\nimport reticent as rt\nsignal.alarm(90)\n"
        f"this, path = run('linear'), {str(path)!r}\n"
        "journal = rt.Journal(path); this.start(journal).observe_many(*this.block(0, 10))\n"
        "worker = os.fork()\n"
        f"if not worker:\n    signal.alarm(90); os.close({end}); os.read({ends}, 1); sys.exit(0)\n"
        "journal.close()\nprint(worker, flush=True); os._exit(0)\n"
    )
    pipes = {"stdout": subprocess.PIPE, "pass_fds": (ends, end)}
    with subprocess.Popen([sys.executable, "-c", script], **pipes) as first, patience(first.pid):
        worker = int(first.stdout.readline())

        def job(tell):
            journal = rt.Journal(path)
            learner = journal.resume()
            learner.observe_many(*this.block(10, 60))
            tell(learner)
            os.kill(os.getpid(), signal.SIGKILL)

        told, _ = heard(*in_child(job))
        assert told[-1][0] == 60
        os.close(ends)
        os.close(end)
        with patience(worker):
            first.stdout.read()  # ends when the worker does
    assert this.finish(path) == 60


def test_a_fork_of_an_opened_journal_can_do_nothing(this, path):
    with rt.Journal(path) as journal:
        this.start(journal).observe(*this.row(0))
    with rt.Journal(path) as journal:

        def job(tell):
            for use in (journal.resume, lambda: this.start(journal), lambda: journal.acknowledged):
                with pytest.raises(RuntimeError, match="a fork of it cannot use it"):
                    use()
            journal.close()

        assert heard(*in_child(job))[1] == 0
        assert journal.resume().rounds == 1


@pytest.mark.parametrize("batch", [1, 3])
def test_an_interrupted_round_is_not_taken_twice(this, path, batch, monkeypatch):
    with rt.Journal(path, batch=batch) as journal:
        learner = this.start(journal)
        for i in range(5):
            learner.observe(*this.row(i))
        with monkeypatch.context() as during:
            during.setattr(learner._inner, "_admit", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                learner.observe(*this.row(5))
        assert learner.rounds + learner.waiting == 5
        for i in range(5, 9):
            learner.observe(*this.row(i))
    assert np.array_equal(written(path), this.data[0][:9])


def test_calls_of_a_signal_handler_inside_another_are_refused(this, path):
    with rt.Journal(path, batch=4) as journal:
        learner = this.start(journal)
        told = []

        def handler(*_):
            calls = (learner.flush, learner.checkpoint, lambda: learner.save(path.with_name("state")), journal.close)
            for use in (*calls, lambda: learner.observe(*this.row(0)), lambda: learner.observe_many(*this.block(0, 2))):
                with pytest.raises(RuntimeError, match="let a handler set a flag") as error:
                    use()
                told.append(error)

        before = signal.signal(signal.SIGUSR1, handler)
        push = learner._room.push

        def interrupted(*given):
            found = push(*given)
            signal.raise_signal(signal.SIGUSR1)
            return found

        learner._room.push = interrupted
        try:
            for i in range(6):
                learner.observe(*this.row(i))
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert len(told) == 36
    assert np.array_equal(written(path), this.data[0][:6])


@pytest.mark.parametrize("name", ["linear", "custom"])
def test_an_exception_of_a_signal_handler_ends_it(name, path):
    """It is no draw that failed: the same rounds would not fail again."""

    def handler(*_):
        raise TimeoutError("too late")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with rt.Journal(path) as journal:
            if name == "linear":
                learner, block = run(name).start(journal), run(name).block(0, 20)
            else:
                plan = rt.planning.plan_leader(rt.Interval(-1.0, 1.0), 50, 1.0)
                learner, block = journal.start(plan, rt.Custom(far, slope, lipschitz=1.0), seed=1), ([[0.1], [0.5]],)
            take = learner._inner._take
            learner._inner._take = lambda *given: (take(*given), signal.raise_signal(signal.SIGUSR1))
            with pytest.raises(TimeoutError):
                learner.observe_many(*block)
            with pytest.raises(RuntimeError, match="cannot go on"):
                _ = learner.decision
            assert learner.rounds == 0
            assert "0 rounds on disk" in repr(learner)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_damage_that_only_writing_would_find_is_found_at_opening(this, path):
    with rt.Journal(path) as journal:
        this.start(journal).observe_many(*this.block(0, 30))
    good = path.read_bytes()
    page = int.from_bytes(good[16:18], "big")
    for place in (18, 19, 20, 21, 22, 23, page + 1, page + 3, page + 5, 2 * page + 3):
        changed = bytearray(good)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"is damaged|not a journal"):
            rt.Journal(path)
        with pytest.raises((ValueError, OSError), match=r"is damaged|not a journal"), Reader(path) as reader:
            reader.verify()
    path.write_bytes(good)
    assert this.finish(path) == 30


def test_a_schema_that_is_no_text_is_damage(this, path):
    with rt.Journal(path) as journal:
        this.start(journal)
    changed = path.read_bytes().replace(b"CREATE TABLE head (", b"CREATE TABLE he\xff\xfe (")
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="is damaged"):
        rt.Journal(path)
    path.write_bytes(changed.replace(b"CREATE TABLE states (number", b"CREATE TABLE states \xff\xffumber"))
    with pytest.raises(ValueError, match="is damaged"):
        rt.Journal(path)


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-lock"])
def test_nothing_is_saved_over_a_journal(this, path, end):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        learner.observe(*this.row(0))
        for one in (learner, rt.make(this.plan, this.loss)):
            with pytest.raises(ValueError, match="path must not be that of"):
                one.save(f"{path}{end}")
        learner.observe(*this.row(1))
    assert this.finish(path) == 2


@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_file_that_is_taken_away_ends_it(this, path, end):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 10))
        os.rename(f"{path}{end}", path.with_name("away"))
        with pytest.raises(OSError, match="was removed or replaced while it was open"):
            learner.observe(*this.row(10))
        with pytest.raises(RuntimeError, match="cannot go on"):
            _ = learner.decision
    if not end:
        os.rename(path.with_name("away"), path)
    assert this.finish(path) == 10


def test_closing_in_one_thread_drops_no_round_of_another(this, path):
    journal = rt.Journal(path, batch=1000)
    learner = this.start(journal)
    taken, told, begun = [], [], threading.Event()

    def give():
        try:
            for i in range(ROUNDS):
                learner.observe(*this.row(i))
                taken.append(i)
                begun.set()
        except RuntimeError as error:
            told.append(str(error))

    thread = threading.Thread(target=give)
    thread.start()
    begun.wait(10)
    journal.close()
    thread.join(10)
    assert len(written(path)) == len(taken) > 0
    assert all("it is closed" in words for words in told)


def test_one_learner_is_in_one_journal(this, path):
    learner = rt.make(this.plan, this.loss, seed=1)
    with rt.Journal(path) as journal, rt.Journal(f"{path}2") as other:
        journal.start(learner)
        with pytest.raises(ValueError, match="is in a journal already"):
            other.start(learner)
        assert not other.started


def test_records_are_cut_by_bytes_and_rounds_that_are_too_large_refused(this, path, monkeypatch):
    monkeypatch.setattr(_blocks, "_LARGEST", 2000)
    with rt.Journal(path, checkpoint=10**9) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 100))
        assert journal._store.head.records > 2
        learner._end("crash")
    assert this.finish(path) == 100
    loss, plan = rt.Custom(far, slope, lipschitz=1.0), rt.planning.plan_leader(rt.Interval(-1.0, 1.0), 50, 1.0)
    with rt.Journal(f"{path}2") as journal:
        learner = journal.start(plan, loss, seed=1)
        learner.observe_many([np.full(20, i / 30) for i in range(30)])
        assert journal._store.head.records > 3
        for use in (lambda: learner.observe(np.zeros(300)), lambda: learner.observe_many([np.zeros(300)])):
            with pytest.raises(ValueError, match="at most 2000 bytes, got one of"):
                use()
        assert learner.rounds == 30
    with Reader(f"{path}2") as reader:
        assert reader.verify(loss).rounds == 30


def test_the_holder_is_named_before_it_writes_anything(this, path):
    with rt.Journal(path) as journal:
        this.start(journal)
    script = (
        "import signal\nsignal.alarm(90)\nimport reticent as rt\n"
        f"journal = rt.Journal({str(path)!r})\nprint('up', flush=True)\ninput()"
    )
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **given) as holder, patience(holder.pid):
        assert holder.stdout.readline() == "up\n"
        with pytest.raises(BlockingIOError, match=f"is open already in process {holder.pid},"):
            rt.Journal(path)
        holder.communicate("\n", timeout=60)


def test_a_lock_written_by_half_is_behind_and_not_damaged(this, path):
    with rt.Journal(path) as journal:
        this.start(journal).observe(*this.row(0))
        slot = 256 * (1 - journal._lock._slot)
    with open(f"{path}-lock", "r+b") as file:
        file.seek(slot + 60)
        file.write(b"?" * 40)
    assert this.finish(path) == 1


def test_a_short_write_of_the_lock_is_an_error(this, path, monkeypatch):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        with monkeypatch.context() as during:
            during.setattr(os, "pwrite", lambda *_: 7)
            with pytest.raises(OSError, match="could not be written in full"):
                learner.observe(*this.row(0))
    assert this.finish(path) == 1


def test_it_is_made_private_again_when_it_is_opened(this, path):
    with rt.Journal(path) as journal:
        this.start(journal)
    for name in (path, f"{path}-lock"):
        os.chmod(name, 0o644)
    with rt.Journal(path) as journal:
        journal.resume().observe(*this.row(0))
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()} == {0o600}


def test_small_things(this, path, tmp_path):
    text, pipe, other = tmp_path / "text", tmp_path / "pipe", tmp_path / "other.db"
    text.write_text("hello, this is no database" * 50)
    text.chmod(0o644)
    os.mkfifo(pipe)
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE people (name)")
    database.close()
    for name in (text, pipe, other):
        with pytest.raises(ValueError, match=r"not a journal of reticent|not of a pipe or device"):
            rt.Journal(name)
    with pytest.raises(ValueError, match="not of a pipe or device"):
        rt.make(this.plan, this.loss).save(pipe)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["other.db", "pipe", "text"]
    assert stat.S_IMODE(text.stat().st_mode) == 0o644
    with rt.Journal(os.fsencode(path)) as journal:
        learner = this.start(journal)
        for thing in (learner, journal):
            for use in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    use(thing)
    with rt.Journal(path) as journal:
        with pytest.raises(ValueError, match="plan must be that of the learner"):
            journal.open_or_start(run("logistic").plan, this.loss)
        assert journal.resume().rounds == 0  # as the message says
