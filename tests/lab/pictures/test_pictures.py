"""Pictures: drawn, saved the same way twice, readable without colours, and refused when there is nothing to draw."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from example import small_study
from matplotlib.figure import Figure

from reticent._core._look import MARKERS, NARROW, blank, look, narrow, numbered, styles
from reticent.lab import Study, pictures
from reticent.lab.pictures._groups import groups, settings

ROWS = [
    {
        "table": table,
        "regime": "large epsilon",
        "system": system,
        "variable": variable,
        "paper": 0.5,
        "certificate": 0.52,
    }
    | {"certificate_low": 0.5, "certificate_high": 0.55, "measured": None if system == "DP-FTRL" else 0.4}
    for table in (1, 2)
    for system in ("P-COMW", "DP-FTRL")
    for variable in ("T", "d")
]
CELLS = [
    {"horizon": horizon, "dim": dim, "epsilon": epsilon, "system": None if dim == 50 else "P-COMW", "bound": 0.1}
    for horizon in (10**4, 10**5)
    for dim in (1, 2, 10, 50)
    for epsilon in (0.3, 1.0)
]
DAYS = np.arange(1, 301)
SIDE = {"certificate": 0.1, "vacuous": False, "measured": 0.05}
POINT = {"scale": "runnable", "ours": SIDE, "theirs": SIDE | {"certificate": 0.2}}
LEVELS = [
    {
        "table": 1,
        "regime": f"1.{k}",
        "text": "all $ epsilon",
        "rival": name,
        "points": [POINT, POINT | {"scale": "large"}],
    }
    for k in (1, 2)
    for name in ("DP-FTRL", "P-COMW")
]
DRAWINGS: dict[str, Callable[[], Figure]] = {
    "regret": lambda: pictures.regret_over_time(small_study()),
    "regret by epsilon": lambda: pictures.regret_over_time(small_study((0.5, 1.0, 3.0), seeds=1)),
    "mean loss": lambda: pictures.regret_over_time(replace(small_study(), best=None)),
    "negative regret": lambda: pictures.regret_over_time(_below(small_study())),
    "path": lambda: pictures.decision_path(small_study().runs[0], 1, best=small_study().best),
    "long path": lambda: pictures.decision_path(small_study().runs[-1]),
    "short path": lambda: pictures.decision_path(_cut(small_study()).runs[0]),
    "spent": lambda: pictures.privacy_spent(small_study((0.5, 1.0))),
    "epsilon": lambda: pictures.against_epsilon(small_study((0.5, 1.0))),
    "switches": lambda: pictures.against_switches(small_study()),
    "landscape": lambda: pictures.landscape(CELLS),
    "exponents": lambda: pictures.exponents(ROWS),
    "winners": lambda: pictures.winners(LEVELS),
    "wealth": lambda: pictures.wealth(
        {"a $ b": (DAYS, np.exp(DAYS / 99)), "c $ d": (DAYS, DAYS)}, {"a $ b": [5, 9], "c $ d": 7}
    ),
}


def _below(study: Study) -> Study:
    assert study.best is not None
    return replace(study, best=replace(study.best, curve=[value + 200 for value in study.best.curve]))


def _cut(study: Study) -> Study:
    run = study.runs[0]
    return replace(study, runs=[replace(run, starts=run.starts[:9], points=run.points[:9], switches=8)])


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_picture_is_saved_as_png_and_as_vectors_with_text(name: str, tmp_path: Path) -> None:
    figure = DRAWINGS[name]()
    png, svg = pictures.save(figure, tmp_path / "deep" / "picture.v2")
    assert (png.name, svg.name) == ("picture.v2.png", "picture.v2.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    tree = ElementTree.parse(svg)
    assert len(tree.findall(".//{http://www.w3.org/2000/svg}text")) > 4
    assert "mathdefault" not in svg.read_text()
    for one in figure.legends:
        box = one.get_window_extent()
        assert (box.x0, box.x1) == (max(box.x0, figure.bbox.x0), min(box.x1, figure.bbox.x1)), "the legend is cut off"


@pytest.mark.parametrize("name", ["regret by epsilon", "exponents"])
def test_equal_figures_give_equal_files(name: str, tmp_path: Path) -> None:
    first = pictures.save(DRAWINGS[name](), tmp_path / "one")
    again = pictures.save(DRAWINGS[name](), tmp_path / "two")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_a_users_settings_do_not_change_a_picture(tmp_path: Path) -> None:
    import matplotlib

    plain = pictures.save(DRAWINGS["regret"](), tmp_path / "plain")[1].read_text()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert pictures.save(DRAWINGS["regret"](), tmp_path / "odd")[1].read_text() == plain


def test_suffixes_are_not_doubled(tmp_path: Path) -> None:
    assert {path.name for path in pictures.save(DRAWINGS["wealth"](), tmp_path / "a.png")} == {"a.png", "a.svg"}


def test_systems_differ_in_marker_and_dash_as_well_as_in_colour() -> None:
    names = ["P-COMW", "DP-FTRL", "online gradient descent", *(f"system {k}" for k in range(10))]
    found = styles(names)
    assert found["P-COMW"] == styles(["x", "P-COMW"])["P-COMW"]
    assert len({(style.marker, style.dash) for style in found.values()}) == len(names)
    assert len({found[name].colour for name in names[:7]}) == 7
    assert len({numbered(k) for k in range(7 * len(MARKERS))}) == 7 * len(MARKERS)


def test_runs_are_grouped_by_plan_and_named_apart() -> None:
    study = small_study((0.5, 1.0), seeds=2)
    found = groups(study)
    assert [group.label for group in found] == [
        *("P-COMW, epsilon 0.5", "P-COMW, epsilon 1", "DP-FTRL, epsilon 0.5", "DP-FTRL, epsilon 1"),
        "online gradient descent",
    ]
    assert all(len(group.runs) == 2 for group in found)
    lazy = [replace(run, plan=run.plan | {"max_switches": 10 * k}) for k, run in enumerate(study.runs[:2], 1)]
    assert [group.label for group in groups(replace(study, runs=lazy))] == ["P-COMW, 10 changes", "P-COMW, 20 changes"]


def test_a_plan_that_answers_several_goals_is_counted_once() -> None:
    study = small_study(seeds=3)
    assert [len(group.runs) for group in groups(replace(study, runs=study.runs * 2))] == [3, 3, 3]
    secret = [replace(run, seed=None) for run in study.runs[:2]]
    assert [len(group.runs) for group in groups(replace(study, runs=secret))] == [2]


def test_settings_hold_what_promises_the_same() -> None:
    study = small_study(seeds=1)
    names = {"P-COMW": (30, 100), "DP-FTRL": (29,), "online gradient descent": (5000,)}
    kinds = {run.system: run for run in study.runs}
    open_plan = {"epsilon": None, "delta": None, "max_switches": None}
    runs = [
        replace(kinds[name], plan=kinds[name].plan | open_plan | {"expected_switches": number})
        for name, numbers in names.items()
        for number in numbers
    ]
    lazy = replace(study, runs=runs, goal={"epsilon": [], "max_switches": [100, 30]})
    found = settings(lazy, groups(lazy))
    assert [one.title for one in found] == ["30 changes", "100 changes"]
    assert [[group.allowed for group in one.groups] for one in found] == [[30, 29], [100, 29]]
    assert [[group.system for group in one.free] for one in found] == [["online gradient descent"]] * 2
    pictures.regret_over_time(lazy)
    one_goal = settings(replace(lazy, goal={"max_switches": 100}), groups(lazy))
    assert [[group.allowed for group in one.groups] for one in one_goal] == [[30, 100, 29]]


def test_no_change_at_all_has_a_place_on_the_axis() -> None:
    study = small_study(seeds=1)
    still = replace(study, runs=[replace(study.runs[0], switches=0), *study.runs[1:]])
    assert pictures.against_switches(still).axes[0].get_xscale() == "symlog"


def test_certificates_far_above_leave_what_was_measured_apart() -> None:
    study = small_study()
    low = {"P-COMW": -40.0, "DP-FTRL": 35.0, "online gradient descent": -10.0}
    far = [replace(run, regret=low[run.system], plan=run.plan | {"regret_bound": 2e4}) for run in study.runs]
    for draw in (pictures.against_switches, pictures.against_epsilon):
        axis = draw(replace(study, runs=far)).axes[0]
        assert axis.get_yscale() == "symlog"
        place = {
            value: axis.transAxes.inverted().transform(axis.transData.transform((100, value)))[1]
            for value in low.values()
        }
        assert max(place.values()) - min(place.values()) > 0.3  # a linear axis gives them 0.004 of its height
        assert 0.0 in axis.get_yticks()
    near = [replace(run, regret=low[run.system], plan=run.plan | {"vacuous": True}) for run in study.runs]
    assert pictures.against_switches(replace(study, runs=near)).axes[0].get_yscale() == "linear"


def test_a_picture_for_a_phone_is_narrow_with_panels_below_each_other() -> None:
    study = small_study((0.5, 1.0, 3.0), seeds=1)
    wide = pictures.regret_over_time(study)
    with narrow():
        small = pictures.regret_over_time(study)
        assert small.get_figwidth() == NARROW
    places = [axis.get_subplotspec().get_gridspec().ncols for axis in (wide.axes[0], small.axes[0])]
    assert places == [3, 1]
    assert pictures.regret_over_time(study).get_figwidth() == wide.get_figwidth()  # and back again


def test_means_and_deviations_are_those_of_the_runs() -> None:
    study = small_study(seeds=4)
    group = groups(study)[0]
    regrets = [run.regret for run in group.runs]
    assert group.regret is not None
    assert group.regret.mean == pytest.approx(np.mean(regrets))
    assert group.regret.sd == pytest.approx(np.std(regrets, ddof=1))
    at, mean, sd = group.over_time(study.best)
    assert (at[-1], mean[-1]) == (5000, pytest.approx(np.mean(regrets)))
    assert sd[-1] == pytest.approx(np.std(regrets, ddof=1))


def test_a_run_that_ended_early_is_averaged_where_all_are_there() -> None:
    study = small_study(seeds=2)
    run = study.runs[1]
    short = replace(
        run, rounds=1000, at=[t for t in run.at if t <= 1000], losses=run.losses[: sum(t <= 1000 for t in run.at)]
    )
    at, _, _ = groups(replace(study, runs=[study.runs[0], short]))[0].over_time(study.best)
    assert at[-1] <= 1000


def test_a_choice_among_experts_is_drawn_as_the_expert_chosen() -> None:
    run = small_study().runs[0]
    chosen = replace(run, points=[[float(k % 3 == place) for place in range(3)] for k in range(len(run.points))])
    axis = pictures.decision_path(chosen).axes[0]
    assert axis.get_ylabel() == "expert chosen"
    assert set(axis.patches[0].get_data().values) == {0, 1, 2}
    assert pictures.decision_path(chosen, 0).axes[0].get_ylabel() == "decision, coordinate 0"


def test_a_certificate_without_content_is_not_drawn() -> None:
    study = small_study()
    empty = replace(study, runs=[replace(run, plan=run.plan | {"vacuous": True}) for run in study.runs])
    assert [group.bound for group in groups(empty)] == [None] * 3
    texts = [text.get_text() for text in pictures.regret_over_time(empty).legends[0].get_texts()]
    assert "certified at most" not in texts


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: pictures.regret_over_time(replace(small_study(), runs=[])), "has no runs"),
        (lambda: pictures.decision_path(small_study().runs[0], 2), "coordinate must be one of 0 to 1, .* got 2"),
        (lambda: pictures.privacy_spent(replace(small_study(), runs=small_study().runs[-1:])), "spent=True"),
        (lambda: pictures.against_epsilon(replace(small_study(), runs=small_study().runs[-1:])), "no private run"),
        (lambda: pictures.against_switches(_without_regret(small_study())), "does not hold regret"),
        (lambda: pictures.landscape([]), "one cell at least"),
        (lambda: pictures.exponents([]), "one row at least"),
        (lambda: pictures.winners([]), "one level at least"),
        (lambda: pictures.wealth({}), "one curve at least"),
        (lambda: pictures.wealth({"broke": ([1, 2], [1.0, 0.0])}), "'broke'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(draw: Callable[[], Figure], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        draw()
    assert re.search(r"\.\s", str(caught.value)) is None


def _without_regret(study: Study) -> Study:
    return replace(study, runs=[replace(run, regret=None) for run in study.runs])


def test_pictures_load_matplotlib_only_when_they_draw() -> None:
    import subprocess
    import sys

    code = "import sys, reticent.lab.pictures, reticent.lab.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_names_in_another_writing_are_drawn_without_a_word(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with look():
            figure, axes = blank()
            axes[0, 0].set_title("年齢")
        _, svg = pictures.save(figure, tmp_path / "age")
    assert "年齢" in svg.read_text(encoding="utf-8")
