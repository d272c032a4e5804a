"""Writing a file so that after a crash either the old one or the new one is there, whole and for its owner only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

OWNER_ONLY = 0o600
ENDS = ("", "-wal", "-shm", "-lock")
"""What the names of the files of a journal end with."""
_DATABASE = b"SQLite format 3\0"


def write_file(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview], *, mode: int = OWNER_ONLY) -> None:
    """Write a file beside its place, bring it to the disk, and put it in its place at once; never over a journal."""
    place = Path(os.path.realpath(os.fsdecode(path)))
    _check_place(place, os.fsdecode(path))
    # A name of its own: that of the file may be as long as names can be.
    fresh = place.with_name(f".reticent-{secrets.token_hex(8)}")
    try:
        made = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with open(made, "wb") as file:
                if mode == OWNER_ONLY:
                    os.fchmod(made, mode)  # whatever the umask: its owner can read it too
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(made)
            os.replace(fresh, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh)
            raise
    except OSError as error:
        raise type(error)(error.errno, f"nothing was saved: {error.strerror}", os.fsdecode(path)) from error
    try:
        sync_folder(place.parent)
    except OSError as error:
        told = f"the file is in its place, but might not be after a power cut: {error.strerror}"
        raise type(error)(error.errno, told, os.fsdecode(path)) from error


def _check_place(place: Path, given: str) -> None:
    if place.exists() and not place.is_file() and not place.is_dir():
        raise ValueError(f"path must be that of a plain file, not of a pipe or device, got {given!r}")
    for end in ENDS:
        of = Path(str(place).removesuffix(end))
        if str(place).endswith(end) and place.is_file() and of.is_file() and _is_database(of):
            raise ValueError(f"path must not be that of a journal, or of a file beside it, got {given!r}; give another")


def _is_database(place: Path) -> bool:
    with open(place, "rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
