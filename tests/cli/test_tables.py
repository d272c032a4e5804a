"""`reticent tables`: files, JSON and mistakes."""

import json

import pytest

from reticent._core import _names as names
from reticent.cli import main
from reticent.lab.tables import _make
from reticent.lab.tables._regimes import REGIMES


@pytest.fixture
def tiny(monkeypatch):
    """Let the command work on a handful of short runs."""

    def few(table, quick):
        regime = REGIMES["2.3"]
        return [
            (
                "2.3",
                "runnable",
                {
                    "system": names.DESCENT,
                    "rounds": rounds,
                    "dim": dim,
                    "variable": "S",
                    "value": regime.at(rounds, dim, part),
                    "delta": 0.0,
                    "seeds": 1,
                },
            )
            for rounds in (200, 800)
            for dim in (2, 4)
            for part in _make.PARTS
        ]

    monkeypatch.setattr(_make, "all_tasks", few)


@pytest.mark.usefixtures("tiny")
def test_files_and_tables(tmp_path, capsys):
    assert main(["tables", "--quick", "--only", "table2", "--out", str(tmp_path), "--jobs", "1"]) == 0
    shown = capsys.readouterr()
    assert "Table 2, row 3: S <= (d T)^(1/2)" in shown.out
    assert "online gradient descent" in shown.out
    written = {path.name for path in tmp_path.iterdir()}
    assert {"tables.md", "tables.json", "exponents-2.png", "exponents-2.svg", "cache"} <= written
    assert json.loads((tmp_path / "tables.json").read_text())["table2"]["rows"][0]["rate"] == "T S^(-1/2)"
    assert "tables.md" in shown.err


@pytest.mark.usefixtures("tiny")
def test_json_is_all_there_is_on_standard_output(tmp_path, capsys):
    assert main(["tables", "--only", "table2", "--out", str(tmp_path), "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table2"]["rows"][0]["system"] == names.DESCENT


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
    assert len(calls) == 4 + 5


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
