"""Parquet: the same rows as CSV, bad ones known by their number, broken files in one sentence."""

from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.estimators._encoding import Calendar, Categories
from reticent.lab.files import BadRow, Column, open_table

AB = (Column("a", 0), Column("b", 1))


def write(tmp_path, columns, **options):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return str(path)


def read(path, columns=AB, **options):
    with open_table(path) as table:
        parts = list(table.parts(columns, **options))
        return [row for part in parts for row in part.values.tolist()], table.skipped, parts


def test_numbers_of_all_kinds(tmp_path):
    path = write(tmp_path, {"a": pa.array([1, 2], pa.int8()), "b": pa.array([True, False]), "c": ["3.5", " 4"]})
    rows, _, _ = read(path, (*AB, Column("c", 2)))
    assert rows == [[1.0, 1.0, 3.5], [2.0, 0.0, 4.0]]


def test_found_by_content_whatever_the_name(tmp_path):
    path = write(tmp_path, {"a": [1.0], "b": [2.0]})
    (tmp_path / "data.csv").write_bytes((tmp_path / "data.parquet").read_bytes())
    assert read(str(tmp_path / "data.csv"))[0] == read(path)[0]


def test_batches_and_places(tmp_path):
    a = np.arange(200_000.0)
    path = write(tmp_path, {"a": a, "b": -a}, row_group_size=70_000)
    rows, _, parts = read(path, most=50_000)
    assert rows[-1] == [199_999.0, -199_999.0]
    assert max(len(part) for part in parts) <= 50_000
    assert parts[-1].line(0) == int(parts[-1].values[0, 0]) + 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [(None, "column 'b' is empty"), (float("nan"), "has 'nan' where a finite"), (float("inf"), "has 'inf'")],
)
def test_bad_rows(tmp_path, bad, said):
    path = write(tmp_path, {"a": [1.0, 2.0, 3.0], "b": pa.array([1.0, bad, 3.0], pa.float64())})
    seen = []
    with open_table(path) as table, pytest.raises(BadRow) as caught:
        seen.extend(row for part in table.parts(AB) for row in part.values.tolist())
    assert seen == [[1.0, 1.0]]
    assert f"{path}, row 2: column" in str(caught.value)
    assert said in str(caught.value)
    rows, skipped, parts = read(path, skip=True)
    assert (rows, skipped) == ([[1.0, 1.0], [3.0, 3.0]], 1)
    assert parts[0].line(1) == 3


def test_classes_labels_and_text_in_a_number(tmp_path):
    words = pa.array(["yes", "no", "yes"]).dictionary_encode()
    path = write(tmp_path, {"a": ["1", "x", "3"], "b": words, "c": pa.array([1, 0, 2])})
    columns = Column("b", 1, "class", ("no", "yes")), Column("c", 2, "label")
    assert read(path, columns, skip=True)[:2] == ([[1.0, 1.0], [-1.0, 0.0]], 1)
    with pytest.raises(BadRow, match="row 2: column 'a' has 'x' where a number"):
        read(path, (Column("a", 0),))


def test_what_cannot_be_a_number(tmp_path):
    path = write(tmp_path, {"a": [[1.0], [2.0]], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="column 'a' holds list"):
        read(path)


def test_two_columns_of_one_name(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), path)
    assert read(str(path), (Column("a", 1),))[0] == [[2.0]]
    assert read(str(path), AB)[0] == [[1.0, 2.0]]


def test_broken_files(tmp_path):
    path = write(tmp_path, {"a": np.arange(10_000.0), "b": np.arange(10_000.0)})
    whole = (tmp_path / "data.parquet").read_bytes()
    for name, content in (("cut", whole[:5000]), ("text", b"a,b\n1,2\n"), ("empty", b"")):
        other = tmp_path / f"{name}.parquet"
        other.write_bytes(content)
        with pytest.raises(ValueError, match="is not a whole Parquet file"):
            open_table(str(other))
    spoilt = bytearray(whole)
    spoilt[2000:60_000] = b"\xff" * 58_000
    (tmp_path / "data.parquet").write_bytes(spoilt)
    with pytest.raises(ValueError, match="is not a whole Parquet file, or is damaged"):
        read(path)


def test_dates_categories_and_fills(tmp_path):
    days = pa.array([date(1970, 1, 3), None, date(1970, 1, 5)])
    path = write(tmp_path, {"a": pa.array([1.0, None, 3.0]), "b": pa.array(["x", "y", "z"]), "c": days})
    coded = Column("b", 1, "coded", encoding=Categories(("x", "y", "other")))
    day = Column("c", 2, "coded", encoding=Calendar(date(1970, 1, 1), date(1970, 2, 1)), fill=9.0)
    rows, skipped, _ = read(path, (Column("a", 0, fill=7.0), coded, day))
    assert (rows, skipped) == ([[1.0, 0.0, 2.0], [7.0, 1.0, 9.0], [3.0, 2.0, 4.0]], 0)
    with open_table(path) as table:
        assert len(list(table.parts((Column("a", 0), coded), skip=True))) == 1
        assert (table.empty, table.told) == ({"a": 1}, [f"{path}, row 2: column 'a' is empty"])
