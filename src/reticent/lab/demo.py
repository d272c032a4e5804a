"""The demonstration: lazy and private learners on two real streams, for a table, a picture and a report each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._names import BUDGETED, DESCENT, FILTERED, INK
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


def picture(studies: Sequence[Study]) -> Figure:
    """Draw decisions and mean losses over time, a column for each study; one seed of each system."""
    from reticent._core._look import blank, legend, look

    with look():
        figure, axes = blank(2, len(studies), width=4.6 * len(studies), height=6.4, sharex="col")
        for column, study in zip(axes.T, studies, strict=True):
            _column(column, study)
        legend(figure, [axes[0, 0], axes[1, -1]])
    return figure


def _column(column: Sequence[Axes], study: Study) -> None:
    from reticent._core._look import counts, styles
    from reticent._core._names import MUTED

    assert study.best is not None
    top, bottom = column
    first = {run.system: run for run in reversed(study.runs)}
    drawn = styles(sorted(first))
    place = SHOWN[study.stream["name"].partition(":")[0]]
    # What changes all the time goes to the back.
    for system, run in sorted(first.items(), key=lambda item: -item[1].switches):
        ends = [*run.starts, run.rounds]
        values = [point[place] for point in run.points]
        colour = MUTED if system == DESCENT else drawn[system].colour
        label = f"{system} ({_promise(run)})"
        top.stairs(values, ends, baseline=None, color=colour, linewidth=1.1, label=label)
        _means(bottom, run.at, run.losses, color=colour, linewidth=1.3)
    if study.best.idle is not None:
        for total, words, dots in (
            (study.best.idle, "never moving", (1, 2)),
            (study.best.constant, "best constant prediction", (5, 1, 1, 1)),
        ):
            if total is not None and (words == "never moving" or len(study.best.point) > 1):
                bottom.axhline(total / study.best.at[-1], color=MUTED, linewidth=1, dashes=dots, label=words)
    top.axhline(study.best.point[place], color=INK, linewidth=1, dashes=(4, 2), label="best fixed decision")
    _means(bottom, study.best.at, study.best.curve, color=INK, linewidth=1, dashes=(4, 2))
    top.set_title(study.stream["title"])
    top.set_ylabel(f"decision: {study.stream['decision'][place]}")
    bottom.set_ylabel("mean loss so far")
    bottom.set_xlabel("rounds")
    counts(bottom.xaxis)


def _means(axis: Axes, at: list[int], sums: list[float], **look: Any) -> None:
    """Draw mean losses from the time on at which they say something."""
    rounds = np.array(at)
    late = rounds >= rounds[-1] / 100
    axis.plot(rounds[late], (np.array(sums) / rounds)[late], **look)


def _promise(run: Run) -> str:
    if run.private:
        return f"epsilon {EPSILON:g}"
    return f"at most {SWITCHES} changes" if run.system == BUDGETED else "no promise"
