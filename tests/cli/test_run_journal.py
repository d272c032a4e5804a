"""`reticent run --journal`: whatever ends a run, and wherever, it goes on from there, and nothing is spent twice."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from reticent.cli import main
from reticent.journal import Reader

GOAL = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--epsilon", "1", "--seed", "3"]
ROUNDS = 4000


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).uniform(0, 10, size=ROUNDS).tolist()
    (tmp_path / "data.csv").write_text("y\n" + "".join(f"{y!r}\n" for y in values))
    return tmp_path


def said(capsys, *words, code=0):
    found = main(["run", *map(str, words)])
    shown = capsys.readouterr()
    assert found == code, shown.err
    return shown


KILLED = """
import os, signal, sys
from reticent.cli import _run_report, main

add, left = _run_report.Decisions.add, int(sys.argv.pop(1))

def killed(self, trace):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)  # the rounds are on disk, their decisions are not written
    add(self, trace)

_run_report.Decisions.add = killed
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_run_goes_on_as_if_nothing_had_happened(place, capsys):
    block = 5
    whole = said(capsys, "data.csv", *GOAL).out
    words = ["data.csv", *GOAL, "--block", "317", "--journal", "run.journal", "--out", "decisions.csv"]
    done = subprocess.run([sys.executable, "-c", KILLED, str(block), "run", *words], capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL
    before = (place / "decisions.csv").read_text()
    assert whole.startswith(before)
    with Reader("run.journal") as reader:
        assert reader.rounds == 317 * (
            block - 1
        )  # the first round is by itself, so the second block ends the first one
    shown = said(capsys, *words, "--resume")
    assert (place / "decisions.csv").read_text() == whole
    assert f"rounds              {ROUNDS:,} of a horizon of {ROUNDS:,}" in shown.err
    alone, again = (
        json.loads(said(capsys, *given, "--json", "--quiet").out.splitlines()[-1])["summary"]
        for given in (["data.csv", *GOAL], [*words[:-2], "--resume"])
    )
    for name in ("switches", "epsilon_spent", "decision", "rounds"):
        assert alone[name] == again[name]
    assert alone["not_private"]["mean_loss"] == pytest.approx(again["not_private"]["mean_loss"], rel=1e-12)
    with Reader("run.journal") as reader:
        assert reader.verify().rounds == reader.rounds == ROUNDS  # no round is in it twice


def test_a_run_that_is_over_has_nothing_to_add(place, capsys):
    words = ["data.csv", *GOAL, "--journal", "run.journal"]
    whole = said(capsys, *words).out
    with Reader("run.journal") as reader:
        records = reader.records
    assert said(capsys, *words, "--resume").out == whole
    with Reader("run.journal") as reader:
        assert reader.rounds == ROUNDS
        assert reader.records <= records + 1  # a state, perhaps; no rounds


def test_a_file_that_grew_is_gone_on_with(place, capsys):
    words = [*GOAL, "--journal", "run.journal", "--horizon", str(ROUNDS)]
    lines = (place / "data.csv").read_text().splitlines(keepends=True)
    (place / "part.csv").write_text("".join(lines[:1001]))
    said(capsys, "part.csv", *words)
    shown = said(capsys, "data.csv", *words[:-2], "--resume")  # the horizon is that of the journal
    assert shown.out == said(capsys, "data.csv", *GOAL).out


@pytest.mark.parametrize(
    ("change", "words", "reason"),
    [
        (None, ["--resume"], "there is no run in run.journal to go on with"),
        ("start", [], "run.journal has a run of 4,000 rounds already; --resume goes on with it"),
        ("start", ["--resume", "--epsilon", "2"], "plan must be that of the learner"),
        ("start", ["--resume", "--ledger", "l.db", "--population", "p"], "leave --ledger out with --resume"),
        ("other", ["--resume"], "data.csv, line 701: this is not round 700 of the journal"),
        ("short", ["--resume"], "has 4,000 rounds, and here are only 500"),
        ("long", ["--resume"], "has 4,001 rounds, more than the horizon of 4,000"),
    ],
)
def test_what_cannot_be_gone_on_with(place, capsys, change, words, reason):
    common = ["data.csv", *[word for word in GOAL if word not in ("--seed", "3")], "--journal", "run.journal"]
    if change is not None:
        said(capsys, *common)
    lines = (place / "data.csv").read_text().splitlines(keepends=True)
    if change == "other":
        lines[700] = "5.5\n"
    lines = lines[:501] if change == "short" else lines + ["1\n"] * (change == "long")
    (place / "data.csv").write_text("".join(lines))
    shown = said(capsys, *common, *words, code=2)
    assert reason in shown.err
    assert "Traceback" not in shown.err


def test_resuming_needs_a_journal(place, capsys):
    assert "give --journal PATH" in said(capsys, "data.csv", *GOAL, "--resume", code=2).err


def test_a_bad_row_of_a_pipe_is_told_with_the_way_on(place, capsys, monkeypatch):
    (place / "bad.csv").write_text("y\n1\n2\nthree\n4\n")
    words = ["-", *GOAL, "--journal", "run.journal"]
    with open("bad.csv") as given:
        monkeypatch.setattr(sys, "stdin", given)
        shown = said(capsys, *words, code=2)
    assert (
        "the rounds so far are in run.journal: once that is corrected, the same command with --resume goes" in shown.err
    )
    (place / "bad.csv").write_text("y\n1\n2\n3\n4\n")
    with open("bad.csv") as given:
        monkeypatch.setattr(sys, "stdin", given)
        shown = said(capsys, *words, "--resume")
    with Reader("run.journal") as reader:
        assert reader.rounds == 4
    assert os.stat("run.journal").st_mode & 0o077 == 0
