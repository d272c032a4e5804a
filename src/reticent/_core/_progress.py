"""Progress of long work: a bar on standard error where somebody asked for one, or a function of the caller's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from reticent._core._errors import need

_MEMORY = 600.0  # seconds by which the time left is judged: some pieces of work take a minute
Progress = bool | Callable[[int, int], object]
"""Whether to show a bar, or what is to be told how many rounds are done, and of how many."""


def watched(parts: Iterable[Any], progress: Progress, title: str = "rounds") -> Iterator[Any]:
    """Yield parts of work one by one, and tell how far it has come, counted by their lengths, after each of them.

    >>> told = []
    >>> list(watched([[1, 2], [3]], lambda done, of: told.append((done, of))))
    [[1, 2], [3]]
    >>> told
    [(0, 3), (2, 3), (3, 3)]
    """
    if progress is False or progress is None:
        yield from parts
        return
    held = list(parts)
    total, done = sum(len(part) for part in held), 0
    with _teller(progress, total, title) as tell:
        tell(done, total)
        for part in held:
            yield part
            done += len(part)
            tell(done, total)


@contextmanager
def _teller(progress: Progress, total: int, title: str) -> Iterator[Callable[[int, int], object]]:
    if callable(progress):
        yield progress
        return
    if progress is not True:
        raise ValueError(f"progress must be True, False, or a function of rounds done and of all, got {progress!r}")
    with bar(total, title) as update:
        yield lambda done, of: update(completed=done, total=of)


@contextmanager
def bar(total: float | None, title: str, console: Any = None, *, hidden: bool = False) -> Iterator[Callable[..., None]]:
    """Show a bar while a block runs; yields what changes it, with the keywords of rich's `Progress.update`.

    It is on standard error and goes away at the end; nothing is shown where that is neither terminal nor notebook.
    """
    parts = need("rich.progress", "lab")
    words = need("rich.console", "lab").Console(stderr=True) if console is None else console
    columns = parts.TextColumn("{task.description}"), parts.BarColumn(), parts.TextColumn("{task.percentage:>3.0f}%")
    times = parts.TimeElapsedColumn(), parts.TimeRemainingColumn()
    off = hidden or not (words.is_terminal or words.is_jupyter)
    kind = {"transient": True, "disable": off, "speed_estimate_period": _MEMORY}
    with parts.Progress(*columns, *times, console=words, **kind) as shown:
        yield partial(shown.update, shown.add_task(title, total=total))
