"""Specifications as JSON, keys, persons, the ledger, and what a fleet tells."""

import json

import numpy as np
import pytest
from fleets import SPECS

import reticent as rt
from reticent.fleet import Fleet, Spec
from reticent.fleet._keys import Root, grouped

GOAL = {"epsilon": 1.0, "delta": 1e-6}


# Specifications.


@pytest.mark.parametrize("name", SPECS)
def test_specifications_survive_json(name):
    spec = SPECS[name]
    again = Spec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert again.plan == spec.plan
    assert (again.columns, again.loss) == (spec.columns, spec.loss)


def test_specifications_are_words_where_there_are_some():
    spec = Spec(rt.private_learner, rt.Pinball(0.95), rt.Interval(0, 1000), **GOAL)
    assert spec.to_json() == {
        "learner": "private_learner", "loss": "pinball:0.95", "domain": "interval:0.0:1000.0", **GOAL
    }  # fmt: skip
    assert Spec.from_json({**spec.to_json(), "domain": "interval:0:1000"}) == spec
    uneven = Spec(rt.private_learner, rt.Linear(), rt.Box([0.0, 1.0], [1.0, 3.0]), **GOAL).to_json()
    assert set(uneven["domain"]) == {"packed"}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"learner": "os.system"}, "learner must be one of private_learner"),
        ([], 'an object with "learner"'),
        ({"learner": "PrivateMean", "low": 0, "high": 1}, "not the arguments of PrivateMean"),
        ({"learner": "PrivateMean", "low": 0, "high": 1, "epsilon": 1.0, "colour": 3}, "not the arguments"),
        ({"learner": "PrivateMean", "low": 0, "high": 1, "epsilon": 1.0, "seed": 3}, "seed must be given to the fleet"),
        ({"learner": "PrivateMean", "low": 0, "high": 1, "epsilon": -1.0}, "epsilon must be greater than 0"),
        ({"learner": "private_learner", "loss": "cubic", "domain": "ball:2", **GOAL}, "loss must be one of"),
        ({"learner": "private_learner", "loss": {"packed": "@"}, "domain": "ball:2", **GOAL}, "no base64"),
        ({"learner": "private_learner", "loss": {"packed": "AAAA"}, "domain": "ball:2", **GOAL}, "not a saved|damaged"),
    ],
)
def test_bad_specifications_are_refused(written, said):
    with pytest.raises(ValueError, match=said):
        Spec.from_json(written)


def test_functions_and_data_have_no_place_in_a_specification():
    custom = rt.Custom(lambda x, item: 0.0, lambda x, item: x, lipschitz=1.0)
    with pytest.raises(ValueError, match="which has functions"):
        Spec(rt.private_learner, custom, rt.Ball(2), **GOAL)
    with pytest.raises(ValueError, match="like must be None"):
        Spec(rt.private_learner, rt.Linear(), rt.Ball(2), like=np.ones((3, 2)), **GOAL)
    with pytest.raises((ValueError, TypeError), match="max_rows"):
        Spec(rt.PrivateMean, 0.0, 1.0, epsilon=1.0, max_rows=3)
    with pytest.raises(ValueError, match=r"maker must be one of rt\.private_learner"):
        Spec(print, 1)


# Keys.


def test_keys_are_grouped_in_any_form():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 40, 300)
    wide = codes * 10**15 - 7
    texts, boxed = [f"k{code}" for code in codes], np.array(codes, dtype=object)
    for keys in (codes, codes.astype(np.uint8), wide, codes.tolist(), texts, boxed):
        groups = grouped(keys)
        listed = keys.tolist() if isinstance(keys, np.ndarray) else keys
        for i, key in enumerate(groups.keys):
            mine = groups.order[groups.bounds[i] : groups.bounds[i + 1]]
            assert [j for j, one in enumerate(listed) if one == key] == mine.tolist()
    assert grouped([]).keys == []
    assert [type(key) for key in grouped([np.int32(3), "3", np.str_("x")]).keys] == [int, str, str]


def test_seeds_of_keys_are_far_apart():
    """Chi-square of the first bits of the generators of many keys: significance 1e-6."""
    for root in (Root.new(1), Root(bytes(32), open_seed=False)):
        draws = np.array([np.random.default_rng(root.number_of(key) % 2**64).integers(0, 16) for key in range(4000)])
        counts = np.bincount(draws, minlength=16)
        assert ((counts - 250.0) ** 2 / 250.0).sum() < 59.6  # 15 degrees of freedom: above it with chance 3e-7
        same = np.zeros(4000, dtype=np.int64)
        assert ((np.bincount(same, minlength=16) - 250.0) ** 2 / 250.0).sum() > 59.6
    assert Root.new(1).number_of(7) != Root.new(1).number_of("7") != Root.new(2).number_of("7")
    assert Root.read(Root.new(None).written()).open_seed is False


# What a fleet tells.


def test_one_row_of_one_key_and_keys_that_are_not_known():
    fleet = rt.Fleet(SPECS["filtered, ball"], seed=1)
    assert fleet.observe("a", [0.1, 0.2, 0.3], 1.0).rounds == 1
    assert np.array_equal(fleet.decision("b"), fleet.spec.new(0).decision)
    assert fleet.versions(["a", "b"]).tolist() == [0, 0]
    assert (fleet.spent("a"), fleet.spent("b"), len(fleet.history("b")[0])) == (0.0, 0.0, 0)
    assert fleet.keys() == ["a"]
    assert "1 keys" in repr(fleet)
    assert fleet.observe([], np.zeros((0, 3)), []).rounds == 0


def test_receipts_name_changed_keys_in_the_order_of_their_rows():
    fleet = rt.Fleet(SPECS["mean"], seed=1)
    keys = ["z"] * 11 + ["a"] * 11 + ["m"] * 10
    assert fleet.observe(keys, np.linspace(0, 60, 32)).changed == ("z", "a")
    versions = fleet.versions(["a", "m"]).tolist()
    assert versions == [1, 0]
    rounds, points = fleet.history("a")
    assert rounds.tolist() == [11]
    assert points[0] == fleet.decision("a")


def test_a_key_that_does_not_change_does_not_cost_another():
    """Rows of one key do not move what another shows."""
    rng = np.random.default_rng(0)
    y = rng.exponential(5.0, 300)
    shown = []
    for other in (0.0, 50.0):
        fleet = rt.Fleet(SPECS["filtered, interval"], seed=1)
        fleet.observe(["a", "b"] * 300, np.ones(600), np.stack([y, np.full(300, other)], 1).ravel())
        shown.append((fleet.decision("a")[0], fleet.decision("b")[0]))
    assert shown[0][0] == shown[1][0]
    assert shown[0][1] != shown[1][1]


# Persons and the ledger.


@pytest.mark.parametrize("stored", [False, True])
def test_a_person_under_too_many_keys_is_refused(stored, tmp_path):
    fleet = rt.Fleet(SPECS["mean"], tmp_path / "fleet.db" if stored else None, seed=1, max_keys=2, resident=2)
    fleet.observe(["a", "b", "a", "c"], np.ones(4), persons=["ann", "ann", "ann", 7])
    with pytest.raises(ValueError, match=r"row 1, would appear under 3 keys, where max_keys=2") as error:
        fleet.observe(["d", "c", "d"], np.ones(3), persons=["bob", "ann", "bob"], batch="x")
    assert "ann" not in str(error.value)
    assert fleet.rounds(["a", "b", "c", "d"]).tolist() == [2, 1, 1, 0]
    fleet.observe(["a", "d", "e"], np.ones(3), persons=["ann", "bob", "bob"], batch="x")
    with pytest.raises(ValueError, match="max_keys=2"):
        fleet.observe(["f"], np.ones(1), persons=["bob"])
    with pytest.raises(ValueError, match="every row needs a person"):
        fleet.observe(["f"], np.ones(1), persons=["bob", "ann"])


def test_one_entry_for_the_fleet(tmp_path):
    ledger = rt.Ledger(tmp_path / "ledger.db")
    ledger.add("people", 3.0, 1e-6)
    spec = Spec(rt.private_learner, rt.Pinball(0.9), rt.Interval(0.0, 60.0), epsilon=0.5, delta=1e-8)
    rt.Fleet(spec, ledger=ledger, population="people")
    rt.Fleet(spec, tmp_path / "fleet.db", name="many", ledger=ledger, population="people", max_keys=4).close()
    rt.Fleet(spec, tmp_path / "fleet.db", name="many", ledger=ledger, population="people", max_keys=4).close()
    single, many = ledger.entries("people")
    assert many.terms.square == pytest.approx(4 * single.terms.square)
    assert "fleet many" in many.note
    pure = Spec(rt.PrivateMean, 0.0, 1.0, epsilon=0.05)
    rt.Fleet(pure, ledger=ledger, population="people", max_keys=3)
    assert ledger.entries("people")[-1].terms.pure == pytest.approx(0.15)
    big = Spec(rt.PrivateMean, 0.0, 1.0, epsilon=2.0)
    with pytest.raises(ValueError, match="refuses"):
        rt.Fleet(big, tmp_path / "fleet.db", name="dear", ledger=ledger, population="people", max_keys=30)
    with pytest.raises(ValueError, match="no fleet 'dear'"):
        Fleet.open(tmp_path / "fleet.db", "dear")
    with pytest.raises(ValueError, match="go together"):
        rt.Fleet(pure, ledger=ledger)


# Rows that only some learners refuse.

LINE = rt.Interval(-1.0, 1.0)
CURVED = rt.planning.plan_grid_descent(LINE, 100, 2.0, 10, strong_convexity=0.9, smoothness=1.0)
SMOOTH = rt.planning.plan_ftrl(LINE, 100, 2.0, 1.0, 1e-6, smoothness=1.0)


@pytest.mark.parametrize(
    ("plan", "loss", "row", "said"),
    [
        (CURVED, rt.Squared(), 0.5, "below the plan's strong_convexity"),
        (SMOOTH, rt.Huber(), 1.2, "above the plan's smoothness"),
    ],
)
def test_a_row_that_the_learner_refuses_is_found_before_any_key_learns(plan, loss, row, said):
    fleet = Fleet(Spec(rt.make, plan, loss), seed=1)
    fleet.observe(["a", "b"], np.ones((2, 1)), np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match=said):
        fleet.observe(["a", "b"], np.array([[1.0], [row]]), np.array([0.5, 0.5]))
    assert fleet.rounds(["a", "b"]).tolist() == [1, 1]
    fleet.observe(["b"], np.ones((1, 1)), np.array([0.5]))
    assert fleet.rounds(["a", "b"]).tolist() == [1, 2]
