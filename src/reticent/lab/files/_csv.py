"""CSV in blocks of lines: a fast parser for what is plainly good, an exact one that knows the line of what is not."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent._core._errors import need
from reticent.estimators._encoding import MISSING
from reticent.lab.files._table import BadCell, Column, Part, Sieve, Table

STDIN = "-"
_MAGIC = 4  # bytes that tell a format


class Source:
    """Reads bytes; what is gzipped is unpacked, by its first bytes and whatever its name.

    A file that flows (standard input, a named pipe) is `live`, and can be read once.
    `read` waits for something and returns what is there, at most `size` bytes; nothing means the end.
    """

    def __init__(self, path: str) -> None:
        """Open a file, or standard input for "-"."""
        self._stdin = path == STDIN
        self.name = "standard input" if self._stdin else path
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; name a file in it")
        # Named pipes are read as they flow, too.
        self.live = self._stdin or (os.path.exists(path) and not os.path.isfile(path))
        if self._stdin and sys.stdin is None:
            raise ValueError("standard input is closed; name a file, or send rows with a pipe or <")
        raw = sys.stdin.buffer if self._stdin else Path(path).open("rb")  # noqa: SIM115 (close() does)
        self._raw = cast(io.BufferedReader, raw)
        self._size = 0 if self.live else os.path.getsize(path)
        self.start = self._first_bytes()
        self._bytes: BinaryIO = self._raw
        if self.start.startswith(b"\x1f\x8b"):
            self._bytes = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw))
        self._fresh = True
        self._broken: ValueError | None = None

    def _first_bytes(self) -> bytes:
        """Return the first bytes without taking them."""
        found = self._raw.peek(_MAGIC) if hasattr(self._raw, "peek") else b""
        return bytes(found[:_MAGIC])

    @property
    def parquet(self) -> bool:
        """Whether the first bytes, or the name of a file that is too short to have any, say Parquet."""
        return self.start == b"PAR1" or self.name.endswith((".parquet", ".pq"))

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, as many as are there at once; nothing at the end."""
        pieces = [self._next(size)]
        left = 0 if self.live else size - len(pieces[0])
        # Bytes come in pieces, so that those before damage are not lost with it.
        while left and pieces[-1]:
            pieces.append(self._next(left))
            left -= len(pieces[-1])
        found = b"".join(pieces)
        if not found and self._broken is not None:
            raise self._broken
        if self._fresh:
            self._fresh = False
            found = self._opened(found)
        return found

    def _next(self, size: int) -> bytes:
        """Return what one look at the file gives; nothing at its end, or where it is damaged."""
        if self._broken is not None:
            return b""
        try:
            return bytes(self._bytes.read1(size))  # type: ignore[attr-defined]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._broken = ValueError(f"{self.name} is a damaged or truncated gzip file ({error}); get it again")
            return b""

    def _opened(self, found: bytes) -> bytes:
        """Return the first bytes of a text without its byte order mark; refuse what is no text."""
        if found.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
            raise ValueError(f"{self.name} is UTF-32 text; save it as UTF-8")
        if found.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{self.name} is UTF-16 text; save it as UTF-8")
        if found.startswith(b"PK\x03\x04"):
            raise ValueError(f"{self.name} is a zip archive or a spreadsheet; save it as CSV")
        if b"\0" in found[:1024]:
            raise ValueError(f"{self.name} is not text; expected CSV or Parquet")
        return found.removeprefix(b"\xef\xbb\xbf")

    def done(self) -> float:
        """Return the share of the file that has been read; 0 for standard input."""
        return self._raw.tell() / self._size if self._size else 0.0

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self._stdin:
            self._raw.close()


# Where the last whole record of a block ends when fields are quoted.

_FIELD = 1 << 17  # bytes: the longest field of the csv module


def record_end(data: bytes, separator: bytes, final: bool) -> int | None:
    r"""Return where the last whole record of these lines ends, or None where quotes are not used by the book.

    >>> record_end(b'1,"a\nb"\n2,"c\n', b",", False)
    8
    >>> record_end(b'1,5" pipe\n', b",", False) is None
    True
    """
    letters = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    if not by_the_book(letters, quotes, separator):
        return None
    if len(quotes) % 2 == 0 and (final or data.endswith(b"\n")):
        return len(data)
    newlines = np.flatnonzero(letters == ord("\n"))
    outside = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    end = int(outside[-1]) + 1 if outside.size else 0
    # A field that is too long to be one, or that never ends, is for the exact reader to judge.
    return None if final or len(data) - end > _FIELD else end


def by_the_book(letters: NDArray[np.uint8], quotes: NDArray[np.int64], separator: bytes) -> bool:
    """Say whether a quote opens at the start of a field, closes at its end, and is written twice inside.

    `quotes` are their places.
    """
    opening, closing = quotes[::2], quotes[1::2]
    # A quote next to a quote is one that closes and opens again at once: written twice.
    starts = (ord(separator), ord("\n"), ord('"'))
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < len(letters) - 1] + 1]
    return bool(np.isin(before, starts).all() and np.isin(after, (*starts, ord("\r"))).all())


# CSV in blocks of lines: a fast parser for what is plainly good, an exact one that knows the line of what is not.

_CHUNK = 3 << 20  # bytes read together, some 65536 rows of a few numbers
_FIRST = 1 << 16  # bytes that the names of columns hardly ever take
_SMALL = 1 << 14  # bytes that are not worth halving in search of a bad row
_LONGEST = 1 << 26  # bytes of one line: beyond this the file is not text in lines


class CsvTable(Table):
    """One pass over a CSV file, gzipped or not, or over standard input as lines arrive."""

    place = "line"

    def __init__(self, source: Source, separator: str, header: bool) -> None:
        """Read the first line: names of columns, or (without a header) the first row, whose columns have numbers."""
        self._source, self._separator = source, separator
        self._rest, self._line, self._ended = b"", 1, False
        first = self._first_record(keep=not header)
        if not first:
            raise ValueError(f"{source.name} is empty; expected {'a line of column names and ' if header else ''}rows")
        names = [name.strip() for name in first] if header else [str(i + 1) for i in range(len(first))]
        super().__init__(source.name, names)
        self.live, self._first = source.live, first

    def hint(self, wanted: str) -> str:
        """Ask whether another separator is meant, where the first line has the column that is looked for with it."""
        return _other_separator(self._first, wanted)

    def done(self) -> float:
        """Return the share of the bytes read; 0 for standard input."""
        return self._source.done()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def _first_record(self, keep: bool) -> list[str]:
        size = _FIRST
        while True:
            self._more(size)
            size = max(_FIRST, len(self._rest))  # twice as much each time: a long line is looked at a few times only
            lines = self._rest.split(b"\n")
            feed = _Feed(lines if self._ended else lines[:-1], 0)
            reader = csv.reader(feed, delimiter=self._separator, strict=True)
            try:
                row = next((row for row in reader if "".join(row).strip()), [])
            except csv.Error as error:
                if feed.dry and not self._ended:
                    continue
                raise ValueError(f"{self._source.name}, line 1: {_reason(error)}; is this a CSV file?") from None
            if not row and not self._ended:
                continue
            if not keep:
                self._rest = b"\n".join(lines[feed.at :])
                self._line += feed.at
            return row

    def _more(self, size: int) -> None:
        """Read on; the start of a line that has no end yet stays in front."""
        got = self._source.read(size)
        self._ended = not got
        self._rest += got
        if len(self._rest) > _LONGEST:
            raise ValueError(
                f"{self._source.name}, line {self._line}: no end of the line within {_LONGEST >> 20} MiB; is this a "
                "CSV file?"
            )

    def _parts(self, columns: Sequence[Column], skip: bool) -> Iterator[Part]:
        fast = _Fast(columns, len(self.names), self._separator)
        while True:
            # What came with the header is taken before more is waited for: a live pipe may stay quiet.
            stop = len(self._rest) if self._ended else self._rest.rfind(b"\n") + 1
            if stop:
                data, tail = self._rest[:stop], self._rest[stop:]
                used = yield from self._take(data, fast, Sieve(self, columns, skip))
                self._rest = data[used:] + tail
            if self._ended:
                return
            self._more(_CHUNK)

    def _take(self, data: bytes, fast: _Fast, sieve: Sieve) -> Generator[Part, None, int]:
        """Give the rows of whole lines; return how many bytes of them were used: a quoted field may go on."""
        end: int | None = len(data)
        quoted = b'"' in data
        if quoted:
            end = record_end(data, self._separator.encode(), self._ended)
        # A carriage return alone ends no line here, though some parsers think so.
        if end is None or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return (yield from self._exact(data, sieve))
        if end:
            yield from self._plain(data[:end], fast, sieve, quoted)
        return end

    def _plain(self, data: bytes, fast: _Fast, sieve: Sieve, quoted: bool) -> Iterator[Part]:
        """Give the rows of whole records; where one is not plainly good, look for it in halves."""
        values = fast.read(data)
        if values is not None:
            first = self._line
            self._line += data.count(b"\n") + (not data.endswith(b"\n"))
            if len(values):
                yield self._even(values, _Lines(data, first, self._line - first == len(values), self._separator))
            return
        middle = data.find(b"\n", len(data) // 2) + 1
        if quoted or len(data) <= _SMALL or not 0 < middle < len(data):
            yield from self._exact(data, sieve, whole=True)
            return
        yield from self._plain(data[:middle], fast, sieve, quoted)
        yield from self._plain(data[middle:], fast, sieve, quoted)

    def _exact(self, data: bytes, sieve: Sieve, whole: bool = False) -> Generator[Part, None, int]:
        """Give the rows one by one; return how many bytes were used."""
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        at, first = 0, self._line
        while at < len(lines):
            feed = _Feed(lines, at)
            reader = csv.reader(feed, delimiter=self._separator, strict=True)
            try:
                for row in reader:
                    yield from self._row(row, first + at, sieve)
                    at = feed.at
            except csv.Error as error:
                if feed.dry and not whole and not self._ended:
                    break  # the field goes on in the next block
                yield from sieve.bad(first + at, BadCell(_reason(error)))
                # A quote that swallowed lines to no end: go on after the line where it began.
                at += 1
        yield from sieve.rows()
        self._line = first + at
        return min(len(data), sum(len(line) + 1 for line in lines[:at]))

    def _row(self, row: list[str], line: int, sieve: Sieve) -> Iterator[Part]:
        if not row or (len(row) == 1 and not row[0].strip()):
            return
        if len(row) != len(self.names):
            yield from sieve.bad(line, BadCell(f"{len(row)} fields where {len(self.names)} are expected"))
            return
        try:
            sieve.good([column.read(row[column.place]) for column in sieve.columns], line)
        except BadCell as bad:
            yield from sieve.bad(line, bad)


class _Fast:
    """The parser for what is plainly good: numbers, as many fields in every row as there are columns."""

    def __init__(self, columns: Sequence[Column], width: int, separator: str) -> None:
        self.columns, self.width, self.separator = columns, width, separator
        self.arrow, self.csv = need("pyarrow", "lab"), need("pyarrow.csv", "lab")
        text, number = self.arrow.string(), self.arrow.float64()
        self.types = {str(c.place): text if c.text else number for c in columns}
        # Texts for nothing are numbers that are missing, where something counts in their place.
        fills = any(column.fills for column in columns)
        self.nothing = [form for text in MISSING for form in {text, text.upper(), text.title()}] if fills else []

    def read(self, data: bytes) -> Array | None:
        """Return the rows, or None where something is not plainly good."""
        names = [str(i) for i in range(self.width)]
        try:
            table = self.csv.read_csv(
                self.arrow.BufferReader(data),
                read_options=self.csv.ReadOptions(
                    use_threads=False, block_size=min(len(data) + 1, (1 << 31) - 1), column_names=names
                ),
                parse_options=self.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=self.csv.ConvertOptions(
                    column_types=self.types,
                    include_columns=list(self.types),
                    null_values=self.nothing,
                    strings_can_be_null=False,
                ),
            )
        except self.arrow.ArrowInvalid:
            return None
        values = np.empty((table.num_rows, len(self.columns)))
        for i, column in enumerate(self.columns):
            found = table.column(str(column.place))
            if column.text:
                coded = found.combine_chunks().dictionary_encode()
                try:
                    codes = np.array([column.read(text) for text in coded.dictionary.to_pylist()])
                except BadCell:
                    return None
                values[:, i] = codes[coded.indices.to_numpy()] if len(coded) else 0.0
                continue
            numbers = found.to_numpy()
            if not column.good(numbers).all():
                return None
            values[:, i] = column.finish(numbers)
        return values


class _Lines:
    """The line of each row of a block; found by reading the block again where blank or broken lines shift it."""

    def __init__(self, data: bytes, first: int, even: bool, separator: str) -> None:
        self.data, self.first, self.even, self.separator = data, first, even, separator
        self._found: list[int] | None = None

    def __call__(self, i: int) -> int:
        if self.even:
            return self.first + i
        if self._found is None:
            feed = _Feed(self.data.split(b"\n"), 0)
            self._found, begin = [], 0
            for row in csv.reader(feed, delimiter=self.separator):
                if row:
                    self._found.append(self.first + begin)
                begin = feed.at
        return self._found[i]


class _Feed:
    """Lines for the csv module, which says `at` any time how many it has taken, and `dry` when it wanted more."""

    def __init__(self, lines: list[bytes], at: int) -> None:
        self.lines, self.at, self.dry = lines, at, False

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self.at >= len(self.lines):
            self.dry = True
            raise StopIteration
        self.at += 1
        return self.lines[self.at - 1].decode("utf-8", "replace") + "\n"


def _other_separator(first: list[str], wanted: str) -> str:
    """Ask whether another separator is meant, where the first line is one field that has the column between others."""
    for letter in ";\t,|" if len(first) == 1 else "":
        names = [name.strip() for name in first[0].split(letter)]
        found = wanted in names or (wanted.isdigit() and 1 <= int(wanted) <= len(names))
        if len(names) > 1 and found:
            return f"; is --separator {'tab' if letter == chr(9) else repr(letter)} meant?"
    return ""


def _reason(error: csv.Error) -> str:
    """Say what the csv module found, in other words where its own would not help."""
    text = str(error)
    if "field larger" in text:
        return f"a field of more than {csv.field_size_limit():,} characters, or a quote that is never closed"
    if "unexpected end" in text:
        return "a quote opens here and is never closed"
    if "new-line character" in text:
        return "a carriage return without a line feed"
    return f"quotes that do not belong together ({text})"
