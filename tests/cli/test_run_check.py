"""Nothing is spent by mistake: files are checked to their end first, and advice that is printed would help."""

import gzip
import json
import re
import shlex
import sys

import pytest

from reticent.cli import _goal, _run, main

SCORE = ["--target", "sick", "--loss", "logistic", "--epsilon", "1"]
AGE = ["--features", "age", "--bounds", "age=0:120"]
NAMED = [*AGE, "--labels", "no,yes", *SCORE]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{age},{'yes' if age * 7 % 11 > 5 else 'no'}" for age in range(20, 90)] * 4
    (tmp_path / "people.csv").write_text("age,sick\n" + "\n".join(rows) + "\n")
    return tmp_path


def told(capsys, *words, code=2):
    found = main(["run", *map(str, words)])
    shown = capsys.readouterr()
    assert found == code, shown.err
    assert "Traceback" not in shown.err
    return shown


@pytest.fixture
def untouched(monkeypatch):
    """Nothing may be planned or started: what is wrong is found before."""
    monkeypatch.setattr(_goal, "planned", lambda *_, **__: pytest.fail("it was planned"))
    monkeypatch.setattr(_run, "Command", lambda *_, **__: pytest.fail("it was started"))


def spoilt(place, **lines):
    """Write people.csv with other lines, counted from 1."""
    rows = (place / "people.csv").read_text().splitlines()
    for line, text in lines.items():
        rows[int(line[1:]) - 1] = text
    (place / "people.csv").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--positive", "Yes"], "no label 'Yes' in column 'sick'; it has 'no' and 'yes': name both"),
        (["--labels", "No,yes"], "has 'no' where a label is expected, 'No' or 'yes'"),
        (["--labels", "yes"], "labels must be two different texts"),
        (["--labels", "no,yes", "--positive", "yes"], "leave --positive yes out"),
        ([], "name both labels, the one to predict last, such as --labels no,yes"),
        (["--labels", "no,yes", "--horizon", "100"], "has 280 rounds, more than the horizon of 100"),
        (["--labels", "no,yes", "--fill", "sick=no"], "fill must be for features, got some for 'sick'"),
    ],
)
def test_a_wrong_label_spends_nothing(place, capsys, untouched, words, reason):
    shown = told(capsys, "people.csv", *AGE, *SCORE, *words)
    assert reason in shown.err
    assert shown.out == ""


def test_a_third_label_is_a_bad_row_and_a_third_value_of_a_column_is_asked_about(place, capsys, untouched):
    spoilt(place, l50="40,maybe")
    assert "has more than" not in told(capsys, "people.csv", *NAMED).err
    shown = told(capsys, "people.csv", *NAMED)
    assert "people.csv, line 50: column 'sick' has 'maybe' where a label is expected, 'no' or 'yes'" in shown.err
    shown = told(capsys, "people.csv", *AGE, "--positive", "yes", *SCORE)
    assert "must have two labels in column 'sick', and it has 'maybe' and 'no' and 'yes'" in shown.err
    (place / "signs.csv").write_text("age,sick\n30,1\n40,0\n50,-1\n")
    assert "has 0 and -1 where one of them is expected" in told(capsys, "signs.csv", *AGE, *SCORE).err


def test_a_third_label_in_a_pipe_ends_the_run(place, capsys, monkeypatch):
    (place / "signs.csv").write_text("age,sick\n30,1\n40,0\n50,-1\n")
    with open("signs.csv") as given:
        monkeypatch.setattr(sys, "stdin", given)
        shown = told(capsys, "-", *AGE, *SCORE)
    assert "has 0 and -1 where one of them is expected" in shown.err
    with open("people.csv") as given:
        monkeypatch.setattr(sys, "stdin", given)
        assert "name both: --labels OTHER,yes" in told(capsys, "-", *AGE, *SCORE, "--positive", "yes").err


def test_positive_finds_the_other_label(place, capsys):
    both = told(capsys, "people.csv", *NAMED, "--seed", "1", code=0).out
    assert told(capsys, "people.csv", *AGE, "--positive", "yes", *SCORE, "--seed", "1", code=0).out == both
    assert told(capsys, "people.csv", *AGE, "--positive", "no", *SCORE, "--seed", "1", code=0).out != both


def advised(err):
    """Return the options that a message proposes."""
    found = re.findall(r"--(?:bad-rows skip|labels [\w,]+|fill \w+=VALUE|separator '.')", err)
    return [shlex.split(one.replace("VALUE", "40")) for one in found]


@pytest.mark.parametrize(
    ("lines", "labels", "count"),
    [
        ({"l100": "n/a,yes"}, ["--labels", "no,yes"], 2),
        ({"l100": ",yes", "l200": "-,no"}, ["--labels", "no,yes"], 2),
        ({"l100": "40"}, ["--labels", "no,yes"], 1),
        ({}, [], 1),
        ({}, ["--labels", "no,Yes"], 1),
    ],
)
def test_all_advice_helps(place, capsys, lines, labels, count):
    spoilt(place, **lines)
    shown = told(capsys, "people.csv", *AGE, *SCORE, *labels)
    assert "nothing was run or spent" in shown.err
    advice = advised(shown.err)
    assert len(advice) == count, shown.err
    for option in advice:  # the later one of two wins
        told(capsys, "people.csv", *AGE, *SCORE, *labels, *option, code=0)


def test_advice_that_would_leave_everything_out_is_not_given(place, capsys, untouched):
    (place / "texts.csv").write_text("age,sick\n" + "forty,yes\nfifty,no\n" * 30)
    shown = told(capsys, "texts.csv", *NAMED)
    assert "all of the 60 rows are bad" in shown.err
    assert advised(shown.err) == []
    assert "no rows to run on, only 60 bad ones" in told(capsys, "texts.csv", *NAMED, "--bad-rows", "skip").err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--features", "age"], "nothing is known of the features of people.csv; give public bounds, --bounds age=LOW"),
        (
            ["--features", "age", "--unit-rows"],
            "the row has length 20, and --unit-rows says that none is longer than 1",
        ),
        (["--features", "age", "--unit-rows", "--intercept"], "the row has length 20, and"),
    ],
)
def test_features_of_which_nothing_is_known_are_refused(place, capsys, untouched, words, reason):
    assert reason in told(capsys, "people.csv", *words, "--labels", "no,yes", *SCORE).err


def test_rows_of_length_one_need_no_bounds(place, capsys):
    (place / "unit.csv").write_text("a,b,y\n" + "0.6,0.8,1\n-0.5,0.1,0\n" * 40)
    words = ["unit.csv", "--features", "a,b", "--unit-rows", "--target", "y", "--loss", "logistic", "--epsilon", "1"]
    shown = told(capsys, *words, "--json", code=0)
    found = json.loads(shown.out.splitlines()[-1])["summary"]
    assert found["lipschitz"] <= 1.0
    assert found["not_private"]["steep_rounds"] == 0
    (place / "unit.csv").write_text("a,b,y\n" + "0.6,0.8,1\n-0.5,0.1,0\n" * 40 + "3,4,1\n")
    shown = told(capsys, *words)
    assert "line 82: the row has length 5" in shown.err
    assert "1 row like this, and nothing was run or spent" in shown.err
    assert "bad rows left out" not in told(capsys, *words, "--bad-rows", "skip", code=0).err


def test_check_alone_runs_nothing_and_tells_what_is_there(place, capsys, untouched, monkeypatch):
    spoilt(place, l3="500,no")
    shown = told(capsys, "people.csv", *NAMED, "--check", code=0)
    assert "280 can be read, 0 cannot" in shown.out
    assert "would promise       epsilon 1 at delta 1e-06" in shown.out
    assert "nothing; counts of rows" in shown.out
    found = json.loads(told(capsys, "people.csv", *NAMED, "--check", "--json", code=0).out)
    assert found["not_private"]["cut_off"] == {"age": 1}
    assert sum(found["not_private"]["labels"].values()) == found["horizon"] == 280
    with open("people.csv") as given:
        monkeypatch.setattr(sys, "stdin", given)
        assert "cannot be checked first" in told(capsys, "-", *NAMED, "--check").err


def test_what_looks_wrong_and_can_be_right_is_remarked(place, capsys):
    shown = told(capsys, "people.csv", "--features", "age", "--bounds", "age=0:1", *NAMED[4:], code=0)
    assert "280 of 280 values of 'age' lie beyond its bounds and are cut off" in shown.err
    (place / "well.csv").write_text("age,sick\n" + "30,no\n" * 20)
    assert "all 20 rows have the label 'no'" in told(capsys, "well.csv", *NAMED, code=0).err


def test_one_long_line_is_refused_by_every_pass(place, capsys, monkeypatch, untouched):
    """There is one reader, and one limit: nothing counts rows in another way."""
    from reticent.lab.files import _csv

    monkeypatch.setattr(_csv, "_LONGEST", 1 << 20)
    (place / "long.csv.gz").write_bytes(gzip.compress(b"age,sick\n30,no\n" + b"1" * (1 << 25), compresslevel=1))
    for words in (["--labels", "no,yes"], ["--positive", "yes"]):
        assert "no end of the line within 1 MiB" in told(capsys, "long.csv.gz", *AGE, *SCORE, *words).err


def test_a_hopeless_file_is_not_read_to_its_end(place, capsys, monkeypatch, untouched):
    from reticent.cli import _run_check

    monkeypatch.setattr(_run_check, "_ENOUGH", 50)
    monkeypatch.setattr("reticent.lab.files._csv._CHUNK", 1 << 10)
    monkeypatch.setattr("reticent.lab.files._csv._FIRST", 1 << 10)
    (place / "texts.csv").write_text("age,sick\n" + "forty,yes\nfifty,no\n" * 3000)
    shown = told(capsys, "texts.csv", *NAMED)
    count = int(re.search(r"all of the first ([\d,]+) rows are bad", shown.err).group(1).replace(",", ""))
    assert 50 < count < 1000


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--bounds", "age=0"], "bounds must be COLUMN=LOW:HIGH with commas between them, such as age=0:120"),
        (["--bounds", "age=2020-01-01:7"], "bounds must be COLUMN=LOW:HIGH"),
        (["--categories", "age=one"], "categories must be COLUMN=TEXT|TEXT"),
        (["--categories", "age"], "such as city=Paris|Lyon|other, got 'age'"),
        (["--fill", "age="], "fill must be COLUMN=VALUE"),
        (["--fill", "age=forty"], "fill must be a value of its column, got 'forty' for 'age'"),
        (["--fill", "size=1"], "has no column 'size'"),
    ],
)
def test_options_of_columns_that_are_none(place, capsys, untouched, options, reason):
    assert reason in told(capsys, "people.csv", *NAMED, *options).err


def test_categories_dates_and_fills(place, capsys):
    (place / "more.csv").write_text(
        "city,since,sick\n" + "Paris,2024-01-01,yes\nLyon,2024-06-01 12:00,no\n,n/a,yes\nNice,2023-01-01,no\n" * 30
    )
    words = ["more.csv", "--features", "city,since", "--categories", "city=Paris|Lyon|other", "--bounds"]
    words += ["since=2023-01-01:2025-01-01", "--fill", "city=other,since=2024-01-01", "--labels", "no,yes", *SCORE]
    shown = told(capsys, *words, code=0)
    assert shown.out.splitlines()[0] == "round,city=Paris,city=Lyon,city=other,since"
    assert "days of since after 2023-01-01" in " ".join(shown.err.split())
    assert "(city:" in shown.err
