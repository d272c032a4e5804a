"""Tables 1 and 2 of the paper, made again: its rates beside the exponents of certificates and of measured regret."""

from reticent.lab.tables._cell import study as curve_study
from reticent.lab.tables._make import SECTIONS, Workers, count, make
from reticent.lab.tables._regimes import REGIMES, TABLE_1, TABLE_2, Regime
from reticent.lab.tables._text import exponent_rows, markdown, short_row

__all__ = [
    "REGIMES",
    "SECTIONS",
    "TABLE_1",
    "TABLE_2",
    "Regime",
    "Workers",
    "count",
    "curve_study",
    "exponent_rows",
    "make",
    "markdown",
    "short_row",
]
