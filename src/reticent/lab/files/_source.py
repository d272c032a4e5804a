"""Bytes from a file, gzipped or not, or from standard input as they arrive."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, cast

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
