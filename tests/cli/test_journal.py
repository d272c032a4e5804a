"""`reticent journal`: show, verify and export, of whole journals and of damaged ones."""

import csv
import json

import numpy as np
import pytest

import reticent as rt
from reticent.cli import main

ROWS = np.random.default_rng(0).normal(size=(90, 2))
ROWS /= 1.01 * np.linalg.norm(ROWS, axis=1)[:, None]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "run.journal"
    plan = rt.planning.plan_ftrl(rt.Ball(2), 100, 1.0, 3.0, 1e-5)
    with rt.Journal(path, batch=8) as journal:
        learner = journal.start(plan, rt.Linear(), seed=1)
        decisions = [learner.decision]
        for row in ROWS[:40]:
            learner.observe(row)
        trace = learner.observe_many(ROWS[40:])
        decisions.append(learner.decision)
    return path, learner, trace


def test_show(made, capsys):
    path, learner, _ = made
    assert main(["journal", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "DPFTRL with Linear(), after 90 rounds on disk" in shown
    assert "of 3 spent, at delta 1e-05" in shown
    assert main(["journal", "show", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rounds"], facts["horizon"], facts["epsilon"]) == (90, 100, 3.0)
    assert facts["decision"] == learner._x.tolist()
    assert facts["spent"] == learner._inner.spent()
    assert facts["decisions"] == learner.switches + 1


def test_verify(made, capsys):
    path, learner, _ = made
    assert main(["journal", "verify", str(path)]) == 0
    assert "is whole: " in capsys.readouterr().out
    assert main(["journal", "verify", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["whole"], found["rounds"], found["switches"]) == (True, 90, learner.switches)


def test_export(made, capsys, tmp_path):
    path, learner, trace = made
    assert main(["journal", "export", str(path)]) == 0
    first = capsys.readouterr().out
    rows = list(csv.reader(first.splitlines()))
    assert rows[0] == ["after_rounds", "written_after", "x1", "x2"]
    assert len(rows) == learner.switches + 2
    assert [float(x) for x in rows[-1][2:]] == learner._x.tolist()
    assert all(int(a) <= int(b) for a, b, *_ in rows[1:])
    assert {int(a) for a, *_ in rows[1:]} >= set(trace.switch_times.tolist())
    assert main(["journal", "export", str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text() == first
    assert "decisions written to" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_mistakes_get_one_sentence_and_code_2(command, made, tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("no journal at all, but some text that is long enough to be looked at closely" * 20)
    empty = tmp_path / "empty"
    empty.touch()
    spoiled = tmp_path / "spoiled"
    data = bytearray(made[0].read_bytes())
    place = data.find(ROWS[50].tobytes())
    data[place] ^= 4
    spoiled.write_bytes(data)
    for path, words in (
        (tmp_path / "nothing", "there is no journal ("),
        (text, "is not a journal of reticent"),
        (empty, "no learner was started in"),
        (spoiled, "is damaged: record"),
        (tmp_path, "there is no journal ("),
    ):
        assert main(["journal", command, str(path)]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("error: ")
        assert words in told.err
        assert told.err.count("\n") == 1


@pytest.mark.parametrize("end", ["", "-wal", "-lock"])
def test_a_journal_is_not_exported_over_itself(end, tmp_path, capsys):
    path = tmp_path / "journal"
    with rt.Journal(path) as journal:
        learner = journal.start(rt.plan_lazy(rt.Ball(2), 100, 1.0, max_switches=20), rt.Linear(), seed=1)
        learner.observe_many(ROWS[:5])
        link = tmp_path / "link"
        link.symlink_to(f"{path}{end}")
        for output in (f"{path}{end}", str(link)):
            assert main(["journal", "export", str(path), "--output", output]) == 2
            assert "path must not be that of the journal itself" in capsys.readouterr().err
        learner.observe_many(ROWS[5:9])
    assert main(["journal", "verify", str(path)]) == 0


def test_an_export_that_fails_leaves_the_old_one(made, tmp_path, monkeypatch, capsys):
    from reticent.journal import Reader

    output = tmp_path / "decisions.csv"
    output.write_text("old")
    honest = Reader.changes

    def broken(self):
        yield next(honest(self))
        raise ValueError("it is damaged")

    monkeypatch.setattr(Reader, "changes", broken)
    assert main(["journal", "export", str(made[0]), "--output", str(output)]) == 2
    assert "it is damaged" in capsys.readouterr().err
    assert output.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["decisions.csv"]


def test_reading_goes_on_beside_a_writer(made, tmp_path, capsys):
    path = tmp_path / "journal"
    with rt.Journal(path) as journal:
        learner = journal.start(rt.plan_lazy(rt.Ball(2), 100, 1.0, max_switches=20), rt.Linear(), seed=1)
        for row in ROWS[:5]:
            learner.observe(row)
            assert main(["journal", "show", str(path), "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["rounds"] == learner.rounds
        assert main(["journal", "verify", str(path)]) == 0


def test_a_journal_of_the_callers_loss(tmp_path, capsys):
    path = tmp_path / "journal"
    loss = rt.Custom(lambda x, c: abs(float(x[0] - c)), lambda x, c: np.sign(x - c), lipschitz=1.0)
    with rt.Journal(path) as journal:
        journal.start(rt.planning.plan_leader(rt.Interval(-1, 1), 9, 1.0), loss).observe_many([0.5, 0.2])
    assert main(["journal", "show", str(path)]) == 0
    assert "no claim" in capsys.readouterr().out
    assert main(["journal", "export", str(path)]) == 0
    capsys.readouterr()
    assert main(["journal", "verify", str(path)]) == 2
    assert "loss must be given" in capsys.readouterr().err


def test_without_a_command_it_shows_its_help(capsys):
    assert main(["journal"]) == 0
    assert "Read a journal" in capsys.readouterr().out


def test_a_journal_with_a_key_is_read_with_a_key_file(tmp_path, capsys):
    plan, path, key = rt.planning.plan_budgeted(rt.Ball(2), 100, 1.0, 5), tmp_path / "run.journal", b"k" * 32
    with rt.Journal(path, key=key) as journal:
        journal.start(plan, rt.Linear(), seed=1).observe_many(np.full((10, 2), 0.1))
    (tmp_path / "key").write_bytes(key)
    for command in ("show", "verify", "export"):
        assert main(["journal", command, str(path)]) == 2
        assert "was started with a key, and none was given" in capsys.readouterr().err
        assert main(["journal", command, str(path), "--key-file", str(tmp_path / "key")]) == 0
        assert "10" in capsys.readouterr().out or command == "export"
