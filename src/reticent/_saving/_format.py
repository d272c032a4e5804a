"""The bytes of a saved file: a mark, a version, the structure, the arrays, and a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from typing import Any

from reticent.losses import Loss

from ._put_together import Assembly
from ._take_apart import ALIGNED, Parts

MARK = b"\x89reticent state\n"
"""What a saved file begins with: 16 bytes, the first of which no text begins with."""
VERSION = 1
"""The version of the format; later ones keep the mark, the place of the version and the checksum at the end."""
_DIGEST = 32
_HEAD = len(MARK) + 8
_UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


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


def pack(kind: str, thing: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a saved file."""
    yield from sealed([MARK, VERSION.to_bytes(8, "little"), *body_of(kind, thing)])


def sealed(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield pieces, and then the checksum of them all."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        yield piece
    yield digest.digest()


def unpack(kind: str, data: bytes, source: str, loss: Loss | None = None) -> Any:
    """Return the thing in the bytes of a saved file; `source` names the file in messages."""
    view = memoryview(data)
    if bytes(view[: len(MARK)]) != MARK:
        if MARK.startswith(data):
            raise ValueError(f"{source} is damaged: it is cut off after {len(data)} bytes; take a copy that is whole")
        raise ValueError(
            f"{source} is not a saved {kind} of reticent: it begins with {bytes(view[:16])!r}; give a file that "
            "learner.save wrote"
        )
    held, digest = view[:-_DIGEST], view[-_DIGEST:]
    if len(data) < _HEAD + _DIGEST or hashlib.sha256(held).digest() != bytes(digest):
        raise ValueError(
            f"{source} is damaged: its checksum does not fit its {len(data)} bytes, so it was changed or cut off; take "
            "a copy that is whole"
        )
    number = int.from_bytes(view[len(MARK) : _HEAD], "little")
    if number > VERSION:
        raise ValueError(
            f"{source} has version {number} of the format, and this reticent ({maker()}) reads up to "
            f"{VERSION}; update reticent"
        )
    body = held[_HEAD:]
    try:
        return thing_of(kind, body, loss)
    except _UNREADABLE as error:
        if isinstance(error, ValueError) and str(error).startswith("loss must be"):
            raise
        raise ValueError(
            f"{source} cannot be read by reticent {maker()}: {error}; it was {_maker(body)}, so use that version"
        ) from error


def _maker(body: memoryview) -> str:
    try:
        return f"made by reticent {_structure(body)['made_by']}"
    except _UNREADABLE:
        return "not made by reticent"
