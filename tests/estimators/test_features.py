import math
import random

import numpy as np
import pytest

from reticent.estimators._encoding import Range
from reticent.estimators._features import Declared, Hashed, feature_map

NAMES = [f"f{i}" for i in range(40)]


def maps():
    return [
        Hashed(7, (-1, 2)),  # many names to a slot
        Hashed(64, (0, 1)),
        Declared([*NAMES[::3], "never there"], (-1, 2)),
        Declared(NAMES[:2], ((0, 1), (-5, 5))),
        Declared(()),
    ]


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(1)
    found = 3 * rng.normal(size=(100, len(NAMES)))
    found[rng.random(found.shape) < 0.1] = np.nan
    found[0, :4] = [np.inf, -np.inf, 1e308, 0.0]
    return found


@pytest.mark.parametrize("features", maps(), ids=lambda m: f"{type(m).__name__}{m.dim}")
def test_one_row_and_many_are_the_same_bits_in_any_order(features, values):
    shuffle = random.Random(0)
    block = features.rows(NAMES, values)
    for line, row in zip(values, block, strict=True):
        present = [i for i in range(len(NAMES)) if not (math.isnan(line[i]) and shuffle.random() < 0.5)]
        shuffle.shuffle(present)
        assert features.row({NAMES[i]: line[i] for i in present}).tobytes() == row.tobytes()


@pytest.mark.parametrize("features", maps(), ids=lambda m: f"{type(m).__name__}{m.dim}")
def test_rows_are_never_longer_than_one(features, values):
    assert (np.linalg.norm(features.rows(NAMES, values), axis=1) <= 1 + 1e-12).all()
    assert features.row({}).shape == (features.dim,)
    assert np.linalg.norm(features.row({})) <= 1


def test_new_features_change_nothing_that_is_promised():
    declared, hashed = Declared(("a",), (0, 1)), Hashed(4, (0, 1))
    assert (declared.row({"a": 0.3, "new": 9.0}) == declared.row({"a": 0.3})).all()
    crowd = {f"new {i}": 1e9 for i in range(1000)}
    assert hashed.row(crowd).shape == (5,)
    assert np.linalg.norm(hashed.row(crowd)) <= 1 + 1e-12


def test_missing_is_the_middle_of_the_bounds():
    features = Declared(("a", "b"), ((0, 10), (0, 10)))
    pandas = pytest.importorskip("pandas")
    for absent in ({"a": 3}, {"a": 3, "b": None}, {"a": 3, "b": math.nan}, {"a": 3, "b": pandas.NA}, {"a": 3, "b": 5}):
        assert (features.row(absent) == features.row({"a": 3})).all()


def test_the_hash_stays_what_it_is():
    """Weights that were learned belong to slots: another hash would make them meaningless."""
    row = Hashed(8).row({"age": 1.0, "visits": 0.5, 3: -1.0})
    assert np.sign(row).tolist() == [1, -1, -1, 0, 0, 0, 0, 0, -1]
    assert row[[1, 2, 8]] / row[0] == pytest.approx([-1.0, -0.5, -1.0])
    assert (Hashed(8).row({"3": -1.0}) == Hashed(8).row({3: -1.0})).all()


def test_ranges_scale_clip_and_come_back():
    ends = Range((10, 30))
    for value, unit in ((10, -1.0), (20, 0.0), (25, 0.5), (99, 1.0), (-math.inf, -1.0)):
        assert ends.unit("x", value) == unit == ends.units("x", np.array([float(value)]))[0]
        assert ends.back(unit) == min(max(value, 10), 30) == ends.backs(np.array([unit]))[0]


@pytest.mark.parametrize("features", [("age",), 8])
def test_forgotten_bounds_are_found_at_the_first_value_that_needs_them(features):
    found = feature_map(features)
    found.row({"age": -1.0})
    with pytest.raises(
        ValueError, match=r"feature 'age' is 40\.0, outside of \[-1, 1\], and bounds was not given; give"
    ):
        found.row({"age": 40})
    with pytest.raises(ValueError, match=r"feature 'age' is 40\.0"):
        found.rows(["age"], np.array([[0.0], [40.0]]))


@pytest.mark.parametrize(
    "value",
    ["high", b"1", object(), 1j, np.complex128(1), np.timedelta64(3), np.datetime64("2020"), np.ones(1), 10**400],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("features", [("age",), 8])
def test_values_that_are_not_numbers_are_refused(features, value):
    with pytest.raises(ValueError, match=r"feature 'age' must be a number, got .*OneHotEncoder"):
        feature_map(features).row({"age": value})


@pytest.mark.parametrize(
    ("features", "bounds", "message"),
    [
        ("age", None, "features must be the names of the features in a tuple"),
        (True, None, "features must be the names"),
        ({"a", "b"}, None, "features must be the names"),
        (-1, None, "features must be a whole number of at least 1, got -1"),
        (("a", "a"), None, "different names"),
        ((), None, r"features must have a name at least, got \(\); write features=0 for an intercept only"),
        ([], (0, 1), "write features=0 for an intercept only"),
        ((["a"],), None, r"features must be names, .* got \['a'\]"),
        (
            ("a", "b"),
            ((0, 1), (1,)),
            r"the bounds of 'b' must be \(low, high\), two numbers known in public, got \(1,\)",
        ),
        (("a", "b"), ((0, 1), 3), r"the bounds of 'b' must be \(low, high\), .* got 3"),
        (8, ((0, 1), (1,)), "declare the features by name"),
        (("a",), (1.0, 0.0), "low end below its high end"),
        (("a",), (0.0, math.inf), "the high end of bounds must be finite"),
        (("a",), (0.0,), r"bounds must be \(low, high\)"),
        (("a",), "ab", r"bounds must be \(low, high\)"),
        (("a", "b"), ((0, 1), (0, 1), (0, 1)), "one such pair for each of the 2 features, got 3"),
        (("a", "b"), {"a": (0, 1)}, "a range for every feature, got none for 'b'"),
        (("a",), ((0, 1e101),), "choose other units"),
        (8, {"a": (0, 1)}, "one .* for all features where these are hashed"),
        (8, ((0, 1), (0, 1)), "declare the features by name"),
    ],
)
def test_bad_configurations_are_refused(features, bounds, message):
    with pytest.raises(ValueError, match=message):
        feature_map(features, bounds)


def test_other_inputs_are_refused():
    with pytest.raises(ValueError, match="x must be a dictionary of features, got list"):
        Hashed(8).row([1.0])
    with pytest.raises(ValueError, match="columns must have different names"):
        Hashed(8).rows(["a", "a"], np.zeros((1, 2)))


def test_bounds_come_as_lists_and_arrays_too():
    expected = Declared(("a", "b"), ((0, 1), (0, 4))).row({"a": 0.2, "b": 3})
    for bounds in ([[0, 1], [0, 4]], np.array([[0, 1], [0, 4]]), (np.array([0, 1]), (0.0, 4.0))):
        assert (Declared(("a", "b"), bounds).row({"a": 0.2, "b": 3}) == expected).all()
    for bounds in ([0, 4], np.array([0.0, 4.0]), (np.float64(0), np.array(4.0))):
        assert Hashed(4, bounds).range.high == Declared(("a",), bounds).encodings[0].range.high == 4.0
