"""Saved files: whole or refused, for their owner only, and nothing is run on the way back."""

import hashlib
import json
import os
import pickle
import stat
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import reticent as rt
from reticent.learners import Learner
from reticent.saving._format import MARK, body_of, pack, sealed
from reticent.systems._saved import pack_learner, unpack_learner

ROWS = np.random.default_rng(0).uniform(-0.7, 0.7, size=(300, 2))
LABELS = np.where(ROWS[:, 0] > 0, 1.0, -1.0)
PLAN = rt.plan_lazy(rt.Ball(2), 300, 1.0, max_switches=60)


def fresh(seed=3, **options):
    learner = rt.PCOMW(PLAN, rt.Logistic(), seed=seed, **options)
    learner.observe_many(ROWS[:100], LABELS[:100])
    return learner


@pytest.fixture(scope="module")
def data():
    return pack_learner(fresh())


def away(x, c):
    return float(np.linalg.norm(x - c))


def from_there(x, c):
    return (x - c) / max(np.linalg.norm(x - c), 1e-12)


def test_a_flipped_bit_anywhere_is_found(data):
    for place in [*range(40), *range(40, len(data), 23), *range(len(data) - 40, len(data))]:
        spoiled = bytearray(data)
        spoiled[place] ^= 1 << (place % 8)
        with pytest.raises(ValueError, match=r"is damaged|is not a saved learner"):
            unpack_learner(bytes(spoiled), "it")


def test_a_file_that_is_cut_off_is_found(data):
    for size in [*range(60), *range(60, len(data), 37), len(data) - 1]:
        with pytest.raises(ValueError, match="is damaged"):
            unpack_learner(data[:size], "it")
    with pytest.raises(ValueError, match="is damaged"):
        unpack_learner(data + b"\0", "it")


@pytest.mark.parametrize(
    "content", [b"hello", b"\x89PNG\r\n\x1a\n" + bytes(99), pickle.dumps([1]), b"SQLite format 3\0" + bytes(99)]
)
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved learner of reticent"):
        rt.load(tmp_path / "it")


def test_a_newer_version_is_refused(data):
    newer = b"".join(sealed([MARK, (3).to_bytes(8, "little"), data[len(MARK) + 8 : -32]]))
    with pytest.raises(ValueError, match=r"version 3 of the format.*update reticent"):
        unpack_learner(newer, "it")


def forged(entries, root=None, kind="learner"):
    words = {"kind": kind, "made_by": "9.9", "root": root or {"$": 0}, "entries": entries}
    text = json.dumps(words).encode()
    return b"".join(sealed([MARK, (1).to_bytes(8, "little"), len(text).to_bytes(8, "little"), text]))


@pytest.mark.parametrize(
    "entries",
    [
        [["object", "os:system", None]],
        [["object", "lab.streams:Stream", None]],
        [["object", "learners.os:system", None]],
        [["object", "learners._learner:os", None]],
        [["object", "learners._learner:Learner", None]],
        [["planner", "print"]],
        [["partial", "exec", {"$": 1}, {"$": 2}], ["tuple", ["print(1)"]], ["dict", []]],
        [["domain", "learners._pcomw:PCOMW", {"$": 1}], ["tuple", []]],
        [["domain", "domains._ball:Ball", {"$": 1}], ["tuple", [-1]]],
        [["generator", "default_rng", None]],
        [["array", "|O8", [1], "C", True, 0]],
        [["array", "<f8", [1 << 60], "C", True, 0]],
        [["array", "<f8", [1], "C", True, 8]],
        [["tuple", [{"$": 0}]]],
        [["list", [[1, 2]]]],
        [["list", [{"$": 5}]]],
        [["new", 1]],
        [["list", []]],
        [],
        ["list"],
        [["object", "learners._pcomw:PCOMW", {"$": 1}], ["list", [1]]],
    ],
)
def test_forged_files_run_nothing_and_are_refused(entries):
    with pytest.raises(ValueError, match=r"cannot be read by reticent|does not hold a learner"):
        unpack_learner(forged(entries), "it")


def test_things_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="holds a rounds, not a learner"):
        unpack_learner(b"".join(pack("rounds", [1])), "it")
    with pytest.raises(ValueError, match="does not hold a learner"):
        unpack_learner(b"".join(pack("learner", rt.Linear())), "it")


def test_only_the_owner_can_read_it(tmp_path):
    path = tmp_path / "state"
    path.write_text("old")
    path.chmod(0o644)
    before = os.umask(0)
    try:
        fresh().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert rt.load(path).rounds == 100
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "state")
    fresh().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert rt.load(tmp_path / "state").rounds == 100


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state"
    learner = fresh()
    learner.save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    learner.observe(ROWS[100], LABELS[100])
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="nothing was saved: No space left"):
        learner.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_places_that_cannot_be(tmp_path):
    with pytest.raises(FileNotFoundError):
        rt.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="nothing was saved"):
        fresh().save(tmp_path / "no" / "folder")
    with pytest.raises(OSError, match="nothing was saved"):
        fresh().save(tmp_path)


@pytest.mark.parametrize("seed", [None, 5, *(getattr(np.random, n)(1) for n in ("MT19937", "Philox", "SFC64"))])
def test_generators_go_on_where_they_were(seed, data):
    if isinstance(seed, np.random.BitGenerator):
        seed = np.random.Generator(seed)
    learner = fresh(seed)
    learner._rng.integers(0, 10, dtype=np.int32)  # half a word is left over
    again = unpack_learner(pack_learner(learner), "it")
    assert again._rng is again._walk.rng
    draws = learner._rng.random(5), learner._rng.integers(0, 10, size=3, dtype=np.int32)
    assert all(map(np.array_equal, draws, (again._rng.random(5), again._rng.integers(0, 10, size=3, dtype=np.int32))))


def test_epochs_of_a_plan_without_a_horizon_go_on():
    plan = rt.theorem_lazy(rt.Ball(2), None, 1.0, max_switches=300)
    assert isinstance(plan.recipe, partial)
    rows = np.tile(ROWS, (5, 1))
    straight, other = (rt.PCOMW(plan, rt.Linear(), seed=1) for _ in range(2))
    straight.observe_many(rows)
    other.observe_many(rows[:70])
    other = unpack_learner(pack_learner(other), "it")
    other.observe_many(rows[70:])
    assert other.epoch == straight.epoch > 0
    assert pack_learner(other) == pack_learner(straight)
    assert other.plan == plan


def test_another_process_goes_on_to_the_last_bit(tmp_path):
    learner = fresh(None)
    learner.save(tmp_path / "state")
    np.savez(tmp_path / "rows.npz", rows=ROWS[100:], labels=LABELS[100:])
    program = (
        "import numpy as np, reticent as rt; d = np.load('rows.npz'); l = rt.load('state');"
        "t = l.observe_many(d['rows'], d['labels']); print(t.decisions().tobytes().hex(), l.switches)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600
    )
    trace = learner.observe_many(ROWS[100:], LABELS[100:])
    assert told.stdout.split() == [trace.decisions().tobytes().hex(), str(learner.switches)]


def test_a_loss_of_the_callers_is_given_again():
    plan = rt.planning.plan_leader(rt.Ball(2), 50, 1.0)
    loss = rt.Custom(away, from_there, lipschitz=1.0)
    learner = rt.make(plan, loss, seed=1)
    learner.observe_many(list(ROWS[:10]))
    data = pack_learner(learner)
    with pytest.raises(ValueError, match=r"loss must be given.*value='away'.*rt.load\(path, loss="):
        unpack_learner(data, "it")
    others = rt.Linear(), rt.Custom(away, from_there, lipschitz=0.5), rt.Custom(away, away, lipschitz=1.0)
    for other in others:
        with pytest.raises(ValueError, match="loss must be the one that the learner was made with"):
            unpack_learner(data, "it", other)
    with pytest.raises(ValueError, match="loss must be one of the losses"):
        unpack_learner(data, "it", "away")
    again = unpack_learner(data, "it", loss)
    assert again.loss is loss
    assert np.array_equal(again.decision, learner.decision)


def test_a_loss_that_is_in_the_file_need_not_be_given(data):
    assert unpack_learner(data, "it", rt.Logistic()).rounds == 100
    with pytest.raises(ValueError, match=r"made with, Logistic\(\), got Hinge"):
        unpack_learner(data, "it", rt.Hinge())


def test_objects_and_functions_of_the_callers_are_refused():
    class Datum(list):
        pass

    plan = rt.Plan(rt.Interval(-1.0, 1.0), 50, 1.0, beta=0.1, lam=20.0, p=0.1, phi=1.2)
    learner = rt.make(plan, rt.Custom(lambda x, c: abs(x[0]), lambda x, c: np.sign(x), lipschitz=1.0), seed=1)
    learner.observe_many([Datum()])
    with pytest.raises(ValueError, match=r"can be saved, got an object of type .*Datum"):
        pack_learner(learner)
    with pytest.raises(ValueError, match="functions cannot be saved"):
        list(body_of("x", away))
    with pytest.raises(ValueError, match="arrays must be of numbers"):
        list(body_of("x", np.array([object()])))

    class Own(rt.PCOMW):
        pass

    with pytest.raises(ValueError, match=r"got an object of type .*Own"):
        pack_learner(Own(PLAN, rt.Linear(), seed=1))


def test_a_learner_that_was_interrupted_is_not_saved():
    learner = fresh()
    learner._walk.torn = True
    with pytest.raises(ValueError, match="was interrupted"):
        pack_learner(learner)


def test_the_same_state_has_the_same_bytes(data):
    again = unpack_learner(data, "it")
    assert isinstance(again, Learner)
    assert pack_learner(again) == data
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]


def test_a_folder_that_cannot_be_synced_is_told_apart_from_nothing_saved(tmp_path, monkeypatch):
    from reticent.saving import _write

    def failing(folder):
        raise OSError(5, "input/output error")

    monkeypatch.setattr(_write, "sync_folder", failing)
    learner = rt.make(rt.plan_lazy(rt.Ball(2), 100, 1.0, max_switches=20), rt.Linear(), seed=1)
    with pytest.raises(OSError, match="the file is in its place, but might not be after a power cut"):
        learner.save(tmp_path / "state")
    assert rt.load(os.fsencode(tmp_path / "state")).rounds == 0
