"""Writing a file so that after a crash either the old one or the new one is there, whole and for its owner only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

OWNER_ONLY = 0o600


def write_file(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file beside its place, bring it to the disk, and put it in its place at once."""
    place = Path(os.path.realpath(path))
    fresh = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        made = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        try:
            with open(made, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(made)
            os.replace(fresh, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh)
            raise
        sync_folder(place.parent)
    except OSError as error:
        raise type(error)(error.errno, f"nothing was saved: {error.strerror}", os.fspath(path)) from error


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
