"""Results kept on disk, each under a name made from the work behind it, and errors that name their file."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import reticent


@contextmanager
def about(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error inside name this file, where it would name none, or a draft that nobody has heard of.

    >>> with about("study.json"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'study.json'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


# Results kept on disk, each under a name made from the work behind it.

# What a certificate depends on beside its task, and what a run does: the engine, the streams and how it is measured.
PLANNING = ("_core", "domains", "privacy", "systems")
SOURCES = (*PLANNING, "losses", "gibbs", "hindsight", "lab/streams", "lab/_walk.py")


def plain(value: Any) -> Any:
    """Return a value as it is after a journey through JSON, so that fresh and kept results are the same.

    >>> plain({"pair": (1, 2.5)})
    {'pair': [1, 2.5]}
    """
    try:
        return json.loads(json.dumps(value))
    except TypeError as error:
        raise ValueError(f"a result must be made of what JSON can hold, got {value!r}: {error}") from error


class Kept:
    """The results of one function that are kept in a directory; in none if there is no directory.

    A file that is damaged or edited, or belongs to other work, counts as missing.
    """

    def __init__(self, directory: Path | None, function: Callable[..., Any], sources: Sequence[str] = SOURCES) -> None:
        """Look for results in this directory, made by these sources; it is made when the first one is written."""
        self._directory = directory
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._sources = "" if directory is None else _digest(_home(function), tuple(sources))
        self._read: dict[str, Any] = {}

    def has(self, task: Mapping[str, Any]) -> bool:
        """Whether there is a good result of this task; it is then ready to be read."""
        if self._directory is None:
            return False
        path = self._path(task)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["function"] != self._name or document["task"] != plain(dict(task)):
                return False
            if document["digest"] != _digest_of(document["result"]):
                return False
            self._read[path.name] = document["result"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True

    def read(self, task: Mapping[str, Any]) -> Any:
        """Return the result that `has` found."""
        return self._read[self._path(task).name]

    def write(self, task: Mapping[str, Any], result: Any) -> Any:
        """Keep a result, all of it or nothing, and return it."""
        if self._directory is not None:
            document = {"function": self._name, "task": dict(task), "result": result, "digest": _digest_of(result)}
            write_whole(self._path(task), json.dumps(document))
        return result

    def _path(self, task: Mapping[str, Any]) -> Path:
        assert self._directory is not None
        words = json.dumps([self._name, self._sources, plain(dict(task))], sort_keys=True)
        return self._directory / f"{hashlib.sha256(words.encode()).hexdigest()}.json"


def _digest_of(result: Any) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees half of it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "deep" / "note.txt", "all of it")
    ...     print((Path(folder) / "deep" / "note.txt").read_text())
    all of it
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with about(path):
        try:
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _home(function: Callable[..., Any]) -> str:
    """Return the file that a function is written in; empty where there is none to read."""
    try:
        return inspect.getsourcefile(inspect.unwrap(function)) or ""
    except TypeError:
        return ""


@functools.cache
def _digest(home: str, sources: tuple[str, ...]) -> str:
    """Return a digest of sources of the package and of the file the work itself is written in."""
    package = Path(reticent.__file__).parent
    files = set()
    for pattern in sources:
        place = package / pattern
        if not place.exists():
            raise FileNotFoundError(
                f"{pattern} is not a source of reticent: nothing would tell results of other versions apart"
            )
        files |= set(place.rglob("*.py")) | set(place.rglob("*.json")) if place.is_dir() else set(package.glob(pattern))
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    if home and Path(home).is_file():
        found.update(Path(home).read_bytes())
    return found.hexdigest()
