"""One writer at a time: a lock that dies with its process, in a file that also says how far the journal had come."""

from __future__ import annotations

import errno
import json
import os
import weakref
from typing import NamedTuple

from reticent._saving._write import OWNER_ONLY

_LENGTH = 160  # bytes, written in one piece within one sector
_held: weakref.WeakSet[Lock] = weakref.WeakSet()


class Head(NamedTuple):
    """How far a journal has come: records, rounds, and the last link of the chain."""

    records: int
    rounds: int
    digest: bytes


class Lock:
    """The file `PATH-lock`: held by the one process that may write, also against a second journal within it.

    After every commit it is told how far the journal has come. It is behind or right, never ahead, whatever crashes;
    so a journal that has come less far has lost something: its write-ahead log was cut, or is gone.
    """

    _file = -1

    def __init__(self, path: str) -> None:
        self.path = f"{path}-lock"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            self._take(path)
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def _take(self, path: str) -> None:
        try:
            import fcntl
        except ImportError:
            raise OSError(errno.ENOSYS, "a journal needs a system with file locks (flock); this one has none") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"the journal is open already{_by(self._text())}, and has one writer: close it there, or wait until "
                "that process has ended; `reticent journal show` reads it meanwhile",
                path,
            ) from None

    def read(self) -> Head | None:
        """Return how far the journal had come, as far as is known."""
        text = self._text()
        if not text:
            return None
        try:
            found = json.loads(text)
            return Head(int(found["records"]), int(found["rounds"]), bytes.fromhex(found["digest"]))
        except (ValueError, KeyError, TypeError):
            raise ValueError(
                f"{self.path} is damaged, so nobody knows how far the journal had come; delete it only if you can do "
                "without that check"
            ) from None

    def write(self, head: Head) -> None:
        """Note how far the journal has come; a process that dies does not take this with it."""
        words = {"records": head.records, "rounds": head.rounds, "digest": head.digest.hex(), "process": os.getpid()}
        os.pwrite(self._file, json.dumps(words).encode().ljust(_LENGTH), 0)

    def _text(self) -> str:
        return os.pread(self._file, _LENGTH, 0).decode(errors="replace").strip()

    def release(self) -> None:
        """Let others open the journal."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        """Let go of the file where nobody closed the journal."""
        self.release()


def _by(text: str) -> str:
    try:
        return f" in process {int(json.loads(text)['process'])}"
    except (ValueError, KeyError, TypeError):
        return ""


def _leave_to_parent() -> None:
    """A forked child has a share in the locks of its parent: give it up, or they would outlive the parent."""
    for lock in _held:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
