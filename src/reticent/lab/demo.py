"""The demonstration: lazy and private learners on two real streams, for a table, a picture and a report each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent._core._names import BUDGETED, DESCENT, FILTERED, INK, MUTED, label
from reticent.lab._compare import Contest, Entry
from reticent.lab._study import Run, Study
from reticent.lab._walk import hindsight, stream_facts
from reticent.lab.streams._catalogue import get
from reticent.lab.streams._stream import Stream
from reticent.planning import plan_budgeted, plan_descent, plan_filtered
from reticent.systems.filtered import clip_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STREAMS = ("randhie-visits", "randhie")
SHOWN = {"randhie-visits": 0, "randhie": 2}  # the coordinate of a decision that is drawn
EPSILON, DELTA, SWITCHES = 1.0, 1e-6, 200
SEEDS = (0, 1, 2)
COMMAND = "reticent demo"
ORDER = (FILTERED, BUDGETED, DESCENT)
_RARE = 0.005  # of the rounds, at either end of the scale: decisions there may lie beyond the axis
_HOLLOW = {"marker": "o", "markersize": 5, "markerfacecolor": "none", "markeredgecolor": MUTED}


def streams(rounds: int | None = None) -> list[Stream]:
    """Return the two streams, or their first rounds.

    >>> [stream.domain.dim for stream in streams(rounds=100)]
    [1, 7]
    """
    return [get(name) if rounds is None else get(name).head(rounds) for name in STREAMS]


def entries(stream: Stream) -> list[Entry]:
    """Return the plans that run on a stream: one private, one lazy, and one that promises neither.

    The first two are what `rt.private_learner` (with no horizon) and `rt.lazy_learner` play.
    """
    size, clip = (stream.domain, stream.rounds, stream.lipschitz), clip_for(stream.loss, stream.lipschitz)
    private = plan_filtered(stream.domain, None, stream.lipschitz, EPSILON, DELTA, clip=clip)
    return [
        Entry(FILTERED, private, f"private, epsilon {EPSILON:g}"),
        Entry(BUDGETED, plan_budgeted(*size, max_switches=SWITCHES), f"lazy, {SWITCHES} changes"),
        Entry(DESCENT, plan_descent(*size), "neither"),
    ]


def play(stream: Stream, report: Callable[[str], None]) -> Contest:
    """Run all entries over a stream, in this process; `report` is told what has been done, in words."""
    best = hindsight(stream)
    report(f"{stream.name}: best fixed decision")
    contest = Contest(stream, entries(stream), best)
    report(f"{stream.name}: plans")
    contest.go(SEEDS, jobs=1, report=lambda system: report(f"{stream.name}: {system}"))
    return contest


def steps() -> int:
    """Return how often `play` reports, for all streams together."""
    return len(STREAMS) * (2 + len(SEEDS) + 2)  # the private learner alone is random


def study_of(contest: Contest) -> Study:
    """Return a contest as a study, for the report."""
    return Study(
        title=f"Demonstration: {contest.stream.title}",
        kind="comparison",
        stream=stream_facts(contest.stream),
        goal={"epsilon": [EPSILON], "delta": DELTA, "max_switches": [SWITCHES]},
        runs=[run for place in sorted(contest.runs) for run in contest.runs[place]],
        best=contest.best,
        command=COMMAND,
    )


def picture(studies: Sequence[Study], shown: Sequence[str] = ORDER) -> Figure:
    """Draw a column for each study: where decisions went, one system a panel, and what they cost beside baselines.

    Decisions of the systems `shown` are those of one seed, zoomed to where they were most of the time; costs are of
    all systems, and means over all seeds.
    """
    from reticent._core._look import blank, legend, look

    with look():
        count = len(shown)
        size = {"width": 4.6 * len(studies), "height": 1.45 * count + 2.3}
        figure, axes = blank(count + 1, len(studies), height_ratios=[1.0] * count + [1.55], **size)
        for column, study in zip(axes.T, studies, strict=True):
            _decisions(column[:-1], study, shown)
            _costs(column[-1], study)
        legend(figure, axes[:-1].flat)
    return figure


def _decisions(column: Sequence[Axes], study: Study, ordered: Sequence[str]) -> None:
    """Draw the decisions of each system in a panel of its own, all on one scale."""
    from reticent._core._look import counts, styles

    assert study.best is not None
    place = SHOWN[study.stream["name"].partition(":")[0]]
    first = {run.system: run for run in reversed(study.runs)}
    drawn, best = styles(ordered), study.best.point[place]
    low, high = _zoom([_path(first[system], place) for system in ordered], best)
    for axis, system in zip(column, ordered, strict=True):
        run = first[system]
        values, ends = _path(run, place)
        axis.stairs(values, ends, baseline=None, color=drawn[system].colour, linewidth=1.1)
        axis.axhline(values[0], color=MUTED, linewidth=1, dashes=(1, 2), label="never moving")
        axis.axhline(best, color=INK, linewidth=1, dashes=(4, 2), label="best fixed decision, in hindsight")
        axis.set_ylim(low, high)
        axis.set_title(f"{system} ({_promise(system)}): {run.switches:,} changes", fontsize=8.5)
        counts(axis.xaxis)
        axis.tick_params(labelbottom=axis is column[-1])
    column[0].text(0, 1.28, study.stream["title"], transform=column[0].transAxes, fontweight="bold", fontsize=10)
    column[len(column) // 2].set_ylabel(f"decision: {study.stream['decision'][place]}")
    column[-1].set_xlabel("rounds")


def _path(run: Run, place: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return one number of the decisions of a run, and the rounds between which each was in play."""
    return np.array([point[place] for point in run.points]), np.array([*run.starts, run.rounds])


def _zoom(paths: Sequence[tuple[NDArray[Any], NDArray[Any]]], *more: float) -> tuple[float, float]:
    """Return the ends of an axis on which decisions are seen in all but the rarest rounds.

    >>> _zoom([(np.array([0.0, 99.0, 1.0]), np.array([0, 500, 501, 1000]))])
    (-0.08, 1.08)
    """
    ends = list(more)
    for values, edges in paths:
        order = np.argsort(values)
        share = np.cumsum(np.diff(edges)[order]) / (edges[-1] - edges[0])
        inside = values[order][(share >= _RARE) & (share - np.diff(edges)[order] / edges[-1] <= 1 - _RARE)]
        ends += [float(values[0]), float(inside.min()), float(inside.max())]
    room = 0.08 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def _costs(axis: Axes, study: Study) -> None:
    """Draw mean losses as dots on one line each, beside never moving, a constant, and the best fixed decision."""
    from reticent._core._look import styles

    best, runs = study.best, [run for run in study.runs if run.system in ORDER]
    assert best is not None
    T, drawn = best.at[-1], styles(ORDER)
    marks: list[tuple[str, float, dict[str, Any]]] = [("never moving", best.idle / T, _HOLLOW)] if best.idle else []
    if best.constant is not None and len(best.point) > 1:
        marks.append(("best constant prediction", best.constant / T, _HOLLOW))
    for system in ORDER:
        losses = [run.total / run.rounds for run in runs if run.system == system]
        marks += [(f"{label(system)} ({_promise(system)})", float(np.mean(losses)), drawn[system].dots())]
    marks.append(("best fixed decision", best.value / T, _HOLLOW | {"markeredgecolor": INK}))
    values = [value for _, value, _ in marks]
    middle = (min(values) + max(values)) / 2
    for place, (words, value, dots) in enumerate(reversed(marks)):
        axis.plot([value], [place], linestyle="", **dots)
        aside, side = (8, "left") if value < middle else (-8, "right")
        words = f"{words}: {value:.4f}"
        where: dict[str, Any] = {"xytext": (aside, 0), "textcoords": "offset points", "va": "center", "ha": side}
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # the line of the best one passes behind
        axis.annotate(words, (value, place), **where, fontsize=8, bbox=ground)
    axis.axvline(best.value / T, color=INK, linewidth=1, dashes=(4, 2), zorder=0)
    room = 0.06 * (max(values) - min(values)) or 1.0
    axis.set(ylim=(-0.6, len(marks) - 0.4), yticks=[], xlim=(min(values) - room, max(values) + room))
    axis.set_title("What they cost (computed from the data: not private)", fontsize=8.5)
    axis.set_xlabel("mean loss of a round")


def _promise(system: str) -> str:
    words = {FILTERED: f"private, epsilon {EPSILON:g}", BUDGETED: f"at most {SWITCHES} changes"}
    return words.get(system, "no promise")
