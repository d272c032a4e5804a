"""`reticent ledger`, and `reticent run` that asks it first."""

import csv
import json
import shlex

import pytest

import reticent as rt
from reticent.cli import main
from reticent.cli._ledger import EXAMPLES
from reticent.privacy import Cost


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_run_in_order(here, capsys):
    for line in EXAMPLES.split("\n\n")[1:]:
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert "74%" in shown
    assert "privacy.db is whole: 2 records" in shown
    assert len(list(csv.DictReader((here / "ledger.csv").read_text().splitlines()))) == 2
    assert main(["ledger", "verify", "ledger.csv"]) == 0
    assert main(["ledger", "show", "privacy.db", "patients", "--picture", "left", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.partition("\n")[2])
    assert facts["entries"][0]["note"] == "yearly means"
    assert (here / "left.png").exists()
    for form in ("opendp", "dp-accounting"):
        assert main(["ledger", "export", "privacy.db", "--as", form, "--population", "patients"]) == 0
    assert main(["ledger", "end", "privacy.db", "2"]) == 0


def test_mistakes_are_one_sentence(here, capsys):
    main(["ledger", "init", "l.db", "people", "--epsilon", "1"])
    wrong = {
        "ledger spend l.db people --mu 5": "refuses",
        "ledger spend l.db people": "costs something",
        "ledger spend l.db people --event nonsense": "must be JSON",
        "ledger spend other.db people --mu 0.1": "no ledger at",
        "ledger export l.db --as opendp": "name it with --population",
        "ledger verify l.db --head 00": "is gone",
        "run phishing --epsilon 1 --ledger l.db": "go together",
        "run phishing --epsilon 1 --ledger l.db --population people --seed 1": "leave --seed out",
        "run phishing --ledger l.db --population people --horizon 1250": "makes no privacy claim",
    }
    for words, told in wrong.items():
        capsys.readouterr()
        assert main(words.split()) == 2
        assert told in capsys.readouterr().err


def test_a_run_is_entered_before_its_first_round_and_refused_when_nothing_is_left(here, capsys):
    ledger = rt.Ledger("l.db")
    ledger.add("people", 1.0, 1e-6)
    ledger.spend("people", Cost(mu=0.05))
    (here / "times.csv").write_text("seconds\n" + "0.5\n3\n" * 200)
    words = "run times.csv --target seconds --bounds seconds=0:10 --loss pinball:0.9 --ledger l.db --population people"
    assert main([*words.split(), "--epsilon", "0.3", "--out", "one.csv"]) == 0
    entry = ledger.entries("people")[-1]
    assert entry.ended is not None
    assert entry.note == "reticent run times.csv"
    capsys.readouterr()
    assert main([*words.split(), "--epsilon", "1", "--out", "two.csv"]) == 2
    assert "refuses" in capsys.readouterr().err
    assert not (here / "two.csv").exists()


def test_every_cost_of_an_entry_is_shown(here, capsys):
    main(["ledger", "init", "l.db", "people", "--epsilon", "3"])
    for cost in (
        ["--mu", "0.1"],
        ["--rho", "0.001", "--note", "[red]x[/red]"],
        ["--epsilon", "0.1", "--delta", "1e-9"],
    ):
        assert main(["ledger", "spend", "l.db", "people", *cost]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", "l.db", "people"]) == 0
    out = capsys.readouterr().out
    for word in ("mu", "rho", "epsilon", "delta", "share", "0.001", "[red]x[/red]"):
        assert word in out
