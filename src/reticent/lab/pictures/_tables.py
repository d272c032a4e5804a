"""Pictures of the paper's tables: who wins in which regime, exponents side by side, which system is best where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reticent._core._look import across, blank, legend, logarithmic, look, number, styles, tick
from reticent._core._names import GRID, INK, PALETTE
from reticent._core._names import label as short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LEVELS = (  # name, legend, colour, marker, how far above the row's line, whether hollow
    ("certificate", "certificate", PALETTE[1], "s", 0.22, False),
    ("large", "certificate at large T", PALETTE[1], "s", 0.0, True),
    ("measured", "measured", PALETTE[0], "o", -0.22, False),
)


def winners(levels: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw P-COMW's regret divided by that of the previous best: a line per regime and rival, a mark per point.

    A level has `table`, `regime`, `text`, `rival` and `points`; a point has `scale` ("runnable" or "large"), and `ours`
    and `theirs` with `certificate`, `vacuous` and, where it was run, `measured`. Left of 1 P-COMW wins. Where one of
    both says nothing, nothing is drawn.

    >>> side = {"certificate": 0.1, "vacuous": False, "measured": 0.05}
    >>> point = {"scale": "runnable", "ours": side, "theirs": side | {"certificate": 0.2}}
    >>> level = {"table": 1, "regime": "1.1", "text": "large epsilon", "rival": "DP-FTRL", "points": [point]}
    >>> [float(line.get_xdata()[0]) for line in winners([level]).axes[0].get_lines()[1:]]
    [0.5, 1.0]
    """
    if not levels:
        raise ValueError("winners needs one level at least, got none; give table, regime, text, rival and points")
    place, y, texts = [], 0.0, []
    for level, before in zip(levels, [None, *levels], strict=False):
        if before is None or before["regime"] != level["regime"]:
            y += 0.4 if before is not None else 0.0
            texts.append((y, f"{level['regime']}: {level['text']}"))
            y += 1.0
        place.append(y)
        y += 1.0
    with look():
        figure, axes = blank(height=0.8 + 0.22 * y)
        axis = axes[0, 0]
        axis.axvline(1.0, color=INK, linewidth=1.0)
        for level, here in zip(levels, place, strict=True):
            for name, text, colour, marker, shift, hollow in _LEVELS:
                ratios = _ratios(level["points"], name)
                face = "none" if hollow else colour
                marks = {"marker": marker, "markersize": 4.5, "markerfacecolor": face, "markeredgecolor": colour}
                if ratios:
                    axis.plot(ratios, [here - shift] * len(ratios), linestyle="", alpha=0.75, label=text, **marks)
        logarithmic(axis.xaxis)
        axis.set_yticks(place, [short(level["rival"]) for level in levels])
        for at, text in texts:
            head = axis.annotate(text, (0.0, at), (2, 0), ("axes fraction", "data"), "offset points", va="center")
            head.set(weight="bold", bbox={"facecolor": "white", "linewidth": 0, "pad": 1})
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.set_ylim(y - 0.3, -0.7)
        axis.set_xlabel("P-COMW's regret divided by that of the other")
        axis.set_title(f"Table {levels[0]['table']}: left of the line P-COMW wins")
        legend(figure, [axis])
    return figure


def _ratios(points: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    found = []
    for point in points:
        sides = point["ours"], point["theirs"]
        if name == "measured":
            values = [side.get("measured") for side in sides]
        elif point["scale"] == ("large" if name == "large" else "runnable"):
            values = [None if side["vacuous"] else side["certificate"] for side in sides]
        else:
            continue
        if all(value is not None and value > 0 for value in values):
            found.append(values[0] / values[1])
    return found


_FIRST = ("T", "d", "epsilon", "S")  # panels stand in this order, others behind them
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
    variables = sorted(dict.fromkeys(row["variable"] for row in rows), key=lambda name: (*_FIRST, name).index(name))
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


# Which system is best where: a map over rounds, dimension and epsilon.

_ACROSS = 3  # panels beside each other
_PALE = 0.30  # how much of a system's colour its cells have: dark text stays readable on all of them


def landscape(cells: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the best system for each number of rounds, dimension and epsilon: a panel per dimension, named cell by cell.

    A cell has `horizon`, `dim`, `epsilon` and `system`; `system` is None where no certificate says anything, and
    `bound`, if it is there, is a number to write into the cell (the certified regret per round).

    >>> cells = [{"horizon": 10**k, "dim": 1, "epsilon": 1.0, "system": "P-COMW", "bound": 0.1} for k in (4, 5)]
    >>> landscape(cells).axes[0].get_title("left")
    '1 dimension'
    """
    if not cells:
        raise ValueError("landscape needs one cell at least, got none; give horizon, dim, epsilon and system of each")
    dims, horizons, epsilons = (sorted({cell[name] for cell in cells}) for name in ("dim", "horizon", "epsilon"))
    drawn = styles(cell["system"] for cell in cells if cell["system"] is not None)
    columns = min(len(dims), across(_ACROSS))
    rows = -(-len(dims) // columns)
    with look():
        width = max(3.2, columns * max(2.2, 0.4 + 0.95 * len(epsilons)))
        figure, axes = blank(rows, columns, width=width, height=rows * (0.9 + 0.55 * len(horizons)), sharey=True)
        for axis in axes.flat[len(dims) :]:
            axis.set_visible(False)
        for axis, dim in zip(axes.flat, dims, strict=False):
            axis.set_title(f"{dim} dimension" + ("" if dim == 1 else "s"))
            axis.set(xlim=(-0.5, len(epsilons) - 0.5), ylim=(-0.5, len(horizons) - 0.5), xlabel="epsilon")
            axis.set_xticks(range(len(epsilons)), [number(epsilon) for epsilon in epsilons])
            axis.set_yticks(range(len(horizons)), [tick(horizon) for horizon in horizons])
            axis.grid(visible=False)
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
            for cell in cells:
                if cell["dim"] == dim:
                    colour = GRID if cell["system"] is None else drawn[cell["system"]].colour
                    _cell(axis, epsilons.index(cell["epsilon"]), horizons.index(cell["horizon"]), cell, colour)
        for axis in axes[:, 0]:
            axis.set_ylabel("rounds")
    return figure


def _cell(axis: Axes, x: int, y: int, cell: Mapping[str, Any], colour: str) -> None:
    from matplotlib.colors import to_rgb

    pale = [1 - _PALE * (1 - part) for part in to_rgb(colour)]
    none = cell["system"] is None
    axis.add_patch(_square(x, y, facecolor="white" if none else pale, edgecolor=colour, hatch="////" if none else None))
    name = "none" if none else short(cell["system"]).replace(", ", ",\n").replace(" ", "\n", 1)
    bound = cell.get("bound")
    text = name if bound is None else f"{name}\n{number(bound)}"
    axis.text(x, y, text, ha="center", va="center", fontsize=7, color=INK, linespacing=1.05)


def _square(x: int, y: int, **look_of: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.46), 0.94, 0.92, linewidth=1.2, **look_of)
