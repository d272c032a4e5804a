"""Helps are readable, and what they show as examples runs."""

import shlex
import sys

import numpy as np
import pytest
from typer.main import get_command

import reticent as rt
from reticent.cli import main
from reticent.cli._app import app

COMMANDS = get_command(app).commands
EXAMPLES = [
    (name, line)
    for name, command in COMMANDS.items()
    for line in command.epilog.split("\n\n")
    if line.startswith("reticent ")
]
# What an example does in minutes, a test does in a second: later options win.
SHORT = {
    "plan": ["--horizon", "200"],
    "audit": ["--horizon", "3", "--runs", "100", "--jobs", "1"],
    "compare": ["--rounds", "40", "--seeds", "1", "--jobs", "1"],
}


def shortened(name, words):
    """Return a command that does the same in less time."""
    few = ["--systems", "pcomw"] if name == "compare" and "--systems" not in words else []
    return [*words, *SHORT.get(name, []), *few]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("people.csv", "visits.csv", "times.csv"):
        assert main(["example", name, "--rows", "60"]) == 0
    columns = ["--features", "age,income", "--bounds", "age=0:120,income=0:2e5", "--intercept", "--target", "sick"]
    columns += ["--labels", "no,yes", "--loss", "logistic", "--epsilon", "1"]
    assert main(["run", "people.csv", *columns, "--out", "decisions.csv", "--scorer", "scorer.json"]) == 0
    return tmp_path


def test_every_command_has_examples():
    assert {name for name, _ in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(
    ("name", "line"), [case for case in EXAMPLES if case[0] not in ("tables", "report", "journal", "ledger", "serve")]
)
def test_an_example_runs(name, line, files, monkeypatch, capsys):
    words, _, stdin = line.partition(" < ")
    if name == "example":
        (files / words.split()[2]).unlink()
    capsys.readouterr()
    if stdin:
        with (files / stdin).open() as source:
            monkeypatch.setattr(sys, "stdin", source)
            code = main(shlex.split(words)[1:])
    else:
        code = main(shortened(name, shlex.split(words)[1:]))
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert shown.out or name == "example"


def test_the_examples_of_journal_run(files, capsys):
    with rt.Journal(files / "run.journal") as journal:
        plan = rt.plan_private(rt.Ball(2), 50, 1.0, epsilon=1.0, delta=1e-6)
        journal.start(plan, rt.Linear(), seed=1).observe_many(np.full((20, 2), 0.5))
    for name, line in EXAMPLES:
        if name == "journal":
            assert main(shlex.split(line)[1:]) == 0, line
    assert (files / "decisions.csv").exists()


def test_the_examples_of_report_run_one_after_the_other(files, capsys):
    first, second = (shlex.split(line)[1:] for name, line in EXAMPLES if name == "report")
    assert main(shortened("compare", first)) == 0
    assert main(second) == 0
    assert (files / capsys.readouterr().out.splitlines()[-1]).read_text().startswith("<!")


@pytest.mark.parametrize("line", [line for name, line in EXAMPLES if name == "tables"])
def test_an_example_of_tables_is_understood(line):
    words = shlex.split(line)[2:]
    assert COMMANDS["tables"].make_context("tables", words).params


@pytest.mark.parametrize("name", [*COMMANDS, None])
def test_help_fits_eighty_columns_and_has_no_colour_in_a_pipe(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*([name] if name else []), "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "\x1b" not in shown
    if name:
        assert "Examples:" in shown
        # Commands of a group have it, and a server answers in JSON anyway.
        assert "--json" in shown or name in ("journal", "ledger", "serve")


def test_no_words_are_a_call_for_help(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("reticent 0.")
