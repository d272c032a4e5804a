"""What portfolios were worth over time, and when they were changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._core._look import blank, legend, logarithmic, look, number, numbered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUG = 250  # changes that can be told apart as marks
_MARKS = 7


def wealth(
    curves: Mapping[str, tuple[Sequence[Any], Sequence[float]]],
    switches: Mapping[str, int | Sequence[Any]] | None = None,
    *,
    time: str = "trading days",
) -> Figure:
    """Draw wealth over time on a log scale, with each portfolio's end value and number of changes in the legend.

    `curves` are times (numbers or dates) and values; `switches` gives the number of changes of a portfolio, or their
    times, which are drawn as a rug where they are few.

    >>> days = range(1, 4)
    >>> picture = wealth({"lazy": (days, [1.0, 1.2, 1.5]), "daily": (days, [1.0, 1.3, 1.4])}, {"lazy": [2], "daily": 3})
    >>> [text.get_text() for text in picture.legends[0].get_texts()]
    ['lazy: ends at 1.5, 1 change', 'daily: ends at 1.4, 3 changes']
    """
    if not curves:
        raise ValueError("wealth needs one curve at least, got none; give times and values under a name")
    with look():
        figure, axes = blank(height=3.3)
        axis = axes[0, 0]
        for k, (name, (times, values)) in enumerate(curves.items()):
            at, worth = np.asarray(times), np.asarray(values, dtype=float)
            if at.shape != worth.shape or not worth.size or not (worth > 0).all():
                raise ValueError(
                    f"the curve {name!r} must have as many times as values, all above 0; got {worth.size} values"
                )
            text = f"{name}: ends at {number(worth[-1])}"
            changed = (switches or {}).get(name)
            if changed is not None:
                count = int(changed) if np.ndim(changed) == 0 else np.size(changed)  # type: ignore[arg-type]
                text += f", {count:,} change" + ("" if count == 1 else "s")
            style = numbered(k)
            marks = np.linspace(0, worth.size - 1, _MARKS + 2)[1:-1].astype(int) + k * worth.size // (_MARKS * 12)
            axis.plot(
                at,
                worth,
                **style.line(),
                **style.dots(),
                markevery=np.unique(marks.clip(0, worth.size - 1)).tolist(),
                label=text,
            )
            if changed is not None and np.ndim(changed) > 0 and np.size(changed) <= _RUG:
                heights = np.full(np.size(changed), 0.012 + 0.03 * k)
                axis.plot(
                    np.asarray(changed),
                    heights,
                    "|",
                    color=style.colour,
                    transform=axis.get_xaxis_transform(),
                    markersize=5,
                )
        logarithmic(axis.yaxis)
        axis.set(xlabel=time, ylabel="wealth (log scale)")
        legend(figure, [axis])
    return figure
