"""From a path to a table, by what the file is and not by its name; and blocks read ahead."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

from reticent.lab.files._csv import CsvTable, Source
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


# From a path to a table, by what the file is and not by its name.

_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}


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


def _letter(separator: str) -> str:
    letter = _NAMES.get(separator, separator)
    if len(letter) != 1 or not letter.isascii() or letter in '"\r\n':
        raise ValueError(f"separator must be one character such as , or ; (or tab), got {separator!r}")
    return letter
