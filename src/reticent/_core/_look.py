"""One look for every picture: colours for the colour-blind, marks for grey print, text that stays text."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reticent._core._errors import need
from reticent._core._names import GRID, INK, LOOKS, MUTED, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<", ">", "*", "p", "h")
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (5, 1.5),
    (1.2, 1.4),
    (6, 1.5, 1.2, 1.5),
    (3, 1.2),
    (6, 1.2, 1.2, 1.2, 1.2, 1.2),
)
_LOOK = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.titlecolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.grid.which": "major",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "reticent",  # ids follow from this and the contents alone
    "path.simplify_threshold": 0.3,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "lines.solid_capstyle": "round",
    "axes.formatter.use_mathtext": False,
    "errorbar.capsize": 2,
}
WIDTH = 5.6  # inches: the text column of a page
NARROW = 3.5  # inches: a phone, where the text of a picture is then as large as that around it
_ON_A_PHONE = ContextVar("on a phone", default=False)
_HANDLE, _LETTER, _ROW = 0.62, 0.073, 0.17  # inches of a legend that a handle, a letter and a row take


@dataclass(frozen=True)
class Style:
    """How one system is drawn."""

    colour: str
    marker: str
    dash: tuple[float, ...]

    def line(self) -> dict[str, Any]:
        """Return the keywords of a line."""
        return {"color": self.colour, "dashes": self.dash, "linewidth": 1.5} if self.dash else self.solid()

    def again(self, times: int) -> Style:
        """Return a style of the same colour with other marks, for the same system with another plan."""
        return Style(self.colour, _shifted(MARKERS, self.marker, times), _shifted(DASHES, self.dash, times))

    def solid(self) -> dict[str, Any]:
        """Return the keywords of an undashed line."""
        return {"color": self.colour, "linewidth": 1.5}

    def dots(self, *, hollow: bool = False) -> dict[str, Any]:
        """Return the keywords of marks, filled for what was measured and hollow for what is certified."""
        face = "none" if hollow else self.colour
        return {"marker": self.marker, "markersize": 5, "markerfacecolor": face, "markeredgecolor": self.colour}


def _shifted(choices: tuple[Any, ...], one: Any, times: int) -> Any:
    return choices[(choices.index(one) + times) % len(choices)]


def styles(systems: Iterable[str]) -> dict[str, Style]:
    """Return a style per system, no two alike: a system of the registry has the same one in every picture.

    >>> found = styles(["something new", "P-COMW"])
    >>> found["P-COMW"].colour, found["something new"].colour != found["P-COMW"].colour
    ('#D55E00', True)
    """
    names = list(dict.fromkeys(systems))
    numbers = {name: LOOKS[name] for name in names if name in LOOKS}
    seen = {number % len(PALETTE) for number in numbers.values()}
    own = {*LOOKS.values()}
    free = iter([*(k for k in range(len(PALETTE)) if k not in seen), *(k for k in range(10_000) if k not in own)])
    numbers |= {name: next(free) for name in names if name not in numbers}
    return {name: numbered(number) for name, number in numbers.items()}


def numbered(number: int) -> Style:
    """Return the style of a number; the first 84 differ."""
    again = number // len(PALETTE)
    return Style(
        PALETTE[number % len(PALETTE)],
        MARKERS[number % len(MARKERS)],
        DASHES[(number + again) % len(DASHES)],
    )


def number(value: float) -> str:
    """Return a number for a person, with three digits or thousands.

    >>> number(1234567), number(0.012345), number(12.34), number(-0.0)
    ('1,234,567', '0.0123', '12.3', '0')
    """
    if abs(value) >= 999.5:  # what three digits would write as 1e+03
        return f"{value:,.0f}"
    return f"{value + 0.0:.3g}".replace("e-0", "e-")


@contextmanager
def look() -> Iterator[None]:
    """Make and write figures with this look inside, whatever the user's settings are."""
    matplotlib = need("matplotlib", "lab")
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Names of columns may be in any writing; in an SVG they are text, which has a font wherever it is read.
        warnings.filterwarnings("ignore", r"(?s)Glyph .* missing from", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_LOOK)
        yield


@contextmanager
def narrow() -> Iterator[None]:
    """Make figures inside for a phone: no wider than `NARROW`, with panels below each other."""
    before = _ON_A_PHONE.set(True)
    try:
        yield
    finally:
        _ON_A_PHONE.reset(before)


def across(most: int) -> int:
    """Return how many panels may stand beside each other, where a page has room for `most`."""
    return 1 if _ON_A_PHONE.get() else most


def blank(
    rows: int = 1, columns: int = 1, *, height: float = 3.3, width: float = WIDTH, **more: Any
) -> tuple[Figure, Any]:
    """Return a figure that belongs to no window, and its axes as an array."""
    width = min(width, NARROW) if _ON_A_PHONE.get() else width
    figure: Figure = need("matplotlib.figure", "lab").Figure(figsize=(width, height))
    need("matplotlib.backends.backend_agg", "lab").FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """Add one legend under the axes, naming everything once, in as many columns as fit."""
    found = {name: mark for one in axes for mark, name in zip(*one.get_legend_handles_labels(), strict=True)}
    if found:
        longest = max(len(name) for name in found)
        columns = max(1, min(len(found), int(figure.get_figwidth() / (_HANDLE + _LETTER * longest))))
        rows = -(-len(found) // columns)
        figure.set_figheight(figure.get_figheight() + _ROW * rows)
        figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower left",
            ncols=columns,
            handlelength=3.2,
        )


def counts(axis: Any) -> None:
    """Write an axis's numbers as people do: with thousands, shortened from 10k on."""
    axis.set_major_formatter(lambda value, _: tick(value))


def logarithmic(axis: Any, around: float | None = None) -> None:
    """Make an x or y axis logarithmic, with enough plain numbers on it; linear from -`around` to it, if that is given.

    So what is measured around 0 and what is certified far above it can be seen on one axis.
    """
    ticker = need("matplotlib.ticker", "lab")
    low, high = axis.get_data_interval()
    change = getattr(axis.axes, f"set_{axis.axis_name}scale")
    if around is not None:
        edge = _rounded_up(around)
        change("symlog", linthresh=edge, linscale=1.5)
        far = [10.0**k for k in range(math.floor(math.log10(edge)) + 1, math.ceil(math.log10(max(high, edge))) + 1)]
        below = [-edge] if low < -edge / 4 else []
        axis.set_major_locator(ticker.FixedLocator([*below, 0.0, edge, *(x for x in far if x > 3 * edge)]))
        axis.set_minor_locator(ticker.NullLocator())
    elif low <= 0:  # such as no change at all: linear up to 1
        change("symlog", linthresh=1.0)
    else:
        change("log")
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 30 * low else (1,)))
    axis.set_minor_formatter(ticker.NullFormatter())
    counts(axis)


def _rounded_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50, ..."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= value * (1 - 1e-12))


def tick(value: float) -> str:
    """Return the text of a tick.

    >>> tick(1000), tick(250000), tick(1e6), tick(0.5)
    ('1,000', '250k', '1M', '0.5')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * (10 if letter == "k" else 1):
            return f"{value / size:.4g}{letter}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
