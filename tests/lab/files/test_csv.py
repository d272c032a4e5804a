"""CSV: what is plainly good and what is not give the same rows, and bad rows are known by their line."""

import gzip
import io
import re
import sys
from datetime import date

import numpy as np
import pytest

from reticent.estimators._encoding import Calendar, Categories
from reticent.lab.files import BadRow, Column, choose, open_table
from reticent.lab.files import _csv as csv_module
from reticent.lab.files._table import BadCell

AB = (Column("a", 0), Column("b", 1))


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def read(path, columns=AB, *, skip=False, most=65536, **form):
    """Return all rows, their lines, and how many were skipped."""
    with open_table(path, **form) as table:
        values, lines = [np.empty((0, len(columns)))], []
        for part in table.parts(columns, skip=skip, most=most):
            values.append(part.values)
            lines += [part.line(i) for i in range(len(part))]
        return np.concatenate(values), lines, table.skipped


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",  # no newline at the end
        "a,b\r\n1,2\r\n3,4\r\n",
        "\ufeffa,b\n1,2\n3,4\n",
        '"a","b"\n"1","2"\n3,"4"\n',
        " a , b \n 1 ,2\n3, 4\n",
        "a,b\n+1,2e0\n3.0,.4e1\n",
    ],
)
def test_forms_of_the_same_rows(tmp_path, text):
    values, lines, _ = read(write(tmp_path, text))
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert lines == [2, 3]


def test_separators_and_no_header(tmp_path):
    assert read(write(tmp_path, "a;b\n1;2\n"), separator=";")[0].tolist() == [[1.0, 2.0]]
    assert read(write(tmp_path, "a\tb\n1\t2\n"), separator="tab")[0].tolist() == [[1.0, 2.0]]
    path = write(tmp_path, "1,2\n3,4\n")
    with open_table(path, header=False) as table:
        assert table.names == ("1", "2")
    values, lines, _ = read(path, header=False)
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert lines == [1, 2]
    with pytest.raises(ValueError, match="separator must be one character"):
        open_table(path, separator="::")


def test_blank_lines_are_skipped_and_counted(tmp_path):
    path = write(tmp_path, "\na,b\n\n1,2\n   \n\r\n3,4\n\n")
    values, lines, skipped = read(path)
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (lines, skipped) == ([4, 7], 0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1", "1 fields where 2 are expected"),
        ("1,2,3", "3 fields where 2 are expected"),
        ("x,2", "column 'a' has 'x' where a number is expected"),
        ("1,", "column 'b' is empty"),
        (",", "column 'a' is empty"),
        ("1,nan", "column 'b' has 'nan' where a finite number is expected"),
        ("1,-inf", "column 'b' has '-inf' where a finite number"),
        ("1,1e999", "column 'b' has '1e999' where a finite number"),
        ("1,1_0", "column 'b' has '1_0' where a number"),
        ("1,0x10", "column 'b' has '0x10' where a number"),
        ("1,true", "column 'b' has 'true' where a number"),
        ('1,"2', "a quote opens here and is never closed"),
        ('1,"2"x', "quotes that do not belong together"),
        ("1,2\r3", "a carriage return without a line feed"),
        ('1,5" pipe', "where a number is expected"),
    ],
)
def test_bad_rows_stop_with_their_line_after_the_rows_before(tmp_path, row, said):
    path = write(tmp_path, f"a,b\n1,2\n\n3,4\n{row}\n5,6\n")
    seen = []
    with open_table(path) as table, pytest.raises(BadRow) as caught:
        seen.extend(row for part in table.parts(AB) for row in part.values.tolist())
    assert seen == [[1.0, 2.0], [3.0, 4.0]]
    assert f"{path}, line 5: " in str(caught.value)
    assert said in str(caught.value)
    assert "--bad-rows skip" in str(caught.value)
    values, lines, skipped = read(path, skip=True)
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert (lines, skipped) == ([2, 4, 6], 1)


def test_a_short_and_a_long_row_do_not_make_up_for_each_other(tmp_path):
    path = write(tmp_path, "a,b,c\n1,2\n1,2,3,4\n5,6,7\n")
    values, lines, skipped = read(path, skip=True)
    assert (values.tolist(), lines, skipped) == ([[5.0, 6.0]], [4], 2)


def test_quoted_newlines_count_as_lines(tmp_path):
    path = write(tmp_path, 'a,b,note\n1,2,"two\nlines"\n3,4,"say ""hi"",\nthen"\n5,6,plain\nx,7,y\n')
    values, lines, _ = read(path, skip=True)
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert lines == [2, 4, 6]
    with open_table(path) as table, pytest.raises(BadRow, match="line 7: column 'a' has 'x'"):
        list(table.parts(AB))


def test_stray_quotes_are_read_as_the_csv_module_does(tmp_path):
    path = write(tmp_path, 'a,b,note\n1,2,5" pipe\n3,4,6" pipe\n')
    values, lines, _ = read(path)
    assert (values.tolist(), lines) == ([[1.0, 2.0], [3.0, 4.0]], [2, 3])


@pytest.mark.parametrize("chunk", [16, 37, 200])
@pytest.mark.parametrize("quoted", [False, True])
def test_where_blocks_are_cut_does_not_matter(tmp_path, monkeypatch, chunk, quoted):
    rng = np.random.default_rng(chunk)
    rows = rng.normal(size=(300, 2)).tolist()
    note = '"a ""b"",\nc"' if quoted else "n"
    text = "a,b,note\n" + "".join(f"{a!r},{b!r},{note}\n" + "\n" * (i % 7 == 0) for i, (a, b) in enumerate(rows))
    broken = text.replace(f"{rows[150][0]!r}", "oops")
    whole = read(write(tmp_path, text))
    part = read(write(tmp_path, broken), skip=True)
    monkeypatch.setattr(csv_module, "_CHUNK", chunk)
    monkeypatch.setattr(csv_module, "_SMALL", 64)
    for path, expected, skip in ((text, whole, False), (broken, part, True)):
        values, lines, skipped = read(write(tmp_path, path), skip=skip, most=7)
        np.testing.assert_array_equal(values, expected[0])
        assert (lines, skipped) == expected[1:]
    assert whole[0].tolist() == rows  # to the last bit


def test_fast_and_exact_readers_agree_to_the_last_bit(tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(2000, 2)) * 10.0 ** rng.integers(-300, 300, size=(2000, 2))
    path = write(tmp_path, "a,b\n" + "".join(f"{a!r},{b:.12g}\n" for a, b in numbers.tolist()))
    fast = read(path)[0]
    monkeypatch.setattr(csv_module._Fast, "read", lambda self, data: None)
    np.testing.assert_array_equal(read(path)[0], fast)


def test_labels_and_classes(tmp_path):
    path = write(tmp_path, "y,word\n1,yes\n0,no\n-1, yes \n")
    label, word = Column("y", 0, "label"), Column("word", 1, "class", ("no", "yes"))
    assert read(path, (label, word))[0].tolist() == [[1.0, 1.0], [0.0, -1.0], [-1.0, 1.0]]
    path = write(tmp_path, "y,word\n1,yes\n2,no\n1,\n1,maybe\n0,Yes\n")
    assert read(path, (label, word), skip=True)[2] == 4
    with pytest.raises(BadCell, match="has 'maybe' where a label is expected, 'no' or 'yes'"):
        word.read("maybe")
    assert Column("y", 0, "class", ("0", "1")).read("1.0") == 1.0
    with pytest.raises(BadCell, match="has '2' where a label is expected"):
        label.read("2")


def test_columns_are_chosen_by_name_or_number():
    assert choose(["age", "2"], "2", "t") == 1  # a name wins
    with pytest.raises(ValueError, match="has no column 'agee'; it has 'age', 'b'; did you mean 'age'"):
        choose(["age", "b"], "agee", "t")
    with pytest.raises(ValueError, match="has no column 3; it has 2"):
        choose(["age", "b"], "3", "t")
    with pytest.raises(ValueError, match="2 columns called 'b'; choose by number, 1 and 2"):
        choose(["b", "b"], "b", "t")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"PK\x03\x04rest", "a zip archive or a spreadsheet"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        ("a,b\n1,2\n".encode("utf-32"), "UTF-32"),
        (b"\x00\x01\x02\x03", "is not text"),
        (b'"a,b\n1,2\n', "line 1: a quote opens here"),
    ],
)
def test_what_is_no_csv(tmp_path, content, said):
    with pytest.raises(ValueError, match=said):
        open_table(write(tmp_path, content))


def test_a_folder_and_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        open_table(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        open_table(str(tmp_path / "none.csv"))


def test_gzip_by_content_and_a_truncated_one(tmp_path):
    text = "a,b\n" + "".join(f"{i},{i * i}\n" for i in range(5000))
    packed = gzip.compress(text.encode())
    values, lines, _ = read(write(tmp_path, packed, "data.bin"))
    assert len(values) == 5000
    assert lines[-1] == 5001
    path = write(tmp_path, packed[: len(packed) // 2], "cut.csv.gz")
    with pytest.raises(ValueError, match="damaged or truncated gzip"):
        read(path)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_module, "_LONGEST", 1 << 12)
    path = write(tmp_path, "a,b\n" + "1" * 100_000)
    with pytest.raises(ValueError, match="no end of the line"):
        read(path)


@pytest.mark.parametrize("head", ["", "a,b\n1,2\n"])
def test_one_long_line_is_refused_after_reading_little_of_it(tmp_path, monkeypatch, head):
    """A few megabytes may hold gigabytes of one line; what is looked at again and again must not be all of it."""
    monkeypatch.setattr(csv_module, "_LONGEST", 1 << 22)
    monkeypatch.setattr(csv_module, "_CHUNK", 1 << 20)
    packed = gzip.compress(head.encode() + b"1" * (1 << 27), compresslevel=1)
    assert len(packed) < 1 << 20
    path = write(tmp_path, packed, "long.csv.gz")
    real, sizes, joined = csv_module.Source.read, [], []
    more = csv_module.CsvTable._more

    def counted(self, size):
        sizes.append(len(got := real(self, size)))
        return got

    def held(self, size):
        try:
            more(self, size)
        finally:
            joined.append(len(self._rest))

    monkeypatch.setattr(csv_module.Source, "read", counted)
    monkeypatch.setattr(csv_module.CsvTable, "_more", held)
    with pytest.raises(ValueError, match="no end of the line within 4 MiB"):
        read(path)
    assert sum(sizes) <= 3 << 22  # of 1 << 27
    assert sum(joined) <= 4 << 22  # what was copied to put the pieces together


def test_texts_for_nothing_count_as_the_fill(tmp_path):
    path = write(tmp_path, "a,b\n1,\nN/A,2\n nan ,-\nNULL,3\n?,4\n")
    columns = Column("a", 0, fill=7.0), Column("b", 1, fill=-1.0)
    values, lines, skipped = read(path, columns)
    assert values.tolist() == [[1.0, -1.0], [7.0, 2.0], [7.0, -1.0], [7.0, 3.0], [7.0, 4.0]]
    assert (lines, skipped) == ([2, 3, 4, 5, 6], 0)
    values, lines, skipped = read(path, (Column("a", 0, fill=7.0), Column("b", 1)), skip=True)
    assert values.tolist() == [[7.0, 2.0], [7.0, 3.0], [7.0, 4.0]]
    assert skipped == 2


def test_bad_rows_are_told_and_empty_cells_counted(tmp_path):
    path = write(tmp_path, "a,b\n1,\nn/a,2\nx,3\n5\n")
    with open_table(path) as table:
        assert sum(len(part) for part in table.parts(AB, skip=True)) == 0
        assert table.skipped == 4
        assert table.empty == {"b": 1, "a": 1}
        assert [said.partition(": ")[2] for said in table.told] == [
            "column 'b' is empty",
            "column 'a' has 'n/a' where a number is expected",
            "column 'a' has 'x' where a number is expected",
        ]


@pytest.mark.parametrize("text", ["1,234", "1 234.5", "3,5", "1.234,56", "1'000"])
def test_numbers_in_other_forms_are_named(text):
    with pytest.raises(BadCell, match="with a point for decimals and nothing between thousands"):
        Column("a", 0).read(text)


def test_a_date_is_no_number_and_what_to_do_is_said():
    for text in ("2024-12-31", "31.12.2024", "12/31/2024 10:00"):
        with pytest.raises(BadCell, match=r"where a number is expected \(for dates, give dates as bounds"):
            Column("a", 0).read(text)


def test_categories_and_dates_in_blocks_of_text(tmp_path):
    city, day = Categories(("Paris", "Lyon", "other")), Calendar(date(2024, 1, 1), date(2025, 1, 1))
    columns = Column("city", 0, "coded", encoding=city), Column("day", 1, "coded", encoding=day, fill=5.0)
    path = write(tmp_path, 'city,day\nLyon,1970-01-03\n"Rome, the city",\nParis,1970-01-02 12:00\n')
    assert read(path, columns)[0].tolist() == [[1.0, 2.0], [2.0, 5.0], [0.0, 1.5]]
    path = write(tmp_path, "city,day\nLyon,03/01/1970\n,1970-01-02\n")
    assert read(path, columns, skip=True)[2] == 2


def test_memory_is_that_of_a_block(tmp_path):
    path = write(tmp_path, "a,b\n" + "1.25,2.5\n" * 1_000_000)
    with open_table(path) as table:
        sizes = [len(part) for part in table.parts(AB)]
        held = len(table._rest)
    assert sum(sizes) == 1_000_000
    assert max(sizes) <= 65536
    assert held == 0


class Drip(io.RawIOBase):
    """A pipe that gives a line at a time and knows how many it gave."""

    def __init__(self, lines):
        self.lines, self.given = lines, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        if self.given == len(self.lines):
            return 0
        line = self.lines[self.given]
        self.given += 1
        buffer[: len(line)] = line
        return len(line)


def test_standard_input_is_taken_as_it_comes(monkeypatch):
    drip = Drip([b"a,b\n", b"1,2\n", b"3,", b"4\n5,6\n"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(drip)))
    table = open_table("-")
    parts = table.parts(AB)
    assert next(parts).values.tolist() == [[1.0, 2.0]]
    assert drip.given == 2
    assert next(parts).values.tolist() == [[3.0, 4.0], [5.0, 6.0]]
    assert list(parts) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a,b\n1,2\n3,4\n", 2),
        ("a,b\n1,2\n3,4", 2),
        ("a,b\r\n\r\n1,2\r\n\r\n", 1),
        ("\n\na,b\n\n1,2\n\n\n", 1),
        ('a,b\n1,"x\ny"\n\n2,3\n', 2),
        ('a,b\n1,5" pipe\n2,3\n', 2),
        ('a,b\n1,"x\n2,3\n', 2),  # never closed: all lines, to be safe
        ("a,b\n1,2\n   \n3,4\n", 2),  # a line of blanks is none
        ("a,b\n1,2\n \t \r\n3,4\n", 2),
        (" \na,b\n1,2\n", 1),
        ("a,b\n 1,2\n", 1),
        ("a,b\n", 0),
        ("a,b", 0),
    ],
)
@pytest.mark.parametrize("chunk", [3, 1 << 20])
def test_every_row_is_good_or_bad_wherever_blocks_are_cut(tmp_path, monkeypatch, text, count, chunk):
    monkeypatch.setattr(csv_module, "_CHUNK", chunk)
    monkeypatch.setattr(csv_module, "_FIRST", chunk)
    path = write(tmp_path, text)
    values, _, skipped = read(path, skip=True)
    assert len(values) + skipped == count
    if '"' not in text:
        values, _, skipped = read(path, skip=True, header=False)
        assert len(values) + skipped == count + 1


@pytest.mark.parametrize(
    ("text", "separator", "said"),
    [("a;b\n1;2\n", ",", "';'"), ("a\tb\n1\t2\n", ",", "tab"), ("a,b\n1,2\n", ";", "','"), ("1;2\n", ",", "';'")],
)
def test_a_missing_column_may_mean_another_separator(tmp_path, text, separator, said):
    from reticent.lab.files import Layout
    from reticent.losses import Absolute

    header = text[0] == "a"
    with open_table(write(tmp_path, text), separator=separator, header=header) as table:
        for target in ("b", "2") if header else ("2",):  # no separator makes a "b" where there are no names
            with pytest.raises(ValueError, match=re.escape(f"; is --separator {said} meant?")):
                Layout(target=target).bind(table, Absolute())


@pytest.mark.parametrize("most", [1, 3, 100])
def test_every_row_knows_the_bad_ones_before_it(tmp_path, most):
    path = write(tmp_path, "a,b\nx,2\n1,2\n3,4\nx,2\nx,2\n5,6\nx,2\n")
    with open_table(path) as table:
        parts = list(table.parts(AB, skip=True, most=most))
    assert [int(part.bad[i]) for part in parts for i in range(len(part))] == [1, 1, 3]
    assert parts[-1].bad[-1] == table.skipped == 4
