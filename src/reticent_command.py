"""The way in to `reticent` from a shell: Ctrl-C is quiet from the first moment, while Python still loads the package.

This is a module of its own, outside of the package, because importing any part of that loads numpy and scipy first.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

_INTERRUPTED = 130


def _leave(*_: Any) -> None:
    """End the process at once: nothing has begun that could be lost."""
    os._exit(_INTERRUPTED)


def main() -> int:
    """Load the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # who ignores it, as a shell does for what runs behind it, goes on to
        signal.signal(signal.SIGINT, _leave)
    from reticent.cli import main as command

    with suppress(ImportError):  # the command line itself says what is missing
        import_module("reticent.cli._app")
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    return command()


if __name__ == "__main__":
    sys.exit(main())
