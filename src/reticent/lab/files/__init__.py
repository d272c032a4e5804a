"""Rounds from files of any size: CSV (plain, gzipped or from standard input) and Parquet, block by block."""

from reticent.lab.files._open import ahead, open_table
from reticent.lab.files._rounds import Layout, Rounds
from reticent.lab.files._scorer import Scorer
from reticent.lab.files._table import BadRow, Column, Distinct, Part, Table, TooManyBad, choose

__all__ = [
    "BadRow",
    "Column",
    "Distinct",
    "Layout",
    "Part",
    "Rounds",
    "Scorer",
    "Table",
    "TooManyBad",
    "ahead",
    "choose",
    "open_table",
]
