"""Parquet in batches of rows, with the number of every row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent._core._errors import need
from reticent.lab.files._table import BadCell, Column, Part, Sieve, Table

_BATCH = 65536


class ParquetTable(Table):
    """One pass over a Parquet file; rows are counted from 1."""

    place = "row"

    def __init__(self, path: str) -> None:
        """Read the names of the columns and the number of rows."""
        self._arrow = need("pyarrow", "lab")
        parquet = need("pyarrow.parquet", "lab")
        try:
            # Column chunks are read piece by piece: a file may be one row group larger than memory.
            self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        except (self._arrow.ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            raise _broken(path, error) from None
        self.rows: int = self._file.metadata.num_rows
        self._read = 0
        super().__init__(os.fspath(path), self._file.schema_arrow.names)

    def done(self) -> float:
        """Return the share of the rows read."""
        return self._read / self.rows if self.rows else 0.0

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _parts(self, columns: Sequence[Column], skip: bool) -> Iterator[Part]:
        for column in columns:
            self._check_type(column)
        names = [self.names[column.place] for column in columns]
        batches = self._file.iter_batches(batch_size=_BATCH, columns=sorted(set(names)), use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (self._arrow.ArrowException, OSError) as error:
                raise _broken(self.name, error) from None
            if batch is None:
                return
            first = self._read + 1
            self._read += batch.num_rows
            yield from self._batch([self._find(batch, column) for column in columns], columns, first, skip)

    def _find(self, batch: Any, column: Column) -> Any:
        """Return a column of a batch, which has the chosen columns only, in their order in the file."""
        name = self.names[column.place]
        same = [i for i, other in enumerate(batch.schema.names) if other == name]
        return batch.column(same[self.names[: column.place].count(name)])

    def _check_type(self, column: Column) -> None:
        types, kind = self._arrow.types, self._file.schema_arrow.field(column.place).type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        known = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        text = (types.is_string, types.is_large_string, types.is_string_view)
        dates = (types.is_date, types.is_timestamp) if column.kind == "coded" else ()
        if not any(test(kind) for test in known + text + dates):
            raise ValueError(f"{self.name}: column {column.name!r} holds {kind} where numbers are expected")

    def _batch(self, found: list[Any], columns: Sequence[Column], first: int, skip: bool) -> Iterator[Part]:
        count = len(found[0])
        values = np.empty((count, len(columns)))
        good = np.ones(count, dtype=bool)
        for i, (array, column) in enumerate(zip(found, columns, strict=True)):
            values[:, i], fine = self._numbers(array, column)
            good &= fine
        if good.all():
            yield self._even(values, lambda i: first + i)
            return
        if skip:
            places = np.flatnonzero(good)
            before = self.skipped + np.append(0, np.cumsum(~good))
            for bad in np.flatnonzero(~good).tolist():
                self.skip(first + bad, _reason(found, columns, bad))
            if places.size:
                yield Part(values[good], lambda i: first + int(places[i]), before[np.append(places, count)])
            return
        bad = int(np.argmin(good))
        if bad:
            yield self._even(values[:bad], lambda i: first + i)
        yield from Sieve(self, columns, skip).bad(first + bad, _reason(found, columns, bad))

    def _numbers(self, array: Any, column: Column) -> tuple[Array, Any]:
        """Return the numbers of a column, and which of them are good."""
        kind = array.type.value_type if self._arrow.types.is_dictionary(array.type) else array.type
        plain = self._arrow.types.is_integer(kind) or self._arrow.types.is_floating(kind)
        if column.text or not plain:
            return _cell_by_cell(array, column)
        numbers = array.cast(self._arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        fine = column.good(numbers)  # an empty cell has become NaN
        return column.finish(numbers), fine


def _cell_by_cell(array: Any, column: Column) -> tuple[Array, Any]:
    values, fine = np.zeros(len(array)), np.ones(len(array), dtype=bool)
    # Text repeats itself: each one is read once.
    known: dict[str, float | None] = {}
    for i, cell in enumerate(array.to_pylist()):
        text = _text(cell)
        if text not in known:
            try:
                known[text] = column.read(text)
            except BadCell:
                known[text] = None
        value = known[text]
        if value is None:
            fine[i] = False
        else:
            values[i] = value
    return values, fine


def _text(cell: Any) -> str:
    """Return a cell as it would stand in a CSV file."""
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


def _reason(found: list[Any], columns: Sequence[Column], row: int) -> BadCell:
    for array, column in zip(found, columns, strict=True):
        try:
            column.read(_text(array[row].as_py()))
        except BadCell as bad:
            return bad
    raise AssertionError(f"row {row} was found bad and is good; please report this")


def _broken(path: str, error: BaseException) -> ValueError:
    detail = " ".join(str(error).split())[:120]
    return ValueError(f"{path} is not a whole Parquet file, or is damaged ({detail}); get it again or write it anew")
