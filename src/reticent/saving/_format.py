"""The bytes of a saved file: a mark, a version, the structure, the arrays, and a checksum over all of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from reticent.losses import Loss
from reticent.saving._key import digester, same_digest
from reticent.saving._parts import ALIGNED, Assembly, Parts

MARK = b"\x89reticent state\n"
"""What a saved file begins with: 16 bytes, the first of which no text begins with."""
VERSION = 2
"""The version of the format; later ones keep the mark, the place of the version and the checksum at the end.

In version 1 classes stood by the modules they lived in; `reticent.saving._old` knows what they are called today.
"""
_KEYED = 1 << 32  # added to the version of a file that ends with an authentication code in the place of a checksum
_DIGEST = 32
_HEAD = len(MARK) + 8
_UNREADABLE = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, MemoryError),
    *(AssertionError, ArithmeticError),
)


@cache
def maker() -> str:
    """Return the version of this reticent."""
    return metadata.version("reticent")


def body_of(kind: str, thing: Any) -> Iterator[bytes | memoryview]:
    """Yield a thing as bytes: the length of the structure, the structure, the arrays."""
    parts = Parts()
    try:
        root = parts.value(thing)
        named = {"kind": kind, "made_by": maker(), "root": root, "entries": parts.entries}
        text = json.dumps(named, separators=(",", ":"), allow_nan=False).encode("ascii")
    except RecursionError:
        raise ValueError("what is saved must not be nested this deeply; give flatter values") from None
    yield (len(text)).to_bytes(8, "little")
    yield text
    yield bytes(-(8 + len(text)) % ALIGNED)
    for section in parts.sections:
        yield section
        yield bytes(-section.nbytes % ALIGNED)


def thing_of(kind: str, body: memoryview, loss: Loss | None = None) -> Any:
    """Return the thing whose body this is; `kind` must be what it was written as."""
    named = _structure(body)
    if named["kind"] != kind:
        raise ValueError(f"it holds a {named['kind']}, not a {kind}")
    length = 8 + int.from_bytes(body[:8], "little")
    start = length + -length % ALIGNED
    return Assembly(named["entries"], body[start:], loss).value(named["root"])


def _structure(body: memoryview) -> dict[str, Any]:
    length = int.from_bytes(body[:8], "little")
    found = json.loads(bytes(body[8 : 8 + length]))
    if not isinstance(found, dict):
        raise ValueError("the structure is not what it should be")
    return found


def pack(kind: str, thing: Any, key: bytes | None = None) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a saved file; with a key, of one that only who has it can change."""
    version = VERSION if key is None else VERSION + _KEYED
    yield from sealed([MARK, version.to_bytes(8, "little"), *body_of(kind, thing)], key)


def sealed(pieces: Iterable[bytes | memoryview], key: bytes | None = None) -> Iterator[bytes | memoryview]:
    """Yield pieces, and then the checksum of them all, or their authentication code."""
    digest = digester(key)
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def read_file(kind: str, path: str) -> bytes:
    """Return the bytes of a saved file; what plainly is none is refused before all of it is read."""
    with open(path, "rb") as file:
        head = file.peek(len(MARK))
        if len(head) >= len(MARK):  # a pipe may bring less at first
            check_mark(kind, head, path)
        return file.read()


def check_mark(kind: str, head: bytes | memoryview, source: str) -> None:
    """Refuse what does not begin as a saved file does; the first bytes are enough to know."""
    if bytes(head[: len(MARK)]) == MARK:
        return
    if len(head) < len(MARK) and MARK.startswith(bytes(head)):
        raise ValueError(f"{source} is damaged: it is cut off after {len(head)} bytes; take a copy that is whole")
    raise ValueError(
        f"{source} is not a saved {kind} of reticent: it begins with {bytes(head[: len(MARK)])!r}; give a file that "
        "learner.save wrote"
    )


def check_whole(data: bytes, source: str, key: bytes | None = None) -> None:
    """Refuse the bytes of a saved file that were changed or cut off, or written without the key, or with another."""
    view = memoryview(data)
    held, digest = view[:-_DIGEST], bytes(view[-_DIGEST:])
    keyed = int.from_bytes(view[len(MARK) : _HEAD], "little") // _KEYED == 1
    whole = len(data) >= _HEAD + _DIGEST
    if keyed and whole and key is None:
        raise ValueError(
            f"{source} was written with a key, and none was given, or it is damaged; give it as key=..., or take a "
            "copy that is whole"
        )
    if whole and same_digest(digester(key if keyed else None, held).digest(), digest):
        if key is not None and not keyed:
            raise ValueError(
                f"{source} was written without a key, so nobody knows who wrote it; load it without one only if you do"
            )
        return
    if keyed and whole:
        raise ValueError(
            f"{source} was written with another key, or changed since: its authentication code does not fit its "
            f"{len(data)} bytes; give the key that it was saved with, or take a copy that is whole"
        )
    raise ValueError(
        f"{source} is damaged: its checksum does not fit its {len(data)} bytes, so it was changed or cut off; take "
        "a copy that is whole"
    )


def unpack(
    kind: str,
    data: bytes,
    source: str,
    loss: Loss | None = None,
    check: Callable[[Any], None] | None = None,
    key: bytes | None = None,
) -> Any:
    """Return the thing in the bytes of a saved file; `source` names the file in messages, `check` may refuse it."""
    view = memoryview(data)
    check_mark(kind, view, source)
    check_whole(data, source, key)
    held = view[:-_DIGEST]
    number = int.from_bytes(view[len(MARK) : _HEAD], "little") % _KEYED
    if number > VERSION:
        raise ValueError(
            f"{source} has version {number} of the format, and this reticent ({maker()}) reads up to "
            f"{VERSION}; update reticent"
        )
    body = held[_HEAD:]
    try:
        if number < 1:
            raise ValueError(f"there is no version {number} of the format")
        found = thing_of(kind, body, loss)
        if check is not None:
            with np.errstate(all="ignore"):  # numbers that cannot be are refused, not warned of
                check(found)
        return found
    except _UNREADABLE as error:
        if isinstance(error, ValueError) and str(error).startswith("loss must be"):
            raise
        told = "it takes more memory than there is" if isinstance(error, MemoryError) else error
        raise ValueError(f"{source} cannot be read by reticent {maker()}: {told}; {_advice(body)}") from error


def _advice(body: memoryview) -> str:
    """Return what to do about a file that is whole and cannot be read: it depends on who made it."""
    try:
        made_by = _structure(body)["made_by"]
    except _UNREADABLE:
        return "reticent did not write it: give a file that learner.save wrote"
    if made_by == maker():
        return "this version wrote it, so something has changed it since: take an older copy"
    return f"it was made by reticent {made_by}, so use that version"
