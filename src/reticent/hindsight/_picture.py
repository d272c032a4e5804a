"""A trace as a picture: where the decision was, and what it cost beside decisions that never moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent._core._html import NOT_PRIVATE
from reticent._core._look import Style, blank, counts, legend, look, number, numbered, styles
from reticent._core._names import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from reticent.hindsight._trace import Trace

FEW = 40  # changes that are marked one by one
RUG = 250  # changes that are drawn as a rug; more cannot be told apart there
STEPS = 1500  # pieces of a path that can be told apart on a page
_PLACES = 400  # rounds at which a mean is drawn
_SETTLED = 0.01  # the first part of a run, whose means jump too much to be drawn beside the rest
_BLUE = 1  # the style of decisions whose system nobody named


def picture(trace: Trace, coordinate: int, system: str | None, baselines: bool) -> Figure:
    """Draw a trace: the decision over time, and its mean loss so far; see `Trace.plot`."""
    dim = trace.points.shape[1]
    if not 0 <= coordinate < dim:
        raise ValueError(f"coordinate must be one of 0 to {dim - 1}, the numbers of a decision, got {coordinate!r}")
    style = numbered(_BLUE) if system is None else styles([system])[system]
    name = f"{system or 'decision'}, {trace.switches:,} change" + ("" if trace.switches == 1 else "s")
    best = trace.regret().comparator if baselines else None
    with look():
        figure, axes = blank(2, height=4.6, sharex=True)
        top, bottom = axes[:, 0]
        edges = trace.first + np.append(trace.starts, len(trace))
        path(top, edges, trace.points[:, coordinate], style, name)
        means(bottom, trace.first, trace.losses, **style.solid())
        if best is not None:
            top.axhline(best.point[coordinate], color=INK, linewidth=1, dashes=(4, 2), label="best fixed decision")
            means(bottom, trace.first, trace.losses_of(best.point), color=INK, linewidth=1, dashes=(4, 2))
            still = trace.losses_of(trace.points[0])
            means(bottom, trace.first, still, color=MUTED, linewidth=1, dashes=(1, 2), label="never moving")
        top.set_ylabel("decision" if dim == 1 else f"decision, coordinate {coordinate}")
        bottom.set_ylabel(f"mean loss so far\n({NOT_PRIVATE})")
        bottom.set_xlabel("rounds")
        counts(bottom.xaxis)
        legend(figure, axes[:, 0])
    return figure


def path(axis: Axes, edges: NDArray[Any], values: NDArray[Any], style: Style, name: str) -> None:
    """Draw a decision as steps between edges, thinned where they could not be told apart, with its changes."""
    every = -(-len(values) // STEPS)
    shown, ends = values[::every], np.append(edges[:-1][::every], edges[-1])
    label = name + ("" if every == 1 else " (thinned here)")
    axis.stairs(shown, ends, baseline=None, color=style.colour, linewidth=1.2, label=label)
    if len(values) - 1 <= RUG:
        marks(axis, ends[1:-1], shown[1:], style)


def marks(axis: Axes, at: NDArray[Any], values: NDArray[Any], style: Style) -> None:
    """Mark changes on the path, or below it where they are many."""
    if at.size <= FEW:
        axis.plot(at, values, linestyle="", **style.dots(), label="a change")
        return
    foot = np.full(at.size, 0.015)
    axis.plot(at, foot, "|", color=MUTED, transform=axis.get_xaxis_transform(), label="a change")


def means(axis: Axes, first: int, losses: NDArray[Any], **line: Any) -> None:
    """Draw the mean of losses so far, from the time on at which it says something."""
    count = losses.size
    begin = max(1, int(_SETTLED * count))
    at = np.unique(np.linspace(begin, count, _PLACES).astype(np.int64))
    axis.plot(first + at, np.cumsum(losses)[at - 1] / at, **line)
    axis.yaxis.set_major_formatter(lambda value, _: number(value))
