"""Where a decision was, and when it changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent._core._look import blank, counts, legend, look, number, styles
from reticent._core._names import INK, MUTED
from reticent.hindsight._picture import RUG, STEPS, marks
from reticent.lab._study import Best, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BINS = 60


def decision_path(run: Run, coordinate: int | None = None, *, best: Best | None = None, label: str = "") -> Figure:
    """Draw one coordinate of a decision over time as steps, with its changes and the best fixed decision.

    Few changes are marked on the path, more are a rug below it, and many are counted over time in a second panel.
    Without a `coordinate` it is the first, or, of decisions that choose one of several experts, the expert chosen.

    >>> study = small_study()
    >>> decision_path(study.runs[0], 1, best=study.best, label="second number").axes[0].get_ylabel()
    'second number'
    """
    points = np.array(run.points, dtype=float)
    dim = points.shape[1]
    if coordinate is not None and not 0 <= coordinate < dim:
        raise ValueError(f"coordinate must be one of 0 to {dim - 1}, the numbers of this decision, got {coordinate}")
    choosing = coordinate is None and chooses(run)
    place = coordinate or 0
    values = points.argmax(axis=1) if choosing else points[:, place]
    every = -(-len(run.starts) // STEPS)
    name = f"{run.system}, {run.switches:,} changes" + ("" if run.whole and every == 1 else " (thinned here)")
    many = run.switches > RUG
    style = styles([run.system])[run.system]
    with look():
        figure, axes = blank(1 + many, height=3.6 if many else 2.9, sharex=True, height_ratios=[3, 1][: 1 + many])
        top = axes[0, 0]
        edges = np.append(run.starts[::every], run.rounds)
        top.stairs(values[::every], edges, baseline=None, color=style.colour, linewidth=1.2, label=name)
        if best is not None:
            level = float(np.argmax(best.point)) if choosing else best.point[place]
            top.axhline(level, color=INK, linewidth=1, dashes=(4, 2), label="best fixed decision")
        if many:
            _density(axes[1, 0], run)
        else:
            marks(top, edges[1:-1], values[::every][1:], style)
        top.set_ylabel(label or ("expert chosen" if choosing else f"decision, coordinate {place}"))
        axes[-1, 0].set_xlabel("rounds")
        counts(axes[-1, 0].xaxis)
        legend(figure, axes[:, 0])
    return figure


def chooses(run: Run) -> bool:
    """Whether every decision of a run is one of several experts: a 1 among zeros.

    >>> chooses(small_study().runs[0])
    False
    """
    points = np.array(run.points, dtype=float)
    return points.shape[1] > 1 and bool(np.isin(points, (0.0, 1.0)).all() and (points.sum(axis=1) == 1.0).all())


def _density(axis: Axes, run: Run) -> None:
    """Draw how many changes there are per round, from the counts that are kept of the whole run."""
    edges = np.unique(np.linspace(0, run.rounds, _BINS + 1).astype(int))
    counted = np.diff(np.interp(edges, [0, *run.at], [0, *run.switched]))
    axis.stairs(counted / np.diff(edges), edges, fill=True, color=MUTED, alpha=0.6, linewidth=0)
    axis.set_ylabel("changes\nper round")
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda value, _: number(value))
