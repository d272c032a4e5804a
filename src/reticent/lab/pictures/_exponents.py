"""The exponents of the paper's tables beside those of certificates and of measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reticent.lab.pictures._style import INK, PALETTE, blank, legend, look, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = (  # name, legend, colour, marker, how far above the row's line, size
    ("paper", "the paper's rate", INK, "|", 0.0, 13),
    ("certificate", "certificate, fitted", PALETTE[1], "s", 0.16, 4.5),
    ("measured", "measured, with its interval", PALETTE[0], "o", -0.16, 4.5),
)


def exponents(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw exponents as dots: a line per regime and system, a panel per variable.

    A row has `table`, `regime`, `system`, `variable`, and `paper`, `certificate`, `measured`, the last two
    with `_low` and `_high` for an interval; what is None or missing is not drawn.

    >>> row = {"table": 1, "regime": "small epsilon", "system": "P-COMW", "variable": "T", "paper": 0.5}
    >>> exponents([row]).axes[0].get_title("left")
    'exponent of T'
    """
    if not rows:
        raise ValueError("exponents needs one row at least, got none; give table, regime, system, variable and paper")
    variables = list(dict.fromkeys(row["variable"] for row in rows))
    lines = list(dict.fromkeys((row["table"], row["regime"], row["system"]) for row in rows))
    heads = list(dict.fromkeys(line[:2] for line in lines))
    place, y, texts = {}, 0.0, []
    for head in heads:
        texts.append((y, f"Table {head[0]}, {head[1]}"))
        for line in lines:
            if line[:2] == head:
                y += 1.0
                place[line] = y
        y += 1.4
    with look():
        figure, axes = blank(1, len(variables), width=2.2 + 1.7 * len(variables), height=1.0 + 0.22 * y, sharey=True)
        for axis, variable in zip(axes[0], variables, strict=True):
            for row in rows:
                if row["variable"] == variable:
                    _row(axis, row, place[row["table"], row["regime"], row["system"]])
            axis.set_title(f"exponent of {variable}")
            axis.tick_params(axis="y", length=0)
            axis.spines["left"].set_visible(False)
            axis.margins(x=0.12)
        first = axes[0, 0]
        names = [short(line[2]) for line in lines] + [text for _, text in texts]
        first.set_yticks([*(place[line] for line in lines), *(at for at, _ in texts)], names)
        for label in first.get_yticklabels()[len(lines) :]:
            label.set_fontweight("bold")
        for axis in axes[0]:  # no line beside a heading
            for line in axis.yaxis.get_gridlines()[len(lines) :]:
                line.set_visible(False)
        first.set_ylim(y - 0.7, -0.7)
        legend(figure, axes[0])
    return figure


def _row(axis: Axes, row: Mapping[str, Any], y: float) -> None:
    for name, text, colour, marker, shift, size in _KINDS:
        value = row.get(name)
        if value is None:
            continue
        low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
        if low is not None and high is not None:
            axis.plot([low, high], [y - shift, y - shift], color=colour, linewidth=1.2)
        width = 2.0 if marker == "|" else 1.0
        axis.plot(
            [value], [y - shift], linestyle="", color=colour, marker=marker, markersize=size, mew=width, label=text
        )
