"""Errors of the operating system that tell which file they are about."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


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
