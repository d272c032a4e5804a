"""Journals where files misbehave: locks deleted, second names, states changed, disks and files that are full."""

import os
import resource
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from journals import heard, in_child, run
from patient import PATIENCE

import reticent as rt
from reticent.journal import Reader

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


@pytest.fixture
def this():
    return run("linear")


def test_a_generator_shared_with_the_caller_does_not_keep_a_journal_from_resuming(path):
    """The caller draws from it between rounds, and crashes: what is in the file leads to the same decisions."""
    this = run("noisy")

    def job(tell):
        rng = np.random.default_rng(3)
        learner = rt.Journal(path).start(this.plan, this.loss, seed=rng)
        for i in range(60):
            rng.normal(size=7)
            learner.observe(*this.row(i))
        tell(learner)
        os._exit(0)

    told, status = heard(*in_child(job))
    assert status == 0
    with rt.Journal(path) as journal:
        learner = journal.resume()
        assert (learner.rounds, learner.decision.tobytes()) == (60, told[0][2])
    with Reader(path) as reader:
        assert reader.verify().rounds == 60


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_flipped_bit_in_a_state_is_found_on_opening(this, path, which):
    with rt.Journal(path, checkpoint=10) as journal:
        this.start(journal).observe_many(*this.block(0, 40))
    database = sqlite3.connect(path)
    number = 1 if which == "first" else database.execute("SELECT max(number) FROM states").fetchone()[0]
    assert (number == 1) == (which == "first")
    (state,) = database.execute("SELECT body FROM states WHERE number = ?", (number,)).fetchone()
    for place in (3, len(state) // 2, len(state) - 40, len(state) - 1):
        changed = bytearray(state)
        changed[place] ^= 4
        database.execute("UPDATE states SET body = ? WHERE number = ?", (bytes(changed), number))
        database.commit()
        with pytest.raises(ValueError, match=rf"is damaged: the state kept with record {number} is not the one"):
            rt.Journal(path)
    database.execute("UPDATE states SET body = ? WHERE number = ?", (state, number))
    database.commit()
    database.close()
    assert this.finish(path) == 40


def test_a_lock_that_is_deleted_ends_it(this, path):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 10))
        os.unlink(f"{path}-lock")
        with pytest.raises(OSError, match="its lock, was removed or replaced while it was open"):
            learner.observe(*this.row(10))
        with pytest.raises(RuntimeError, match="cannot go on"):
            _ = learner.decision
    assert this.finish(path) == 10


def test_of_two_who_share_a_journal_by_a_deleted_lock_one_writes(this, path):
    """The second opens it once the lock is gone; the first finds out before it writes anything."""
    first = rt.Journal(path)
    learner = this.start(first)
    learner.observe_many(*this.block(0, 10))
    os.unlink(f"{path}-lock")

    def job(tell):
        with rt.Journal(path) as second:
            other = second.resume()
            other.observe_many(*this.block(10, 20))
            tell(other)

    told, status = heard(*in_child(job))
    assert (status, told[0][0]) == (0, 20)
    with pytest.raises(OSError, match="was removed or replaced"):
        learner.observe(*this.row(10))
    first.close()
    assert this.finish(path) == 20


def test_a_second_name_is_refused(this, path, tmp_path):
    with rt.Journal(path) as journal:
        this.start(journal).observe(*this.row(0))
    os.link(path, tmp_path / "second")
    for name in (path, tmp_path / "second"):
        with pytest.raises(ValueError, match="is one of 2 hard links to the same file"):
            rt.Journal(name)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["journal", "journal-lock", "second"]
    os.unlink(tmp_path / "second")
    assert this.finish(path) == 1


def limited(code, most):
    """Run a program whose files may have so many bytes; return what it says."""
    start = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
    here = os.path.dirname(__file__)
    start += f"import sys; sys.path.insert(0, {here!r}); from journals import run\nimport reticent as rt\n"
    program = [sys.executable, "-c", start + code]
    return subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE).stdout


@pytest.mark.parametrize("most", [100, 20_000])
def test_a_limit_on_the_size_of_files_is_told(this, path, most):
    """On starting, whatever could be written: the journal can be used once there is room."""
    code = (
        f"this, path = run('linear'), {str(path)!r}\n"
        "try:\n    with rt.Journal(path) as journal:\n        this.start(journal)\n    print('done')\n"
        "except OSError as error:\n    print(error.errno, error)\n"
    )
    told = limited(code, most)
    assert f"{path}" in told
    assert any(words in told for words in (f"{most} bytes at most (ulimit -f)", "File too large", "in full"))
    with rt.Journal(path) as journal:
        assert not journal.started
        this.start(journal).observe(*this.row(0))
    assert this.finish(path) == 1


def test_a_limit_that_is_reached_on_the_way_loses_nothing(this, path):
    code = (
        f"this, path = run('linear'), {str(path)!r}\n"
        "with rt.Journal(path) as journal:\n"
        "    learner = this.start(journal)\n"
        "    try:\n"
        "        for i in range(120):\n            learner.observe(*this.row(i)); print(learner.rounds)\n"
        "    except OSError as error:\n        print(error)\n"
    )
    *rounds, told = limited(code, 1 << 18).strip().split("\n")
    assert "(ulimit -f)" in told
    assert this.finish(path) == int(rounds[-1]) > 0


def test_limits_are_named_only_where_there_is_one():
    from reticent.journal._store import _most_bytes

    assert (_most_bytes() is None) == (resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY)


def fill(this, path):
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        for i in range(120):
            learner.observe(*this.row(i))


def test_a_full_disk_is_told_on_starting(this, tmp_path):
    """On a disk of some kilobytes, where one may be mounted."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tmp_path]
    if os.geteuid() or subprocess.run(mount, capture_output=True, timeout=60).returncode:
        pytest.skip("no small disk can be mounted here")
    filler, path = tmp_path / "filler", tmp_path / "journal"
    try:
        for left in (0, 4096, 40_000, 100_000):
            filler.write_bytes(bytes((1 << 18) - left))
            with pytest.raises(OSError, match=r"[Nn]o space left|disk is full|in full"):
                fill(this, path)
            filler.unlink()
            with rt.Journal(path) as journal:
                assert journal.acknowledged < 120
            for entry in tmp_path.iterdir():
                entry.unlink()
        with rt.Journal(path) as journal:
            this.start(journal)
    finally:
        subprocess.run(["umount", tmp_path], check=True, timeout=60)
