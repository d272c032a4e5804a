"""Whether what the records say could have been admitted: a chain can be whole, and yet be somebody else's work."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from reticent.ledger._chain import END, POPULATION, SPEND, Record, sums_of
from reticent.ledger._population import Population, edge_of
from reticent.privacy._adaptive import Sums
from reticent.privacy._serial import canonical
from reticent.privacy._terms import Terms

# Prices are computed again, perhaps by another machine whose logarithms differ in their last digits.
_DIGITS = 1e-9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_OPEN = np.iinfo(np.int64).max  # the end of an entry that has none


def check_books(records: Sequence[Record], labels: Sequence[tuple[str, str]] | None = None) -> None:
    """Refuse records that a ledger would not have written, from the first on; their chain was checked before.

    `labels`, by which a database finds the records, are those of their content.
    Every population is added once, every price is at least that of what was entered, every entry had room when it was
    made, times do not go back, and only an entry that is there ends, once.
    """
    books: dict[str, _Book] = {}
    last = datetime.min.replace(tzinfo=UTC)
    for i, record in enumerate(records):
        facts = record.facts
        try:
            name, kind, time = facts["population"], facts["kind"], datetime.fromisoformat(facts["time"])
            if labels is not None and labels[i] != (name, kind):
                raise ValueError(f"it is filed under {labels[i]}, which its content does not say")
            if time < last:
                raise ValueError("its time is before that of the record before")
            if kind == POPULATION:
                if name in books:
                    raise ValueError(f"there is a population {name!r} already, whose budget cannot change")
                books[name] = _Book(Population(name, **facts["budget"]))
            elif name not in books:
                raise ValueError(f"there is no population {name!r}")
            elif kind == SPEND:
                books[name].spend(record.sequence, facts)
            elif kind == END:
                books[name].end(facts["of"], time)
            else:
                raise ValueError(f"no record is of the kind {kind!r}")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"record {record.sequence} was not written by a ledger, though the chain is whole: {error}"
            ) from None
        last = time


class _Book:
    """The entries of one population, as they stood when each was made."""

    def __init__(self, people: Population) -> None:
        self.people, self.budget = people, people.filter()
        self.place: dict[int, int] = {}  # of an entry, among the prices and ends
        self.prices, self.all = np.zeros((64, 3)), np.zeros(3)
        self.ends = np.full(64, _OPEN)
        self.known: dict[str, Sums] = {}

    def spend(self, number: int, facts: dict[str, Any]) -> None:
        price, terms = sums_of(facts["price"]), facts["terms"]
        text = canonical(terms)
        if text not in self.known:
            self.known[text] = self.people.price(Terms.from_plain(terms), self.budget)
        least = self.known[text]
        if not all(found >= part * (1 - _DIGITS) for found, part in zip(price, least, strict=True)):
            raise ValueError(f"it is charged {tuple(price)}, and costs {tuple(least)}")
        place = len(self.place)
        fits = self._fits(self._counted(facts) + np.array(price))
        if not fits and (place or not self.people.alone(Terms.from_plain(terms))):
            raise ValueError(f"the entries of {self.people.name!r} exceed its budget with it")
        if place == len(self.prices):
            self.prices = np.concatenate([self.prices, np.zeros_like(self.prices)])
            self.ends = np.concatenate([self.ends, np.full_like(self.ends, _OPEN)])
        self.prices[place], self.place[number] = price, place
        self.all = self.all + np.array(price)

    def _counted(self, facts: dict[str, Any]) -> Any:
        """Return the sums over the earlier entries that a new one shares its budget with."""
        count = len(self.place)
        if self.people.window is None or facts["since"] is None:
            return self.all
        since = datetime.fromisoformat(facts["since"])
        if since > datetime.fromisoformat(facts["time"]):
            raise ValueError("its data begin after it was made")
        edge = (edge_of(self.people, since) - _EPOCH) // _TICK
        return self.prices[:count][self.ends[:count] >= edge].sum(axis=0)

    def _fits(self, sums: Any) -> bool:
        spent, delta, pure = (float(part) * (1 - _DIGITS) for part in sums)
        return self.budget.allows(Sums(spent, delta, pure))

    def end(self, number: int, time: datetime) -> None:
        if number not in self.place or self.ends[self.place[number]] != _OPEN:
            raise ValueError(f"entry {number} is not there, or has ended before")
        self.ends[self.place[number]] = (time - _EPOCH) // _TICK
