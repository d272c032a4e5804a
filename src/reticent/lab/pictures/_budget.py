"""What is left of privacy budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reticent._core._look import blank, look, numbered

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def budget_left(spent: Mapping[str, float]) -> Figure:
    """Draw for every population the part of its budget that is spent, and what is left.

    >>> picture = budget_left({"patients": 0.25, "staff": 1.0})
    >>> [text.get_text() for text in picture.axes[0].texts]
    ['75% left', '0% left']
    """
    if not spent:
        raise ValueError("budget_left needs one population at least, got none")
    names = list(spent)
    used = [min(max(spent[name], 0.0), 1.0) for name in names]
    with look():
        figure, axes = blank(height=1.1 + 0.4 * len(names))
        axis = axes[0, 0]
        axis.barh(names, used, color=numbered(0).colour, height=0.6)
        axis.barh(names, [1 - part for part in used], left=used, fill=False, hatch="//", edgecolor="0.6", height=0.6)
        for place, part in enumerate(used):
            axis.text(1.01, place, f"{1 - part:.0%} left", va="center")
        axis.invert_yaxis()
        axis.set(xlim=(0, 1.16), xlabel="part of the budget that is spent", xticks=[0, 0.25, 0.5, 0.75, 1])
    return figure
