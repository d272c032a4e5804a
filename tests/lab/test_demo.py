"""The demonstration runs, and says what to install where it cannot."""

import sys

import pytest

from reticent.lab import demo


def test_it_makes_a_picture_and_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "DRAWS", 40)
    monkeypatch.setattr(demo, "OUT", tmp_path)
    assert demo.main() == 0
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    shown = capsys.readouterr().out
    for method in ("curved", "quartic", "line"):
        assert method in shown


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(SystemExit, match=r"reticent\[lab\]"):
        demo.load_visits()
