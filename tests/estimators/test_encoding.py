"""Public encodings: a value alone decides its units, and a row is never longer than 1."""

import math
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest

from reticent.estimators._encoding import MISSING, Calendar, Categories, Number, Range, encoding_of
from reticent.estimators._features import Declared

CITY = ("Paris", "Lyon", "other")
KNOWN = {"age": (0, 100), "city": CITY, "since": (date(2024, 1, 1), date(2024, 12, 31))}
FEATURES = tuple(KNOWN)


def test_no_row_is_longer_than_one_whatever_comes():
    features = Declared(FEATURES, KNOWN)
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = {
            "age": rng.choice([-1e9, 0, 37.5, 100, 1e9, math.nan]),
            "city": rng.choice(["Paris", "Lyon", "Rome", "", "n/a"]),
            "since": date(2024, 1, 1) + timedelta(days=int(rng.integers(-900, 900))),
        }
        row = features.row(x)
        assert row.size == features.dim == 6
        assert np.linalg.norm(row) <= 1 + 1e-12
    # A category of a hundred texts costs no more length than a number.
    wide = Declared(("a", "b"), {"a": (0, 1), "b": tuple(f"t{i}" for i in range(100))})
    assert np.linalg.norm(wide.row({"a": 1, "b": "t7"})) == pytest.approx(1.0)


def test_rows_are_encoded_alike_one_by_one_and_together():
    features = Declared(FEATURES, KNOWN, fill={"age": 40, "city": "Lyon"})
    given = [
        {"age": 3, "city": "Lyon", "since": "2024-03-01"},
        {"age": None, "city": "Rome", "since": datetime(2024, 5, 1, 6)},
        {"city": None},
        {"age": 70, "city": "?", "since": np.datetime64("2024-07-01T12:00")},
    ]
    columns = [features.codes(name, [x.get(name) for x in given]) for name in FEATURES]
    together = features.rows(FEATURES, np.column_stack(columns))
    assert (together == np.array([features.row(x) for x in given])).all()
    assert (features.row({}) == features.row({"age": 40, "city": "Lyon"})).all()
    assert (features.row({}) != Declared(FEATURES, KNOWN).row({})).any()


def test_dates_with_and_without_time_and_zone():
    calendar = Calendar(date(2024, 1, 1), date(2025, 1, 1))
    noon = calendar.code("2024-02-01T12:00:00")
    assert noon == calendar.code(datetime(2024, 2, 1, 12)) == calendar.code(np.datetime64("2024-02-01T12:00"))
    assert noon == calendar.code(datetime(2024, 2, 1, 14, tzinfo=timezone(timedelta(hours=2))))
    assert calendar.code("2024-02-01") == noon - 0.5
    for wrong in ("31.12.2024", "12/31/2024", "yesterday", 5):
        with pytest.raises(ValueError, match="where a date such as 2024-12-31 is expected"):
            calendar.code(wrong)


def test_missing_is_missing_in_every_way():
    pandas = pytest.importorskip("pandas")
    nothings = [None, math.nan, np.float64("nan"), pandas.NA, pandas.NaT, np.datetime64("NaT")]
    for encoding in (Categories(CITY), Calendar(date(2024, 1, 1), date(2025, 1, 1))):
        assert all(math.isnan(encoding.code(value)) for value in (*nothings, *MISSING, " N/A ", "NULL"))
    assert all(math.isnan(Number(Range((0, 1))).code(value)) for value in nothings[:4])


def test_categories_that_are_numbers_are_their_texts():
    level = Categories(("1", "2", "3"))
    assert [level.code(value) for value in (1, 2.0, np.int64(3), "2", " 3 ")] == [0.0, 1.0, 2.0, 1.0, 2.0]
    with pytest.raises(
        ValueError, match=r"has '4' where one of '1', '2', '3' is expected; name it too, or add 'other'"
    ):
        level.code(4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("one",), "two or more different texts"),
        (("a", "a"), "two or more different texts"),
        (("a", "n/a"), "texts that mean something"),
        ((1, 2, 3), r"must be \(low, high\)"),
        ((date(2025, 1, 1), date(2024, 1, 1)), "low end below its high end"),
    ],
)
def test_what_is_no_public_knowledge(given, said):
    with pytest.raises(ValueError, match=said):
        encoding_of(given)


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        ({"size": 1}, "fill must be for features, got 'size'; there are 'age', 'city', 'since'"),
        ({"age": "forty"}, r"fill\['age'\] must be a number, got 'forty'"),
        ({"age": None}, "which means that nothing is there"),
        ({"since": "soon"}, "has 'soon' where a date"),
        ("middle", "fill must be a dictionary"),
    ],
)
def test_what_is_no_fill(fill, said):
    with pytest.raises(ValueError, match=said):
        Declared(FEATURES, KNOWN, fill)
