"""The demonstration ends with a table, a picture and reports."""

import json
import sys

import numpy as np
import pytest

from reticent._core._names import LOOKS, colour_of
from reticent.cli import main
from reticent.lab import demo
from reticent.lab.demo import ORDER, _zoom


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


def test_the_picture_has_a_panel_for_each_question_and_all_baselines():
    studies = [demo.study_of(demo.play(stream, lambda words: None)) for stream in demo.streams(rounds=300)]
    figure = demo.picture(studies)
    panels = np.array(figure.axes).reshape(len(ORDER) + 1, len(studies))
    for column, study in zip(panels.T, studies, strict=True):
        for axis, system in zip(column, ORDER, strict=False):  # one system a panel, in its own colour, beside baselines
            assert axis.get_title(loc="left").startswith(system)
            assert len(axis.patches) == 1
            colour = [round(255 * part) for part in axis.patches[0].get_edgecolor()[:3]]
            assert "#{:02X}{:02X}{:02X}".format(*colour) == colour_of(system).upper()
            assert [line.get_label() for line in axis.get_lines()] == [
                "never moving",
                "best fixed decision, in hindsight",
            ]
        costs = {text.get_text().partition(":")[0]: float(text.get_text().split()[-1]) for text in column[-1].texts}
        assert costs["never moving"] == pytest.approx(study.best.idle / 300, abs=1e-4)
        assert costs["best fixed decision"] == pytest.approx(study.best.value / 300, abs=1e-4)
        assert ("best constant prediction" in costs) == (len(study.best.point) > 1)
        assert len(costs) == 5 + (len(study.best.point) > 1)
        assert "not private" in column[-1].get_title(loc="left")
    assert {*ORDER} <= {*LOOKS}


def test_the_zoom_leaves_out_what_hardly_lasted():
    path = np.array([2.0, 50.0, 3.0]), np.array([0, 499, 501, 1000])
    low, high = _zoom([path])
    assert low < 2.0
    assert 3.0 < high < 5.0
    assert _zoom([path], 60.0)[1] > 60.0  # what must be seen is
