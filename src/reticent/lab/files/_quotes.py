"""Where the last whole record of a block ends when fields are quoted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FIELD = 1 << 17  # bytes: the longest field of the csv module


def record_end(data: bytes, separator: bytes, final: bool) -> int | None:
    r"""Return where the last whole record of these lines ends, or None where quotes are not used by the book.

    >>> record_end(b'1,"a\nb"\n2,"c\n', b",", False)
    8
    >>> record_end(b'1,5" pipe\n', b",", False) is None
    True
    """
    letters = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    if not by_the_book(letters, quotes, separator):
        return None
    if len(quotes) % 2 == 0 and (final or data.endswith(b"\n")):
        return len(data)
    newlines = np.flatnonzero(letters == ord("\n"))
    outside = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    end = int(outside[-1]) + 1 if outside.size else 0
    # A field that is too long to be one, or that never ends, is for the exact reader to judge.
    return None if final or len(data) - end > _FIELD else end


def by_the_book(letters: NDArray[np.uint8], quotes: NDArray[np.int64], separator: bytes, inside: int = 0) -> bool:
    """Say whether a quote opens at the start of a field, closes at its end, and is written twice inside.

    `quotes` are their places; `inside` is 1 where the letters begin within quotes.
    """
    opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
    # A quote next to a quote is one that closes and opens again at once: written twice.
    starts = (ord(separator), ord("\n"), ord('"'))
    before = letters[opening[opening > 0] - 1]
    after = letters[closing[closing < len(letters) - 1] + 1]
    return bool(np.isin(before, starts).all() and np.isin(after, (*starts, ord("\r"))).all())
