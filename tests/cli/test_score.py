"""Weights one can use: in the units of the columns, applied to rows, and harmless in a spreadsheet."""

import csv
import io
import json

import numpy as np
import pytest

from reticent.cli import main

COLUMNS = ["--features", "age,income,city,since", "--categories", "city=Paris|Lyon|other", "--fill", "city=other"]
COLUMNS += ["--bounds", "age=0:120,income=0:1e5,since=2020-01-01:2027-01-01", "--intercept"]
RUN = ["--target", "sick", "--labels", "no,yes", "--loss", "logistic", "--epsilon", "3", "--seed", "1"]


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["example", "people.csv", "--rows", "800"]) == 0
    words = ["run", "people.csv", *COLUMNS, *RUN, "--out", "d.csv", "--scorer", "scorer.json"]
    assert main(words) == 0
    capsys.readouterr()
    return tmp_path


def told(capsys, *words, code=0):
    found = main(list(map(str, words)))
    shown = capsys.readouterr()
    assert found == code, shown.err
    return shown


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_score_is_the_margin_of_the_learner(place, capsys):
    """Through the units of the columns and back: as the rows that the learner saw, times the decision."""
    from reticent.cli._columns import Columns
    from reticent.lab.files import open_table
    from reticent.losses import Logistic

    found = rows_of(told(capsys, "score", "people.csv", "--decisions", "scorer.json").out)
    decision = [float(x) for x in (place / "d.csv").read_text().splitlines()[-1].split(",")[1:]]
    columns = Columns("age,income,city,since", "sick", True, COLUMNS[7], "no,yes", None, COLUMNS[3], "city=other")
    with open_table("people.csv") as table:
        rounds = columns.layout().bind(table, Logistic())
        rows = np.concatenate([rounds.block(part.values)[0] for part in table.parts(rounds.columns)])
    np.testing.assert_allclose([float(row["score"]) for row in found], rows @ decision, rtol=0, atol=1e-12)
    odds = np.array([float(row["score"]) for row in found])
    np.testing.assert_allclose([float(row["probability"]) for row in found], 1 / (1 + np.exp(-odds)))
    assert [int(row["line"]) for row in found[:2]] == [2, 3]


def test_decisions_with_the_columns_of_the_run_score_alike(place, capsys):
    want = told(capsys, "score", "people.csv", "--decisions", "scorer.json").out
    assert told(capsys, "score", "people.csv", "--decisions", "d.csv", *COLUMNS, "--loss", "logistic").out == want
    told(capsys, "run", "people.csv", *COLUMNS, *RUN, "--out", "d.jsonl")
    assert told(capsys, "score", "people.csv", "--decisions", "d.jsonl", *COLUMNS, "--loss", "logistic").out == want
    (place / "new.csv").write_text("city,age,since,income\nRome,41,2030-01-01,1e9\n,7,2024-05-05,3\n")  # no target
    found = rows_of(told(capsys, "score", "new.csv", "--decisions", "scorer.json").out)
    assert len(found) == 2
    lines = told(capsys, "score", "new.csv", "--decisions", "scorer.json", "--json").out.splitlines()
    assert json.loads(lines[0])["score"] == float(found[0]["score"])


def test_a_scorer_holds_what_is_public_only(place):
    found = json.loads((place / "scorer.json").read_text())
    assert found["promise"] == {"system": "filtered gate", "rounds": 800, "epsilon": 3.0, "delta": 1e-6}
    assert set(found) == {
        "reticent",
        "version",
        "formula",
        "target",
        "labels",
        "score",
        "constant",
        "features",
        "promise",
    }
    assert [list(one)[0:2] for one in found["features"]][2] == ["column", "weights"]


@pytest.mark.parametrize(
    ("decisions", "words", "reason"),
    [
        ("d.csv", [], "which do not say how columns are read; give --features"),
        ("d.csv", ["--features", "age", "--bounds", "age=0:120"], "the decisions in d.csv are for age, income, city"),
        ("people.csv", ["--features", "age", "--bounds", "age=0:1"], "people.csv has no decisions"),
        ("none.csv", [], "none.csv: no such file"),
        ("scorer.json", ["--features", "age"], "leave the options of columns out"),
        ("broken.json", [], "broken.json is no scorer"),
        ("later.json", [], "it is a scorer of version 9"),
    ],
)
def test_what_is_no_decision(place, capsys, decisions, words, reason):
    (place / "broken.json").write_text('{"reticent": "scorer", "version": 1}')
    (place / "later.json").write_text('{"reticent": "scorer", "version": 9}')
    assert reason in told(capsys, "score", "people.csv", "--decisions", decisions, *words, code=2).err


def test_a_bad_row_of_a_file_to_be_scored(place, capsys):
    (place / "new.csv").write_text("city,age,since,income\nRome,41,2030-01-01,1e4\nOslo,x,2024-05-05,3\n")
    words = ["score", "new.csv", "--decisions", "scorer.json"]
    assert "new.csv, line 3: column 'age' has 'x'" in told(capsys, *words, code=2).err
    shown = told(capsys, *words, "--bad-rows", "skip")
    assert len(rows_of(shown.out)) == 1
    assert "1 row scored, 1 bad row left out" in shown.err


def test_no_scorer_where_a_decision_is_none(place, capsys):
    words = ["run", "people.csv", "--target", "age", "--bounds", "age=0:120", "--loss", "pinball:0.9", "--epsilon", "1"]
    assert "leave --scorer out here" in told(capsys, *words, "--scorer", "s.json", code=2).err


def test_files_are_what_their_names_say_and_formulas_are_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text('"=cmd()",y\n' + "1,0\n-1,1\n" * 20)
    words = ["run", "x.csv", "--features", "=cmd()", "--bounds", "=cmd()=-1:1", "--target", "y", "--loss", "logistic"]
    words += ["--max-switches", "3"]
    told(capsys, *words, "--json", "--out", "d.csv")
    assert (tmp_path / "d.csv").read_text().splitlines()[0] == "round,'=cmd()"
    told(capsys, *words, "--out", "d.jsonl")
    assert "decision" in json.loads((tmp_path / "d.jsonl").read_text().splitlines()[0])
    shown = told(capsys, "score", "x.csv", "--decisions", "d.csv", "--features", "=cmd()", "--bounds", "=cmd()=-1:1")
    assert len(rows_of(shown.out)) == 40


def test_examples_are_the_same_for_everybody_and_replace_nothing(tmp_path, monkeypatch, capsys):
    from hashlib import sha256

    monkeypatch.chdir(tmp_path)
    told(capsys, "example", "people.csv")
    told(capsys, "example", "deep/times.csv", "--rows", "10")
    assert len((tmp_path / "deep" / "times.csv").read_text().splitlines()) == 11
    # Documentation shows what came of this file.
    assert sha256((tmp_path / "people.csv").read_bytes()).hexdigest()[:16] == "18bcf992d8009471"
    assert "is there already" in told(capsys, "example", "people.csv", code=2).err
    assert "there are examples called people.csv" in told(capsys, "example", "others.csv", code=2).err
