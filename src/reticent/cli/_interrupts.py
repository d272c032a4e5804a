"""Ctrl-C where work must not be cut in two: it ends a wait at once, and is kept in mind anywhere else."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PATIENCE = 3  # times that somebody asks before the process ends wherever it is


class Interrupts:
    """Keeps Ctrl-C in mind until a wait begins; a third one ends the process at once, as if nobody had listened.

    >>> interrupts = Interrupts()
    >>> with interrupts.heard():
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("done in whole")
    ...     try:
    ...         with interrupts.waiting():
    ...             print("not begun")
    ...     except KeyboardInterrupt:
    ...         print("over")
    done in whole
    over
    """

    def __init__(self) -> None:
        """Start without one."""
        self._times = 0
        self._waiting = False

    @property
    def asked(self) -> bool:
        """Whether there was one."""
        return self._times > 0

    def _handle(self, *_: Any) -> None:
        self._times += 1
        if self._times >= _PATIENCE:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.raise_signal(signal.SIGINT)
        if self._waiting:
            # The wait is over: what is closed on the way out is closed in peace.
            self._waiting = False
            raise KeyboardInterrupt

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Nothing is lost if an interrupt ends this block."""
        self._waiting = True
        try:
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    @contextmanager
    def heard(self) -> Iterator[Interrupts]:
        """Listen; only the main thread of a process may."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)
