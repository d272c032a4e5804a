"""Keys: who has none can neither write a state or a journal nor change one and go unnoticed."""

import sqlite3

import numpy as np
import pytest
from journals import run
from mutants import put, taken
from test_saving import fresh

import reticent as rt
from reticent.journal import Reader
from reticent.systems._saved import pack_learner

KEY, OTHER = b"0123456789abcdef", "another key of some length"


def trackers():
    tracker = rt.PrivateMean(0.0, 1.0, epsilon=1.0, window=50, seed=1)
    tracker.update_many(np.linspace(0.0, 1.0, 120))
    return tracker


@pytest.mark.parametrize("make", [fresh, trackers])
def test_a_state_is_loaded_with_its_key_only(make, tmp_path):
    thing, path = make(), tmp_path / "state"
    thing.save(path, key=KEY)
    assert rt.load(path, key=KEY).rounds == thing.rounds
    with pytest.raises(ValueError, match=r"was written with a key, and none was given.*; give it as key="):
        rt.load(path)
    with pytest.raises(ValueError, match="was written with another key, or changed since"):
        rt.load(path, key=OTHER)
    whole = path.read_bytes()
    for place in (20, 40, len(whole) // 2, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"was written with another key|is damaged"):
            rt.load(path, key=KEY)
    thing.save(path)
    assert rt.load(path).rounds == thing.rounds
    with pytest.raises(ValueError, match="was written without a key, so nobody knows who wrote it"):
        rt.load(path, key=KEY)


def test_a_checksum_does_not_stand_for_a_key(tmp_path):
    """Whoever changes a state and puts a checksum of his own, or takes the mark of a key away, is found out."""
    structure, arrays = taken(pack_learner(fresh()))
    for version in (2, 2 + (1 << 32)):
        (tmp_path / "state").write_bytes(put(structure, arrays, version=version))
        with pytest.raises(ValueError, match="was written with"):
            rt.load(tmp_path / "state", key=KEY)


@pytest.mark.parametrize("key", [b"", b"short", "fifteen letters", 17])
def test_keys_that_keep_nobody_out_are_refused(key, tmp_path):
    with pytest.raises(ValueError, match="key must"):
        fresh().save(tmp_path / "state", key=key)
    with pytest.raises(ValueError, match="key must"):
        rt.Journal(tmp_path / "journal", key=key)
    assert not [*tmp_path.iterdir()]


def test_a_journal_is_opened_with_its_key_only(tmp_path):
    this, path = run("linear"), tmp_path / "journal"
    with rt.Journal(path, key=KEY, checkpoint=20) as journal:
        this.start(journal).observe_many(*this.block(0, 50))
    with rt.Journal(path, key=KEY) as journal:
        learner = journal.resume()
        assert learner.rounds == 50
        learner.observe_many(*this.block(50, 80))
        this.check(learner)
        learner.save(tmp_path / "state", key=OTHER)
    assert rt.load(tmp_path / "state", key=OTHER).rounds == 80
    with Reader(path, key=KEY) as reader:
        assert reader.verify().rounds == 80
    for use in (rt.Journal, Reader):
        with pytest.raises(ValueError, match="was started with a key, and none was given"):
            use(path)
        with pytest.raises(ValueError, match=r"is damaged: .*(another key|not the one that was written)"):
            use(path, key=OTHER)
    with rt.Journal(tmp_path / "plain") as journal:
        this.start(journal)
    with pytest.raises(ValueError, match="was started without a key"):
        rt.Journal(tmp_path / "plain", key=KEY)


def test_who_has_no_key_cannot_mend_the_chain(tmp_path):
    """With the key left out of the chain, as an attacker would compute it, every link and the head are wrong."""
    this, path = run("linear"), tmp_path / "journal"
    with rt.Journal(path, key=KEY) as journal:
        learner = this.start(journal)
        for i in range(5):
            learner.observe(*this.row(i))
    store = sqlite3.connect(path)
    rows = store.execute("SELECT number, kind, rounds, body FROM records ORDER BY number").fetchall()
    import hashlib

    digest = bytes(32)
    for number, kind, rounds, body in rows:
        digest = hashlib.sha256(digest + f"{number} {kind} {rounds} {len(body)}\n".encode() + body).digest()
        store.execute("UPDATE records SET digest = ? WHERE number = ?", (digest, number))
    store.execute("UPDATE head SET digest = ?", (digest,))
    store.commit()
    store.close()
    (tmp_path / "journal-lock").unlink()
    with rt.Journal(path, key=KEY) as journal, pytest.raises(ValueError, match="was written with another key"):
        journal.resume()
