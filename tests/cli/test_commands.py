"""What commands say: plans, audits, streams, comparisons and the demonstration."""

import json
import os
import signal
import subprocess
import sys

import pytest
from patient import patience

import reticent as rt
from reticent.cli import _audit, _compare, main
from reticent.lab import Study
from reticent.lab import _compare as contest_module
from reticent.lab._walk import TooSlow

SMALL = ["compare", "phishing", "--rounds", "150", "--jobs", "1"]


def told(words, capsys):
    """Return what a command prints as JSON."""
    code = main([*words, "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return json.loads(shown.out)


def test_a_plan_is_what_the_library_plans(capsys):
    plan = rt.plan_private(rt.Ball(3), 2000, 1.0, 1.0, 1e-6)
    assert main(["plan", "--domain", "ball:3", "--horizon", "2e3", "--epsilon", "1"]) == 0
    assert capsys.readouterr().out == f"{plan}\n"
    found = told(["plan", "--domain", "ball:3", "--horizon", "2e3", "--epsilon", "1"], capsys)
    assert found["parameters"]["beta"] == plan.beta
    assert found["certificate"]["regret_bound"] == plan.regret_bound
    assert found["words"]["explain"] == plan.explain()


def test_few_switches_in_expectation_or_never_more(capsys):
    words = ["plan", "--domain", "ball:3", "--horizon", "2000", "--max-switches", "100"]
    assert told(words, capsys)["certificate"]["expected_switches"] <= 100
    assert told([*words, "--hard"], capsys)["certificate"]["max_switches"] == 100
    assert told([*words, "--hard", "--system", "ogd"], capsys)["certificate"]["max_switches"] == 100
    assert main([*words, "--hard", "--system", "sherman", "--loss", "linear"]) == 2
    assert "--hard asks for more" in capsys.readouterr().err


def test_an_unknown_horizon_means_epochs(capsys):
    assert main(["plan", "--domain", "ball:2", "--horizon", "unknown", "--epsilon", "1", "--explain"]) == 0
    assert "epochs" in capsys.readouterr().out


def test_all_systems_beside_each_other(capsys):
    words = ["plan", "--domain", "ball:2", "--horizon", "500", "--max-switches", "50", "--all"]
    found = told(words, capsys)
    want = rt.compare_plans(rt.Ball(2), 500, 1.0, rt.Hinge(), max_switches=50)
    assert [offer["system"] for offer in found["offers"]] == [offer.system for offer in want]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(offer.system in shown for offer in want)
    assert "needs linear losses: follow the lazy leader (FLL)" in shown


def test_certificates_are_never_above_what_any_decisions_suffer(capsys):
    words = ["plan", "--domain", "ball:5", "--horizon", "200", "--epsilon", "0.5", "--system", "implicit"]
    found = told(words, capsys)["certificate"]
    assert found["regret_bound_of_its_theorem"] > found["regret_bound"] == 2 * 200
    assert found["vacuous"]
    contest = ["compare", "alternating:rounds=200,dim=5", "--epsilon", "0.5", "--systems", "implicit", "--seeds", "1"]
    row = next(one for one in told(contest, capsys)["systems"] if one["private"])
    assert (row["bound"], row["vacuous"]) == (2.0, True)
    assert main(contest) == 0
    assert "2.0000 (vacuous)" in capsys.readouterr().out


def test_the_cost_of_a_round_and_memory_stand_in_the_table(capsys):
    words = ["plan", "--domain", "ball:2", "--horizon", "500", "--max-switches", "50", "--all"]
    offer = told(words, capsys)["offers"][0]
    assert offer["system"] == "online gradient descent"
    assert (offer["cost"]["operations_a_round"], offer["cost"]["numbers"]) == (20, 20)
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "ops a round   memory" in shown
    assert "20    160 B" in next(line for line in shown.splitlines() if "online gradient descent" in line)


def test_strong_convexity_and_work_are_parts_of_a_goal(capsys):
    words = ["plan", "--domain", "interval:0:1", "--horizon", "1e4", "--loss", "squared", "--max-switches", "50"]
    curved = [*words, "--strong-convexity", "1", "--smoothness", "1", "--system", "best"]
    goal = {"max_switches": 50, "strong_convexity": 1.0, "smoothness": 1.0}
    best = rt.best_plan(rt.Interval(0.0, 1.0), 10**4, 1.0, rt.Squared(), **goal)
    found = told(curved, capsys)
    assert found["system"] == best.system == "descent on a grid, strongly convex losses"
    assert found["parameters"]["strong_convexity"] == 1.0
    assert main([*curved, "--max-operations", "5"]) == 2
    assert "max_operations must be at least" in capsys.readouterr().err
    listed = told([*words, "--all", "--max-operations", "7"], capsys)
    assert listed["goal"]["max_operations"] == 7.0
    assert main([*words, "--all", "--max-operations", "7"]) == 0
    assert "(too many)" in capsys.readouterr().out


def test_experts_get_the_best_of_their_systems(capsys):
    found = told(["plan", "--domain", "experts:5", "--horizon", "500", "--max-switches", "50"], capsys)
    assert found["system"] == rt.best_plan(rt.Experts(5), 500, 1.0, rt.Linear(), max_switches=50).system


def test_streams_are_listed_and_described(capsys):
    listed = told(["streams"], capsys)
    assert {"phishing", "drifting"} <= {one["name"] for one in listed}
    assert main(["streams", "phishing"]) == 0
    shown = capsys.readouterr().out
    assert "Logistic()" in shown
    assert "scaling" in shown


@pytest.mark.parametrize("system", ["pcomw", "dp-ftrl", "private shrinking dartboard"])
def test_an_audit_holds_the_certificate_against_runs(system, capsys):
    domain = "experts:3" if "dartboard" in system else "interval:0:1"
    words = ["audit", "--domain", domain, "--horizon", "4", "--epsilon", "1", "--runs", "400", "--jobs", "1"]
    found = told([*words, "--system", system], capsys)
    assert not found["violated"]
    assert 0 <= found["epsilon_lower"] <= found["certificate"] <= 1


def test_a_violation_has_exit_code_1(monkeypatch, capsys):
    honest = rt.privacy.audit

    def broken(plan, loss, *streams, **options):
        weak = rt.Plan(plan.domain, plan.horizon, 1.0, beta=50.0, lam=50.0, p=1.0, phi=1.0)
        return honest(plan, loss, *streams, learner=lambda rng: rt.PCOMW(weak, loss, rng), **options)

    monkeypatch.setattr("reticent.audit.audit", broken)
    words = ["audit", "--domain", "interval:-1:1", "--horizon", "4", "--epsilon", "0.2", "--runs", "600", "--jobs", "1"]
    assert main(words) == _audit.VIOLATED == 1
    assert "VIOLATED" in capsys.readouterr().out


def test_a_comparison_tells_who_wins_and_is_kept(tmp_path, capsys):
    words = [*SMALL, "--epsilon", "1,3", "--systems", "pcomw,dp-ftrl,fll", "--seeds", "2"]
    kept = [
        "--save",
        str(tmp_path / "s.json"),
        "--picture",
        str(tmp_path / "p.png"),
        "--report",
        str(tmp_path / "r.html"),
    ]
    found = told([*words, *kept], capsys)
    assert [(row["label"], row["seeds"]) for row in found["systems"]] == [
        *[("epsilon 1", 2)] * 2,
        *[("epsilon 3", 2)] * 2,
        ("", 1),
    ]
    assert not found["systems"][-1]["private"]
    assert found["refusals"] == [
        {"system": "follow the lazy leader (FLL)", "reason": "is not private (epsilon 1; epsilon 3)"}
    ]
    study = Study.load(tmp_path / "s.json")
    assert len(study.runs) == 9
    assert study.command.startswith("reticent compare phishing --rounds 150")
    assert {path.name for path in tmp_path.iterdir()} == {"s.json", "p.png", "p.svg", "r.html"}
    regrets = {row["system"]: row["regret"]["mean"] for row in found["systems"] if row["label"] == "epsilon 1"}
    verdict = found["verdicts"][0]
    assert ("loses to DP-FTRL" in verdict) == (regrets["DP-FTRL"] < regrets["P-COMW"])


def test_lazy_systems_are_held_against_descent_in_blocks(capsys):
    found = told([*SMALL, "--max-switches", "10,40", "--systems", "pcomw", "--seeds", "1"], capsys)
    systems = [(row["system"], row["label"]) for row in found["systems"]]
    assert sorted(systems) == sorted(
        [
            ("P-COMW, lazy", "10 switches"),
            ("online gradient descent", "10 switches"),
            ("P-COMW, lazy", "40 switches"),
            ("online gradient descent", "40 switches"),
            ("online gradient descent", ""),
        ]
    )


def test_a_table_marks_what_is_not_private(capsys):
    assert main([*SMALL, "--epsilon", "1", "--systems", "pcomw", "--seeds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "online gradient descent (not" in shown
    assert "not private" in shown
    assert "epsilon 1: nothing to hold P-COMW against." in shown


def test_a_slow_system_is_listed_with_the_reason(monkeypatch, capsys):
    real = contest_module.walk

    def slow(plan, stream, seed, **options):
        if options["system"] == "DP-FTRL":
            raise TooSlow("gave up after 60 s and 10 of 150 rounds")
        return real(plan, stream, seed, **options)

    monkeypatch.setattr(contest_module, "walk", slow)
    found = told([*SMALL, "--epsilon", "1", "--systems", "pcomw,dp-ftrl", "--seeds", "3"], capsys)
    assert found["refusals"] == [{"system": "DP-FTRL", "reason": "gave up after 60 s and 10 of 150 rounds (epsilon 1)"}]


def test_patience_is_short_of_a_block(capsys):
    words = ["compare", "iid:rounds=5000", "--epsilon", "1", "--systems", "pcomw", "--jobs", "1"]
    found = told([*words, "--patience", "1e-6", "--seeds", "2"], capsys)
    assert all("of 5,000 rounds" in one["reason"] for one in found["refusals"])
    assert found["systems"] == []


def test_ctrl_c_shows_what_is_finished(monkeypatch, tmp_path, capsys):
    real, seen = contest_module.walk, []

    def interrupted(*args, **options):
        seen.append(options["system"])
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(contest_module, "walk", interrupted)
    save = tmp_path / "s.json"
    assert main([*SMALL, "--epsilon", "1", "--systems", "pcomw,dp-ftrl", "--save", str(save)]) == _compare.INTERRUPTED
    assert len(Study.load(save).runs) == 2
    shown = capsys.readouterr()
    assert "P-COMW" in shown.out
    assert "interrupted" in shown.err


ANNOUNCED = """
import signal, sys
signal.alarm(120)  # so that no test waits for it longer
from reticent.cli import main
from reticent.lab._compare import Contest

def announced(*args, take=Contest._take):
    take(*args)
    print("one is done", file=sys.stderr, flush=True)

Contest._take = announced
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_ends_a_parallel_comparison_with_exit_code_130(tmp_path):
    words = [
        "compare",
        "logistic:rounds=20000",
        "--epsilon",
        "1",
        "--systems",
        "pcomw",
        "--seeds",
        "2000",
        "--jobs",
        "2",
    ]
    running = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCED, *words, "--save", str(tmp_path / "s.json")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with patience(running.pid):
        assert running.stderr.readline() == "one is done\n"
    os.killpg(running.pid, signal.SIGINT)
    try:
        _, err = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate(timeout=60)
        raise
    assert running.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert Study.load(tmp_path / "s.json").runs


def test_a_file_is_compared_like_a_stream(tmp_path, capsys):
    path = tmp_path / "people.csv"
    path.write_text("age,size,sick\n" + "30,9,0\n70,3,1\nforty,5,1\n" * 40)
    words = [
        "compare",
        str(path),
        "--features",
        "age,size",
        "--bounds",
        "age=0:100,size=0:10",
        "--target",
        "sick",
        "--loss",
        "logistic",
    ]
    words += ["--epsilon", "1", "--systems", "pcomw", "--seeds", "2", "--jobs", "1"]
    assert main(words) == 2
    assert "'forty'" in capsys.readouterr().err
    found = told([*words, "--bad-rows", "skip"], capsys)
    assert found["stream"]["rounds"] == 80
    assert [row["system"] for row in found["systems"]] == ["P-COMW", "online gradient descent"]
    assert told([*words, "--bad-rows", "skip", "--rounds", "50"], capsys)["stream"]["rounds"] == 50


def test_what_is_not_certified_is_said_so_everywhere(capsys):
    words = ["plan", "--domain", "ball:2", "--horizon", "500", "--epsilon", "1", "--all"]
    offers = {offer["system"]: offer for offer in told(words, capsys)["offers"]}
    gate = offers.pop("filtered gate")
    assert (gate["certified"], gate["regret_bound"]) == (False, None)
    assert all(offer["certified"] and offer["regret_bound"] > 0 for offer in offers.values())
    assert main(words) == 0
    assert "(not certified)" in " ".join(capsys.readouterr().out.split())


def test_for_whom_privacy_and_regret_hold_are_two_things(capsys):
    words = ["plan", "--domain", "ball:2", "--horizon", "500", "--epsilon", "1"]
    for more, regret in (([], False), (["--system", "dp-ftrl"], True)):
        found = told([*words, *more], capsys)["certificate"]
        assert "adversary" not in found
        assert (found["adaptive_privacy"], found["adaptive_regret"]) == (True, regret)


def test_options_that_would_do_nothing_are_refused(capsys):
    words = ["plan", "--domain", "interval:0:1", "--horizon", "500", "--max-switches", "50", "--loss", "squared"]
    for option, value in (("--max-operations", "1e6"), ("--strong-convexity", "1")):
        assert main([*words, option, value]) == 2
        assert f"{option} " in capsys.readouterr().err
        assert told([*words, option, value, "--system", "best"], capsys)["system"]
    assert told([*words, "--max-operations", "inf", "--all"], capsys)["goal"]["max_operations"] is None


def test_a_large_delta_is_explained(capsys):
    words = ["plan", "--domain", "ball:1", "--horizon", "100", "--epsilon", "1", "--delta", "0.2"]
    assert told(words, capsys)["certificate"]["delta"] == 0.2
    assert main([*words, "--explain"]) == 0
