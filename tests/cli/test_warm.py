"""`reticent warm`."""

import json

from reticent.cli import main
from reticent.warming import KINDS


def test_kinds_are_listed_and_nothing_is_compiled(capsys):
    assert main(["warm", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in KINDS)
    assert main(["warm", "--list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(KINDS)


def test_one_kind_is_compiled_and_its_seconds_are_shown(capsys):
    assert main(["warm", "--only", "experts", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["experts"]
    assert main(["warm", "--only", "experts"]) == 0
    shown = capsys.readouterr().out
    assert "all learners over experts" in shown
    assert "All is compiled, in " in shown


def test_a_kind_that_is_none_is_refused_in_one_sentence(capsys):
    assert main(["warm", "--only", "pcomw"]) == 2
    assert "there is no kind 'pcomw' to compile; kinds are " in capsys.readouterr().err
