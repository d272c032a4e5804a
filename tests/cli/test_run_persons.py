"""`reticent run --person` and `--every`: whose rows are, when they came, what counts, and what is refused before."""

import csv
import json
import sys
import warnings
from datetime import datetime, timedelta

import numpy as np
import pytest

import reticent as rt
from reticent.cli import _goal, _run, main
from reticent.cli._units import Clock, Units, Watch, span_of
from reticent.journal import Reader
from reticent.lab import Study
from reticent.ledger import Ledger

ROWS = 600
ASKED = ["--target", "y", "--bounds", "y=0:10", "--loss", "pinball:0.9", "--epsilon", "1", "--seed", "3"]
PERSONS = ["--person", "id", "--max-rows", "2"]
CLOCK = ["--time", "at", "--every", "1h"]


def table(rows=ROWS, gap=7):
    """Return rows (time, key, value) in order of time; some hours are empty, some rows nobody's."""
    rng, when, found = np.random.default_rng(0), datetime(2026, 1, 1), []
    for i in range(rows):
        when += timedelta(minutes=int(rng.integers(0, gap)) + (200 if i % 97 == 96 else 0))
        found.append((when, "" if i % 50 == 7 else f"p{int(rng.integers(0, 90))}", float(rng.uniform(0, 10))))
    return found


def written(path, rows):
    lines = [f"{when.isoformat()},{who},{value!r}" for when, who, value in rows]
    path.write_text("at,id,y\n" + "\n".join(lines) + "\n")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "data.csv", table())
    return tmp_path


def said(capsys, *words, code=0):
    found = main(["run", *map(str, words)])
    shown = capsys.readouterr()
    assert found == code, shown.err
    assert "Traceback" not in shown.err
    return shown


def summary(capsys, *words):
    return json.loads(said(capsys, *words, "--json", "--quiet").out.splitlines()[-1])["summary"]


def learner(**units):
    return rt.private_learner(
        rt.Pinball(0.9), rt.Interval(0.0, 10.0), epsilon=1.0, delta=1e-6, lipschitz=0.9, seed=3, **units
    )


def keys(rows):
    return np.array([who or None for _, who, _ in rows], dtype=object)


def test_a_run_for_persons_is_that_of_the_library(place, capsys):
    rows = table()
    twin = learner(max_rows=2, horizon=ROWS)
    with pytest.warns(rt.learners.EmptyRoundWarning):
        twin.observe_many(np.ones(ROWS), np.array([y for *_, y in rows]), persons=keys(rows))
    found = summary(capsys, "data.csv", *ASKED, *PERSONS)
    assert found["decision"] == twin.decision.tolist()
    assert found["protected"] == "a person, with all that they ever do; at most 2 rows of each count"
    assert "versions of one person" in found["attacker"]
    nobody = sum(not who for _, who, _ in rows)
    secret = found["not_private"]
    assert secret["rows_of_nobody"] == nobody == 12
    assert secret["rows_left_out"] == twin.left_out - nobody > 0
    # Whose rows are matters: with a key for each row all of them count.
    assert found["decision"] != summary(capsys, "data.csv", *ASKED, "--person", "id", "--max-rows", "3")["decision"]


def test_words_say_who_is_protected_and_what_is_secret(place, capsys):
    shown = said(capsys, "data.csv", *ASKED, *PERSONS, "--window", "200").err
    shown = " ".join(shown.split())
    assert "a person, for what they do in any 200 rounds in a row; at most 2 rows of each count in a window" in shown
    assert "12 of nobody (not private: computed from the data)" in shown
    assert "EmptyRoundWarning" not in shown


def test_blocks_end_when_the_clock_strikes_also_where_nobody_came(place, capsys):
    rows, twin = table(), learner(max_rows=2, window=24, clock=100)
    hours = [int((when - datetime(2026, 1, 1)).total_seconds() // 3600) for when, *_ in rows]
    decisions = [["2026-01-01T00:00Z", *map(str, twin.decision)]]
    assert len(set(hours)) < hours[-1]  # some hours are empty
    for hour in range(hours[-1] + 1):
        here = [i for i, other in enumerate(hours) if other == hour]
        if here:
            some = [rows[i] for i in here]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rt.learners.EmptyRoundWarning)
                twin.observe_many(np.ones(len(here)), np.array([y for *_, y in some]), persons=keys(some))
        if twin.close_block():
            after = datetime(2026, 1, 1) + timedelta(hours=hour + 1)
            decisions.append([f"{after.isoformat(timespec='minutes')}Z", *map(str, twin.decision)])
    words = ["data.csv", *ASKED, *PERSONS, *CLOCK, "--window", "1d", "--block", "11"]
    found = list(csv.reader(said(capsys, *words).out.splitlines()))
    assert found == [["time", "y"], *decisions]
    told = summary(capsys, *words, "--save", "run.json")
    kept = Study.load(place / "run.json").runs[0].switches
    assert 0 < kept <= len(set(hours)) - 1  # those that a round has seen
    assert told["blocks"] == hours[-1] + 1
    assert told["switches"] == twin.switches
    assert told["rounds"] is None
    assert told["not_private"]["rows"] == ROWS
    assert told["protected"].startswith("a person, for what they do in any 1d;")


def test_the_clock_runs_from_where_to_where_it_is_said(place, capsys):
    ends = ["--from", "2025-12-31T20:00", "--until", "2026-02-01"]
    shown = said(capsys, "data.csv", *ASKED, *CLOCK, *ends)
    times = [line.split(",")[0] for line in shown.out.splitlines()[1:]]
    assert times[0] == "2025-12-31T20:00Z"
    assert times[-1] == "2026-02-01T00:00Z"
    assert "taken as public" not in shown.err
    assert (
        "in which block the first and the last row came is taken as public"
        in said(capsys, "data.csv", *ASKED, *CLOCK).err
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--person", "id"], "--person id is not enough; give --max-rows K"),
        (["--max-rows", "2"], "--max-rows 2 is not enough; give --person COLUMN"),
        (["--window", "30"], "--window 30 is not enough; give --max-rows K"),
        (["--every", "1h"], "--every 1h is not enough; give --time COLUMN"),
        (["--time", "at"], "--time at is not enough; give --every LENGTH"),
        (["--from", "2026-01-01"], "--from 2026-01-01 is not enough; give --every"),
        ([*PERSONS, "--window", "30d"], "window must be a number of rows without a clock"),
        ([*PERSONS, *CLOCK, "--window", "90m"], "window must be a multiple of the 1h between two strokes, got 90m"),
        ([*PERSONS, *CLOCK, "--window", "24"], "window must be a length of time such as 30s"),
        ([*CLOCK, "--from", "2026-01-01T00:30"], "the one before is 2026-01-01T00:00Z"),
        ([*CLOCK, "--from", "soon"], "--from must be a time such as"),
        ([*CLOCK, "--from", "2026-01-02", "--until", "2026-01-01"], "--from must come before --until"),
        ([*CLOCK, "--horizon", "100"], "on a clock any number of rows may come"),
        ([*CLOCK, "--journal", "j"], "runs on a clock cannot be resumed here"),
        ([*CLOCK, "--from", "2026-01-01T05:00"], "line 2: its time is in the block of 2026-01-01T00:00Z, before the"),
        ([*CLOCK, "--until", "2026-01-01T01:00"], "and the clock ends at 2026-01-01T01:00Z (--until)"),
        (["--person", "y", "--max-rows", "2"], "--person must be a column of its own, got 'y', which is the target"),
        (
            ["--features", "id", "--categories", "id=p1|other", *PERSONS],
            "got 'id', which is a feature: decisions must not tell who somebody is",
        ),
        (["--person", "it", "--max-rows", "2"], "data.csv has no column 'it'"),
        ([*PERSONS, "--time", "id", "--every", "1h"], "got 'id', which is the column of --person"),
        (["--time", "id", "--every", "1h"], "where a time is expected, such as 2026-11-17T08:30"),
    ],
)
def test_what_does_not_go_together_is_found_before_anything_is_spent(place, capsys, monkeypatch, words, reason):
    monkeypatch.setattr(_goal, "planned", lambda *_, **__: pytest.fail("it was planned"))
    monkeypatch.setattr(_run, "Command", lambda *_, **__: pytest.fail("it was started"))
    assert reason in " ".join(said(capsys, "data.csv", *ASKED, *words, code=2).err.split())


def test_nothing_is_promised_to_persons_without_epsilon(place, capsys):
    words = [word for word in ASKED if word not in ("--epsilon", "1")]
    assert "without --epsilon" in said(capsys, "data.csv", *words, "--max-switches", "9", *PERSONS, code=2).err
    assert "neither persons nor times" in said(capsys, "iid", "--epsilon", "1", *PERSONS, code=2).err


def test_rows_out_of_order_are_refused_and_never_skipped(place, capsys):
    rows = table()
    rows[300], rows[20] = rows[20], rows[300]
    written(place / "data.csv", rows)
    for more in ([], ["--bad-rows", "skip"]):
        shown = said(capsys, "data.csv", *ASKED, *CLOCK, *more, code=2).err
        assert "line 23: its time is in the block of" in shown
        assert "sort the file" in shown
    with pytest.MonkeyPatch.context() as patch, open("data.csv") as given:
        patch.setattr(sys, "stdin", given)
        assert "sort the file" in said(capsys, "-", *ASKED, *CLOCK, code=2).err


def test_a_check_counts_persons_and_blocks(place, capsys):
    found = json.loads(said(capsys, "data.csv", *ASKED, *PERSONS, *CLOCK, "--check", "--json").out)
    rows = table()
    assert found["not_private"]["persons"] == len({who for _, who, _ in rows} - {""})
    assert found["not_private"]["rows_of_nobody"] == 12
    hours = [when.replace(minute=0) for when, *_ in rows]
    assert found["not_private"]["rows_of_the_fullest_block"] == max(map(hours.count, hours))
    assert found["protected"].startswith("a person, with all that they ever do")
    assert (
        "would promise       epsilon 1 at delta 1e-06 to a person"
        in said(capsys, "data.csv", *ASKED, *PERSONS, "--check").out
    )


def test_a_block_with_too_many_rows_is_found_first(place, capsys):
    rows = [(datetime(2026, 1, 1), "p", 1.0)] * (1 << 16)
    written(place / "data.csv", [*rows, (datetime(2026, 1, 1), "q", 2.0)])
    shown = " ".join(said(capsys, "data.csv", *ASKED, *CLOCK, "--check", code=2).err.split())
    assert "a block of the clock has 65,537 rows, and at most 65,536 may come between two strokes" in shown


def test_a_run_for_persons_is_resumed_with_the_same_persons(place, capsys):
    words = [*ASKED, *PERSONS, "--journal", "run.journal", "--horizon", ROWS]
    whole = said(capsys, "data.csv", *words[:-4], "--horizon", ROWS).out
    lines = (place / "data.csv").read_text().splitlines(keepends=True)
    (place / "part.csv").write_text("".join(lines[:301]))
    said(capsys, "part.csv", *words)
    with Reader("run.journal") as reader:
        assert reader.rounds == 300
        assert sum(len(owners) for owners in reader.owners()) == 300
    other = [line.replace(",p", ",q") if i == 11 else line for i, line in enumerate(lines)]
    (place / "other.csv").write_text("".join(other))
    shown = said(capsys, "other.csv", *words, "--resume", code=2).err
    assert "line 12: this row is not of the person of round 11 of the journal" in shown
    assert said(capsys, "data.csv", *words, "--resume").out == whole
    with Reader("run.journal") as reader:
        assert reader.verify().rounds == ROWS


def test_a_ledger_for_persons_takes_a_run_for_persons(place, capsys):
    Ledger("l.db").add("persons", 3.0, 1e-5, unit="person")
    free = [word for word in ASKED if word not in ("--seed", "3")]
    book = ["--ledger", "l.db", "--population", "persons"]
    shown = said(capsys, "data.csv", *free, *book, code=2).err
    assert "the entry protects one row, the population one person; give --person COLUMN and --max-rows K" in shown
    assert "for persons, " in said(capsys, "data.csv", *free, *PERSONS, *book).err


def test_a_file_of_parquet_has_persons_and_times_of_its_own_types(place, capsys):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = table()
    ids = [int(who[1:]) if who else None for _, who, _ in rows]
    made = arrow.table({"at": [when for when, *_ in rows], "id": ids, "y": [y for *_, y in rows]})
    parquet.write_table(made, "data.parquet")
    lines = [
        f"{when.isoformat()},{'' if who is None else who},{y!r}" for (when, _, y), who in zip(rows, ids, strict=True)
    ]
    (place / "same.csv").write_text("at,id,y\n" + "\n".join(lines) + "\n")
    words = [*ASKED, *PERSONS, *CLOCK]
    ours, theirs = (summary(capsys, name, *words) for name in ("data.parquet", "same.csv"))
    for secret in (ours, theirs):
        assert secret["not_private"]["rows_of_nobody"] == 12
    assert ours["blocks"] == theirs["blocks"]
    assert ours["not_private"]["rows_left_out"] == theirs["not_private"]["rows_left_out"]
    assert ours["decision"] == theirs["decision"]


def test_plans_for_persons(capsys):
    words = ["plan", "--domain", "ball:2", "--horizon", "1000", "--epsilon", "1", "--json"]

    def planned(*more, code=0):
        assert main([*words, *more]) == code
        return capsys.readouterr()

    for system in ("filtered", "noisy", "dp-ftrl", "pcomw"):
        found = json.loads(planned("--system", system, "--max-rows", "3", "--window", "50").out)
        assert "any 50 rounds in a row" in " ".join(found["words"]["text"].split()), system
        assert "versions of one person" in " ".join(found["words"]["text"].split())
    assert "name a system" in planned("--system", "best", "--max-rows", "3", code=2).err
    assert "leave --max-rows out" in planned("--all", "--max-rows", "3", code=2).err
    assert "give --max-rows K" in planned("--window", "50", code=2).err
    assert main(["plan", "--domain", "experts:4", "--horizon", "1000", "--epsilon", "1", "--max-rows", "3"]) == 0
    assert "doubling experts" in capsys.readouterr().out


def test_lengths_of_time_and_the_order_of_the_clock():
    assert [span_of(text, "every") // 10**6 for text in ("30s", "15m", "1h", "30d", "2W")] == [
        30, 900, 3600, 2592000, 1209600,
    ]  # fmt: skip
    for bad in ("1", "h", "0h", "1.5h", "1y", "-1h"):
        with pytest.raises(ValueError, match="every must be a length of time"):
            span_of(bad, "every")
    watch = Watch(Clock(10**6, None, None))
    watch.see(np.array([5, 5, 6]), "line {}".format)
    watch.see(np.array([6, 9]), "line {}".format)
    with pytest.raises(ValueError, match=r"line 1: .* more than 10,000,000 blocks after"):
        watch.see(np.array([9, 5 + 10_000_000]), "line {}".format)
    assert (watch.first, watch.last) == (5, 9)
    assert not Units().named
