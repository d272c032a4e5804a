"""Fleets in a store: nothing lost, nothing drawn twice, one writer, batches that come again."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from deadly import KEYS, KINDS, batch, digest
from fleets import AT_ONCE, SPECS, Stream, same_as_alone

import reticent as rt
from reticent.fleet import Spec, Stale, Store
from reticent.fleet import _store as kept

PINBALL = SPECS["filtered, interval"]


def rows(count, rng, keys=6):
    return rng.integers(0, keys, count), np.ones(count), rng.exponential(5.0, count)


# Saved, evicted, opened again.


@pytest.mark.parametrize("name", [*AT_ONCE, "lazy"])
def test_eviction_and_reopening_change_no_bit(name, tmp_path):
    rng = np.random.default_rng([*name.encode()])
    keys = ["a", 1, "1", "'; DROP TABLE reticent_fleets; --", "<b>"]
    stream, seed = Stream(SPECS[name], keys, rng), 4 if "i" in name else None
    path = tmp_path / "fleet.db"
    for part in range(3):
        opened = rt.Fleet(SPECS[name], path, seed=seed, resident=2) if part == 0 else rt.Fleet.open(path, resident=2)
        with opened as fleet:
            for _ in range(2):
                given, columns = stream.batch(60 if name == "lazy" else 200, lean=0.2)
                fleet.observe(given, *columns)
                assert fleet.resident <= 2
            same_as_alone(fleet, stream.rows())
            assert sorted(map(repr, fleet.keys())) == sorted(map(repr, keys))
            assert len(fleet) == len(keys)
            assert keys[3] in fleet
            assert "b" not in fleet


def test_the_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / "fleet.db"
    with rt.Fleet(PINBALL, path) as fleet:
        fleet.observe([1], [1.0], [2.0])
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_another_specification_seed_or_bound_is_refused(tmp_path):
    path = tmp_path / "fleet.db"
    rt.Fleet(PINBALL, path, seed=1).close()
    with pytest.raises(ValueError, match="another specification"):
        rt.Fleet(SPECS["mean"], path)
    with pytest.raises(ValueError, match="another seed"):
        rt.Fleet(PINBALL, path, seed=2)
    with pytest.raises(ValueError, match="max_keys=3"):
        rt.Fleet(PINBALL, path, max_keys=3)
    with pytest.raises(ValueError, match=r"no fleet 'other'.*there are 'fleet'"):
        rt.Fleet.open(path, "other")
    rt.Fleet(PINBALL, path).close()
    with pytest.raises(ValueError, match="there is no store of fleets"):
        rt.Fleet.open(tmp_path / "none.db")


# Batches that come again.


@pytest.mark.parametrize("stored", [False, True])
def test_repeated_batches_are_harmless(stored, tmp_path):
    rng = np.random.default_rng(1)
    store = tmp_path / "fleet.db" if stored else None
    fleet = rt.Fleet(PINBALL, store, seed=1)
    first, second = rows(100, rng), rows(100, rng)
    receipts = [fleet.observe(*first, batch="one"), fleet.observe(*second, batch=("orders", 7))]
    before = digest(fleet)
    for given, name, receipt in ((first, "one", receipts[0]), (second, ("orders", 7), receipts[1])):
        again = fleet.observe(*given, batch=name)
        assert again.repeated
        assert (again.rounds, again.changed) == (receipt.rounds, receipt.changed)
    older = fleet.observe(*first, batch=("orders", 3))
    assert older == rt.fleet.Receipt(0, (), repeated=True)
    assert digest(fleet) == before
    assert fleet.offset("orders") == 7
    assert fleet.offset("others") is None
    assert not fleet.observe(*first, batch=("others", 0)).repeated
    assert not fleet.observe(*first, batch="orders").repeated
    if stored:
        fleet.close()
        with rt.Fleet.open(store) as fleet:
            assert fleet.observe(*first, batch="one").repeated


def test_the_last_batches_are_remembered_and_offsets_for_good(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "REMEMBERED", 3)
    fleet = rt.Fleet(PINBALL, tmp_path / "fleet.db")
    for number in range(6):
        fleet.observe([1], [1.0], [1.0], batch=f"id {number}")
    fleet.observe([1], [1.0], [1.0], batch=("s", 5))
    with fleet._store.reading() as reader:
        count = reader._connection.exec_driver_sql("SELECT count(*) FROM reticent_fleet_batches").scalar()
    assert count == 3
    assert fleet.observe([1], [1.0], [1.0], batch="id 5").repeated
    assert not fleet.observe([1], [1.0], [1.0], batch="id 0").repeated, "forgotten, as the rule says"
    for number in range(6):
        fleet.observe([1], [1.0], [1.0], batch=f"more {number}")
    assert fleet.observe([1], [1.0], [1.0], batch=("s", 4)).repeated


# One writer.


def test_a_second_writer_is_refused_and_a_stale_one_fails(tmp_path):
    rng, path = np.random.default_rng(2), tmp_path / "fleet.db"
    first = rt.Fleet(PINBALL, path, seed=3)
    first.observe(*rows(200, rng))
    with pytest.raises(RuntimeError, match=r"is being written by process \d+"):
        rt.Fleet.open(path)
    second = rt.Fleet.open(path, take_over=True)
    before = digest(second)
    with pytest.raises(Stale, match="opened for writing elsewhere"):
        first.observe(*rows(200, rng), batch="late")
    with pytest.raises(RuntimeError, match="cannot go on"):
        first.decision(0)
    first.close()
    assert digest(second) == before
    assert not second.observe(*rows(10, rng), batch="late").repeated, "what a stale writer gave was not recorded"
    second.close()
    rt.Fleet.open(path).close()


def test_a_lease_that_ran_out_may_be_taken(tmp_path, monkeypatch):
    path = tmp_path / "fleet.db"
    first = rt.Fleet(PINBALL, path, lease=0.0)
    first.observe([1], [1.0], [1.0])  # nobody has taken it, so it may go on
    first.renew()
    monkeypatch.setattr(kept, "_ended", lambda owner: False)
    second = rt.Fleet.open(path)
    second.renew()
    with pytest.raises(RuntimeError, match="lease runs for 60 s"):
        rt.Fleet.open(path)
    second.close()
    with pytest.raises(Stale):
        first.renew()
    with pytest.raises(RuntimeError, match="cannot go on"):
        first.observe([1], [1.0], [1.0])


# Trouble.


def test_bad_rows_are_refused_with_nothing_recorded(tmp_path):
    rng = np.random.default_rng(3)
    for store in (None, tmp_path / "fleet.db"):
        fleet = rt.Fleet(PINBALL, store, seed=1)
        fleet.observe(*rows(300, rng))
        before = digest(fleet)
        keys, x, y = rows(50, rng, keys=9)
        spoiled = y.copy()
        spoiled[17] = np.nan
        for given, said in (
            ((keys, x, spoiled), "targets must be finite, got nan at index"),
            ((keys[:-1], x, y), "every row needs a key: got 49 keys and 50 features"),
            ((keys, x), r"\(keys, features, targets\), got 1 columns"),
            ((keys.astype(float), x, y), "whole numbers or texts"),
            (([None] * 50, x, y), "whole number or a text"),
            (([True] * 50, x, y), "whole number or a text"),
            (("abc", np.ones(3), np.ones(3)), "every row needs a key|must have|shape"),
        ):
            with pytest.raises(ValueError, match=said):
                fleet.observe(*given, batch="bad")
        assert digest(fleet) == before
        assert len(fleet) == 6
        assert not fleet.observe(keys, x, y, batch="bad").repeated


def test_more_rounds_than_the_plan_has_are_refused():
    spec = Spec(rt.private_learner, rt.Absolute(), rt.Interval(0.0, 1.0), epsilon=8.0, delta=1e-4, horizon=50)
    fleet = rt.Fleet(spec, seed=1)
    fleet.observe(["a"] * 40 + ["b"] * 10, np.ones(50), np.ones(50))
    before = fleet.decisions(["a", "b"]).tolist()
    with pytest.raises(ValueError, match=r"11 more rounds were given for the key 'a'.*10 of its horizon=50"):
        fleet.observe(["b"] * 5 + ["a"] * 11 + ["new"], np.ones(17), np.zeros(17))
    assert fleet.rounds(["a", "b", "new"]).tolist() == [40, 10, 0]
    assert "new" not in fleet
    assert fleet.decisions(["a", "b"]).tolist() == before
    fleet.observe(["b"] * 5 + ["a"] * 10, np.ones(15), np.zeros(15))


def test_a_commit_that_fails_shows_nothing_and_is_tried_again(tmp_path, monkeypatch):
    """The same batch after a failed commit leads to the same draws: nothing was shown, nothing is drawn anew."""
    rng = np.random.default_rng(4)
    fleet = rt.Fleet(PINBALL, tmp_path / "fleet.db", seed=2, resident=4)
    other = rt.Fleet(PINBALL, seed=2)
    for number in range(8):
        given = rows(100, rng)
        if number % 2:
            before = digest(fleet)
            with monkeypatch.context() as patch:
                patch.setattr(kept.Writer, "finish", _failing)
                with pytest.raises(OSError, match="disk is full"):
                    fleet.observe(*given)
            assert digest(fleet) == before
        fleet.observe(*given)
        other.observe(*given)
        assert digest(fleet) == digest(other)


def _failing(*_):
    raise OSError("the disk is full")


def test_without_a_store_an_interrupt_ends_a_fleet(monkeypatch):
    fleet = rt.Fleet(PINBALL, seed=2)
    monkeypatch.setattr(type(fleet._holder), "_go", _failing)
    with pytest.raises(OSError, match="disk"):
        fleet.observe(*rows(500, np.random.default_rng(0)))
    with pytest.raises(RuntimeError, match="nobody knows which of its rounds"):
        fleet.decision(0)


def test_errors_print_no_other_row(tmp_path):
    fleet = rt.Fleet(SPECS["filtered, ball"], seed=1)
    features = np.full((3, 3), 0.123454321)
    features[1, 1] = np.inf
    with pytest.raises(ValueError, match="finite") as error:
        fleet.observe(["x", "y", "z"], features, np.ones(3))
    assert "0.123454321" not in str(error.value)


def test_fleets_are_not_copied_and_not_for_forks():
    import copy
    import pickle

    fleet = rt.Fleet(PINBALL)
    for how in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            how(fleet)
    fleet._process += 1
    with pytest.raises(RuntimeError, match="a fork of it cannot use it"):
        fleet.decision(1)


# Killed.


def undisturbed(kind, batches):
    """Return what is in play after every batch in a run that nothing disturbs, and the fleet."""
    fleet, found = rt.Fleet(SPECS[kind], name=kind, seed=5), []
    for number in range(batches):
        keys, columns = batch(kind, number)
        fleet.observe(keys, *columns)
        found.append(digest(fleet))
    return found, fleet


def survived(url, kills, seed, batches):
    """Kill writers so often: transcripts must be those of undisturbed runs, and nothing acknowledged be lost."""
    script = Path(__file__).with_name("deadly.py")
    told = subprocess.run(
        [sys.executable, script, str(url), str(kills), str(seed), str(batches)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    *lines, last = told.stdout.splitlines()
    for kind in KINDS:
        expected, other = undisturbed(kind, batches)
        heard = [line.split()[1:] for line in lines if line.split()[0] == kind.replace(" ", "_")]
        assert all(expected[int(number)] == said for number, said in heard), "another decision was shown"
        assert len({number for number, _ in heard}) == batches or kills, "all were acknowledged"
        with rt.Fleet.open(url, kind) as fleet:
            assert fleet.offset("stream") == batches - 1
            assert digest(fleet) == expected[-1]
            for key in range(KEYS):
                assert all(np.array_equal(a, b) for a, b in zip(fleet.history(key), other.history(key), strict=True))
                assert fleet.spent(key) == other.spent(key)
    return int(last.split()[1])


def test_a_few_kills_lose_nothing_and_draw_nothing_twice(tmp_path):
    assert survived(tmp_path / "fleet.db", 21, 1, 8) >= 18


@pytest.mark.slow
def test_two_hundred_kills(tmp_path):
    assert survived(tmp_path / "fleet.db", 201, 2, 60) >= 180


def test_an_old_copy_is_told_by_its_sequence(tmp_path):
    """What a service can compare with a counter of its own, outside the store."""
    path = tmp_path / "fleet.db"
    with rt.Fleet(PINBALL, path) as fleet:
        for number in range(3):
            fleet.observe([1], [1.0], [1.0])
            assert fleet.sequence == number + 1
    assert Store(path).find("fleet").sequence == 3


def test_what_the_store_holds_is_plain(tmp_path):
    path = tmp_path / "fleet.db"
    with rt.Fleet(PINBALL, path, name='a "name"', max_keys=2) as fleet:
        fleet.observe(["x"], [1.0], [1.0], persons=["Ann Example"])
    with sqlite3.connect(path) as connection:
        spec, about = connection.execute("SELECT spec, about FROM reticent_fleets").fetchone()
        assert json.loads(spec) == PINBALL.to_json()
        assert json.loads(about)["max_keys"] == 2
        dump = "".join(connection.iterdump())
    assert "Ann" not in dump
