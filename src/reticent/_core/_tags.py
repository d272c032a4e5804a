"""Tags: the short names by which classes and planners stand in saved files, whatever modules they live in.

A tag is declared beside the class, with `@saved("ball")`, and stays for good: files on other people's disks hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

_Thing = TypeVar("_Thing", bound=Callable[..., Any])

_THINGS: dict[str, Any] = {}
_TAGS: dict[Any, str] = {}
_LATER: dict[str, str] = {}


def saved(tag: str) -> Callable[[_Thing], _Thing]:
    """Declare the tag of a class whose objects may stand in saved files, or of a planner that a plan may name.

    >>> @saved("an example of a tag")
    ... class Example: ...
    >>> tag_of(Example), tagged("an example of a tag") is Example
    ('an example of a tag', True)
    >>> class Other(Example): ...
    >>> tag_of(Other) is None
    True
    """

    def declare(thing: _Thing) -> _Thing:
        known = _THINGS.setdefault(tag, thing)
        # A module that is loaded a second time (a test, a notebook) declares the same things again.
        if (known.__module__, known.__qualname__) != (thing.__module__, thing.__qualname__):
            raise ValueError(f"the tag {tag!r} is that of {known!r}, and cannot be that of {thing!r}")
        _THINGS[tag], _TAGS[thing] = thing, tag
        return thing

    return declare


def later(module: str, *tags: str) -> None:
    """Announce tags of a module that is loaded when one of them is asked for: those of compiled code load numba."""
    _LATER.update(dict.fromkeys(tags, module))


def tag_of(thing: Any) -> str | None:
    """Return the tag of a class or planner; None if it has none of its own."""
    return _TAGS.get(thing)


def tagged(tag: str) -> Any:
    """Return what has a tag; None if nothing has."""
    if tag not in _THINGS and tag in _LATER:
        import_module(_LATER[tag])
    return _THINGS.get(tag)


def tags() -> list[str]:
    """Return all tags that are declared or announced."""
    return sorted({*_THINGS, *_LATER})
