"""What happened as rounds went by: regret beside what was certified, and how much of a promised epsilon is spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._look import Style, across, blank, counts, legend, logarithmic, look, number, styles
from reticent._core._names import MUTED
from reticent.lab._study import Best, Study
from reticent.lab.pictures._groups import Group, Setting, epsilons, groups, settings, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def privacy_spent(study: Study) -> Figure:
    """Draw epsilon spent after each round (at the plan's delta) and, dotted, the epsilon promised.

    The study's plans must have been described with `plan_facts(plan, spent=True)`.

    >>> len(privacy_spent(small_study()).axes)
    1
    """
    found = [group for group in groups(study) if group.plan["spent"]]
    if not found:
        raise ValueError(
            f"the study {study.title!r} does not hold the privacy spent; describe a private plan with spent=True"
        )
    drawn = styles(group.system for group in groups(study))
    with look():
        figure, axes = blank(height=3.0)
        axis = axes[0, 0]
        for group in found:
            style, at, spent = drawn[group.system], group.plan["spent_at"], group.plan["spent"]
            axis.plot(at, spent, **style.line(), **style.dots(), markevery=max(1, len(at) // 6), label=group.system)
        for epsilon in epsilons(found):
            axis.axhline(epsilon, color=MUTED, linewidth=1, linestyle=":", label="epsilon promised")
            axis.annotate(
                f" {number(epsilon)}", (1, epsilon), xycoords=("axes fraction", "data"), va="center", fontsize=8
            )
        axis.set(xlabel="rounds", ylabel="epsilon spent so far", ylim=(0, None))
        counts(axis.xaxis)
        legend(figure, [axis])
    return figure


# What learners paid beyond the best fixed decision, over time, with what was certified.

_ACROSS = 3  # panels beside each other
_EARLY = 0.01  # the first part of a run, which a log axis would draw as wide as the rest
_LATE = 0.25  # regret that is negative after this part of a run is drawn on linear axes
_DEPTH = 50  # times below the lowest end: the rest of a log axis would be the noise of the first rounds
_TINY = 1e-3  # of the highest regret: less is nothing, and on a log axis would hide the rest
_ROOM = 1.5  # times the highest curve: a certificate beyond is written, not drawn, where the axis is linear


def regret_over_time(study: Study) -> Figure:
    """Draw regret against rounds, mean and one standard deviation over seeds, and certificates at their horizon.

    There is a panel per epsilon and limit on changes; systems that promise neither are in all of them. Regret counts
    against the decision that is best over the whole stream. Both axes are logarithmic from where regret stays positive,
    if it does. Without a best fixed decision in the study, the mean loss so far is drawn instead.

    >>> regret_over_time(small_study()).axes[0].get_xlabel()
    'rounds'
    """
    found = some(study)
    panels = settings(study, found)
    drawn = styles(group.system for group in found)
    start = _start(found, study.best)
    most = across(_ACROSS)
    rows, columns = -(-len(panels) // most), min(len(panels), most)
    with look():
        width, height = max(5.6, 2.7 * columns), 3.3 if rows == 1 else 2.2 * rows
        figure, axes = blank(rows, columns, width=width, height=height, sharex=True, sharey=True)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, panel in zip(axes.flat, panels, strict=False):
            for group, style in _styled(panel, drawn):
                _curve(axis, group, study.best, style, start)
            if len(panels) > 1:
                axis.set_title(panel.title)
        top = axes[0, 0].get_ylim()[1]
        for axis, panel in zip(axes.flat, panels, strict=False):
            if study.best is not None:
                _certificates(axis, _styled(panel, drawn), None if start else top)
            (logarithmic if start or study.best is None else counts)(axis.xaxis)
            (logarithmic if start else counts)(axis.yaxis)
        if start:
            low, least = axes[0, 0].get_ylim()[0], min(group.over_time(study.best)[1][-1] for group in found)
            axes[0, 0].set_ylim(bottom=max(low, least / _DEPTH))
        for axis in axes[-1]:
            axis.set_xlabel("rounds")
        for axis in axes[:, 0]:
            axis.set_ylabel("mean loss per round so far" if study.best is None else "regret (sum of losses)")
        if any(group.bound is not None for group in found) and study.best is not None:
            axes.flat[len(panels) - 1].plot(
                [], [], color=MUTED, marker="_", markersize=9, linestyle="", label="certified at most"
            )
        legend(figure, axes.flat)
    return figure


def _start(found: Sequence[Group], best: Best | None) -> float | None:
    """Return the round from which all regrets stay positive, for log axes; None if they do too late."""
    if best is None:
        return None
    first = 0.0
    for group in found:
        at, mean, _ = group.over_time(best)
        below = at[mean <= 0]
        first = max(first, _EARLY * at[-1], below[-1] + 1 if below.size else 1.0)
        if first > _LATE * at[-1] or mean[-1] < _TINY * _highest(found, best):
            return None
    return first


def _highest(found: Sequence[Group], best: Best | None) -> float:
    return max(float(group.over_time(best)[1][-1]) for group in found)


def _curve(axis: Axes, group: Group, best: Best | None, style: Style, start: float | None) -> None:
    at, mean, sd = group.over_time(best)
    shown = at >= (start or (0.0 if best else _EARLY * at[-1]))
    at, mean, sd = at[shown], mean[shown], sd[shown]
    low = mean - sd if start is None else np.maximum(mean - sd, mean / 10)  # a log axis has no 0
    axis.fill_between(at, low, mean + sd, color=style.colour, alpha=0.15, linewidth=0)
    places: Any = np.linspace(at[0], at[-1], 6) if start is None and best else np.geomspace(at[0], at[-1], 6)
    marks = np.unique(np.searchsorted(at, places).clip(0, at.size - 1)).tolist()
    axis.plot(at, mean, **style.line(), **style.dots(), markevery=marks, label=_name(axis, group))


def _name(axis: Axes, group: Group) -> str:
    """Return the system's name, or the whole label where the system is there already."""
    return group.label if group.system in axis.get_legend_handles_labels()[1] else group.system


def _styled(panel: Setting, drawn: dict[str, Style]) -> list[tuple[Group, Style]]:
    """Return the groups of a panel with styles: one colour per system, other marks where it is there again."""
    seen: dict[str, int] = {}
    found = []
    for group in (*panel.groups, *panel.free):
        seen[group.system] = seen.get(group.system, -1) + 1
        found.append((group, drawn[group.system].again(seen[group.system])))
    return found


def _certificates(axis: Axes, inside: Sequence[tuple[Group, Style]], top: float | None) -> None:
    """Mark certified regret at its horizon, or write it where it is far above everything else."""
    beyond = []
    for group, style in inside:
        if group.bound is None:
            continue
        if top is not None and group.bound > _ROOM * top:
            beyond.append(group.bound)
            continue
        axis.plot([group.horizon], [group.bound], linestyle="", **style.dots(hollow=True), zorder=3)
        axis.plot([group.horizon], [group.bound], linestyle="", marker="_", markersize=14, color=style.colour)
    if beyond:
        low, high = number(min(beyond)), number(max(beyond))
        text = "certified, off the scale:\n" + (low if low == high else f"{low} to {high}")
        axis.text(0.03, 0.97, text, fontsize=7.5, va="top", transform=axis.transAxes)
