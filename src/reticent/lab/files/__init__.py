"""Rounds from files of any size: CSV (plain, gzipped or from standard input) and Parquet, block by block."""

from reticent.lab.files._ahead import ahead
from reticent.lab.files._columns import BadRow, Column, choose
from reticent.lab.files._open import count_rows, open_table
from reticent.lab.files._part import Part, Table
from reticent.lab.files._rounds import Layout, Rounds

__all__ = ["BadRow", "Column", "Layout", "Part", "Rounds", "Table", "ahead", "choose", "count_rows", "open_table"]
