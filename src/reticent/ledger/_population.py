"""A population: whose data it is, what one unit is, and what all entries together may cost it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reticent.privacy._adaptive import Filter, Sums
from reticent.privacy._terms import Terms

_SPARE = 0.01  # of the slack, for an event that has neither pure nor Renyi privacy here


@dataclass(frozen=True)
class Population:
    """Whose data it is, what one unit is, and what all entries together may cost it: fixed for good."""

    name: str
    epsilon: float
    delta: float
    slack: float
    kind: str
    order: float | None
    neighbors: str
    unit: str
    window: float | None

    def filter(self) -> Filter:
        """Return the filter that decides, with nothing charged yet."""
        return Filter(self.epsilon, self.delta, slack=self.slack, kind=self.kind, order=self.order)

    def price(self, terms: Terms, budget: Filter | None = None) -> Sums:
        """Return what a release takes of the filter, which may be given."""
        return terms.price(self.filter() if budget is None else budget, self.slack * _SPARE)

    def alone(self, terms: Terms) -> bool:
        """Say whether an entry keeps the goal by its own certificate: a first one may, and may leave nothing."""
        return self.window is None and terms.keeps(self.epsilon, self.delta)


def edge_of(people: Population, begin: datetime) -> datetime:
    """Return until when an earlier entry must have ended to share no window with one whose data begin then."""
    try:
        return begin - timedelta(days=people.window or 0.0)
    except OverflowError:  # before the first day that there is
        return datetime.min.replace(tzinfo=UTC)
