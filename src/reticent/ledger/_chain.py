"""Records in a row, each with the SHA-256 of its content, which holds that of the record before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from reticent.privacy._adaptive import Sums
from reticent.privacy._serial import canonical

FIRST = "0" * 64
"""What stands for the digest before the first record."""
POPULATION, SPEND, END = "population", "spend", "end"


class Record(NamedTuple):
    """One record: its number from 1 on, its content as canonical JSON, and the digest of that."""

    sequence: int
    content: str
    digest: str

    @property
    def facts(self) -> dict[str, Any]:
        """The content as values."""
        found: dict[str, Any] = json.loads(self.content)
        return found


def next_record(head: tuple[int, str], facts: dict[str, Any]) -> Record:
    """Return the record that follows a head (its number and digest).

    >>> one = next_record((0, FIRST), {"kind": "end"})
    >>> one.sequence, len(one.digest), one.facts["previous"] == FIRST
    (1, 64, True)
    """
    sequence, previous = head[0] + 1, head[1]
    content = canonical({**facts, "sequence": sequence, "previous": previous})
    return Record(sequence, content, digest(content))


def digest(content: str) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content.encode()).hexdigest()


def check_chain(records: Iterable[Record], head: str | None = None) -> tuple[int, str]:
    """Go through all records from the first on; refuse the first that is not as it was written.

    Returns the number of the last and its digest. `head`, a digest that was noted at some time, must be among those
    found: that shows whether the end was cut off, or all of it written anew, which the chain alone cannot.
    """
    last, seen = (0, FIRST), head in (None, FIRST)
    sums: dict[str, Sums] = {}
    for record in records:
        facts = _check_record(record, last)
        if facts.get("kind") == SPEND:
            try:
                name, price, written_sums = facts["population"], sums_of(facts["price"]), sums_of(facts["sums"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"record {record.sequence} is no entry of a ledger: {error!r}") from None
            sums[name] = sums.get(name, Sums()).plus(price)
            if written_sums != sums[name]:
                raise ValueError(f"record {record.sequence} does not add up: its sums are not those of the entries")
        last = record.sequence, record.digest
        seen = seen or record.digest == head
    if not seen:
        raise ValueError(f"the record with digest {head} is gone: the end was cut off, or all was written anew")
    return last


def _check_record(record: Record, last: tuple[int, str]) -> dict[str, Any]:
    number = last[0] + 1
    if record.sequence != number:
        raise ValueError(
            f"record {number} is missing, or records were exchanged: number {record.sequence} stands there"
        )
    if digest(record.content) != record.digest:
        raise ValueError(f"record {number} was changed: its content does not have the digest {record.digest}")
    facts = record.facts if record.content.startswith("{") else {}
    if facts.get("previous") != last[1] or facts.get("sequence") != number:
        raise ValueError(f"record {number} does not follow the one before it: something was changed, or left out")
    return facts


def sums_of(plain: list[float | None]) -> Sums:
    """Return sums as they were written, where null is infinity."""
    return Sums(*(float("inf") if value is None else float(value) for value in plain))


def written(sums: Sums) -> list[float | None]:
    """Return sums as they are written.

    >>> written(Sums(0.5, 0.0, float("inf")))
    [0.5, 0.0, None]
    """
    return [None if value == float("inf") else value for value in sums]
