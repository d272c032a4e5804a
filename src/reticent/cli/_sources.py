"""Where rounds come from on the command line: a file, standard input or a named stream, and words about columns."""

from __future__ import annotations

import os

STDIN = "-"


def is_file(source: str) -> bool:
    """Say whether a source is a file: one that is there, or a name that looks like one."""
    looks = os.sep in source or source.lower().endswith((".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq"))
    return source == STDIN or os.path.exists(source) or looks


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
        try:
            if not (equals and colon and name.strip()):
                raise ValueError
            found[name.strip()] = float(low), float(high)
        except ValueError:
            raise ValueError(
                f"bounds must be COLUMN=LOW:HIGH with commas between them, such as age=0:120, got {part!r}"
            ) from None
    return found
