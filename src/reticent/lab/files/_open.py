"""From a path to a table, by what the file is and not by its name; blocks read ahead; the number of its rows."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

import numpy as np

from reticent.lab.files._csv import CsvTable, Source, by_the_book
from reticent.lab.files._parquet import ParquetTable
from reticent.lab.files._table import Table

T = TypeVar("T")
_DEPTH = 2  # blocks that wait at most: memory stays that of a few
_PATIENCE = 0.05  # seconds after which a thread with nowhere to put its block looks whether anybody still wants it


def ahead(items: Iterable[T]) -> Generator[T, None, None]:
    """Give items that are made in a thread of their own, a few ahead; an error comes after those before it.

    Closing the iterator ends the thread.

    >>> list(ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(_DEPTH)
    unwanted = threading.Event()

    def put(more: bool, value: Any) -> bool:
        while not unwanted.is_set():
            try:
                waiting.put((more, value), timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        if unwanted.is_set():
            return
        try:
            for item in items:
                if not put(True, item):
                    return
            put(False, None)
        except BaseException as error:
            put(False, error)

    thread = threading.Thread(target=make, daemon=True)
    try:
        thread.start()
        while True:
            more, value = waiting.get()
            if more:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        unwanted.set()
        # A thread inside a parser must not outlive this: the process may end next, and would tear the parser down.
        if thread.is_alive():
            thread.join()


# From a path to a table, by what the file is and not by its name; and the number of its rows.

_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_CHUNK = 1 << 20
_BLANK = b"\n\r \t\v\f"  # a line of these only is none, except where one of them separates fields


def open_table(path: str, *, separator: str = ",", header: bool = True) -> Table:
    r"""Open a CSV file (gzipped or not; "-" is standard input) or a Parquet file for one pass.

    `separator` is one character, or "tab"; without a `header` columns are called 1, 2, ...

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.csv"
    ...     _ = path.write_text("age,income\n41,1e5\n")
    ...     with open_table(str(path)) as table:
    ...         table.names
    ('age', 'income')
    """
    letter = _letter(separator)
    source = Source(path)
    if source.parquet:
        source.close()
        if source.live:
            raise ValueError(f"{source.name} must be CSV, got Parquet, which cannot be read from a pipe; name the file")
        return ParquetTable(path)
    try:
        return CsvTable(source, letter, header)
    except BaseException:
        source.close()
        raise


def count_rows(path: str, *, separator: str = ",", header: bool = True) -> int:
    """Return the number of rows of a file: of a CSV file, its lines that are neither blank nor inside quotes.

    Bad rows count as well, and all lines where quotes are not used by the book: never less than what can be read.
    """
    source = Source(path)
    if source.parquet:
        source.close()
        with ParquetTable(path) as table:
            return table.rows
    try:
        return max(0, _Lines(source, _letter(separator).encode()).count() - header)
    finally:
        source.close()


class _Lines:
    """Counts the lines of a file in one quick pass."""

    def __init__(self, source: Source, separator: bytes) -> None:
        self.source, self.separator = source, separator
        self.inside = 0  # 1 within quotes
        self.records = self.lines = 0  # that hold something; lines may end within quotes
        self.regular = True

    def count(self) -> int:
        rest, got = b"", b"start"
        while got:
            got = self.source.read(_CHUNK)
            data = rest + got
            stop = data.rfind(b"\n") + 1 if got else len(data)
            data, rest = data[:stop], data[stop:]
            found = None if self.inside else _plain_lines(data)
            if found is None:
                self._careful(data)
            else:
                self.records, self.lines = self.records + found, self.lines + found
        return self.records if self.regular and not self.inside else self.lines

    def _careful(self, data: bytes) -> None:
        letters = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(letters == ord('"'))
        blank = [letter for letter in _BLANK if letter not in self.separator]
        filled = np.append(0, np.cumsum(~np.isin(letters, blank)))
        ends = np.flatnonzero(letters == ord("\n"))
        if not data.endswith(b"\n"):
            ends = np.append(ends, len(data))
        outside = ends[(np.searchsorted(quotes, ends) + self.inside) % 2 == 0]
        self.lines += int((np.diff(filled[ends], prepend=0) > 0).sum())
        self.records += int((np.diff(filled[outside], prepend=-self.inside) > 0).sum())
        self.regular &= by_the_book(letters, quotes, self.separator, self.inside)
        self.inside ^= quotes.size % 2


def _plain_lines(data: bytes) -> int | None:
    """Return the number of lines; None where some may be blank, quoted or without an end."""
    if b'"' in data or not data.endswith(b"\n"):
        return None
    letters = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))  # quicker than bytes.count where there are many
    # A line that begins like a blank one may be one.
    return None if letters[0] <= ord(" ") or (letters[ends[:-1] + 1] <= ord(" ")).any() else ends.size


def _letter(separator: str) -> str:
    letter = _NAMES.get(separator, separator)
    if len(letter) != 1 or not letter.isascii() or letter in '"\r\n':
        raise ValueError(f"separator must be one character such as , or ; (or tab), got {separator!r}")
    return letter
