"""Says on standard error what is being compiled and how long it took last time, so that no wait is silent.

One line for each kernel whose compilation takes more than a second, where someone can see it: standard error is a
terminal, or this is a notebook. `RETICENT_COMPILING=hide` keeps it back, `show` says it everywhere. Nothing is said of
kernels that are loaded from the cache, which takes milliseconds.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 1.0  # seconds that pass without a word
_TIMES = Path(__file__).parent.parent / "__pycache__" / "kernels.json"
_hushed = 0  # how many ask for silence because they show what is going on themselves


def shown() -> bool:
    """Say whether anyone is to be told."""
    wanted = os.environ.get("RETICENT_COMPILING", "")
    if wanted not in ("", "show", "hide"):
        raise ValueError(f"RETICENT_COMPILING must be 'show' or 'hide', or not be set, got {wanted!r}")
    if _hushed or wanted:
        return not _hushed and wanted == "show"
    terminal = sys.stderr is not None and sys.stderr.isatty()
    return terminal or "ipykernel" in sys.modules


@contextmanager
def hushed() -> Iterator[None]:
    """Say nothing for a while."""
    global _hushed
    _hushed += 1
    try:
        yield
    finally:
        _hushed -= 1


def last_times() -> dict[str, float]:
    """Return how many seconds each kernel took to compile when it last was, here; those that took long only."""
    # Where there is no such file, or no good one, nothing is known.
    with suppress(OSError, ValueError):
        found = json.loads(_TIMES.read_text())
        if isinstance(found, dict):
            return {str(name): float(seconds) for name, seconds in found.items()}
    return {}


def _remember(name: str, seconds: float) -> None:
    times = last_times() | {name: round(seconds, 1)}
    # A folder that cannot be written to, or another process that writes too: the time is only good to know.
    with suppress(OSError):
        _TIMES.parent.mkdir(exist_ok=True)
        draft = _TIMES.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(times))
        draft.replace(_TIMES)


def _say(name: str, last: float | None) -> None:
    before = "for the first time here" if last is None else f"which took {last:.0f} s last time"
    print(
        f"reticent: compiling {name}, {before}; kept for later runs (`reticent warm` does all at once)",
        file=sys.stderr,
        flush=True,
    )


@contextmanager
def told(name: str) -> Iterator[None]:
    """Tell of a compilation that begins now, if it is a long one, and remember how long it took."""
    last = last_times().get(name)
    voice = None
    if shown():
        voice = threading.Timer(PATIENCE if last is None else 0.0, _say, (name, last))
        voice.daemon = True
        voice.start()
    begin = time.perf_counter()
    try:
        yield
    finally:
        if voice is not None:
            voice.cancel()
        seconds = time.perf_counter() - begin
        if seconds >= PATIENCE:
            _remember(name, seconds)
