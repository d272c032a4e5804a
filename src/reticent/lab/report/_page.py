"""A study as one page: what was asked, promised and done, in words, tables and pictures, and how to do it again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, NamedTuple

from reticent._core._html import NOT_PRIVATE, Html, join, tag
from reticent._core._look import narrow, number
from reticent._core._names import GRID, INK, MUTED
from reticent.lab import pictures
from reticent.lab._environment import in_words
from reticent.lab._study import Best, Study
from reticent.lab.pictures._files import as_svg
from reticent.lab.pictures._groups import Group, Setting, Spread, epsilons, groups, settings
from reticent.lab.pictures._path import chooses
from reticent.lab.report._chart import chart
from reticent.lab.report._html import facts, listed, scrolled, section
from reticent.lab.report._words import (
    ADVERSARY,
    FAR,
    NEIGHBOURS,
    Defeat,
    defeats,
    in_short,
    is_ours,
    named,
    paid,
    paragraphs,
    plain,
    plus_minus,
    promise,
)
from reticent.privacy import best_guess
from reticent.privacy._meaning import PRIORS, SIZES, in_percent, meaning

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_COLOURS = {INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--line)"}
_LEAST, _MOST = 1.05, 1.9  # pixels of width per point of the picture: narrower boxes scroll, wider ones are not filled


def inline(draw: Callable[[], Figure], name: str, title: str, words: str) -> Html:
    """Return a figure as inline SVG with a caption; `name` makes its ids its own, `words` say what it shows.

    It is drawn twice, for a page and for a phone, and the page shows one of them.
    """
    large = _svg(draw(), name, title, words)
    with narrow():
        small = _svg(draw(), f"{name}-small", title, words)
    boxes = [scrolled(large, title, "box picture large"), scrolled(small, title, "box picture small")]
    return tag("figure", *boxes, tag("figcaption", words))


def _svg(figure: Figure, name: str, title: str, words: str) -> Html:
    text = as_svg(figure)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    assert size is not None
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r" font-family: [^;\"]*;", "", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{name}-", body)
    for colour, themed in _COLOURS.items():
        body = body.replace(colour, themed)
    head = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {size[1]} {size[2]}" role="img" '
        f'aria-labelledby="{name}-title {name}-words" style="{_widths(float(size[1]))}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-words">{escape(words)}</desc>'
    )
    return Html(head + body + "</svg>")


def _widths(points: float) -> str:
    return f"min-width: {_LEAST * points:.0f}px; max-width: {_MOST * points:.0f}px"


# The pictures of a report, each with words that say what it shows.

_PATHS = 6  # paths of decisions that are shown, of the first run of as many plans


def still(study: Study, found: Sequence[Group]) -> Html:
    """Return every picture that the study has numbers for."""
    parts = []
    regret = all(group.regret is not None for group in found)
    if study.best is not None and (any(group.bound is not None for group in found) or len(settings(study, found)) > 1):
        title = "Regret over time, with certificates"
        words = (
            f"Regret over {study.runs[0].rounds:,} rounds, with one standard deviation over seeds as a band; "
            f"hollow marks are what is certified. At the end: {_ends(found)}."
        )
        parts.append(_shown("over-time", title, words, partial(pictures.regret_over_time, study)))
    if regret and len(epsilons(found)) > 1:
        title = "What privacy costs"
        words = f"Regret against epsilon: filled marks are measured, hollow ones certified. {_ends(found)}."
        parts.append(_shown("against-epsilon", title, words, partial(pictures.against_epsilon, study)))
    if regret and len(found) > 1:
        title = "What changing seldom costs"
        changes = "; ".join(f"{group.label}: {number(group.switches.mean)}" for group in found)
        words = "Regret against changes of the decision: filled marks are measured, hollow ones certified. "
        words += f"{changes}."
        parts.append(_shown("against-changes", title, words, partial(pictures.against_switches, study)))
    if any(group.plan["spent"] for group in found):
        title = "Privacy spent over time"
        words = (
            "Epsilon spent after each round; it reaches what was promised (dotted) at the horizon and does not pass it."
        )
        parts.append(_shown("spent", title, words, partial(pictures.privacy_spent, study)))
    return join(parts)


def paths(study: Study, found: Sequence[Group]) -> Html:
    """Return where decisions went: one run of each plan, the first open."""
    names = study.stream.get("decision") or []
    parts = []
    for k, group in enumerate(found[:_PATHS]):
        run = group.runs[0]
        label = "expert chosen" if chooses(run) else str(names[0]) if names else "decision, first number"
        words = f"{label} over time in one run of {group.label}: {run.switches:,} changes in {run.rounds:,} rounds."
        if group.epsilon is not None:
            words += " Decisions are what the guarantee covers."
        draw = partial(pictures.decision_path, run, best=study.best, label=label)
        inside = inline(draw, f"path-{k}", f"Decisions of {group.label}", words)
        parts.append(tag("details", tag("summary", group.label), inside, open=k == 0))
    return join(parts)


def _shown(name: str, title: str, words: str, draw: Callable[[], Figure]) -> Html:
    return join([tag("h3", title), inline(draw, name, title, words)])


def _ends(found: Sequence[Group]) -> str:
    return "; ".join(f"{group.label}: {number(group.regret.mean)}" for group in found if group.regret is not None)


# The tables of a report: what every system did, and which of them did better than P-COMW.
_SECRET = NOT_PRIVATE


class Head(NamedTuple):
    """The heading of a column, what is said below it, and whether the column holds words."""

    name: str
    below: str = ""
    text: bool = False


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted by: nothing where that is not known."""

    text: str
    value: float | str | None


def results(found: Sequence[Group], best: Best | None) -> Html:
    """Return the table of all groups, beside what they are measured against; headings become buttons that sort."""
    way = best is not None and best.share(0.0) is not None
    regret = any(group.regret is not None for group in found)
    right = any(run.correct is not None for group in found for run in group.runs)
    heads = [Head("system"), Head("epsilon"), *([Head("of the way", _SECRET)] * way)]
    heads += [Head("regret", _SECRET)] * regret + [Head("certified at most"), Head("mean loss", _SECRET)]
    heads += [Head("right", _SECRET)] * right + [Head("changes"), Head("changes allowed"), Head("seconds")]
    rows = []
    for group in found:
        cells = [
            Cell(group.label, group.label),
            Cell("none" if group.epsilon is None else number(group.epsilon), group.epsilon),
        ]
        if way and best is not None:
            came = best.share(group.loss.mean * group.runs[0].rounds) or 0.0
            cells.append(Cell(f"{came:.0%}", came))
        if regret:
            cells.append(_spread(group.regret))
        bound = group.bound
        cells.append(Cell("nothing useful" if bound is None else number(bound), bound))
        cells.append(_spread(group.loss))
        if right:
            share = _share(group)
            cells.append(Cell("not counted" if share is None else f"{100 * share:.1f}%", share))
        cells.append(_spread(group.switches))
        cells.append(Cell("any number" if group.allowed is None else number(group.allowed), group.allowed))
        cells.append(_spread(group.seconds))
        rows.append(cells)
    seeds = sorted({len(group.runs) for group in found})
    many = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    caption = (
        f"Mean ± standard deviation over runs that differ in their seed ({many} of each system). Changes allowed: at "
        "most, or in expectation."
    )
    if best is not None:
        caption += f" {best.beside()} Of the way: from never moving (0%) to the best fixed decision (100%)."
    return _table(caption, heads, rows, "What every system did")


def _share(group: Group) -> float | None:
    known = [run.correct / run.rounds for run in group.runs if run.correct is not None]
    return sum(known) / len(known) if known else None


def losing(found: Sequence[Setting]) -> Html:
    """Return where the best of ours did worse than others, in a sentence and a table; nothing where none met."""
    everyone = [group for setting in found for group in (*setting.groups, *setting.free)]
    lost = defeats(found)
    what = "regret" if all(group.regret is not None for group in everyone) else "mean loss"
    fair = [one for one in lost if one.setting is not None]
    seen, sure = sum(one.by_regret for one in fair), sum(one.by_regret and one.chance == FAR for one in fair)
    with_us = [setting.groups for setting in found if any(is_ours(group) for group in setting.groups)]
    met = sum(not is_ours(group) for inside in with_us for group in inside)
    if not met and not lost:
        return Html("")
    text = (
        f"Ours (P-COMW and the learners for ordinary data, the best of them) met rivals that promise the same {met} "
        f"time{'' if met == 1 else 's'}. The rival's measured {what} on this stream was lower {seen} times, "
        f"{sure} of them {FAR}, and its certificate was lower {sum(one.by_certificate for one in fair)} times. "
        "One stream says little about others."
    )
    if not lost:
        return tag("p", text)
    both = "rival, ours"
    heads = [Head("rival"), Head("both promise", text=True), Head(what, both), Head("difference", text=True)]
    heads += [Head("certified", both), Head("changes", both)]
    caption = "Every rival with a lower measurement or certificate; one that promises less is beside the best of ours."
    return join([tag("p", text), _table(caption, heads, [_defeat(one) for one in lost], "Where ours loses")])


def _defeat(one: Defeat) -> list[Cell]:
    ours, rival = one.ours, one.rival
    a, b = paid(rival), paid(ours)
    difference = "higher; only its certificate is lower"
    if one.by_regret:
        share = f"{min(100 * (1 - a.mean / b.mean), 100):.0f}% lower" if b.mean > 0 else "lower"
        difference = f"{share}, {one.chance}"
    bounds = ["none" if group.bound is None else number(group.bound) for group in (rival, ours)]
    terms = "the rival promises less" if one.setting is None else one.setting.title or "nothing more"
    return [
        Cell(rival.system, rival.system),
        Cell(terms, terms),
        Cell(f"{number(a.mean)}, {number(b.mean)}", a.mean - b.mean),
        Cell(difference, a.mean - b.mean),
        Cell(", ".join(bounds), rival.bound),
        Cell(f"{number(rival.switches.mean)}, {number(ours.switches.mean)}", rival.switches.mean),
    ]


def refused(refusals: Sequence[dict[str, str]]) -> Html:
    """Return the systems that did not run, with reasons."""
    rows = [[Cell(one["system"], one["system"]), Cell(one["reason"], one["reason"])] for one in refusals]
    heads = [Head("system"), Head("reason", text=True)]
    return _table("Systems that were asked for and did not run.", heads, rows, "What did not run")


def _table(caption: str, heads: Sequence[Head], rows: Sequence[Sequence[Cell]], name: str) -> Html:
    """Return a table whose headings become buttons that sort; on a phone every row is a list of names and values.

    Roles say what the elements are also where the page lays them out as something else.
    """
    words = f"{'-'.join(name.lower().replace(',', '').split())}-words"
    top = tag("tr", *(_head(head) for head in heads), role="row")
    body = [
        tag("tr", *(_cell(*pair, k) for k, pair in enumerate(zip(heads, row, strict=True))), role="row") for row in rows
    ]
    parts = tag("thead", top, role="rowgroup"), tag("tbody", *body, role="rowgroup")
    table = tag("table", *parts, class_="sortable", role="table", aria_label=name, aria_describedby=words)
    return join([tag("p", caption, class_="note", id=words), scrolled(table, f"Table: {name}")])


def _head(head: Head) -> Html:
    below = tag("span", head.below, class_="badge") if head.below else ""
    class_ = "text" if head.text else None
    return tag("th", tag("span", head.name), below, scope="col", role="columnheader", class_=class_)


def _cell(head: Head, cell: Cell, place: int) -> Html:
    value = cell.value
    known = "" if value is None else value if isinstance(value, str) else f"{value:.12g}"
    if place == 0:
        return tag("th", cell.text, data_value=known, scope="row", role="rowheader")
    named = f"{head.name} ({head.below})" if head.below else head.name
    class_ = "text" if head.text else None
    return tag("td", cell.text, data_value=known, data_name=named, role="cell", class_=class_)


def _spread(value: Spread | None) -> Cell:
    return Cell(plus_minus(value), None if value is None else value.mean)


# A study as one page: what was asked, promised and done, and how to do it again.
_STREAM = (
    *(("title", "stream"), ("name", "its name"), ("why", "why private or lazy"), ("source", "source")),
    *(("rounds", "rounds"), ("loss", "loss"), ("domain", "decisions live in"), ("decision", "what a decision is")),
    *(("lipschitz", "steepest loss"), ("scaling", "scaled by public bounds")),
)


def page(study: Study) -> str:
    """Return the whole report as HTML."""
    found = groups(study)
    parts = [(name, heading, inside) for name, heading, inside in _sections(study, found) if inside]
    contents = listed((tag("a", heading, href=f"#{name}") for name, heading, _ in parts))
    here = files(__package__)
    return Template(here.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=join([f"{study.title}: a report by reticent"]),
        css=here.joinpath("page.css").read_text(encoding="utf-8"),
        js=here.joinpath("page.js").read_text(encoding="utf-8"),
        header=_header(study, found),
        main=join([tag("nav", contents, aria_label="Contents"), *(section(*part) for part in parts)]),
        version=join([str(study.environment.get("versions", {}).get("reticent", ""))]),
    )


def _sections(study: Study, found: Sequence[Group]) -> list[tuple[str, str, Html]]:
    nothing, asked = Html(""), settings(study, found)
    return [
        ("short", "In short", listed(in_short(asked)) if found else nothing),
        ("happened", "What happened", _happened(study, found) if found else _nothing()),
        ("decisions", "Where the decisions went", paths(study, found)),
        ("losing", "Where ours loses", losing(asked) if len(found) > 1 else nothing),
        ("asked", "What was asked", _asked(study)),
        ("promised", "What was promised", join([_promised(group, k == 0) for k, group in enumerate(found)])),
        ("private", "How private this is", _private(found) if found else nothing),
        ("refused", "What did not run, and why", refused(study.refusals) if study.refusals else nothing),
        ("repeat", "How to do it again", _repeat(study)),
    ]


def _header(study: Study, found: Sequence[Group]) -> Html:
    title = str(study.stream.get("title") or study.stream.get("name") or "")
    about = [] if title == study.title else [title]
    about += [f"{study.stream['rounds']:,} rounds"] if study.stream.get("rounds") else []
    about += (
        [f"{len(study.runs)} runs of {len({group.system for group in found})} systems"] if len(study.runs) > 1 else []
    )
    about.append(str(study.environment.get("date", "")))
    return join(
        [
            tag("h1", study.title),
            tag("p", " · ".join(part for part in about if part), class_="lead"),
            tag("div", *_warning(found), class_="warning", role="note", aria_label="Warning"),
        ]
    )


def _warning(found: Sequence[Group]) -> list[Html]:
    text = (
        "Losses, regret, shares of right predictions, the best fixed decision and times are computed from the data "
        "without any protection. If the data is private, do not publish this report."
    )
    if any(group.epsilon is not None for group in found):
        text += " What the guarantee covers is the sequence of decisions of a private system, and nothing else."
    parts = [tag("p", tag("strong", "This report is not private. "), text)]
    if any(group.epsilon is not None and run.seed is not None for group in found for run in group.runs):
        parts.append(
            tag(
                "p",
                "The runs used fixed seeds, so that they can be repeated: "
                "even their decisions must not be published as private.",
            )
        )
    return parts


def _asked(study: Study) -> Html:
    stream = [(name, plain(study.stream[key])) for key, name in _STREAM if study.stream.get(key)]
    notes = [tag("h3", "To be known"), listed(study.notes)] if study.notes else []
    return join([facts(named(study.goal)), tag("h3", "The stream"), facts(stream), *notes])


def _promised(group: Group, first: bool) -> Html:
    head = tag("summary", tag("strong", group.label), tag("span", promise(group), class_="badge"))
    plan = tag("details", tag("summary", "The plan's parameters"), tag("pre", str(group.plan["text"])))
    return tag("details", head, paragraphs(str(group.plan["explain"])), plan, open=first)


def _nothing() -> Html:
    return tag("p", "No system ran: the reasons are below.")


def _happened(study: Study, found: Sequence[Group]) -> Html:
    words = [_best(study)] if study.best is not None else []
    return join([results(found, study.best), tag("h3", "Over time"), chart(study), *words, still(study, found)])


def _best(study: Study) -> Html:
    assert study.best is not None
    best = study.best
    point = ", ".join(number(x) for x in best.point[:10]) + (", ..." if len(best.point) > 10 else "")
    text = (
        f"Regret is the sum of losses beyond that of the best fixed decision in hindsight, which would have paid "
        f"{number(best.value)} in all, {number(best.value / max(best.at[-1], 1))} per round "
        f"(the very best at most {number(best.gap)} less in all). It is ({point}); nobody could have known it "
        "beforehand. "
        "A certificate bounds regret on average over the learner's own randomness: single runs can be above it."
    )
    return tag("p", text)


def _private(found: Sequence[Group]) -> Html:
    private = [group for group in found if group.epsilon is not None]
    if not private:
        return tag(
            "p", "No system of this study makes a privacy claim: its decisions may reveal anything about the data."
        )
    terms: dict[tuple[float, float, str, str], list[str]] = {}
    for group in private:
        assert group.epsilon is not None
        # Studies of earlier versions say only for whom regret is bounded.
        adaptive = group.plan.get("adaptive_privacy", group.plan.get("adversary") == "adaptive")
        watching = "adaptive" if adaptive else "oblivious"
        key = (group.epsilon, group.plan["delta"] or 0.0, str(group.plan["neighbors"]), watching)
        terms.setdefault(key, []).append(group.system)
    parts = []
    for (epsilon, delta, neighbors, adversary), who in terms.items():
        parts += [
            tag("h3", f"Epsilon {number(epsilon)}, delta {number(delta)}"),
            facts(
                [
                    ("promised by", "; ".join(dict.fromkeys(who))),
                    ("neighbours", NEIGHBOURS.get(neighbors, neighbors)),
                    ("adversary", ADVERSARY.get(adversary, adversary)),
                    (
                        "what it means",
                        "Somebody who knows all other rounds, and two equally likely versions of one round, guesses "
                        f"the right one after seeing every decision with a chance of at most "
                        f"{best_guess((epsilon, delta)):.3f}; without looking it would be 0.5.",
                    ),
                    (
                        "what it does not cover",
                        "rounds put in or left out, so that later ones move; what everybody else's rounds tell; and "
                        "everything in this report but decisions",
                    ),
                ]
            ),
        ]
    parts.append(_guesses(list(dict.fromkeys((epsilon, delta) for epsilon, delta, _, _ in terms))))
    others = [group.label for group in found if group.epsilon is None]
    if others:
        parts.append(tag("p", f"Not private at all: {', '.join(others)}."))
    return join(parts)


def _guesses(pairs: Sequence[tuple[float, float]]) -> Html:
    """Return what can be believed after everything was seen, and what holds for several rounds, as a table."""
    rare = max(meaning(pair, pair[1]).rare for pair in pairs)
    heads = [Head("promised")]
    heads += [Head(f"{in_percent(prior)}% before", "believed after") for prior in PRIORS]
    heads += [Head(f"{size} rounds", "epsilon, delta", text=True) for size in SIZES]
    rows = []
    for epsilon, delta in pairs:
        told = meaning((epsilon, delta), delta)
        terms = f"epsilon {number(epsilon)}, delta {number(delta)}"
        cells = [Cell(terms, epsilon)]
        cells += [Cell(f"{in_percent(belief)}%", belief) for _, belief in told.beliefs]
        for _, together, level in told.groups:
            said = "nothing" if math.isinf(together) else f"{number(together)}, {number(float(f'{level:.3g}'))}"
            cells.append(Cell(said, together if math.isfinite(together) else None))
        rows.append(cells)
    often = "always" if not rare else f"but for one case in {1 / rare:,.0f}"
    caption = (
        f"What somebody who knows all else may believe of one round at most after seeing every decision, {often}, and "
        "what is promised to a person with several rounds. By epsilon and delta alone: the words of a plan, above, "
        "have what its whole account says."
    )
    return _table(caption, heads, rows, "What can be guessed")


def _repeat(study: Study) -> Html:
    parts = []
    if study.command:
        parts.append(tag("div", tag("pre", tag("code", study.command)), class_="command"))
    if study.environment:
        parts.append(tag("h3", "Environment"))
        parts.append(tag("p", in_words(study.environment)))
    return join(parts)
