"""Tables 1 and 2 of the paper, made again: the previous best beside P-COMW in levels, who wins, and exponents."""

from reticent.lab.tables._cell import study as curve_study
from reticent.lab.tables._exponents import exponent_rows
from reticent.lab.tables._make import SECTIONS, Workers, count, judged, make
from reticent.lab.tables._regimes import REGIMES, TABLE_1, TABLE_2, Regime
from reticent.lab.tables._text import SHORT_CAPTION, SHORT_HEADS, markdown, short_line
from reticent.lab.tables._verdicts import verdict

__all__ = [
    "REGIMES",
    "SECTIONS",
    "SHORT_CAPTION",
    "SHORT_HEADS",
    "TABLE_1",
    "TABLE_2",
    "Regime",
    "Workers",
    "count",
    "curve_study",
    "exponent_rows",
    "judged",
    "make",
    "markdown",
    "short_line",
    "verdict",
]
