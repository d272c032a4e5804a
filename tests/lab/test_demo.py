"""The demonstration runs, and says what to install where it cannot."""

import sys
from dataclasses import replace

import pytest

from reticent.lab import demo


def test_it_makes_a_picture_and_a_table(tmp_path, monkeypatch, capsys):
    whole = demo.problems()
    short = [replace(problem, data=tuple(part[:3000] for part in problem.data)) for problem in whole]
    monkeypatch.setattr(demo, "problems", lambda: short)
    monkeypatch.setattr(demo, "OUT", tmp_path)
    assert demo.main() == 0
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    shown = capsys.readouterr().out
    for words in ("lazy, 200 switches", "the paper's", "epsilon 1, delta 1e-06", "vacuous", "regret a round"):
        assert words in shown


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(SystemExit, match=r"reticent\[lab\]"):
        demo.problems()
