"""A ledger in the words of others: JSON and CSV that can be checked without the database, and OpenDP's terms."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from reticent.ledger._books import check_books
from reticent.ledger._chain import Record, check_chain
from reticent.ledger._ledger import Entry, Ledger
from reticent.privacy._serial import canonical
from reticent.privacy._terms import Terms, compose

FORMAT = "reticent ledger 1"
COLUMNS = ("sequence", "time", "population", "kind", "what", "note", "neighbors", "unit", "factor", "content", "digest")
_METRICS = {"replace": "ChangeOneDistance", "add-remove": "SymmetricDistance", "zero-out": "zero-out (not in OpenDP)"}


def as_json(ledger: Ledger) -> str:
    """Return all records as one JSON document."""
    found = [{"content": record.facts, "digest": record.digest} for record in ledger.records()]
    return json.dumps({"format": FORMAT, "records": found}, indent=1) + "\n"


def csv_lines(ledger: Ledger) -> Iterator[list[str]]:
    """Go through all records as rows of text, after one with the names of the columns."""
    yield list(COLUMNS)
    for record in ledger.records():
        facts = {**record.facts, "content": record.content, "digest": record.digest}
        yield [str(facts.get(name, "")) for name in COLUMNS]


def read_export(path: str | os.PathLike[str]) -> list[Record]:
    """Return the records of a file that `reticent ledger export` wrote as CSV or JSON, checked from the first on."""
    with open(path, encoding="utf-8", newline="") as file:
        first = file.read(1)
        file.seek(0)
        try:
            records = _of_json(json.load(file)) if first == "{" else _of_csv(file)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)!r} is no export of a ledger as CSV or JSON: {error}") from None
    check_chain(records)
    check_books(records)
    return records


def _of_json(document: Any) -> list[Record]:
    if document.get("format") != FORMAT:
        raise ValueError(f"its format must be {FORMAT!r}, got {document.get('format')!r}")
    found = document["records"]
    return [Record(one["content"]["sequence"], canonical(one["content"]), one["digest"]) for one in found]


def _of_csv(file: Any) -> list[Record]:
    before = csv.field_size_limit(1 << 30)  # an event may be long; the limit is one for the whole process
    try:
        return [Record(int(row["sequence"]), row["content"], row["digest"]) for row in csv.DictReader(file)]
    finally:
        csv.field_size_limit(before)


def opendp_terms(entries: Sequence[Entry], neighbors: str, delta: float) -> list[dict[str, Any]]:
    """Return every entry, and all together, as OpenDP's measurements are described; None where a measure has no bound.

    `epsilon` is by MaxDivergence, `rho` by ZeroConcentratedDivergence, and (`epsilon_at_delta`, `delta`) by
    Approximate(MaxDivergence), all for d_in = 1 in the metric that is named.
    """
    parts = [(str(entry.number), entry.what, entry.terms) for entry in entries]
    parts.append(("total", "all entries", Terms.sum(entry.terms for entry in entries)))
    return [
        {
            "entry": number,
            "what": what,
            "input_metric": _METRICS[neighbors],
            "d_in": 1,
            "epsilon": terms.pure,
            "rho": terms.zcdp,
            "epsilon_at_delta": compose(terms, delta).epsilon,
            "delta": delta,
        }
        for number, what, terms in parts
    ]
