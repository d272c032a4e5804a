"""`reticent run`: decisions out as they change, mistakes in one sentence, and nothing lost on the way."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.cli import main
from reticent.domains import Interval
from reticent.learners import make
from reticent.losses import Pinball
from reticent.planning import plan_filtered

RUN = [sys.executable, "-m", "reticent.cli", "run"]
GOAL = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--max-switches", "20", "--seed", "1"]


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "data.csv"
    values = rng.uniform(0, 10, size=(400, 2)).tolist()
    path.write_text("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in values))
    return path


def run(capsys, *words):
    """Return the exit code, standard output and standard error of a run."""
    code = main(["run", *map(str, words)])
    done = capsys.readouterr()
    return code, done.out, done.err


def piped(capsys, monkeypatch, path, *words):
    """Return the same of a run that reads the file from standard input, where nothing can be checked first."""
    with open(path) as given, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", given)
        return run(capsys, "-", *words)


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def test_decisions_are_those_of_the_learner(capsys, data):
    code, out, err = run(
        capsys, data, "--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--epsilon", 1, "--seed", 3
    )
    assert code == 0
    plan = plan_filtered(Interval(0.0, 10.0), 400, 0.9, 1.0, 1e-6)
    learner = make(plan, Pinball(0.9), 3)
    first = learner.decision
    y = np.loadtxt(data, delimiter=",", skiprows=1)[:, 1]
    trace = learner.observe_many(np.ones((400, 1)), y)
    found = rows_of(out)
    assert found[0] == ["round", "y"]
    assert [float(found[1][1])] == first.tolist()
    assert [int(row[0]) for row in found[1:]] == [1, *(trace.switch_times + 1).tolist()]
    assert float(found[-1][1]) == learner.decision[0]
    assert "epsilon 0.99" in err or "epsilon 1" in err
    assert "seed 3" in err
    assert "not private" in err


@pytest.mark.parametrize("block", [1, 7, 399])
@pytest.mark.parametrize("goal", [["--max-switches", "20"], []])
def test_block_size_does_not_change_the_transcript(capsys, data, block, goal):
    words = [data, "--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--seed", "1", *goal]
    whole = run(capsys, *words)[1]
    assert len(rows_of(whole)) > 3
    assert run(capsys, *words, "--block", block)[1] == whole


def test_parquet_gzip_and_standard_input_give_the_same_transcript(capsys, data, tmp_path, monkeypatch):
    whole = run(capsys, data, *GOAL, "--horizon", "400")[1]
    x, y = np.loadtxt(data, delimiter=",", skiprows=1).T
    parquet = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": x, "y": y}), parquet)
    assert run(capsys, parquet, *GOAL)[1] == whole
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    assert run(capsys, "-", *GOAL, "--horizon", "400")[1] == whole


def test_json_lines_and_summary(capsys, data, tmp_path):
    code, out, err = run(capsys, data, *GOAL, "--json", "--quiet", "--regret")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert err == ""
    assert lines[0]["round"] == 1
    summary = lines[-1]["summary"]
    assert summary["rounds"] == 400
    assert summary["switches"] == len(lines) - 2
    assert summary["not_private"]["regret_at_least"] <= summary["not_private"]["regret_at_most"]
    path = tmp_path / "deep" / "decisions.csv"
    code, out, _ = run(capsys, data, *GOAL, "--out", path)
    assert (code, out) == (0, "")
    assert len(rows_of(path.read_text())) == len(lines)


def test_a_named_stream_and_a_study(capsys, tmp_path):
    from reticent.lab import Study

    study = tmp_path / "study.json"
    code, out, err = run(capsys, "iid:rounds=300,dim=2", "--epsilon", 1, "--max-switches", 50, "--save", study)
    assert code == 0
    assert len(rows_of(out)[0]) == 3
    assert "regret a round" in err
    found = Study.load(study)
    assert found.runs[0].rounds == 300
    assert found.goal == {"epsilon": 1.0, "delta": 1e-6, "max_switches": 50}
    assert found.best is not None
    assert found.runs[0].regret is not None


def test_a_file_wins_over_a_stream_of_its_name(capsys, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data.rename("phishing")
    code, _, err = run(capsys, "phishing", *GOAL)
    assert code == 0
    assert "phishing is read as a file; there is a stream of that name" in err


def test_without_a_goal_it_says_so(capsys, data):
    code, out, err = run(capsys, data, "--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9")
    assert code == 0
    assert "promises neither privacy nor few changes" in err
    assert "online gradient descent" in err
    assert len(rows_of(out)) > 300


def test_other_systems_and_features(capsys, data):
    words = [data, "--features", "x", "--intercept", "--bounds", "x=0:10,y=0:10", "--target", "y", "--loss", "absolute"]
    code, out, err = run(capsys, *words, "--epsilon", 1, "--system", "dp-ftrl-tree")
    assert code == 0
    assert "DP-FTRL, tree noise" in err
    assert rows_of(out)[0] == ["round", "x", "intercept"]


def test_labels_by_text_and_steep_rounds(capsys, tmp_path, monkeypatch):
    path = tmp_path / "mail.csv"
    path.write_text("x,kind\n" + "0.5,spam\n3,ham\n" * 50)
    goal = ["--features", "x", "--target", "kind", "--loss", "hinge", "--lipschitz", 1, "--max-switches", 10]
    words = [path, "--positive", "spam", *goal]
    code, out, err = run(capsys, *words, "--json", "--quiet")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["summary"]["not_private"]["steep_rounds"] == 50
    code, out, err = run(capsys, *words, "--on-steep", "raise")
    assert (code, out) == (2, "")
    assert "line 3: the round has Lipschitz constant 3, above the limit 1" in err
    assert "50 rows like this, and nothing was run or spent" in err
    code, out, err = piped(capsys, monkeypatch, path, *goal, "--labels", "ham,spam", "--on-steep", "raise")
    assert code == 2
    assert "standard input, line 3: the round has Lipschitz constant 3, above the limit 1" in err
    assert "rounds              1, without an end" in err
    code, out, err = run(capsys, *words, "--on-steep", "raise", "--bad-rows", "skip")
    assert code == 0
    assert "50 left out" in err


def test_a_bad_row_is_found_before_the_first_round(capsys, data, monkeypatch):
    from reticent.cli import _run

    lines = data.read_text().splitlines(keepends=True)
    lines[301] = "1,oops\n"
    data.write_text("".join(lines))
    with monkeypatch.context() as patch:
        patch.setattr(_run, "_plan", lambda *_: pytest.fail("it was planned"))
        code, out, err = run(capsys, data, *GOAL, "--horizon", "400")
    assert (code, out) == (2, "")
    assert f"error: {data}, line 302: column 'y' has 'oops' where a number is expected; it is the only row" in err
    assert "nothing was run or spent; leave it out with --bad-rows skip; or correct the file" in err
    code, out, err = run(capsys, data, *GOAL, "--bad-rows", "skip")
    assert code == 0
    assert "bad rows skipped    1 (not private" in err
    assert "rounds              399 of a horizon of 400" in err


def test_a_bad_row_of_a_pipe_stops_with_its_line_and_nothing_is_lost(capsys, data, monkeypatch):
    whole = rows_of(run(capsys, data, *GOAL, "--horizon", "400")[1])
    lines = data.read_text().splitlines(keepends=True)
    lines[301] = "1,oops\n"
    data.write_text("".join(lines))
    code, out, err = piped(capsys, monkeypatch, data, *GOAL, "--horizon", "400")
    assert code == 2
    assert "standard input cannot be checked first" in err
    assert "error: standard input, line 302: column 'y' has 'oops' where a number is expected" in err
    assert "rounds              300 of a horizon of 400" in err
    assert rows_of(out) == [row for row in whole if row[0] == "round" or int(row[0]) <= 301]


@pytest.mark.parametrize("goal", [["--epsilon", "1"], ["--max-switches", "20"], []])
def test_a_horizon_shorter_than_the_stream(capsys, data, goal, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    words = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--horizon", "300", "--out", out]
    code, _, err = run(capsys, data, *words, *goal)
    assert code == 2
    assert "has 400 rounds, more than the horizon of 300" in err
    assert "nothing was run or spent; give --horizon 400" in err
    assert not out.exists()
    code, _, err = piped(capsys, monkeypatch, data, *words, *goal)
    assert code == 2
    assert "line 302: more rounds than the horizon of 300" in err
    assert "rounds              300 of a horizon of 300" in err
    assert len(rows_of(out.read_text())) > 2


SIZED = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.csv", *GOAL], "none.csv: no such file"),
        (["phising", "--epsilon", "1"], "phishing"),
        (["phishing", *GOAL], "leave the options of columns out"),
        (["iid:rounds=100,dim=2", "--epsilon", "1", "--loss", "hinge"], "has its own loss"),
        (["data.csv", "--target", "y", "--epsilon", "1"], "a loss must be named"),
        (["data.csv", "--target", "z", "--loss", "logistic", "--epsilon", "1"], "has no column 'z'; it has 'x', 'y'"),
        (["data.csv", "--target", "y", "--loss", "pinball:0.9", "--epsilon", "1"], "a domain must be given"),
        (["data.csv", *SIZED, "--epsilon", "0"], "epsilon must be greater than 0"),
        (["data.csv", *SIZED, "--epsilon", "-1"], "epsilon must be greater than 0"),
        (["data.csv", *SIZED, "--epsilon", "1", "--delta", "0"], "delta must be"),
        (["data.csv", *SIZED, "--delta", "1e-6"], "--epsilon"),
        (["data.csv", *SIZED, "--epsilon", "1", "--domain", "ball:3"], "one coordinate for each of the 1 features"),
        (["data.csv", *SIZED, "--epsilon", "1", "--horizon", "many"], "horizon must be a whole number"),
        (["data.csv", *SIZED, "--epsilon", "1", "--bad-rows", "ignore"], "bad-rows must be stop or skip"),
        (["data.csv", *SIZED, "--epsilon", "1", "--system", "nonesuch"], "system must be"),
        (["data.csv", *SIZED, "--epsilon", "1", "--out", "data.csv"], "must not be the file that is read"),
        (["data.csv", *SIZED[:2], *SIZED[4:], "--bounds", "y=0-10", "--epsilon", "1"], "such as age=0:120"),
        (["-", *SIZED, "--epsilon", "1", "--regret"], "regret needs more passes"),
        (["empty.csv", *GOAL], "empty.csv is empty"),
        (["header.csv", *GOAL], "header.csv has names of columns but no rows"),
        (["none.parquet", *GOAL], "none.parquet has names of columns but no rows"),
        (["other.csv", *GOAL], "other.csv has no column 'y'; it has 'x;y'; is --separator ';' meant?"),
        (["data.csv", *GOAL, "--bounds", "y=0:1,2=0:2"], "bounds must be given once for a column, got 'y' twice"),
        (["data.csv", *GOAL, "--horizon", "1e300"], "got '1e300'; --horizon unknown has no end"),
        (["cut.parquet", *GOAL], "is not a whole Parquet file"),
        (["folder", *GOAL], "is a folder"),
        (["bad.csv", *GOAL], "bad.csv, line 2: column 'y' has 'one'"),
        (["bad.csv", *GOAL, "--bad-rows", "skip"], "bad.csv has no rows to run on, only 1 bad ones"),
    ],
)
def test_mistakes_get_one_sentence(capsys, data, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("x,y\n")
    (tmp_path / "other.csv").write_text("x;y\n1;2\n")
    pq.write_table(pa.table({"y": pa.array([], pa.float64())}), "none.parquet")
    (tmp_path / "bad.csv").write_text("x,y\n1,one\n")
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"y": [1.0] * 1000}), "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-20])
    kept = data.read_text()
    code, _, err = run(capsys, *words)
    last = err.strip().splitlines()[-1]
    assert code == 2
    assert last.startswith("error: ")
    assert said in last
    assert "Traceback" not in err
    assert data.read_text() == kept


# An alarm outlives exec: no test waits longer than that for what it reads from the program.
ALARM = "import os, signal, sys; signal.alarm(120); os.execv(sys.argv[1], sys.argv[1:])"


def spawn(*words, **options):
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", ALARM, *RUN, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )


def test_a_live_pipe_is_followed_and_ctrl_c_keeps_what_is_done():
    """Decisions come while the pipe is open; an interrupt then leaves them, a summary, and exit code 130."""
    process = spawn("-", "--target", "y", "--bounds", "y=0:1", "--loss", "absolute", "--horizon", "1e4")
    try:
        process.stdin.write(b"y\n1\n")
        process.stdin.flush()
        found = [process.stdout.readline() for _ in range(3)]  # names, the first decision, the one after a round
        assert found[0] == b"round,y\n"
        assert found[1].startswith(b"1,")
        assert found[2].startswith(b"2,")
        process.stdin.write(b"0.5\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"3,")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(timeout=60)
    assert process.returncode == 130
    assert b"rounds              2 of a horizon of 10,000" in err
    assert b"Traceback" not in err


def test_a_reader_that_leaves_is_no_error(data):
    words = [str(data), "--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--block", "1"]
    process = spawn(*words)
    process.stdin.close()
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) != 1
    assert b"Traceback" not in err
