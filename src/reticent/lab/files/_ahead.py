"""Blocks read ahead in a thread, so that a learner does not wait for a file."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
_DEPTH = 2  # blocks that wait at most: memory stays that of a few
_PATIENCE = 0.05  # seconds after which a thread with nowhere to put its block looks whether anybody still wants it


def ahead(items: Iterable[T]) -> Generator[T, None, None]:
    """Give items that are made in a thread of their own, a few ahead; an error comes after those before it.

    Closing the iterator ends the thread.

    >>> list(ahead(range(5)))
    [0, 1, 2, 3, 4]
    """
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(_DEPTH)
    unwanted = threading.Event()

    def put(more: bool, value: Any) -> bool:
        while not unwanted.is_set():
            try:
                waiting.put((more, value), timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        if unwanted.is_set():
            return
        try:
            for item in items:
                if not put(True, item):
                    return
            put(False, None)
        except BaseException as error:
            put(False, error)

    thread = threading.Thread(target=make, daemon=True)
    try:
        thread.start()
        while True:
            more, value = waiting.get()
            if more:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        unwanted.set()
        # A thread inside a parser must not outlive this: the process may end next, and would tear the parser down.
        if thread.is_alive():
            thread.join()
