"""A plan as a picture: what is revealed, how often decisions change, and what they cost, a panel for each question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._look import Style, blank, legend, logarithmic, look, number, styles
from reticent._core._names import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVELS = 40  # places of a curve of epsilon and delta
_LEAST = 1e-12  # a delta that is drawn as nothing
_TIMES = np.geomspace(1e2, 1e8, 25)  # rounds at which the bound of a plan without an end is drawn

Bar = tuple[str, float, str]
"""What a bar stands for, how long it is, and its colour."""


def picture(plan: Any, system: str) -> Figure:
    """Draw what a plan promises, as far as it promises anything; see `BasePlan.plot`."""
    style = styles([system])[system]
    panels: list[Callable[[Axes], None]] = []
    if plan.epsilon is not None:
        panels.append(lambda axis: _revealed(axis, plan, style))
    changes = _changes(plan, style)
    if changes:
        panels.append(lambda axis: _bars(axis, changes, "How often does the decision change?", "changes"))
    costs = _costs(plan, style)
    if costs:
        title = "What do decisions cost at most?"
        panels.append(lambda axis: _bars(axis, costs, title, "regret per round, in expectation"))
    elif hasattr(plan, "regret_at") and plan.horizon is None and plan.certifies:
        panels.append(lambda axis: _over_time(axis, plan, style))
    if not panels:
        raise ValueError(f"this plan of {system} promises nothing that could be drawn; print(plan) says what it is")
    with look():
        figure, axes = blank(len(panels), height=2.1 * len(panels) + 0.2)
        for axis, draw in zip(axes[:, 0], panels, strict=True):
            draw(axis)
        legend(figure, axes[:, 0])
    return figure


def _revealed(axis: Axes, plan: Any, style: Style) -> None:
    """Draw the curve of epsilon and delta, and the point of it that is promised."""
    top = 1.4 * plan.epsilon
    levels = np.linspace(0.0, top, _LEVELS)
    deltas = np.array(plan.account().curve(levels).delta)
    axis.plot(levels, np.maximum(deltas, _LEAST), **style.solid(), label="delta at every epsilon")
    axis.plot([plan.epsilon], [max(plan.delta, _LEAST)], linestyle="", **style.dots(hollow=True), label="promised")
    logarithmic(axis.yaxis)
    axis.set(xlabel="epsilon", ylabel="delta", title="What do all decisions together reveal?", xlim=(0, top))


def _changes(plan: Any, style: Style) -> list[Bar]:
    if plan.horizon is None:
        return []
    most = getattr(plan, "max_switches", None)
    usual = getattr(plan, "expected_switches", None)
    bars = [("expected, at most", usual, style.colour), ("never more than", most, style.colour)]
    found = [(name, float(value), colour) for name, value, colour in bars if value is not None]
    return [*found, ("one in every round", float(plan.horizon), MUTED)] if found else []


def _costs(plan: Any, style: Style) -> list[Bar]:
    if plan.horizon is None or plan.regret_bound is None:
        return []
    still = "any one expert, kept" if plan.domain.finite else "staying at the centre"
    bars = [
        ("certified", plan.regret_bound, style.colour),
        (still, plan.idle_regret, MUTED),
        ("any decisions whatever", plan.trivial_regret, MUTED),
    ]
    return [(name, value / plan.horizon, colour) for name, value, colour in bars if value]


def _bars(axis: Axes, bars: Sequence[Bar], title: str, name: str) -> None:
    """Draw bars on a log scale with their numbers beside them."""
    known = [value for _, value, _ in bars if value > 0]
    low, high = (min(known) / 5, max(known) * 8) if known else (0.1, 10.0)
    for place, (_, value, colour) in enumerate(reversed(bars)):
        axis.barh(place, max(value - low, 0.0), left=low, height=0.6, color=colour)
        axis.text(max(value, low) * 1.08, place, number(value), va="center", color=INK)
    axis.set_yticks(range(len(bars)), [words for words, _, _ in reversed(bars)])
    axis.set(xlim=(low, high), xlabel=f"{name} (log scale)", title=title)
    axis.grid(False, axis="y")
    logarithmic(axis.xaxis)


def _over_time(axis: Axes, plan: Any, style: Style) -> None:
    """Draw the bound on regret per round of a plan without an end, beside staying at the centre."""
    times = [int(t) for t in _TIMES]
    axis.plot(times, [plan.regret_at(t) / t for t in times], **style.solid(), label="certified, whatever the horizon")
    idle = plan.lipschitz * plan.domain.radius
    axis.axhline(idle, color=MUTED, linewidth=1, dashes=(1, 2), label="staying at the centre")
    logarithmic(axis.xaxis)
    logarithmic(axis.yaxis)
    axis.set(xlabel="rounds", ylabel="regret per round", title="What do decisions cost at most?")
