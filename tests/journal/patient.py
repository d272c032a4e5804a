"""Waiting for other processes, but not for ever."""

import os
import signal
import threading
from contextlib import contextmanager, suppress

PATIENCE = 300  # seconds: a test that waits longer for a child has found a hang, and must say so


@contextmanager
def patience(child, seconds=PATIENCE):
    """Kill a child that takes longer than that, so that whoever waits for it, or for what it says, goes on."""
    late = []

    def give_up():
        late.append(child)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    clock = threading.Timer(seconds, give_up)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
    assert not late, f"a child took longer than {seconds} seconds"
