"""Disks that are full or cannot be written to, files that are cut or changed: said clearly, and nothing goes wrong."""

import os
import resource
import shutil
import signal
import sqlite3

import numpy as np
import pytest
from journals import ROUNDS, heard, in_child, run, work

import reticent as rt
from reticent.journal import Reader

# Later Pythons warn of forks beside other threads, such as those of pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A journal that was closed, and one whose writer was killed: folders to copy."""
    closed, cut = (tmp_path_factory.mktemp(name) for name in ("closed", "killed"))
    work(run("linear"), closed / "journal", lambda learner: None, batch=6)

    def job(tell):
        work(
            run("linear"),
            cut / "journal",
            lambda one: one.rounds > 90 and os.kill(os.getpid(), signal.SIGKILL),
            batch=6,
        )

    heard(*in_child(job))
    return {"closed": closed, "killed": cut}


def copy_of(whole, kind, place):
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole[kind], place)
    return place / "journal"


def resumed(path):
    with rt.Journal(path) as journal:
        learner = journal.resume()
        return learner.rounds, learner.decision


@pytest.mark.parametrize(("kind", "end"), [("closed", ""), ("killed", ""), ("killed", "-wal")])
def test_a_flipped_bit_is_found_or_does_not_matter(kind, end, whole, tmp_path):
    """In every part of the file: either an error that says so, or all rounds and the right decision."""
    this = run("linear")
    source = whole[kind] / f"journal{end}"
    size, found, right = source.stat().st_size, 0, resumed(copy_of(whole, kind, tmp_path / "copy"))
    for place in [*range(0, 120, 3), *range(120, size, size // 120)]:
        path = copy_of(whole, kind, tmp_path / "copy")
        with open(f"{path}{end}", "r+b") as file:
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ (1 << (place % 8))]))
        try:
            rounds, decision = resumed(path)
        except (ValueError, OSError) as error:
            found += "journal" in str(error)
        else:
            assert rounds == right[0]
            assert np.array_equal(decision, this.decisions[rounds])
    # All pages of a journal whose writer was killed may be in its log, and then those in the file do not matter.
    assert found > 20 or (kind, end) == ("killed", "")


@pytest.mark.parametrize(("kind", "end"), [("closed", ""), ("killed", "-wal")])
def test_a_file_that_is_cut_off_is_found(kind, end, whole, tmp_path):
    size = (whole[kind] / f"journal{end}").stat().st_size
    for keep in [0, 1, 16, 100, *(size * i // 7 for i in range(1, 7)), size - 1]:
        path = copy_of(whole, kind, tmp_path / "copy")
        os.truncate(f"{path}{end}", keep)
        with pytest.raises(ValueError, match=r"is damaged|is not a journal"):
            resumed(path)


def test_a_log_that_is_gone_is_found(whole, tmp_path):
    path = copy_of(whole, "killed", tmp_path / "copy")
    os.unlink(f"{path}-wal")
    with pytest.raises(ValueError, match=r"is damaged: \d+ acknowledged rounds .* are missing|is damaged"):
        resumed(path)


def test_a_journal_that_is_gone_is_not_started_anew_by_accident(whole, tmp_path):
    path = copy_of(whole, "closed", tmp_path / "copy")
    os.unlink(path)
    with pytest.raises(ValueError, match=r"acknowledged rounds are gone; to start anew on purpose, delete .*-lock too"):
        rt.Journal(path)
    os.unlink(f"{path}-lock")
    with rt.Journal(path) as journal:
        assert not journal.started


def test_a_saved_learner_is_no_journal_and_a_journal_no_saved_learner(whole, tmp_path):
    rt.make(run("linear").plan, run("linear").loss, seed=1).save(tmp_path / "state")
    with pytest.raises(ValueError, match="is not a journal of reticent"):
        rt.Journal(tmp_path / "state")
    with pytest.raises(ValueError, match="is not a saved learner of reticent"):
        rt.load(whole["closed"] / "journal")


def test_records_changed_by_hand_are_found(whole, tmp_path):
    for change, words in [
        ("DELETE FROM records WHERE number = (SELECT max(number) FROM records)", "is damaged"),
        ("DELETE FROM records WHERE number = 5", "record 5 was changed, or is missing"),
        ("UPDATE records SET rounds = rounds + 1 WHERE number = 6", "record 6 was changed"),
        ("UPDATE records SET body = zeroblob(length(body)) WHERE number = 6", "record 6 was changed"),
        ("UPDATE records SET body = 'text' WHERE number = 6", "record 6 is not one"),
        ("DELETE FROM states", "state of its learner is missing"),
        ("UPDATE states SET body = substr(body, 1, 100)", "is damaged"),
        ("UPDATE states SET body = (SELECT body FROM states WHERE number = 1)", "not the one that was written"),
        ("DELETE FROM head", "how far it has come"),
        ("UPDATE head SET records = records - 1", "acknowledged rounds"),
        ("DROP TABLE records", "its tables are not those of a journal|is damaged"),
    ]:
        path = copy_of(whole, "closed", tmp_path / "copy")
        database = sqlite3.connect(path)
        database.execute(change)
        database.commit()
        database.close()
        with pytest.raises(ValueError, match=words):
            resumed(path)
        with pytest.raises(ValueError, match="is damaged"), Reader(path) as reader:
            reader.verify()


def test_other_files_and_newer_ones_are_refused(whole, tmp_path):
    text, other = tmp_path / "text", tmp_path / "other.db"
    text.write_text("hello, this is some text and not a database" * 50)
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE people (name)")
    database.close()
    before = other.read_bytes()
    for path, words in ((text, "is not a journal of reticent"), (other, "is a database, but not a journal")):
        with pytest.raises(ValueError, match=words):
            rt.Journal(path)
        with pytest.raises(ValueError, match=words):
            Reader(path)
    assert other.read_bytes() == before
    newer = copy_of(whole, "closed", tmp_path / "copy")
    database = sqlite3.connect(newer)
    database.execute("PRAGMA user_version = 3")
    database.close()
    with pytest.raises(ValueError, match=r"version 3 of the format of journals.*update reticent"):
        rt.Journal(newer)
    with pytest.raises(ValueError, match="folder that is there"):
        rt.Journal(tmp_path / "no" / "folder")
    with pytest.raises(ValueError, match="path must be that of a file"):
        rt.Journal(tmp_path)
    with pytest.raises(OSError, match="there is no journal"):
        Reader(tmp_path / "nothing")


def test_the_lock_of_another_journal_is_found(whole, tmp_path):
    path = copy_of(whole, "closed", tmp_path / "copy")
    work(run("absolute"), tmp_path / "other", lambda learner: None, batch=100)
    shutil.copy(tmp_path / "other-lock", f"{path}-lock")
    with pytest.raises(ValueError, match="is damaged: it is not the journal"):
        resumed(path)
    with open(f"{path}-lock", "w") as file:
        file.write("{what")
    with pytest.raises(ValueError, match="-lock is damaged"):
        resumed(path)


def test_a_full_disk_ends_it_with_nothing_lost(tmp_path):
    """SQLite is told that the disk has no more pages."""
    this, path = run("linear"), tmp_path / "journal"
    with rt.Journal(path) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 10))
        pages = journal._store._run("PRAGMA page_count")[0][0]
        journal._store._run(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(OSError, match="the disk is full") as told:
            all(learner.observe(*this.row(i)) is None for i in range(10, ROUNDS))
        assert told.value.errno == 28
        done = learner.rounds
        with pytest.raises(RuntimeError, match=r"cannot go on .*the disk is full.*open it again and resume"):
            learner.observe(*this.row(done))
        with pytest.raises(RuntimeError, match="cannot go on"):
            _ = learner.decision
    assert this.finish(path) == done >= 10


def test_a_limit_on_the_size_of_files(tmp_path):
    """As a disk that is really full: writes fail half way."""
    this, path = run("linear"), tmp_path / "journal"

    def job(tell):
        def go(learner):
            tell(learner)
            if learner.rounds >= 10:
                size = os.path.getsize(f"{path}-wal")
                resource.setrlimit(resource.RLIMIT_FSIZE, (size + 6000, size + 6000))

        with pytest.raises(OSError, match="could not be used"):
            work(this, path, go, batch=3)

    told, status = heard(*in_child(job))
    assert status == 0
    acknowledged = max(rounds for rounds, _, _ in told)
    assert this.finish(path) >= acknowledged >= 10


def test_a_disk_that_cannot_be_written_to(whole, tmp_path):
    path = copy_of(whole, "closed", tmp_path / "copy")
    with rt.Journal(path) as journal:
        learner = journal.resume()
        journal._store._run("PRAGMA query_only = 1")
        with pytest.raises(OSError, match="it cannot be written to"):
            learner._guarded(lambda: learner._write([], state=True))
        with pytest.raises(RuntimeError, match="cannot go on"):
            _ = learner.decision


@pytest.mark.skipif(os.getuid() == 0, reason="root can write everywhere")
def test_a_folder_that_cannot_be_written_to(whole, tmp_path):
    path = copy_of(whole, "closed", tmp_path / "copy")
    os.unlink(f"{path}-lock")
    path.parent.chmod(0o500)
    try:
        with pytest.raises(OSError, match="cannot be opened for writing"):
            rt.Journal(path)
        with Reader(path) as reader:
            assert reader.verify().rounds == ROUNDS
    finally:
        path.parent.chmod(0o700)


def test_decisions_that_its_rounds_do_not_lead_to_are_refused(tmp_path, monkeypatch):
    """Another version or processor may round differently: then nothing may be released."""
    this, path = run("logistic"), tmp_path / "journal"
    with rt.Journal(path, checkpoint=10**9) as journal:
        learner = this.start(journal)
        learner.observe_many(*this.block(0, 60))
        learner._end("crash")
    from reticent.journal import _replay

    honest = _replay.unpack_learner

    def other(*given):
        learner = honest(*given)
        learner._rng.random()
        return learner

    monkeypatch.setattr(_replay, "unpack_learner", other)
    with rt.Journal(path) as journal, pytest.raises(ValueError, match="are not those that its rounds lead to here"):
        journal.resume()
