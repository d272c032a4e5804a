"""How far every learner has come, kept outside of the store: an old copy of the store is behind it, and is refused.

Going on from an old copy draws again what was drawn and shown already: the noise of rounds that readers have seen the
results of. The store cannot know that it is old. So every commit leaves its number here before anything of it is shown.
The number may lag behind the store after a loss of power, which is harmless; it is never ahead of what was committed.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

_NUMBER = struct.Struct("<Q")


class Guard:
    """One number for each learner or fleet, in a file of its own; without a folder, nothing is kept or checked.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     guard = Guard(Path(folder) / "guard")
    ...     guard.advance("p95", 41)
    ...     guard.close()
    ...     Guard(Path(folder) / "guard").seen("p95")
    41
    """

    def __init__(self, folder: Path | None) -> None:
        """Make the folder if it is not there."""
        self._folder = folder
        self._files: dict[str, int] = {}
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def seen(self, name: str) -> int:
        """Return the number of the last commit that may have been shown; 0 if there is none."""
        if self._folder is None:
            return 0
        found = os.pread(self._file(name), _NUMBER.size, 0)
        return int(_NUMBER.unpack(found)[0]) if len(found) == _NUMBER.size else 0

    def advance(self, name: str, number: int) -> None:
        """Note that a commit is about to be shown; the operating system has it when this returns."""
        if self._folder is not None:
            os.pwrite(self._file(name), _NUMBER.pack(number), 0)

    def forget(self, name: str) -> None:
        """Let go of the file of a learner; what it says stays."""
        descriptor = self._files.pop(name, None)
        if descriptor is not None:
            os.fsync(descriptor)
            os.close(descriptor)

    def close(self) -> None:
        """Let go of all files."""
        for name in list(self._files):
            self.forget(name)

    def _file(self, name: str) -> int:
        if name not in self._files:
            assert self._folder is not None
            self._files[name] = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._files[name]
