"""Rounds from files of any size: CSV (plain, gzipped or from standard input) and Parquet, block by block."""

from reticent.lab.files._marks import Keys, Moments, moment_of, time_text
from reticent.lab.files._open import ahead, open_table
from reticent.lab.files._rounds import Layout, Rounds
from reticent.lab.files._scorer import Scorer
from reticent.lab.files._table import BadRow, Column, Distinct, Part, Table, TooManyBad, choose

__all__ = [
    "BadRow",
    "Column",
    "Distinct",
    "Keys",
    "Layout",
    "Moments",
    "Part",
    "Rounds",
    "Scorer",
    "Table",
    "TooManyBad",
    "ahead",
    "choose",
    "moment_of",
    "open_table",
    "time_text",
]
