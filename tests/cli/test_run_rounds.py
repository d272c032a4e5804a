"""Which rows are rounds is decided once: regret, counts and notes are those of the rounds that were taken."""

import contextlib
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.cli import main
from reticent.cli._columns import Columns
from reticent.cli._run_source import CLIP, SKIP, STOP, FileSource, Piece, sifted
from reticent.lab import Study
from reticent.lab.streams import get
from reticent.losses import Absolute

LIMIT = 1.5
STEEP = ["--features", "a,b", "--target", "y", "--loss", "absolute", "--domain", "ball:2:2", "--lipschitz", str(LIMIT)]
LEFT_OUT = [*STEEP, "--on-steep", "raise", "--bad-rows", "skip", "--max-switches", "20", "--seed", "1", "--json"]
QUANTILE = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--max-switches", "20", "--seed", "1"]


@pytest.fixture
def data(tmp_path):
    """Rows of which about a third are steep, and more so in the first half."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)) * np.linspace(2.0, 0.5, 400)[:, None]
    y = x @ np.array([1.0, -0.5]) + 0.3 * rng.normal(size=400)
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n" + "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in np.column_stack([x, y]).tolist()))
    return path


def summary(capsys, *words, code=0):
    assert main(["run", *map(str, words), "--json", "--quiet"]) == code
    return json.loads(capsys.readouterr().out.splitlines()[-1])["summary"]


def piped(capsys, monkeypatch, path, *words, code=0):
    """Return the summary of a run that reads the file from standard input, where nothing can be checked first."""
    with open(path) as given, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", given)
        return summary(capsys, "-", *words, code=code)


def least(x, y, tries=40):
    """Return the least sum of absolute errors over the disc of radius 2, by a grid that closes in."""
    centre, width = np.zeros(2), 2.0
    for _ in range(tries):
        steps = np.linspace(-width, width, 9)
        points = centre + np.stack(np.meshgrid(steps, steps), -1).reshape(-1, 2)
        points = points[np.linalg.norm(points, axis=1) <= 2]
        sums = np.abs(points @ x.T - y).sum(axis=1)
        centre, width = points[np.argmin(sums)], width * 0.7
    return float(sums.min())


def test_regret_is_against_the_best_decision_for_the_rounds_taken(capsys, data):
    found = summary(capsys, data, *LEFT_OUT, "--regret")
    rows = np.loadtxt(data, delimiter=",", skiprows=1)
    taken = rows[np.linalg.norm(rows[:, :2], axis=1) <= LIMIT]
    measured = found["not_private"]
    assert found["rounds"] == len(taken) < 350
    assert measured["steep_rounds"] == 400 - len(taken)
    paid = measured["mean_loss"] * found["rounds"]
    assert paid - measured["regret_at_most"] - 1e-6 <= least(taken[:, :2], taken[:, 2])
    assert paid - measured["regret_at_least"] == pytest.approx(least(taken[:, :2], taken[:, 2]), abs=0.01)
    # As many rows from the first on, steep ones among them, would tell something else.
    wrong = rows[: len(taken)]
    assert abs(least(wrong[:, :2], wrong[:, 2]) - least(taken[:, :2], taken[:, 2])) > 1


def test_named_streams_are_gone_through_in_the_same_way(capsys):
    name = "iid:rounds=300,dim=2"
    words = [name, "--lipschitz", "0.6", "--on-steep", "raise", "--bad-rows", "skip", "--max-switches", "20"]
    found = summary(capsys, *words, "--seed", "1")
    gradients = get(name).block()[0]
    kept = np.linalg.norm(gradients, axis=1) <= 0.6
    assert 0 < found["rounds"] == kept.sum() < 200
    measured = found["not_private"]
    # The best of a ball of radius 1 is against the sum of the gradients.
    best = -np.linalg.norm(gradients[kept].sum(axis=0))
    assert measured["mean_loss"] * found["rounds"] - measured["regret_at_least"] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize(("policy", "rounds"), [(CLIP, 6), (SKIP, 4), (STOP, 2)])
def test_every_pass_has_the_same_rounds_whatever_its_pieces(policy, rounds):
    values = np.array([1.0, 1.0, 9.0, 1.0, 9.0, 1.0])

    def pieces(most):
        for k in range(0, 6, most):
            block, none = (values[k : k + most],), np.zeros(len(values[k : k + most]) + 1, dtype=np.int64)
            yield Piece(block, lambda i, k=k: f"row {k + i}", none, none)

    for most in (1, 4, 6):
        seen, counts = [], 0
        wrong = pytest.raises(ValueError, match="row 2: steep: 9")
        with wrong if policy == STOP else contextlib.nullcontext():
            for piece in sifted(pieces(most), lambda block: (block[0] > 2, block[0]), "steep: {:g}".format, policy):
                seen += piece.block[0].tolist()
                counts = int(piece.steep[-1])
        assert len(seen) == rounds
        assert counts == (0 if policy == STOP else 2)


def broken(data, *lines):
    """Spoil lines, counted from 1."""
    rows = data.read_text().splitlines()
    for line in lines:
        rows[line - 1] = "1,x,2"
    data.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("block", [7, 65536])
@pytest.mark.parametrize(("horizon", "bad"), [(50, 0), (100, 1), (101, 1), (150, 1), (395, 2), (396, 4), (400, 4)])
def test_bad_rows_are_counted_up_to_where_the_run_came(capsys, data, horizon, bad, block, monkeypatch):
    broken(data, 102, 300, 400, 401)
    words = [*STEEP, "--max-switches", "20", "--bad-rows", "skip", "--horizon", horizon, "--block", block]
    found = piped(capsys, monkeypatch, data, *words, code=0 if horizon >= 396 else 2)
    assert found["rounds"] == min(horizon, 396)
    assert found["not_private"]["bad_rows_skipped"] == bad


def test_bad_rows_of_parquet_are_counted_in_the_same_way(capsys, tmp_path):
    y = np.full(300, 5.0)
    y[[100, 299]] = np.nan
    pq.write_table(pa.table({"y": y}), tmp_path / "data.parquet")
    path = tmp_path / "data.parquet"
    with contextlib.closing(FileSource(str(path), Columns(target="y", bounds="y=0:10"), skip=True)) as source:
        source.bind(Absolute())
        before = np.concatenate([piece.bad[: len(piece) + 1] for piece in source.pieces(1000)])
    assert (before[50], before[99], before[100], before[120], before[-1]) == (0, 0, 1, 1, 2)
    assert summary(capsys, path, *QUANTILE, "--bad-rows", "skip")["not_private"]["bad_rows_skipped"] == 2


def test_a_study_says_what_was_left_out_and_what_stopped_it(capsys, data, tmp_path, monkeypatch):
    broken(data, 102)
    kept = tmp_path / "kept.json"
    summary(capsys, data, *STEEP, "--max-switches", 9, "--bad-rows", "skip", "--save", kept)
    assert any(note.startswith("1 bad row left out") for note in Study.load(kept).notes)
    words = [*STEEP, "--max-switches", 9, "--save", kept, "--horizon", 400]
    found = piped(capsys, monkeypatch, data, *words, code=2)
    note = next(note for note in Study.load(kept).notes if note.startswith("stopped after 100 rounds: "))
    assert "line 102: column 'b' has 'x'" in note
    assert note in found["notes"]


def test_a_comparison_says_how_many_rows_it_left_out(capsys, data, tmp_path):
    broken(data, 102, 300)
    words = ["compare", str(data), *STEEP, "--max-switches", "9", "--systems", "ogd", "--seeds", "1", "--jobs", "1"]
    for more, said in (((), "2 bad rows left out"), (("--rounds", "150"), "1 bad row left out")):
        assert main([*words, "--bad-rows", "skip", "--json", *more]) == 0
        assert any(note.startswith(said) for note in json.loads(capsys.readouterr().out)["notes"])


def test_a_block_that_was_given_up_is_in_no_number(capsys, data, monkeypatch):
    """The learner may be in the middle of it; the decision that is told is the last one that was written."""
    from reticent._core._errors import WorkLimitError
    from reticent.learners import PCOMW

    whole = PCOMW.observe_many

    def tired(self, *block):
        trace = whole(self, *block)
        if self.rounds > 100:
            raise WorkLimitError("a draw was given up")
        return trace

    monkeypatch.setattr(PCOMW, "observe_many", tired)
    words = [*STEEP, "--max-switches", "200", "--system", "pcomw", "--seed", "1", "--block", "50", "--json", "--quiet"]
    assert main(["run", str(data), *words]) == 2
    *lines, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert last["summary"]["rounds"] == 100
    assert last["summary"]["switches"] == len(lines) - 1
    assert last["summary"]["decision"] == lines[-1]["decision"]
