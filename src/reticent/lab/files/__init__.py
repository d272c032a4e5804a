"""Rounds from files of any size: CSV (plain, gzipped or from standard input) and Parquet, block by block."""

from reticent.lab.files._open import ahead, count_rows, open_table
from reticent.lab.files._rounds import Layout, Rounds
from reticent.lab.files._table import BadRow, Column, Part, Table, choose

__all__ = ["BadRow", "Column", "Layout", "Part", "Rounds", "Table", "ahead", "choose", "count_rows", "open_table"]
