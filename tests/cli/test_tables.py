"""`reticent tables`: files, JSON and mistakes."""

import json

import pytest

from reticent._core import _names as names
from reticent.cli import main
from reticent.lab.tables import _cell, _make
from reticent.lab.tables._regimes import REGIMES


@pytest.fixture
def tiny(monkeypatch):
    """Let the command work on a handful of short runs, in which gradient descent stands for P-COMW as well."""

    def few(table, quick):
        regime = REGIMES["2.3"]
        return [
            (
                "2.3",
                "runnable",
                {
                    "system": system,
                    "rounds": rounds,
                    "dim": dim,
                    "variable": "S",
                    "value": regime.at(rounds, dim, part),
                    "delta": 0.0,
                    "seeds": 1,
                },
            )
            for system in (names.DESCENT, names.PCOMW_LAZY)
            for rounds in (200, 800)
            for dim in (2, 4)
            for part in _make.PARTS
        ]

    real = _cell.plan_of
    monkeypatch.setattr(_make, "all_tasks", few)
    monkeypatch.setattr(_cell, "plan_of", lambda system, *size: real(names.DESCENT, *size))


@pytest.mark.usefixtures("tiny")
def test_files_and_tables(tmp_path, capsys):
    assert main(["tables", "--quick", "--only", "table2", "--out", str(tmp_path), "--jobs", "1"]) == 0
    shown = capsys.readouterr()
    assert "Table 2" in shown.out
    assert "gradient descent" in shown.out
    assert "by certificate at 0 of 8 points" in " ".join(shown.out.split())  # the same plans: ties everywhere
    written = {path.name for path in tmp_path.iterdir()}
    assert {"tables.md", "tables.json", "winners-2.png", "exponents-2.png", "exponents-2.svg", "cache"} <= written
    assert json.loads((tmp_path / "tables.json").read_text())["table2"]["rows"][0]["rate"] == "T S^(-1/2)"
    assert "tables.md" in shown.err


@pytest.mark.usefixtures("tiny")
def test_json_is_all_there_is_on_standard_output(tmp_path, capsys):
    assert main(["tables", "--only", "table2", "--out", str(tmp_path), "--jobs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["table2"]
    assert found["rows"][0]["system"] == names.DESCENT
    (level,) = found["levels"]
    assert level["winners"] == {"certificate": {"tie": 8}, "measured": {"tie": 8}, "large": {}}
    assert level["shown"]["certificate"] == "tie"


@pytest.mark.usefixtures("tiny")
def test_the_text_is_made_anew_from_a_file_without_computing(tmp_path, capsys, monkeypatch):
    assert main(["tables", "--only", "table2", "--out", str(tmp_path / "one"), "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    monkeypatch.setattr(_make, "cell", None)  # would raise if it were called
    again = ["tables", "--from", str(tmp_path / "one" / "tables.json"), "--out", str(tmp_path / "two")]
    assert main(again) == 0
    assert capsys.readouterr().out == printed
    assert (tmp_path / "one" / "tables.md").read_text() == (tmp_path / "two" / "tables.md").read_text()


@pytest.mark.parametrize("text", ["not json", "[1, 2]", "{}", '{"table1": {}}', '{"table1": {"cells": [{}]}}'])
def test_a_file_that_is_no_table_gets_one_sentence(tmp_path, capsys, text):
    path = tmp_path / "odd.json"
    path.write_text(text)
    assert main(["tables", "--from", str(path), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --from must be a tables.json")
    assert error.count("\n") == 1


@pytest.mark.usefixtures("tiny")
def test_control_c_keeps_what_is_finished(tmp_path, capsys, monkeypatch):
    real, calls = _make.cell, []

    def interrupted(**task):
        calls.append(task)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(**task)

    words = ["tables", "--only", "table2", "--out", str(tmp_path), "--jobs", "1"]
    monkeypatch.setattr(_make, "cell", interrupted)
    assert main(words) == 130
    assert len(list((tmp_path / "cache").glob("*.json"))) == 3
    assert "goes on from there" in capsys.readouterr().err
    assert main(words) == 0
    assert len(calls) == 4 + 13


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "table3"], "error: --only must be one of table1, table2, landscape, curves, got 'table3'"),
        (["--backend", "spark"], "error: backend must be one of loky, threading, dask, ray, got 'spark'"),
        (["--jobs", "0"], "error: jobs must be a number of processes, or -1 for one on every core, got 0"),
        (["--scheduler", "tcp://x:1"], "error: a scheduler's address is for the backends dask and ray"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path, capsys, words, sentence):
    assert main(["tables", "--quick", "--out", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_an_output_that_is_a_file_is_told_before_the_work(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["tables", "--quick", "--out", str(tmp_path / "taken")]) == 2
    assert "taken" in capsys.readouterr().err
