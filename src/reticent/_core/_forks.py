"""Forks: a child has the random numbers of its parent, so what draws them must not go on in both."""

from __future__ import annotations

import os
from typing import Any, NoReturn
from weakref import WeakSet

_watched: WeakSet[Any] = WeakSet()


def watch(thing: Any) -> None:
    """Have `thing._forked` set in every fork of this process from now on.

    >>> class Thing:
    ...     _forked = False
    >>> thing = Thing()
    >>> watch(thing)
    >>> thing._forked
    False
    """
    _watched.add(thing)


def refuse_fork(what: str) -> NoReturn:
    """Say that a fork cannot go on."""
    raise RuntimeError(
        f"this private {what} was made before the process was forked, and its parent, and every other fork, would go "
        f"on with the same random numbers; nothing was recorded: make the {what} after forking, or save it, fork, and "
        "load it in one process"
    )


def _in_child() -> None:
    for thing in _watched:
        thing._forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
