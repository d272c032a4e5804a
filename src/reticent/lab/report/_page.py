"""A study as one page: what was asked, promised and done, and how to do it again."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from string import Template

from reticent.lab._environment import in_words
from reticent.lab._study import Study
from reticent.lab.pictures._groups import Group, groups
from reticent.lab.pictures._settings import settings
from reticent.lab.pictures._style import number
from reticent.lab.report import _pictures, _tables
from reticent.lab.report._chart import chart
from reticent.lab.report._html import Html, facts, join, listed, section, tag
from reticent.lab.report._words import ADVERSARY, NEIGHBOURS, guess, in_short, named, paragraphs, plain, promise

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
        ("asked", "What was asked", _asked(study)),
        ("promised", "What was promised", join([_promised(group, k == 0) for k, group in enumerate(found)])),
        ("happened", "What happened", _happened(study, found) if found else _nothing()),
        ("decisions", "Where the decisions went", _pictures.paths(study, found)),
        ("losing", "Where P-COMW loses", _tables.losing(asked) if len(found) > 1 else nothing),
        ("refused", "What did not run, and why", _tables.refused(study.refusals) if study.refusals else nothing),
        ("private", "How private this is", _private(found) if found else nothing),
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
    parts = [_best(study)] if study.best is not None else []
    parts += [_tables.results(found), tag("h3", "Over time"), chart(study), _pictures.still(study, found)]
    return join(parts)


def _best(study: Study) -> Html:
    assert study.best is not None
    best = study.best
    point = ", ".join(number(x) for x in best.point[:10]) + (", ..." if len(best.point) > 10 else "")
    text = (
        f"Regret is the sum of losses beyond that of the best fixed decision in hindsight, which would have paid "
        f"{number(best.value)} in all, {number(best.value / max(best.at[-1], 1))} per round "
        f"(known to within {number(best.gap)}). It is ({point}); nobody could have known it beforehand. "
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
        key = (group.epsilon, group.plan["delta"] or 0.0, str(group.plan["neighbors"]), str(group.plan["adversary"]))
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
                        f"{guess(epsilon, delta):.3f}; without looking it would be 0.5.",
                    ),
                    (
                        "what it does not cover",
                        "a person with several rounds (protected less), and everything in this report but decisions",
                    ),
                ]
            ),
        ]
    others = [group.label for group in found if group.epsilon is None]
    if others:
        parts.append(tag("p", f"Not private at all: {', '.join(others)}."))
    return join(parts)


def _repeat(study: Study) -> Html:
    parts = []
    if study.command:
        parts.append(tag("div", tag("pre", tag("code", study.command)), class_="command"))
    if study.environment:
        parts.append(tag("h3", "Environment"))
        parts.append(tag("p", in_words(study.environment)))
    return join(parts)
