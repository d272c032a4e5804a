"""Keys: whoever has one finds out whether a file was written with it, and who has not can make no such file."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

Key = bytes | str | None
_LEAST = 16  # bytes: fewer can be tried out


def key_bytes(key: Key) -> bytes | None:
    """Return a key as bytes; refuse one that is too short to keep anybody out.

    >>> key_bytes(None), len(key_bytes("correct horse battery staple"))
    (None, 28)
    """
    if key is None:
        return None
    found = key.encode() if isinstance(key, str) else key
    if not isinstance(found, bytes):
        raise ValueError(f"key must be bytes, a text or None, got a {type(key).__name__}")
    if len(found) < _LEAST:
        raise ValueError(
            f"key must have at least {_LEAST} bytes, got {len(found)}; take secrets.token_bytes(32), and keep it apart "
            "from what it protects"
        )
    return found


def digester(key: bytes | None, start: bytes | memoryview = b"") -> Any:
    """Return what makes the 32 bytes that a file, or a record, ends with: SHA-256, or with a key HMAC-SHA256."""
    return hashlib.sha256(start) if key is None else hmac.new(key, start, "sha256")


def same_digest(found: bytes, wanted: bytes) -> bool:
    """Compare two digests, in a time that says nothing."""
    return hmac.compare_digest(found, wanted)
