"""What people see of plans, learners, traces, accounts and comparisons: in notebooks and as pictures."""

import re
import sys
from typing import Any

import numpy as np
import pytest

import reticent as rt
from reticent import planning
from reticent._core._errors import MissingExtra
from reticent._core._names import colour_of
from reticent.privacy._posterior import certificate_of

BALL = rt.Ball(2)


def _trace(rounds: int = 400) -> tuple[Any, rt.learners.Trace]:
    learner = rt.private_learner(rt.Pinball(0.9), rt.Interval(0.0, 10.0), epsilon=1.0, delta=1e-6, seed=1)
    return learner, learner.observe_many(np.ones(rounds), np.random.default_rng(1).gamma(2.0, 1.0, rounds))


def _text(shown: str) -> str:
    return re.sub(r"<[^>]*>", " ", shown)


PLANS = {
    "DP-FTRL": lambda: planning.plan_ftrl(BALL, 1000, 1.0, 1.0, 1e-6),
    "noisy descent": lambda: planning.plan_noisy_descent(BALL, None, 1.0, 1.0, 1e-6),
    "filtered gate": lambda: planning.plan_filtered(BALL, None, 1.0, 1.0, 1e-6),
    "P-COMW": lambda: rt.plan_private(BALL, 1000, 1.0, 1.0, 1e-6),
    "online gradient descent": lambda: planning.plan_descent(BALL, 100, 1.0),
    "budgeted follower": lambda: planning.plan_budgeted(BALL, 1000, 1.0, 20),
}


@pytest.mark.parametrize("system", PLANS)
def test_a_plan_in_a_notebook_says_what_print_says(system: str) -> None:
    plan = PLANS[system]()
    shown = _text(plan._repr_html_())
    for label, text in plan.rows():
        assert label in shown or (label, text) == ("plan", plan.system)
    assert plan.system == system
    assert system in shown


@pytest.mark.parametrize("system", PLANS)
def test_a_plan_as_a_picture_has_a_panel_for_each_question(system: str) -> None:
    pytest.importorskip("matplotlib")
    plan = PLANS[system]()
    titles = [axis.get_title(loc="left") for axis in plan.plot().axes]
    assert ("What do all decisions together reveal?" in titles) == plan.private
    assert ("How often does the decision change?" in titles) == (plan.horizon is not None)
    bound = plan.regret_bound is not None or hasattr(plan, "regret_at")
    assert ("What do decisions cost at most?" in titles) == bound


def test_the_curve_of_a_plan_is_that_of_its_account() -> None:
    pytest.importorskip("matplotlib")
    plan = PLANS["DP-FTRL"]()
    curve, promised = plan.plot().axes[0].get_lines()
    assert curve.get_color() == colour_of("DP-FTRL")
    levels, deltas = curve.get_data()
    assert deltas[7] == pytest.approx(plan.account().delta(float(levels[7])))
    assert (promised.get_xdata()[0], promised.get_ydata()[0]) == (1.0, 1e-6)


def test_certified_regret_stands_beside_staying_at_the_centre() -> None:
    pytest.importorskip("matplotlib")
    plan = PLANS["online gradient descent"]()
    axis = plan.plot().axes[-1]
    names = [label.get_text() for label in axis.get_yticklabels()]
    texts = {name: text.get_text() for name, text in zip(names, axis.texts, strict=True)}
    assert texts["staying at the centre"] == "1"
    assert float(texts["certified"]) == pytest.approx(plan.regret_bound / 100, rel=5e-3)


def test_a_learner_shows_its_decision_and_its_promise() -> None:
    learner, _ = _trace()
    shown = _text(learner._repr_html_())
    assert f"{learner.decision[0]:.6g}" in shown
    assert "epsilon 1" in shown
    assert "400" in shown


def test_a_trace_says_that_losses_are_not_private() -> None:
    _, trace = _trace()
    shown = trace._repr_html_()
    assert f"{trace.total:.6g}" in shown
    for label in re.findall(r"<th[^>]*>([^<]*loss[^<]*)</th>", shown):
        assert "(not private)" in label
    assert "not private" in shown


def test_a_trace_as_a_picture_stands_beside_its_baselines() -> None:
    pytest.importorskip("matplotlib")
    learner, trace = _trace()
    figure = trace.plot(system=learner.plan.system)
    top, bottom = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()][-2:] == ["best fixed decision", "never moving"]
    ours, best, still = (line.get_ydata()[-1] for line in bottom.get_lines())
    assert ours == pytest.approx(trace.total / 400)
    assert best == pytest.approx(trace.regret().comparator.value / 400)
    assert still == pytest.approx(trace.losses_of(trace.points[0]).mean())
    assert "not private" in bottom.get_ylabel()
    assert top.patches[0].get_edgecolor()[:3] == pytest.approx(
        [int(colour_of("filtered gate")[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    )
    assert len(trace.plot(baselines=False).axes[1].get_lines()) == 1
    with pytest.raises(ValueError, match="coordinate must be one of 0 to 0"):
        trace.plot(1)


def test_losses_of_a_fixed_decision_are_those_of_a_trace_that_stays() -> None:
    _, trace = _trace()
    assert (trace.losses - trace.losses_of(trace.regret().comparator.point)).sum() == pytest.approx(
        trace.regret().value
    )
    with pytest.raises(ValueError, match="point must be a vector of length 1"):
        trace.losses_of([1.0, 2.0])


def test_accounts_trackers_and_comparisons_in_notebooks() -> None:
    plan = PLANS["DP-FTRL"]()
    account = plan.account()
    assert f"{account.epsilon(1e-8):.4g}" in _text(account._repr_html_())
    assert account.heading() in str(account)
    assert "epsilon at delta 1e-05" in certificate_of((1.0, 1e-6))._repr_html_()  # one that says no more
    pcomw = PLANS["P-COMW"]().account()
    assert f"at most {pcomw.draws} draws" in pcomw._repr_html_()
    tracker = rt.PrivateQuantile(0.5, 0.0, 1.0, 1.0, seed=1)
    tracker.update_many(np.linspace(0.0, 1.0, 2000))
    assert f"{tracker.value:.6g}" in tracker._repr_html_()
    assert "0.5-quantile of windows" in tracker.plan._repr_html_()
    found = rt.compare_plans(BALL, 1000, 1.0, rt.Linear(), max_switches=100)
    shown = _text(found._repr_html_())
    for offer in (*found.offers, *found.refusals):
        assert offer.system in shown


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"needs the package matplotlib; pip install 'reticent\[lab\]'"):
        PLANS["DP-FTRL"]().plot()
