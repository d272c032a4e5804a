"""A study's file is read back as it was, and refused in one sentence when anything in it was edited."""

import json
from pathlib import Path

import pytest
from example import small_study

from reticent.lab import Study
from reticent.lab.report import write_report

STUDY = small_study(seeds=1)
EDITS = [
    (("runs",), {}),
    (("runs", 0), None),
    (("runs", 0, "plan"), {}),
    (("runs", 0, "plan", "epsilon"), "one"),
    (("runs", 0, "plan", "horizon"), 0),
    (("runs", 0, "plan", "vacuous"), None),
    (("runs", 0, "plan", "spent_at"), [1]),
    (("runs", 0, "rounds"), 0),
    (("runs", 0, "rounds"), True),
    (("runs", 0, "at"), []),
    (("runs", 0, "losses"), [1.0]),
    (("runs", 0, "losses", 3), "x"),
    (("runs", 0, "total"), float("nan")),
    (("runs", 0, "points"), []),
    (("runs", 0, "points", 0), []),
    (("runs", 0, "points", 1), [0.5]),
    (("runs", 0, "starts", 1), -1),
    (("best", "at"), []),
    (("best", "point"), [1.0]),
    (("best",), 3),
    (("stream",), []),
    (("stream", "rounds"), "many"),
    (("goal", "max_switches"), "few"),
    (("refusals",), ["x"]),
    (("refusals", 0), {"system": "x"}),
    (("environment", "machine"), "fast"),
    (("environment", "versions"), []),
    (("title",), 5),
    (("notes",), "x"),
]


@pytest.mark.parametrize(("where", "value"), EDITS, ids=[".".join(map(str, where)) for where, _ in EDITS])
def test_an_edited_study_is_refused(where, value, tmp_path):
    path = STUDY.save(tmp_path / "study.json")
    document = json.loads(path.read_text())
    inside = document["study"]
    for name in where[:-1]:
        inside = inside[name]
    inside[where[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="must be a whole study"):
        Study.load(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"kind": "reticent study", "version": 1, "study": []}'])
def test_other_json_is_refused(text, tmp_path):
    path = tmp_path / "study.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="must be a"):
        Study.load(path)


@pytest.mark.parametrize("part", ["stream", "goal", "environment"])
def test_facts_may_be_missing(part, tmp_path):
    path = STUDY.save(tmp_path / "study.json")
    document = json.loads(path.read_text())
    document["study"][part] = {}
    del document["study"]["notes"]
    path.write_text(json.dumps(document))
    assert write_report(Study.load(path), tmp_path / "study.html").exists()


def test_a_study_comes_back_as_it_was(tmp_path):
    assert Study.load(STUDY.save(tmp_path / "study.json")) == STUDY


def test_a_study_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        STUDY.save(tmp_path / "study.json")
    assert list(tmp_path.iterdir()) == []
