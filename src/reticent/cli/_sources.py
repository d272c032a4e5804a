"""Where rounds come from on the command line: a file, standard input or a named stream, and words about columns."""

from __future__ import annotations

import os

STDIN = "-"


def is_file(source: str) -> bool:
    """Say whether a source is a file: one that is there, or a name that looks like one."""
    looks = os.sep in source or source.lower().endswith((".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq"))
    return source == STDIN or os.path.exists(source) or looks


def check_stream(source: str) -> None:
    """Refuse a name that is neither a file nor a stream.

    >>> check_stream("shuttel")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: neither a file nor a stream is called 'shuttel'; did you mean shuttle? there are ...
    """
    from reticent.lab.streams import names
    from reticent.lab.streams._settings import nearest

    name = source.partition(":")[0].strip()
    if name not in names():
        raise ValueError(f"neither a file nor a stream is called {name!r}{nearest(name, dict.fromkeys(names()))}")


def flows(source: str) -> bool:
    """Say whether a source is standard input or a named pipe, which can be read once."""
    return source == STDIN or (os.path.exists(source) and not os.path.isfile(source))


def columns_of(text: str) -> tuple[str, ...]:
    """Return the columns of a text such as "age,income"."""
    parts = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if not all(parts):
        raise ValueError(f"features must be columns with commas between them, such as age,income, got {text!r}")
    return parts


def limits_of(text: str) -> dict[str, tuple[float, float]]:
    """Return the bounds of a text such as "age=0:120,income=0:1e6"."""
    found = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, limits = part.rpartition("=")
        low, colon, high = limits.partition(":")
        column = name.strip()
        try:
            if not (equals and colon and column):
                raise ValueError
            limit = float(low), float(high)
        except ValueError:
            raise ValueError(
                f"bounds must be COLUMN=LOW:HIGH with commas between them, such as age=0:120, got {part!r}"
            ) from None
        if column in found:
            raise ValueError(f"bounds must be given once for a column, got {column!r} twice in {text!r}; leave one out")
        found[column] = limit
    return found
