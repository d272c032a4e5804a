"""States that were put together by something else than `save` are refused, soon and in one sentence."""

import os
import stat

import numpy as np
import pytest
from mutants import put, taken
from test_saving import away, forged, fresh, from_there

import reticent as rt
from reticent.learners import Learner
from reticent.saving._format import body_of, maker
from reticent.systems._saved import pack_learner, unpack_learner

REFUSED = "cannot be read by reticent"


class Forgery:
    """A saved learner whose state can be changed, by the names of attributes from the learner on."""

    def __init__(self, learner):
        self.structure, self.arrays = taken(pack_learner(learner))
        self.entries = self.structure["entries"]

    def state(self, *names):
        found = self.entries[self.structure["root"]["$"]]
        for name in names:
            found = self.entries[dict(map(tuple_of, self.pairs(found)))[name]["$"]]
        return self.pairs(found)

    def pairs(self, entry):
        while entry[0] != "dict":
            entry = self.entries[entry[-1]["$"]] if entry[0] == "object" else self.entries[entry[1][0]["$"]]
        return entry[1]

    def set(self, *names, value):
        *where, last = names
        pairs = self.state(*where)
        assert last in [key for key, _ in pairs]
        for pair in pairs:
            if pair[0] == last:
                pair[1] = value

    def array(self, *names):
        """Return the bytes of an array of numbers, to be written to."""
        *where, last = names
        entry = self.entries[dict(map(tuple_of, self.state(*where)))[last]["$"]]
        assert entry[:2] == ["array", "<f8"]
        count = int(np.prod(entry[2]))
        return np.frombuffer(self.arrays, dtype="<f8", count=count, offset=entry[-1])

    def load(self):
        return unpack_learner(put(self.structure, self.arrays), "it")


def tuple_of(pair):
    return pair[0], pair[1]


def private():
    plan = rt.Plan(rt.Interval(-1.0, 1.0), 100, 1.0, beta=1e-4, lam=1e4, p=0.01, phi=1.1, epsilon=50.0, delta=1e-3)
    learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    learner.observe_many(np.full((30, 1), 0.5))
    return learner


@pytest.fixture
def forgery():
    return Forgery(private())


def test_the_untouched_state_loads(forgery):
    assert forgery.load().rounds == 30


@pytest.mark.parametrize("number", [5.0, np.nan, np.inf, 0.123])
def test_a_decision_that_is_not_that_of_the_walk_is_refused(forgery, number):
    forgery.array("_x")[:] = number
    with pytest.raises(ValueError, match=rf"{REFUSED}.*its decision .* is not the one of its walk"):
        forgery.load()


@pytest.mark.parametrize("number", [5.0, np.nan])
def test_a_walk_outside_the_domain_is_refused(forgery, number):
    forgery.array("_walk", "u")[:] = number
    forgery.array("_x")[:] = number
    with pytest.raises(ValueError, match=REFUSED):
        forgery.load()


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (["_rounds"], -5),
        (["_rounds"], 31),
        (["_rounds"], 30.5),
        (["_rounds"], True),
        (["_switches"], -1),
        (["_last"], 10**9),
        (["_last"], 20),
        (["_wake"], 3),
        (["_busy"], True),
        (["_gate", "lipschitz"], 50.0),
        (["_gate", "on_steep"], "clip"),
        (["_gate"], {"$": -1}),
        (["_inbox", "limit"], 50.0),
        (["_inbox", "most"], 1e9),
        (["_inbox", "count"], 1),
        (["plan", "epsilon"], -1.0),
        (["plan", "beta"], {"float": "nan"}),
        (["_walk", "measure", "beta"], {"float": "nan"}),
        (["_walk", "measure", "beta"], 5.0),
        (["_walk", "measure", "lam"], -1.0),
        (["_walk", "measure", "distance"], {"float": "nan"}),
        (["_walk", "coin", "p"], {"float": "nan"}),
        (["_walk", "done"], 29),
        (["_walk", "torn"], True),
        (["_walk"], None),
    ],
)
def test_what_cannot_be_is_refused(forgery, names, value):
    forgery.set(*names, value=value)
    with pytest.raises(ValueError, match=REFUSED):
        forgery.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [("plan", 3), ("past", 3), ("number", 1), ("before", 5), ("length", 3), ("walk", None), ("_renewing", True)],
)
def test_epochs_that_cannot_be_are_refused(name, value):
    plan = rt.Plan(rt.Interval(-1.0, 1.0), None, 1.0, beta=0.1, lam=30.0, p=0.05, phi=1.2, first_epoch=32)
    learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    learner.observe_many(np.full((100, 1), 0.5))
    forgery = Forgery(learner)
    assert forgery.load().epoch == 2
    forgery.set("_walk", name, value=value)
    with pytest.raises(ValueError, match=REFUSED):
        forgery.load()


def test_a_plan_that_was_changed_after_it_was_sealed_is_refused():
    plan = rt.plan_private(rt.Interval(-1.0, 1.0), 100, 1.0, epsilon=3.0, delta=1e-5)
    assert plan.seal is not None
    learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    for name, value in (("lipschitz", 0.5), ("epsilon", 0.001), ("regret_bound", 1.0)):
        forgery = Forgery(learner)
        forgery.set("plan", name, value=value)
        with pytest.raises(ValueError, match="its plan is not as the planner wrote it"):
            forgery.load()


def test_a_state_without_its_attributes_is_refused(forgery):
    for name in Learner._parts:
        other = Forgery(private())
        other.state()[:] = [pair for pair in other.state() if pair[0] != name]
        with pytest.raises(ValueError, match=REFUSED):
            other.load()
    forgery.state().clear()
    with pytest.raises(ValueError, match="too many or too few"):
        forgery.load()


def nested(depth):
    return [["tuple", [{"$": i + 2}, {"$": i + 2}]] for i in range(depth)] + [["tuple", [1]]]


@pytest.mark.parametrize("first", [["dict", [[{"$": 1}, 1]]], ["set", [{"$": 1}]], ["frozenset", [{"$": 1}]]])
def test_keys_that_take_for_ever_to_hash_are_refused(first):
    with pytest.raises(ValueError, match="must be a number or a text to be saved, got a tuple"):
        unpack_learner(forged([first, *nested(60)]), "it")


def test_what_could_not_be_loaded_is_not_saved():
    for thing in ({(1, 2): 3}, {(1, 2)}, frozenset([frozenset()])):
        with pytest.raises(ValueError, match="member of a set must be a number or a text"):
            list(body_of("x", thing))


@pytest.mark.parametrize(
    ("body", "args"),
    [("ball", [10**12, 1.0]), ("simplex", [10**9]), ("experts", [10**9]), ("domains._ball:Ball", [10**12, 1.0])],
)
def test_domains_larger_than_the_file_are_refused(body, args):
    with pytest.raises(ValueError, match=r"of \d+ dimensions is too large for this file"):
        unpack_learner(forged([["domain", body, {"$": 1}], ["tuple", args]]), "it")


def test_arrays_do_not_share_their_bytes():
    structure = {"kind": "learner", "made_by": "9.9", "root": {"$": 0}}
    entries = [["list", [{"$": 1}, {"$": 2}]], *[["array", "<f8", [4], "C", True, 0]] * 2]
    with pytest.raises(ValueError, match="arrays lie on top of each other"):
        unpack_learner(put({**structure, "entries": entries}, bytes(32)), "it")


def test_too_little_memory_is_told(monkeypatch, forgery):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr("reticent.saving._format.Assembly", full)
    with pytest.raises(ValueError, match="it takes more memory than there is; "):
        forgery.load()


def test_a_wrong_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 42)  # sparse: no disk could hold it, nor memory
    with pytest.raises(ValueError, match="is not a saved learner of reticent: it begins with"):
        rt.load(tmp_path / "huge")


def test_what_to_do_depends_on_who_wrote_the_file(forgery):
    with pytest.raises(ValueError, match=r"it was made by reticent 9\.9, so use that version$"):
        unpack_learner(forged([["new", 1]]), "it")
    forgery.set("_rounds", value=-5)
    assert forgery.structure["made_by"] == maker()
    with pytest.raises(
        ValueError, match=r"this version wrote it, so something has changed it since: take an older copy$"
    ):
        forgery.load()
    with pytest.raises(ValueError, match=r"reticent did not write it: give a file that learner\.save wrote$"):
        unpack_learner(put([]), "it")


def test_there_is_no_version_0():
    with pytest.raises(ValueError, match="there is no version 0 of the format"):
        unpack_learner(put(*taken(pack_learner(private())), version=0), "it")


@pytest.mark.parametrize("mask", [0, 0o022, 0o277, 0o777])
def test_the_owner_can_read_it_whatever_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        private().save(tmp_path / "state")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600


def test_names_may_be_as_long_as_names_can_be(tmp_path):
    for name in ("n" * 255, "é" * 127):
        private().save(tmp_path / name)
        assert rt.load(tmp_path / name).rounds == 30


def test_losses_of_another_maker_or_probe_are_told_apart():
    pytest.importorskip("jax")
    plan = rt.planning.plan_leader(rt.Ball(2), 50, 1.0)
    loss = rt.losses.from_jax(away, lipschitz=1.0)
    learner = rt.make(plan, loss, seed=1)
    data = pack_learner(learner)
    assert unpack_learner(data, "it", rt.losses.from_jax(away, lipschitz=1.0)).rounds == 0

    class Torch(type(loss.engine)):
        maker = "from_torch"

    others = (
        rt.losses.from_jax(away, lipschitz=1.0, probe=0),
        type(loss)(Torch(away), 1.0, 16),
        rt.Custom(away, from_there, lipschitz=1.0),
    )
    for other in others:
        with pytest.raises(ValueError, match=r"made with, .*maker='from_jax', probe=16"):
            unpack_learner(data, "it", other)


def test_a_learner_with_rounds_in_its_inbox_is_saved_whole():
    learner = fresh()
    learner.observe([0.1, 0.2], 1)
    assert unpack_learner(pack_learner(learner), "it").rounds == 101
