"""The demonstration ends with a table, a picture and reports."""

import json
import sys

from reticent.cli import main
from reticent.lab import demo


def test_it_makes_a_table_a_picture_and_reports(tmp_path, capsys):
    assert main(["demo", "--rounds", "300", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    promised = ("filtered gate: private, epsilon 1", "budgeted follower: lazy, 200 changes")
    for words in (*promised, "never moving", "the majority class", "of the way", "not private"):
        assert words in shown
    for name in ("demo.png", "demo-randhie.html", "demo-randhie-visits.html"):
        assert str(tmp_path / name) in shown
        assert (tmp_path / name).stat().st_size > 10_000


def test_for_machines(tmp_path, capsys):
    assert main(["demo", "--rounds", "100", "--out", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(one["systems"]) for one in found["streams"]] == [3, 3]


def test_progress_is_told_as_often_as_announced():
    words = []
    for stream in demo.streams(rounds=50):
        demo.play(stream, words.append)
    assert len(words) == demo.steps()


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    assert main(["demo", "--rounds", "50"]) == 2
    assert "reticent[lab]" in capsys.readouterr().err
