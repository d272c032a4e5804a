"""What a report says, as text: complete, escaped, and honest about what is not private."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from example import small_study

from reticent._core._html import Html
from reticent.lab import Study
from reticent.lab.pictures._groups import Setting, groups, settings
from reticent.lab.report import _page, write_report
from reticent.lab.report._page import losing, page
from reticent.lab.report._words import defeats, plain

NASTY = "</script><script>alert('$css')</script><img src=x onerror=alert(1)> & \"$title\" 'x' <b>"
EMPTY = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


STUDY = small_study((0.5, 1.0), seeds=2)


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute of {tag} is there twice"
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def text() -> str:
    return page(STUDY)


@pytest.fixture(scope="module")
def reader(text: str) -> Reader:
    return Reader(text)


def test_it_is_well_formed_and_its_ids_are_its_own(reader: Reader) -> None:
    ids = Counter(value for _, name, value in reader.attributes if name == "id")
    assert max(ids.values()) == 1
    pointed = [
        value for _, name, value in reader.attributes if name.startswith("aria-") and name.endswith("by") and value
    ]
    assert {one for value in pointed for one in value.split()} <= set(ids)
    inner = {value[1:] for _, name, value in reader.attributes if name.endswith("href") and value and value[0] == "#"}
    assert inner <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", " ".join(value or "" for _, _, value in reader.attributes))) <= set(ids)


def test_it_points_nowhere_outside(reader: Reader) -> None:
    for tag, name, value in reader.attributes:
        if name in ("src", "href", "xlink:href", "action", "poster", "srcset"):
            assert value is not None, tag
            assert value.startswith(("#", "data:,")), (tag, name, value)
    assert reader.elements["iframe"] + reader.elements["object"] + reader.elements["img"] == 0


def test_everything_that_belongs_in_it_is_there(reader: Reader) -> None:
    for words in (
        *("This report is not private.", "do not publish this report", "fixed seeds"),
        *(
            "What was asked",
            "0.5, 1",
            "What was promised",
            "This is P-COMW, made up.",
            "What happened",
            "Curves of the usual shape",
        ),
        *("Where ours loses", "What did not run", "is for exp-concave losses", "How private this is", "neighbours"),
        *(
            "What somebody who knows all else may believe",
            "50% before",
            "73.2%",
            "10 rounds",
            "but for one case in 1,000",
        ),
        *("may be chosen by somebody who watches", "reticent compare made-up --epsilon 1", "numpy", "first number"),
    ):
        assert words in reader.text, words
    assert reader.elements["h1"] == 1
    assert reader.text.count("not private") >= 3


def test_every_svg_has_words_or_is_decoration(text: str) -> None:
    for head in re.findall(r"<svg[^>]*>(?:<title)?", text):
        assert head.endswith("<title") or 'aria-hidden="true"' in head


def test_numbers_are_those_of_the_study(reader: Reader) -> None:
    for group in groups(STUDY):
        assert group.regret is not None
        assert f"{group.regret.mean:.3g} ± " in reader.text
        assert group.bound is not None
        assert f"{group.bound:.3g}" in reader.text


def test_nothing_that_is_written_into_it_becomes_html() -> None:
    study = small_study(seeds=1, title=NASTY)
    runs = [replace(run, system=NASTY, plan=run.plan | {"text": NASTY, "explain": NASTY}) for run in study.runs[:1]]
    stream = {key: NASTY if isinstance(value, str) else value for key, value in study.stream.items()}
    refusals = [{"system": NASTY, "reason": NASTY}]
    nasty = replace(
        study, runs=[*runs, *study.runs[1:]], stream=stream | {"decision": [NASTY, NASTY]}, refusals=refusals
    )
    text = page(replace(nasty, command=NASTY, goal={"asked": NASTY}))
    assert Reader(text).elements["script"] == 2  # the chart's numbers and the page's script
    assert "<img" not in text
    assert "<b>" not in text
    assert f"<h1>{NASTY}</h1>" not in text
    assert NASTY in Reader(text).text


@pytest.mark.parametrize(
    "study",
    [
        replace(small_study(), runs=[], best=None),
        replace(small_study(seeds=1), best=None, kind="run", runs=[replace(small_study().runs[0], regret=None)]),
        replace(small_study(), stream={"name": "bare"}, goal={}, refusals=[], command="", environment={}),
        replace(small_study(), runs=small_study().runs[-1:]),
        replace(
            small_study(),
            runs=[replace(run, plan=run.plan | {"vacuous": True, "spent": None}) for run in small_study().runs],
        ),
    ],
    ids=["nothing ran", "one run without best", "bare", "not private", "no certificate"],
)
def test_a_study_may_lack_almost_anything(study: Study) -> None:
    found = Reader(page(study))
    assert found.elements["h1"] == 1
    assert "nan" not in found.text.split()
    assert "None" not in found.text.split()


def test_a_run_of_one_round_has_a_report() -> None:
    study = small_study(seeds=1)
    assert study.best is not None
    tiny = {"rounds": 1, "at": [1], "losses": [0.7], "switched": [0], "starts": [0], "switches": 0, "regret": 0.2}
    runs = [replace(run, points=run.points[:1], total=0.7, **tiny) for run in study.runs]
    Reader(page(replace(study, runs=runs, best=replace(study.best, at=[1], curve=[0.5], value=0.5))))


def test_it_is_small_for_twenty_runs(tmp_path: Path) -> None:
    study = small_study((0.3, 1.0, 3.0), seeds=3)
    assert len(study.runs) > 20
    assert write_report(study, tmp_path / "new" / "report.html").stat().st_size < 2_000_000
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


def test_equal_studies_give_equal_reports(text: str) -> None:
    assert page(STUDY) == text


def _settings(study: Study) -> list[Setting]:
    return settings(study, groups(study))


def test_defeats_are_found_and_victories_are_not() -> None:
    study = small_study(seeds=3)
    lost = defeats(_settings(study))
    assert [one.rival.system for one in lost if one.rival.epsilon == 1.0] == ["DP-FTRL"]
    better = [replace(run, regret=0.1) if run.system == "P-COMW" else run for run in study.runs]
    assert [one.rival.system for one in defeats(_settings(replace(study, runs=better)))] == ["online gradient descent"]
    assert "was lower 0 times" in losing(_settings(replace(study, runs=better)))


def test_chance_is_judged_by_the_spread_over_seeds() -> None:
    study = small_study(seeds=4)
    near = {"P-COMW": (10.0, 14.0, 9.0, 15.0), "DP-FTRL": (11.0, 13.0, 9.5, 12.0)}
    far = {"P-COMW": (20.0, 21.0, 19.0, 20.5), "DP-FTRL": (11.0, 13.0, 9.5, 12.0)}
    for values, words in ((near, "within two standard errors"), (far, "by more than two standard errors")):
        runs = [replace(run, regret=values[run.system][run.seed or 0]) for run in study.runs if run.system in values]
        assert [one.chance for one in defeats(_settings(replace(study, runs=runs)))] == [words]


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out pictures, which take most of the time, where a test is about the words around them."""
    monkeypatch.setattr(_page, "inline", lambda draw, name, title, words: Html(""))


@pytest.mark.parametrize("ours", [True, False], ids=["ours alone", "none of ours"])
@pytest.mark.usefixtures("undrawn")
def test_sections_that_have_nothing_to_say_are_left_out(ours: bool) -> None:
    study = small_study((0.5, 1.0))
    few = replace(study, runs=[run for run in study.runs if (run.system == "P-COMW") == ours], refusals=[])
    assert losing(_settings(few)) == ""
    found = Reader(page(few))
    for words in ("Where ours loses", "What did not run"):
        assert words not in found.text
    assert "Where ours loses" in Reader(page(study)).text


def test_what_happened_comes_directly_after_in_short(text: str) -> None:
    sections = re.findall(r'<section id="([a-z]+)"', text)
    assert sections[:2] == ["short", "happened"]
    happened = text[text.index('<section id="happened"') : text.index('<section id="decisions"')]
    assert happened.index("<table") < happened.index('class="chart"') < happened.index('class="box picture')


@pytest.mark.usefixtures("undrawn")
def test_a_curve_without_certificates_is_shown_once() -> None:
    study = small_study()
    bare = replace(study, runs=[replace(run, plan=run.plan | {"vacuous": True}) for run in study.runs])
    assert "Regret over time, with certificates" not in Reader(page(bare)).text
    assert "Regret over time, with certificates" in Reader(page(study)).text


@pytest.mark.usefixtures("undrawn")
def test_privacy_and_regret_may_hold_for_different_adversaries() -> None:
    study = small_study()
    plans = {"adversary": "oblivious", "adaptive_privacy": True}
    told = page(replace(study, runs=[replace(run, plan=run.plan | plans) for run in study.runs]))
    assert "may be chosen by somebody who watches" in told
    old = page(replace(study, runs=[replace(run, plan=run.plan | {"adversary": "oblivious"}) for run in study.runs]))
    assert "the losses must not depend on the decisions" in old


def test_values_of_any_kind_are_written_plainly() -> None:
    assert plain(True) == "yes"
    assert plain({"a": [1, 2.5], "b": None}) == "a 1, 2.5"
