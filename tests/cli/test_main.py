"""Mistakes get one sentence and exit code 2; Ctrl-C and closed pipes end quietly; bugs stay visible."""

import subprocess
import sys

import pytest

from reticent.cli import _goal, main
from reticent.lab import Study

BALL = ["--domain", "ball:3", "--horizon", "1000"]
WRONG = [
    (["plann"], "no such command 'plann'; did you mean 'plan'?"),
    (["plan", "--foo"], "no such option: --foo"),
    (["plan", "--domain", "ball:3"], "missing option '--horizon'"),
    (["plan", *BALL], "a plan needs a goal"),
    (["plan", "--domain", "bal:3", "--horizon", "9", "--epsilon", "1"], "got 'bal:3'; did you mean 'ball'?"),
    (["plan", "--domain", "ball", "--horizon", "9", "--epsilon", "1"], "must be written as ball:DIM[:RADIUS]"),
    (["plan", "--domain", "ball:x", "--horizon", "9", "--epsilon", "1"], "a dimension must be a whole number"),
    (["plan", "--domain", "interval:2:1", "--horizon", "9", "--epsilon", "1"], "low must be below high"),
    (["plan", "--domain", "interval:0:inf", "--horizon", "9", "--epsilon", "1"], "HIGH must be a finite number"),
    (["plan", "--domain", "ball:3", "--horizon", "0", "--epsilon", "1"], "horizon must be a whole number"),
    (["plan", "--domain", "ball:3", "--horizon", "1.5", "--epsilon", "1"], "horizon must be a whole number"),
    (["plan", "--domain", "ball:3", "--horizon", "nan", "--epsilon", "1"], "horizon must be a whole number"),
    (["plan", *BALL, "--epsilon", "0"], "epsilon must be greater than 0, got 0.0"),
    (["plan", *BALL, "--epsilon", "x"], "'x' is not a number"),
    (["plan", *BALL, "--epsilon", "nan"], "epsilon must be finite"),
    (["plan", *BALL, "--epsilon", "1", "--delta", "2"], "delta must be from"),
    (["plan", *BALL, "--delta", "1e-6", "--max-switches", "9"], "delta goes with an epsilon"),
    (["plan", *BALL, "--max-switches", "-1"], "max-switches must be a whole number of at least 0"),
    (["plan", *BALL, "--epsilon", "1", "--loss", "pinbal:0.5"], "did you mean 'pinball'?"),
    (["plan", *BALL, "--epsilon", "1", "--loss", "pinball:2"], "tau must lie strictly between 0 and 1"),
    (["plan", *BALL, "--epsilon", "1", "--system", "foo"], "system must be one of P-COMW;"),
    (["plan", *BALL, "--epsilon", "1", "--system", "dp"], "which may be DP-FTRL; DP-FTRL, linear losses"),
    (["plan", *BALL, "--epsilon", "1", "--system", "ogd"], "does not apply: is not private"),
    (["plan", *BALL, "--epsilon", "1", "--neighbors", "x"], "neighbors must be 'replace' or 'zero-out'"),
    (["plan", *BALL, "--epsilon", "1", "--lipschitz", "-1"], "lipschitz must be greater than 0"),
    (["plan", *BALL, "--all", "--explain"], "leave --system, --hard and --explain out"),
    (["plan", "--domain", "ball:3", "--horizon", "unknown", "--epsilon", "1", "--all"], "--all compares certificates"),
    (
        ["plan", "--domain", "ball:3", "--horizon", "unknown", "--epsilon", "1", "--system", "l2p"],
        "an unknown horizon is for",
    ),
    (["streams", "phishin"], "did you mean phishing"),
    (["compare", "phishin", "--epsilon", "1"], "did you mean phishing"),
    (["compare", "phishing"], "a comparison needs a goal"),
    (["compare", "phishing", "--epsilon", "1,,2"], "epsilon must be numbers with commas between them"),
    (["compare", "phishing", "--epsilon", "0"], "epsilon must be greater than 0"),
    (["compare", "phishing", "--epsilon", "1", "--seeds", "0"], "seeds must be at least 1"),
    (["compare", "phishing", "--epsilon", "1", "--jobs", "0"], "jobs must be a number of processes"),
    (["compare", "phishing", "--epsilon", "1", "--patience", "0"], "patience must be a number of seconds"),
    (["compare", "phishing", "--epsilon", "1", "--rounds", "99999"], "rounds must be at most 1,250"),
    (["compare", "phishing", "--epsilon", "1", "--loss", "hinge"], "has its own loss"),
    (["compare", "phishing", "--epsilon", "1", "--target", "x"], "has its own columns"),
    (["compare", "nofile.csv", "--epsilon", "1", "--loss", "hinge"], "nofile.csv: no such file or directory"),
    (["compare", "-", "--epsilon", "1"], "can be read once"),
    (["audit", "--domain", "ball:2"], "missing option '--epsilon'"),
    (["audit", "--domain", "ball:2", "--epsilon", "1", "--runs", "5"], "runs must be a whole number of at least 100"),
    (["audit", "--domain", "ball:2", "--epsilon", "1", "--confidence", "2"], "confidence must be"),
    (["audit", "--domain", "ball:2", "--epsilon", "1", "--runs", "1e15"], "runs must be at most 100,000,000"),
    (["audit", "--domain", "ball:2", "--epsilon", "1", "--horizon", "1e300"], "horizon must be at most"),
    (["plan", *BALL[:2], "--horizon", "1e300", "--max-switches", "5"], "got '1e300'; --horizon unknown has no end"),
    (["plan", *BALL[:2], "--horizon", "1e13", "--epsilon", "1"], "give --horizon unknown for a run without an end"),
    (["run", "data", "--features", "a,b", "--epsilon", "1"], "neither a file nor a stream is called 'data'"),
    (["compare", "data", "--features", "a,b", "--epsilon", "1"], "neither a file nor a stream is called 'data'"),
    (["run", "x.csv", "--target", "a", "--bounds", "a=0:1,a=0:2"], "got 'a' twice in 'a=0:1,a=0:2'"),
    (["demo", "--out", __file__], "--out must be a folder"),
    (["tables", "--out", __file__], "--out must be a folder"),
    (["tables", "--out", "out", "--cache", f"{__file__}/cache"], "--cache must be a folder"),
    (["report", "nofile.json"], "nofile.json: no such file or directory"),
    (["demo", "--rounds", "x"], "rounds must be a whole number"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_mistake_gets_one_sentence_and_exit_code_2(words, said, capsys):
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not json", "damaged"),
        ('{"kind": "something"}', "is not one"),
        ('{"kind": "reticent study", "version": 99}', "version 99"),
        ('{"kind": "reticent study", "version": 1, "study": {"title": "x"}}', "missing or wrong"),
    ],
)
def test_a_report_of_what_is_no_study_says_so(text, said, tmp_path, capsys):
    path = tmp_path / "study.json"
    path.write_text(text)
    assert main(["report", str(path)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "study.html").exists()


def test_a_report_does_not_replace_its_study(tmp_path, capsys):
    path = Study("empty", "run", {"name": "none"}, {}, []).save(tmp_path / "study.json")
    assert main(["report", str(path), "-o", str(path)]) == 2
    assert "must not be the file that is read" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)])
def test_an_interrupt_has_its_own_exit_code(error, code, monkeypatch, capfd):
    def stop(*_):
        raise error

    monkeypatch.setattr(_goal, "planned", stop)
    assert main(["plan", *BALL, "--epsilon", "1"]) == code


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(_goal, "planned", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main(["plan", *BALL, "--epsilon", "1"])


def test_a_missing_package_is_named_with_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["streams"]) == 2
    assert "pip install 'reticent[lab]'" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error():
    line = f"{sys.executable} -m reticent.cli streams iid | true"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


def test_the_command_line_starts_without_what_it_does_not_need():
    code = (
        "import sys; from reticent.cli import main; main(['plan', '--help']);"
        "print([name for name in ('pandas', 'matplotlib', 'statsmodels', 'river') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
