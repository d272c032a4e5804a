"""What privacy and laziness cost: regret against epsilon and against the number of changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from reticent._core._look import Style, blank, counts, legend, logarithmic, look, number, styles
from reticent._core._names import MUTED
from reticent.lab._study import Study
from reticent.lab.pictures._groups import Group, Spread, epsilons, some

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FLAT = 3.0  # times what was measured: a certificate beyond would press the points of a linear axis together
_TINY = 1e-3  # of the highest regret: less is nothing, and on a log axis would hide the rest


def against_epsilon(study: Study) -> Figure:
    """Draw regret against epsilon: measured with a standard deviation over seeds (filled), certified (hollow, dashed).

    Systems without privacy are level lines.

    >>> against_epsilon(small_study((0.5, 1.0))).axes[0].get_xscale()
    'log'
    """
    found = _measured(study)
    asked = epsilons(found)
    if not asked:
        raise ValueError(f"the study {study.title!r} has no private run; regret against epsilon needs one at least")
    drawn = styles(group.system for group in found)
    with look():
        figure, axis = _axis("epsilon (less is more private)")
        for system in dict.fromkeys(group.system for group in found):
            mine = [group for group in found if group.system == system and group.epsilon is not None]
            _series(axis, sorted(mine, key=_epsilon), drawn[system], _epsilon, _epsilon)
        for group in found:
            if group.epsilon is None:
                axis.axhline(_regret(group).mean, **drawn[group.system].line(), label=f"{group.label} (not private)")
        _finish(figure, axis, found)
        axis.set_xticks(asked, [number(epsilon) for epsilon in asked], minor=False)
        axis.set_xticks([], minor=True)
        axis.set_xlim(asked[0] / 1.25, asked[-1] * 1.25)
    return figure


def against_switches(study: Study) -> Figure:
    """Draw regret against the number of changes: measured (filled), and certified at what the plan allows (hollow).

    >>> against_switches(small_study()).axes[0].get_xlabel()
    'changes of the decision'
    """
    found = _measured(study)
    drawn = styles(group.system for group in found)
    with look():
        figure, axis = _axis("changes of the decision")
        for system in dict.fromkeys(group.system for group in found):
            mine = [group for group in found if group.system == system]
            _series(axis, sorted(mine, key=_changes), drawn[system], _changes, _allowed)
        _finish(figure, axis, found)
    return figure


def _measured(study: Study) -> list[Group]:
    found = [group for group in some(study) if group.regret is not None]
    if not found:
        raise ValueError(
            f"the study {study.title!r} does not hold regret; make it with the best fixed decision looked for"
        )
    return found


def _regret(group: Group) -> Spread:
    assert group.regret is not None
    return group.regret


def _epsilon(group: Group) -> float:
    assert group.epsilon is not None
    return group.epsilon


def _changes(group: Group) -> float:
    return group.switches.mean


def _allowed(group: Group) -> float:
    return group.horizon if group.allowed is None else group.allowed


def _axis(name: str) -> tuple[Figure, Axes]:
    figure, axes = blank(height=3.3)
    axes[0, 0].set(xlabel=name, ylabel="regret (sum of losses)")
    return figure, axes[0, 0]


def _finish(figure: Figure, axis: Axes, found: Sequence[Group]) -> None:
    """Choose scales for what has been drawn, and name it."""
    logarithmic(axis.xaxis)
    values = [_regret(group).mean for group in found]
    largest = max(abs(value) for value in values)
    if min(values) > _TINY * max(values):
        logarithmic(axis.yaxis)
    elif any(group.bound is not None and group.bound > _FLAT * largest for group in found) and largest > 0:
        logarithmic(axis.yaxis, around=largest)
    else:
        counts(axis.yaxis)
    axis.plot(
        [], [], color=MUTED, marker="o", markerfacecolor="none", dashes=(2, 2), label="certified at most (hollow)"
    )
    legend(figure, [axis])


def _series(
    axis: Axes,
    mine: Sequence[Group],
    style: Style,
    measured_at: Callable[[Group], float],
    certified_at: Callable[[Group], float],
) -> None:
    """Draw one system's measurements and certificates."""
    if not mine:
        return
    values = [_regret(group) for group in mine]
    below = [min(one.sd, 0.9 * one.mean) if one.mean > 0 else one.sd for one in values]  # stays above 0 on a log axis
    axis.errorbar(
        [measured_at(group) for group in mine],
        [one.mean for one in values],
        yerr=[below, [one.sd for one in values]],
        **style.solid(),
        **style.dots(),
        elinewidth=1,
        label=mine[0].system,
    )
    sure = sorted((certified_at(group), group.bound) for group in mine if group.bound is not None)
    if sure:
        x, y = zip(*sure, strict=True)
        axis.plot(x, y, color=style.colour, linewidth=1, dashes=(2, 2), **style.dots(hollow=True))
