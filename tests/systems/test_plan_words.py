"""Every private plan says to whom it promises what, for how long, what can be guessed, and what is not covered."""

import math

import pytest

import reticent as rt
from reticent.cli import main
from reticent.privacy import best_guess, group, posterior
from reticent.privacy._meaning import Meaning, beliefs_in_words, groups_in_words, guessed, in_percent, meaning

PLANS = {
    "filtered": lambda: rt.private_learner(rt.Logistic(), rt.Ball(3), epsilon=1.0, delta=1e-6).plan,
    "noisy descent": lambda: rt.planning.plan_descent(rt.Ball(2), None, 1.0, epsilon=1.0, delta=1e-6),
    "DP-FTRL": lambda: rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6),
    "P-COMW": lambda: rt.plan_private(rt.Ball(2), 1000, 1.0, 1.0, 1e-6),
    "P-COMW without an end": lambda: rt.plan_private(rt.Ball(2), None, 1.0, 1.0, 1e-6),
    "zero-out": lambda: rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6, neighbors="zero-out"),
    "the paper's": lambda: rt.theorem_private(rt.Ball(2), 10_000, 1.0, 1.0, 1e-6),
}


@pytest.mark.parametrize("name", PLANS)
def test_all_questions_are_answered(name):
    plan = PLANS[name]()
    text = " ".join(plan.explain().split())
    for head in ("Who is protected, and for how long.", "Several rounds of one person.", "What is not covered."):
        assert head in text
    assert ("any number of rounds" if plan.horizon is None else f"all {plan.horizon:,} rounds together") in text
    found = meaning(plan, plan.delta)
    for words in (beliefs_in_words(found), groups_in_words(found, "rounds")):
        assert words in text
    assert all(len(line) <= 100 for line in plan.explain().splitlines())
    assert guessed(plan) in " ".join(str(plan).split())


def test_what_is_said_is_what_the_account_says():
    plan = PLANS["filtered"]()
    found = meaning(plan, 1e-6)
    assert found.right == best_guess(plan)
    assert [after for _, after in found.beliefs] == [posterior(plan, prior, 1e-3) for prior in (0.01, 0.1, 0.5)]
    assert [epsilon for _, epsilon, _ in found.groups] == [group(plan, k).epsilon(1e-6) for k in (2, 5, 10)]
    # A claim that no accountant has checked is taken as it stands, curve or not.
    paper = PLANS["the paper's"]()
    assert meaning(paper, 1e-6) == meaning((1.0, 1e-6), 1e-6)
    assert paper.account().epsilon(1e-6) < 1.0


def test_words_never_say_less_than_the_numbers():
    assert [in_percent(x) for x in (0.23201, 0.4999, 0.5001, 0.9989, 0.9999, 1.0)] == [
        *("23.3", "50", "50.1", "99.9", "99.999...", "100"),
    ]
    hopeless = Meaning(1.0, 1e-3, ((0.01, 1.0),), ((2, 9.0, 0.5), (5, math.inf, 1.0)))
    assert groups_in_words(hopeless, "rows") == "epsilon 9 at delta 0.5 for 2 rows, nothing for 5"
    assert beliefs_in_words(hopeless) == "but for one case in 1,000: from 1 percent to 100 at most"


def test_plans_without_privacy_have_no_attacker():
    plan = rt.planning.plan_descent(rt.Ball(2), 1000, 1.0)
    assert "attacker" not in str(plan)
    assert "Who is protected" not in plan.explain()


def test_windows_say_it_too():
    plan = rt.PrivateQuantile(0.9, 0.0, 1.0, 0.5).plan
    assert "always: from 1 percent to 1.7 at most, from 10 to 15.5, from 50 to 62.3" in plan.explain()
    assert "epsilon 1 for 2 values, 2.5 for 5, 5 for 10 (delta 0)" in plan.explain()
    assert "at most 0.622" in " ".join(str(plan).split())


def test_the_command_line_has_the_short_version(capsys):
    assert main(["plan", "--domain", "ball:2", "--horizon", "1000", "--epsilon", "1", "--system", "DP-FTRL"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "attacker a guess between two equally likely versions of one row is right with a chance of at most 0.5" in out
    )


def test_plans_for_persons_speak_of_a_person_and_not_of_a_round():
    for plan in (
        rt.private_learner(rt.Logistic(), rt.Ball(3), epsilon=1.0, delta=1e-6, max_rows=3).plan,
        rt.private_learner(rt.Logistic(), rt.Ball(3), epsilon=1.0, delta=1e-6, max_rows=3, window=9, clock=5).plan,
        rt.planning.for_persons(rt.planning.plan_ftrl, max_rows=3)(rt.Ball(2), 1000, 1.0, 1.0, 1e-6),
        rt.planning.for_persons(rt.plan_private, max_rows=3)(rt.Ball(2), 1000, 1.0, 1.0, 1e-6, adversary="oblivious"),
    ):
        text, shown = " ".join(plan.explain().split()), " ".join(str(plan).split())
        assert "what the person does" in text
        assert "round that changes" not in text
        assert "person of one round" not in text
        assert guessed(plan, "person") in shown
        assert "one row is right" not in shown
    assert "versions of one person" in str(rt.PrivateMean(0.0, 1.0, epsilon=1.0, max_rows=2).plan)
    assert "versions of one row" in guessed(PLANS["filtered"]())
