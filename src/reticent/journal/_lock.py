"""One writer at a time: a lock that dies with its process, in a file that also says how far the journal had come."""

from __future__ import annotations

import errno
import json
import os
import weakref
import zlib
from typing import NamedTuple

from reticent.saving._write import OWNER_ONLY

_LENGTH = 160  # bytes, written in one piece within one sector
_SLOTS = (0, 256)  # written in turn, so that one is whole whatever happens to the other
_HOLDER = 32  # bytes after them: the process that holds the lock
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
    _slot = 0  # the one to be written next

    def __init__(self, path: str) -> None:
        self.path = f"{path}-lock"
        self._fresh = not os.path.lexists(self.path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            self._take(path)
            os.fchmod(self._file, OWNER_ONLY)
            self._put(str(os.getpid()), _HOLDER, _LENGTH)
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
                f"the journal is open already{self._by()}, and has one writer: close it there, or wait until "
                "that process has ended; `reticent journal show` reads it meanwhile",
                path,
            ) from None
        if not self.here():  # somebody who made it for nothing has deleted it meanwhile
            raise BlockingIOError(errno.EWOULDBLOCK, "the journal was just opened elsewhere; try again", path)

    def here(self) -> bool:
        """Say whether the file is in its place still."""
        return place_of(self.path) == _place(os.fstat(self._file))

    def check_place(self) -> None:
        """Refuse to go on without the file: another process could have made a new one, and be writing too."""
        if not self.here():
            raise OSError(
                errno.ESTALE,
                "the journal could not be used: this file, its lock, was removed or replaced while it was open; close "
                "the journal, see who else has it open, and open it again",
                self.path,
            )

    def read(self) -> Head | None:
        """Return how far the journal had come, as far as is known."""
        texts = [os.pread(self._file, _LENGTH, slot).decode(errors="replace").strip("\0 ") for slot in _SLOTS]
        found = [(head, slot) for slot, head in enumerate(map(_head_in, texts)) if head is not None]
        if found:
            head, slot = max(found)
            self._slot = 1 - slot
            return head
        if any(texts):
            raise ValueError(
                f"{self.path} is damaged, so nobody knows how far the journal had come; delete it only if you can do "
                "without that check"
            )
        return None

    def write(self, head: Head) -> None:
        """Note how far the journal has come; a process that dies does not take this with it."""
        words = {"records": head.records, "rounds": head.rounds, "digest": head.digest.hex()}
        text = json.dumps(words)
        self._put(f'{text[:-1]}, "check": {_check(text)}}}', _LENGTH, _SLOTS[self._slot])
        self._slot = 1 - self._slot

    def _put(self, text: str, length: int, start: int) -> None:
        if os.pwrite(self._file, text.encode().ljust(length), start) != length:
            raise OSError(errno.ENOSPC, "the lock of the journal could not be written in full", self.path)

    def _by(self) -> str:
        holder = os.pread(self._file, _HOLDER, _LENGTH).decode(errors="replace").strip()
        return f" in process {holder}" if holder.isdecimal() else ""

    def discard(self) -> None:
        """Let go of a file that is no journal, and leave nothing beside it."""
        if self._fresh and self._file >= 0 and self.here():
            os.unlink(self.path)
        self.release()

    def release(self) -> None:
        """Let others open the journal."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        """Let go of the file where nobody closed the journal."""
        self.release()


def _check(text: str) -> int:
    return zlib.crc32(text.encode())


def _head_in(text: str) -> Head | None:
    """Return what a slot says; None if it is empty, or was written by half."""
    try:
        words = json.loads(text)
        whole = words.pop("check") == _check(json.dumps(words))
        return Head(int(words["records"]), int(words["rounds"]), bytes.fromhex(words["digest"])) if whole else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def place_of(path: str) -> tuple[int, int] | None:
    """Return which file is at a path: its device and its number there; None if there is none."""
    try:
        return _place(os.stat(path))
    except FileNotFoundError:
        return None


def _place(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _leave_to_parent() -> None:
    """A forked child has a share in the locks of its parent: give it up, or they would outlive the parent."""
    for lock in _held:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
