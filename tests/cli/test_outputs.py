"""Outputs are checked before anything runs; numbers say what they are of; nothing edited or closed surprises."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from example import small_study

from reticent.cli import _goal, _run, main
from reticent.lab import Study
from reticent.lab import _compare as contest_module

SIZED = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9"]
PRIVATE = [*SIZED, "--epsilon", "1"]
STEEP = ["--features", "x", "--target", "y", "--loss", "absolute", "--domain", "ball:1", "--lipschitz", "1"]
ONE = ["--jobs", "1", "--seeds", "1"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).uniform(0, 10, size=(60, 2)).tolist()
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in values))
    (tmp_path / "folder").mkdir()
    os.link("data.csv", "linked.csv")
    return tmp_path


def said(capsys, *words, code=2):
    """Return standard output and standard error of a command with this exit code."""
    found = main([str(word) for word in words])
    shown = capsys.readouterr()
    assert found == code, shown.err
    assert "Traceback" not in shown.err
    return shown


def piped(capsys, monkeypatch, path, *words, code=2):
    """Return the same of a run that reads the file from standard input."""
    with open(path) as given, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", given)
        return said(capsys, "run", "-", *words, code=code)


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        *((["--" + name, "data.csv"], "must not be the file that is read") for name in ("out", "save", "report")),
        (["--save", "linked.csv"], "must not be the file that is read"),
        (["--save", "a.json", "--report", "./a.json"], "--save and --report must be different files"),
        (["--out", "a", "--save", "a"], "--out and --save must be different files"),
        (["--report", "folder"], "--report must be a file, got the folder 'folder'"),
        (["--save", "data.csv/study.json"], "--save must be in a folder"),
        (["--save", "/dev/null"], "--save must be a plain file"),
    ],
)
def test_a_run_does_not_start_for_outputs_that_cannot_be(place, capsys, monkeypatch, outputs, reason):
    monkeypatch.setattr(_run, "_plan", lambda *_: pytest.fail("it was planned"))
    kept = (place / "data.csv").read_text()
    assert reason in said(capsys, "run", "data.csv", *PRIVATE, *outputs).err
    assert (place / "data.csv").read_text() == kept


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (["--picture", "folder"], "--picture must be a file"),
        (["--picture", "a.svg", "--report", "a.png"], "--report and --picture must be different files"),
        (["--save", "data.csv"], "must not be the file that is read"),
    ],
)
def test_a_comparison_does_not_either(place, capsys, outputs, reason):
    assert reason in said(capsys, "compare", "data.csv", *PRIVATE, *outputs).err


def test_decisions_may_go_to_a_device(place, capsys):
    said(capsys, "run", "data.csv", *PRIVATE, "--out", "/dev/null", code=0)


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be written by root")
def test_a_folder_that_cannot_be_written_is_refused(place, capsys):
    (place / "folder").chmod(0o500)
    assert "can be written" in said(capsys, "run", "data.csv", *PRIVATE, "--save", "folder/a/b.json").err


def test_a_report_has_a_file_and_runs(place, capsys):
    small_study(seeds=1).save("study.json")
    assert "must be a file" in said(capsys, "report", "study.json", "-o", "folder").err
    Study("empty", "run", {"name": "none"}, {"max_switches": 5}, []).save("empty.json")
    assert "empty.json has no runs" in said(capsys, "report", "empty.json").err


def test_a_comparison_says_what_its_losses_are_of(place, capsys):
    words = ["compare", "data.csv", *STEEP, *ONE, "--epsilon", "1", "--systems", "pcomw", "--bad-rows", "skip"]
    shown = said(capsys, *words, "--json", "--save", "s.json", "--report", "r.html", code=0)
    found = json.loads(shown.out)
    assert found["scaled_down_rounds"] > 30
    assert "systems" in found["not_private"]
    notes = " ".join(found["notes"])
    for part in ("outside the promise of epsilon", "those of the scaled-down rounds"):
        assert part in notes
        assert part in shown.err
        assert part in (place / "r.html").read_text()
    assert Study.load("s.json").notes == found["notes"]
    assert "scaled-down rounds" in " ".join(said(capsys, *words, code=0).out.split())


def test_a_run_says_so_too(place, capsys):
    words = ["run", "data.csv", *STEEP, "--epsilon", "1", "--seed", "5", "--bad-rows", "skip"]
    shown = said(capsys, *words, "--json", "--save", "s.json", code=0)
    found = json.loads(shown.out.splitlines()[-1])["summary"]
    assert found["seed"] == 5
    assert {"seconds", "rounds_per_second", "steep_rounds"} <= set(found["not_private"])
    assert "seconds" not in found
    assert any("outside the promise of epsilon" in note for note in found["notes"])
    assert any("those of the scaled-down rounds" in note for note in found["notes"])
    assert Study.load("s.json").notes == found["notes"]
    assert "of the scaled-down rounds)" in said(capsys, *words, code=0).err


@pytest.mark.parametrize("goal", [["--epsilon", "1"], ["--max-switches", "9"]])
def test_another_run_spends_again(place, capsys, monkeypatch, goal):
    """Only what could not be checked first is found when something is spent."""
    (place / "bad.csv").write_text("y\n1\n2\nthree\n")
    spends = "the decisions so far count against epsilon, and another run on the same rounds spends again"
    for name, horizon in (("bad.csv", "9"), ("data.csv", "30")):
        words = [*SIZED, *goal, "--horizon", horizon]
        assert "nothing was run or spent" in said(capsys, "run", name, *words).err
        assert (spends in piped(capsys, monkeypatch, name, *words).err) == ("--epsilon" in goal)
    (place / "bad.csv").write_text("y\nthree\n")
    shown = piped(capsys, monkeypatch, "bad.csv", "--horizon", "9", *SIZED, *goal)
    assert spends not in shown.err
    if "--epsilon" in goal:
        assert "epsilon 0 of 1 spent" in shown.err


def test_certificates_are_for_the_whole_horizon(place, capsys):
    loose = ["--max-switches", "5", "--system", "theorem lazy oco"]
    assert "the certificate is vacuous" in said(capsys, "run", "data.csv", *SIZED, *loose, "--regret", code=0).err
    shown = said(capsys, "run", "data.csv", *SIZED, "--horizon", "120", "--regret", "--json", code=0)
    bound = json.loads(shown.out.splitlines()[-1])["summary"]["regret_bound"]
    shown = said(capsys, "run", "data.csv", *SIZED, "--horizon", "120", "--regret", code=0)
    assert f"certified {bound / 120:.4g} over the whole horizon" in " ".join(shown.err.split())


def test_ctrl_c_while_looking_for_the_best_decision_keeps_the_run(place, capsys, monkeypatch):
    from reticent import lab

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "hindsight", interrupted)
    shown = said(capsys, "run", "data.csv", *PRIVATE, "--regret", "--save", "s.json", code=130)
    assert "rounds              60 of" in shown.err
    assert Study.load("s.json").best is None


def test_a_comparison_without_a_finished_run_saves_nothing(place, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(contest_module, "walk", interrupted)
    words = ["compare", "data.csv", *PRIVATE, "--systems", "pcomw", "--jobs", "1", "--save", "s.json"]
    assert "nothing is saved" in said(capsys, *words, code=130).err
    assert not (place / "s.json").exists()


def test_a_comparison_of_nobody_is_refused(place, capsys):
    shown = said(capsys, "compare", "data.csv", *PRIVATE, "--systems", "fll")
    assert "none of the systems asked for can run: follow the lazy leader (FLL) is not private" in shown.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["data.csv", *PRIVATE, "--domain", "ball:1e9"], "a dimension must be at most 10,000,000"),
        (["data.csv", *STEEP, "--epsilon", "1", "--domain", "experts:2"], "experts go with --loss linear"),
        (["data.csv", *SIZED[:2], *SIZED[4:], "--bounds", "y=-1e308:1e308", "--epsilon", "1"], "bounds must be within"),
        (["long.csv", *PRIVATE, "--horizon", "9"], "a field of more than 131,072 characters"),
    ],
)
def test_absurd_sizes_get_one_sentence(place, capsys, words, reason):
    (place / "long.csv").write_text(f"x,y\n1,2\n3,{'x' * 200_000}\n")
    assert reason in said(capsys, "run", *words).err


def test_too_little_memory_is_one_sentence(capsys, monkeypatch):
    def hungry(*_):
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr(_goal, "planned", hungry)
    shown = said(capsys, "plan", "--domain", "ball:3", "--horizon", "9", "--epsilon", "1")
    assert "not enough memory for this (Unable to allocate 7 TiB)" in shown.err


@pytest.mark.parametrize(
    ("redirect", "reason"), [(">&-", "standard output is closed"), ("<&-", "standard input is closed"), ("2>&-", "")]
)
def test_closed_files_are_named(redirect, reason):
    line = f"{sys.executable} -m reticent.cli run - {' '.join(PRIVATE)} {redirect}"
    done = subprocess.run(["bash", "-c", line], input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert reason in done.stderr
    assert "error" not in done.stdout


def test_rows_before_the_end_of_a_cut_gzip_are_taken(place, capsys, monkeypatch):
    lines = "".join(f"{y!r}\n" for y in np.random.default_rng(1).uniform(0, 10, 20_000).tolist())
    (place / "cut.csv.gz").write_bytes(gzip.compress(f"y\n{lines}".encode())[:-5000])
    words = [*SIZED, "--max-switches", "5", "--horizon", "20000", "--json"]
    assert "truncated gzip" in said(capsys, "run", "cut.csv.gz", *words).err  # nothing of it, where all can be checked
    shown = piped(capsys, monkeypatch, "cut.csv.gz", *words)
    assert "truncated gzip" in shown.err
    assert json.loads(shown.out.splitlines()[-1])["summary"]["rounds"] > 10_000


@pytest.mark.parametrize(("policy", "steep"), [("clip", 4), ("raise", 6)])
def test_only_rounds_within_the_horizon_are_counted_as_steep(place, capsys, monkeypatch, policy, steep):
    (place / "steep.csv").write_text("x,y\n" + "0.5,1\n3,1\n0.5,1\n" * 20)
    words = [*STEEP, "--max-switches", "5", "--horizon", "12", "--json", "--on-steep", policy, "--bad-rows", "skip"]
    shown = piped(capsys, monkeypatch, "steep.csv", *words)
    assert json.loads(shown.out.splitlines()[-1])["summary"]["not_private"]["steep_rounds"] == steep
