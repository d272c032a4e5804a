"""The pictures of a report, each with words that say what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reticent.lab import pictures
from reticent.lab._study import Study
from reticent.lab.pictures._groups import Group, epsilons
from reticent.lab.pictures._path import chooses
from reticent.lab.pictures._style import number
from reticent.lab.report._html import Html, join, tag
from reticent.lab.report._inline import inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PATHS = 6  # paths of decisions that are shown, of the first run of as many plans


def still(study: Study, found: Sequence[Group]) -> Html:
    """Return every picture that the study has numbers for."""
    parts = []
    regret = all(group.regret is not None for group in found)
    if study.best is not None:
        title = "Regret over time, with certificates"
        words = (
            f"Regret over {study.runs[0].rounds:,} rounds, with one standard deviation over seeds as a band; "
            f"hollow marks are what is certified. At the end: {_ends(found)}."
        )
        parts.append(_shown("over-time", title, words, pictures.regret_over_time(study)))
    if regret and len(epsilons(found)) > 1:
        title = "What privacy costs"
        words = f"Regret against epsilon: filled marks are measured, hollow ones certified. {_ends(found)}."
        parts.append(_shown("against-epsilon", title, words, pictures.against_epsilon(study)))
    if regret and len(found) > 1:
        title = "What changing seldom costs"
        changes = "; ".join(f"{group.label}: {number(group.switches.mean)}" for group in found)
        words = "Regret against changes of the decision: filled marks are measured, hollow ones certified. "
        words += f"{changes}."
        parts.append(_shown("against-changes", title, words, pictures.against_switches(study)))
    if any(group.plan["spent"] for group in found):
        title = "Privacy spent over time"
        words = (
            "Epsilon spent after each round; it reaches what was promised (dotted) at the horizon and does not pass it."
        )
        parts.append(_shown("spent", title, words, pictures.privacy_spent(study)))
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
        figure = pictures.decision_path(run, best=study.best, label=label)
        inside = inline(figure, f"path-{k}", f"Decisions of {group.label}", words)
        parts.append(tag("details", tag("summary", group.label), inside, open=k == 0))
    return join(parts)


def _shown(name: str, title: str, words: str, figure: Figure) -> Html:
    return join([tag("h3", title), inline(figure, name, title, words)])


def _ends(found: Sequence[Group]) -> str:
    return "; ".join(f"{group.label}: {number(group.regret.mean)}" for group in found if group.regret is not None)
