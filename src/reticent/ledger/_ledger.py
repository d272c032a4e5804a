"""The ledger: asked before anything starts, it refuses what would exceed a budget, and writes down what it admits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reticent._core._check import integer, positive
from reticent._core._html import card, grid
from reticent.learners import make
from reticent.ledger._books import check_books
from reticent.ledger._chain import END, POPULATION, SPEND, Record, check_chain, sums_of, written
from reticent.ledger._population import Population, edge_of
from reticent.ledger._store import Reader, Store
from reticent.privacy._account import check_delta
from reticent.privacy._adaptive import Cost, Filter, Sums
from reticent.privacy._pure import PureAccount
from reticent.privacy._terms import NEIGHBORS, Terms, Total, compose

_LONGEST = 200  # letters of a name
_NOTE = 2_000  # letters of a note
_FACTORS = {("zero-out", "replace"): 2, ("add-remove", "replace"): 2, ("replace", "zero-out"): 1}
"""How many changes of an entry's kind one change of the population's kind is at most.

A replaced unit is one taken away and another put in its place; a unit that is replaced by nothing is one replaced.
Whether a unit is there at all is another matter where rounds are counted, and no factor leads there."""
ROW, PERSON = "row", "person"
"""The units of plans."""
_OWNERS = 2
"""How many changes of persons one change of a row is: a row in the place of another may be somebody else's.

Where persons are left out, or come, that is so also for a row that stays with its person: who is left out, and comes
back without the row (docs/guarantees, units)."""


@dataclass(frozen=True)
class Entry:
    """What was charged: made before anything is released, and never changed."""

    number: int
    time: datetime
    population: str
    what: str
    note: str
    neighbors: str
    unit: str
    factor: int
    since: datetime | None
    ended: datetime | None
    terms: Terms
    price: Sums
    digest: str


@dataclass(frozen=True)
class Standing:
    """How a population stands. `spent` is the part of the budget, by the filter that decides; `total` describes.

    Where all entries are pure, `spent` is the smaller of the filter's part and of what their epsilons are of epsilon.
    `left_mu` and `left_epsilon` are the largest Gaussian and the largest pure release that still fit. `total` is what
    the entries cost together at the budget's delta by tight composition, as if they had been fixed in advance.
    """

    population: Population
    entries: int
    counted: int
    spent: float
    left_mu: float
    left_epsilon: float
    left_delta: float
    total: Total

    @property
    def left(self) -> float:
        """The part of the budget that is left."""
        return max(0.0, 1 - self.spent)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what was promised, what is spent and what is left."""
        people = self.population
        rows = [
            ("promised", f"epsilon {people.epsilon:g}, delta {people.delta:g} to every {people.unit}"),
            ("entries", f"{self.entries:,}, of which {self.counted:,} count now"),
            ("spent, by the filter that decides", f"{self.spent:.1%}"),
            ("spent, by tight composition", f"epsilon {self.total.epsilon:.4g} at delta {people.delta:g}"),
            ("fits still", f"a Gaussian release of mu {self.left_mu:.4g}, or a pure one of {self.left_epsilon:.4g}"),
        ]
        return card(f"{people.name}: what is spent and left", rows)


class Ledger:
    """Budgets of populations in a database, and what was spent of them by learners, trackers and others.

    `where` is the path of an SQLite file, or any URL of SQLAlchemy. `spend` decides by a filter (docs/theory, Q14):
    everything admitted is (`epsilon`, `delta`)-private together, also where costs were chosen from earlier results and
    learners take turns. A first entry that keeps the goal by its own certificate is admitted in any case; it may leave
    nothing. Writers wait for one another, also between machines; an entry is on disk when `spend` returns, and only
    then may anything be released. Entries are never changed, and `verify` finds those that were.

    >>> import tempfile, reticent as rt
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = rt.Ledger(f"{folder.name}/privacy.db")
    >>> people = ledger.add("patients", epsilon=3.0, delta=1e-6)
    >>> entry = ledger.spend("patients", rt.privacy.Cost(mu=0.3), note="yearly means")
    >>> learner = ledger.start("patients", rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6), rt.Logistic())
    >>> standing = ledger.standing("patients")
    >>> standing.entries, round(standing.total.epsilon, 2), 0 < standing.left < 1
    (2, 1.68, True)
    >>> folder.cleanup()
    """

    def __init__(self, where: str | os.PathLike[str], *, create: bool = True) -> None:
        """Open a ledger; a new one is made unless `create` is False."""
        self._store = Store(where, create=create)

    def add(
        self,
        name: str,
        epsilon: float,
        delta: float,
        *,
        neighbors: str = "replace",
        unit: str = "row",
        window: float | None = None,
        slack: float | None = None,
        kind: str = "renyi",
    ) -> Population:
        """Add a population with its budget, which is fixed for good: a filter needs its goal in advance.

        `unit` says in a word who is protected ("row", "person"), `neighbors` how two worlds differ in one unit:
        "replace", "zero-out" or "add-remove". `slack`, half of delta unless given, is set aside for entries that have a
        delta of their own. `kind` is that of the filter: "renyi" takes everything, "gaussian" is sharper for Gaussian
        releases (learners of the gate, DP-FTRL) and blunter for pure ones. With a `window`, in days, the budget is for
        what a unit gave within any so many days: see `spend`.
        """
        _check_name("name", name)
        _check_name("unit", unit)
        _check_neighbors(neighbors)
        level = check_delta(delta)
        aside = level / 2 if slack is None else slack
        budget = Filter(positive("epsilon", epsilon), level, slack=aside, kind=kind)
        days = None if window is None else positive("window", window)
        facts: dict[str, Any] = {"epsilon": budget.epsilon, "delta": level, "slack": budget.slack, "kind": kind}
        facts |= {
            "order": budget.order if kind == "renyi" else None,
            "neighbors": neighbors,
            "unit": unit,
            "window": days,
        }
        with self._store.writing() as writer:
            if writer.records(name, POPULATION, last=True):
                raise ValueError(
                    f"there is a population {name!r} already, and its budget cannot change; take another name"
                )
            about = {"population": name, "time": _now(writer).isoformat()}
            writer.append({"kind": POPULATION, **about, "budget": facts})
        return Population(name=name, **facts)

    def spend(
        self,
        population: str,
        what: Any,
        *,
        note: str = "",
        neighbors: str | None = None,
        unit: str | None = None,
        factor: int | None = None,
        since: datetime | str | None = None,
    ) -> Entry:
        """Enter what is about to be released, or refuse it and say what is left; refused, it must not be released.

        `what` is a plan, a learner or tracker that has taken no round yet, a `rt.privacy.Cost`, or an event of
        dp_accounting with the `neighbors` that it is meant for. One entry is one run: another run, on whatever rounds,
        needs another. `unit` is what the entry protects: `plan.unit` for plans ("row", or "person" with `max_rows`),
        else that of the population. Where it differs from the population's, `factor` says how many of them one unit of
        the population has at most, and the cost is that of so many at once. What a learner of the gate promises to a
        person covers a row, as two persons unless `factor=1` says that a row is always the same person's. Kinds of
        neighbours are converted where that is right (`entry.factor` holds both), and refused else.

        In a population with a window, `since` says that no data from before it enters this entry ("now", a date, or
        None for data of any age), and `end` that none enters from then on. An entry counts until `window` days after
        its end. Then all that is ever released is private for worlds that differ in what one unit gave within any
        `window` days (docs/theory, Q15), and not for all that it ever gave.
        """
        _check_note(note)
        said, terms, of, each, failure = _described(what, neighbors, unit)
        with self._store.writing() as writer:
            people = _population(writer, population)
            begin = _since(people, since, now := _now(writer))
            whole, times, of, each = _converted(people, terms, of, each, factor, _moving(what))
            whole = whole.nearly(failure)
            price, running = people.price(whole), _running(writer, people)
            if running is not None or not people.alone(whole):
                try:
                    _before(writer, people, begin).charge(price)
                except ValueError as error:
                    raise ValueError(f"{population!r} refuses {said}: {error}") from None
            record = writer.append(
                {
                    "kind": SPEND,
                    "population": population,
                    "time": now.isoformat(),
                    "what": said,
                    "note": note,
                    "neighbors": of,
                    "unit": each,
                    "factor": times,
                    "since": None if begin is None else begin.isoformat(),
                    "terms": whole.to_plain(),
                    "price": written(price),
                    "sums": written((running or Sums()).plus(price)),
                }
            )
        return _entry(record, None)

    def allows(
        self,
        population: str,
        what: Any,
        *,
        neighbors: str | None = None,
        unit: str | None = None,
        factor: int | None = None,
        since: datetime | str | None = None,
    ) -> bool:
        """Say whether `spend` would admit this at the moment; nothing is entered."""
        _, terms, of, each, failure = _described(what, neighbors, unit)
        with self._store.reading() as reader:
            people = _population(reader, population)
            begin = _since(people, since, _now(reader))
            whole = _converted(people, terms, of, each, factor, _moving(what))[0].nearly(failure)
            first = _running(reader, people) is None and people.alone(whole)
            return first or _before(reader, people, begin).allows(people.price(whole))

    def start(
        self,
        population: str,
        plan: Any,
        loss: Any,
        *,
        note: str = "",
        factor: int | None = None,
        since: datetime | str | None = None,
        **options: Any,
    ) -> Any:
        """Return a learner, as `rt.make` does, once its whole run is entered; `options` go to `rt.make`."""
        learner = make(plan, loss, **options)
        self.spend(population, learner, note=note, factor=factor, since=since)
        return learner

    def end(self, entry: Entry | int) -> None:
        """Say that no more data enters what an entry is for; for windows only, and its cost stays what it is."""
        number = entry.number if isinstance(entry, Entry) else integer("entry", entry, least=1)
        with self._store.writing() as writer:
            found = writer.record(number)
            if found is None or found.facts["kind"] != SPEND:
                raise ValueError(f"there is no entry number {number}; entries() has those there are")
            name = found.facts["population"]
            if number in _ends(writer, name):
                raise ValueError(f"entry number {number} has ended already")
            writer.append({"kind": END, "population": name, "time": _now(writer).isoformat(), "of": number})

    def populations(self) -> list[Population]:
        """Return all populations."""
        with self._store.reading() as reader:
            return [_people(record) for record in reader.records(kind=POPULATION)]

    def entries(self, population: str | None = None) -> list[Entry]:
        """Return all entries, of one population if it is named, in the order in which they were made."""
        with self._store.reading() as reader:
            ends = _ends(reader, population)
            return [_entry(record, ends.get(record.sequence)) for record in reader.records(population, SPEND)]

    def standing(self, population: str) -> Standing:
        """Return what is spent and left at the moment; for a window, of an entry whose data begin now."""
        with self._store.reading() as reader:
            people = _population(reader, population)
            begin = None if people.window is None else _now(reader)
            entries, counted = len(reader.records(population, SPEND)), _counted(reader, people, begin)
            budget = _before(reader, people, begin)
        return Standing(
            population=people,
            entries=entries,
            counted=len(counted),
            # Pure entries that add up to epsilon fit in any case: what is left is left by the better of the two ways.
            spent=min(budget.spent, budget.sums.pure / budget.epsilon),
            left_mu=budget.left_mu,
            left_epsilon=budget.left_epsilon,
            left_delta=max(0.0, budget.slack - budget.sums.delta),
            total=compose(_terms(counted), people.delta),
        )

    def total(self, population: str, delta: float | None = None) -> Total:
        """Return what all entries ever made cost together at `delta`, by tight composition: it does not decide."""
        with self._store.reading() as reader:
            people = _population(reader, population)
            records = reader.records(population, SPEND)
        return compose(_terms(records), people.delta if delta is None else delta)

    def dp_event(self, population: str) -> tuple[Any, float]:
        """Return all entries as one event of dp_accounting, and the delta to add to what it is composed to.

        Compose it under ADD_OR_REMOVE_ONE or REPLACE_SPECIAL: the population's neighbours are in it already.
        """
        with self._store.reading() as reader:
            _population(reader, population)
            return _terms(reader.records(population, SPEND)).dp_event()

    def verify(self, head: str | None = None) -> tuple[int, str]:
        """Check every record, and return the number and the digest of the last; raise ValueError at one that is wrong.

        Wrong is what was changed, and what a ledger would not have written: a second budget, a price below its cost.
        Who can write the database can write all of it anew: note the digest elsewhere, and give it as `head` later.
        """
        with self._store.reading() as reader:
            records, labels, last = reader.records(), reader.labels(), reader.head()
        found = check_chain(records, head)
        if found != last:
            raise ValueError(f"records end with number {found[0]}, but {last[0]} were written: the end was cut off")
        check_books(records, labels)
        return found

    def records(self) -> list[Record]:
        """Return everything that was ever written, for export."""
        with self._store.reading() as reader:
            return reader.records()

    def __repr__(self) -> str:
        """Say where it is, and how many records it has."""
        with self._store.reading() as reader:
            return f"<Ledger {self._store.shown}: {reader.head()[0]} records>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: budgets, and what is spent of them by the filter that decides."""
        with self._store.reading() as reader:
            lines = [_line(reader, _people(record)) for record in reader.records(kind=POPULATION)]
            head = f"Ledger {self._store.shown}: {reader.head()[0]} records"
        return card(head, below=grid(["population", "epsilon", "delta", "entries", "spent", "unit"], lines))


def _line(reader: Reader, people: Population) -> list[str]:
    """Return a population as a line of a table."""
    begin = None if people.window is None else _now(reader)
    spent = _before(reader, people, begin).spent
    unit = people.unit + ("" if people.window is None else f", within any {people.window:g} days")
    entries = len(reader.records(people.name, SPEND))
    return [people.name, f"{people.epsilon:g}", f"{people.delta:g}", f"{entries:,}", f"{spent:.1%}", unit]


# What is charged: its cost in terms, for which neighbours and which unit.


def _described(what: Any, neighbors: str | None, unit: str | None) -> tuple[str, Terms, str | None, str | None, float]:
    """Return a name for what is charged, its terms, the neighbours and the unit that they are for, and a failure.

    The failure is a total variation: how far the machine's run may be from the one that the terms are about.
    """
    from dp_accounting import DpEvent

    if unit is not None:
        _check_name("unit", unit)
    if neighbors is not None:
        _check_neighbors(neighbors)
    if isinstance(what, Cost):
        return "a stated cost", Terms.of_cost(what), neighbors, unit, 0.0
    if isinstance(what, DpEvent):
        if neighbors is None:
            raise ValueError(
                f"an event says nothing of neighbours; give neighbors={', '.join(map(repr, NEIGHBORS))} as it is meant"
            )
        return type(what).__name__, Terms.of_event(what, neighbors), neighbors, unit, 0.0
    plan = getattr(what, "plan", what)
    if not hasattr(plan, "account"):
        raise ValueError(
            f"what is charged must be a plan, a learner, a tracker, a Cost or an event of dp_accounting, got {what!r}"
        )
    _check_fresh(what)
    if neighbors not in (None, plan.neighbors):
        raise ValueError(f"neighbors of this plan are {plan.neighbors!r}, got {neighbors!r}; leave them out")
    name = getattr(plan, "system", None) or getattr(plan, "what", type(plan).__name__)
    terms, failure = _plan_terms(plan)
    return (
        str(name),
        terms,
        str(plan.neighbors),
        str(getattr(plan, "unit", ROW)) if unit is None else unit,
        failure,
    )


def _check_fresh(what: Any) -> None:
    if getattr(what, "rounds", 0):
        raise ValueError(
            f"an entry is made before anything is released, and this has taken {what.rounds} rounds already; enter the "
            "plan, and make a learner of it then"
        )
    if getattr(what, "learn", False):
        raise ValueError(
            f"learn={what.learn!r}: what the model reveals is not in the event of the intervals; enter the plan of the "
            "model and that of the intervals (intervals.plan), one after the other"
        )


def _plan_terms(plan: Any) -> tuple[Terms, float]:
    if plan.epsilon is None:
        raise ValueError(
            f"{getattr(plan, 'system', plan)} makes no privacy claim, and cannot be charged; give an epsilon"
        )
    try:
        account = plan.account()
        if isinstance(account, PureAccount):
            return Terms.of_cost(Cost(epsilon=account.pure)), 0.0
        # What neighbours are is in the events of plans already: noise counts as it is. No event has the failure.
        return Terms.of_event(plan.dp_event(), "zero-out"), account.failure
    except ValueError:  # epochs without an end have no event: what they claim holds for all of them
        if not getattr(plan, "adaptive_privacy", True):
            raise
        return Terms.of_cost(Cost(epsilon=plan.epsilon, delta=plan.delta)), 0.0


def _moving(what: Any) -> bool:
    """Say whether a promise to persons covers rows that go from one to another; others take keys as they are."""
    return bool(getattr(getattr(what, "plan", what), "for_persons", False))


def _converted(
    people: Population, terms: Terms, neighbors: str | None, unit: str | None, factor: int | None, moving: bool
) -> tuple[Terms, int, str, str]:
    """Return what one unit of the population costs, the factor, and the neighbours and the unit of the entry."""
    of, each = neighbors or people.neighbors, unit or people.unit
    least = 1 if of == people.neighbors else _FACTORS.get((of, people.neighbors))
    if least is None:
        raise ValueError(
            f"an entry for neighbours {of!r} says nothing of {people.neighbors!r}, which {people.name!r} is for; no "
            "factor leads from one to the other: enter it for another population, or state a Cost that was proved"
        )
    finer = (each, people.unit) == (PERSON, ROW)
    if factor is None and each != people.unit and not (finer and moving):
        raise ValueError(
            f"the entry protects one {each}, the population one {people.unit}; give factor=, the largest number of "
            f"units 'one {each}' that one {people.unit} has in it"
        )
    # A person of k rows who is replaced by another is k rows less and k rows more.
    many = 1 if factor is None else integer("factor", factor, least=1)
    if finer and (factor is None or of != "replace"):
        many = max(many, _OWNERS)
    return terms.times(least * many), least * many, of, each


# What the records say.


def _people(record: Record) -> Population:
    facts = record.facts
    return Population(facts["population"], **facts["budget"])


def _population(reader: Reader, name: str) -> Population:
    found = reader.records(name, POPULATION, last=True)
    if not found:
        known = ", ".join(repr(record.facts["population"]) for record in reader.records(kind=POPULATION)) or "none yet"
        raise ValueError(f"there is no population {name!r} in the ledger; there are {known}")
    return _people(found[0])


def _ends(reader: Reader, population: str | None) -> dict[int, datetime]:
    facts = (record.facts for record in reader.records(population, END))
    return {one["of"]: datetime.fromisoformat(one["time"]) for one in facts}


def _entry(record: Record, ended: datetime | None) -> Entry:
    facts = record.facts
    names = ("population", "what", "note", "neighbors", "unit", "factor")
    return Entry(
        number=record.sequence,
        time=datetime.fromisoformat(facts["time"]),
        **{name: facts[name] for name in names},
        since=None if facts["since"] is None else datetime.fromisoformat(facts["since"]),
        ended=ended,
        terms=Terms.from_plain(facts["terms"]),
        price=sums_of(facts["price"]),
        digest=record.digest,
    )


def _terms(records: Sequence[Record]) -> Terms:
    return Terms.sum(Terms.from_plain(record.facts["terms"]) for record in records)


def _counted(reader: Reader, people: Population, begin: datetime | None) -> list[Record]:
    """Return the entries that share a window with one whose data begin then; all, where that is unknown."""
    records = reader.records(people.name, SPEND)
    if people.window is None or begin is None:
        return records
    ends, edge = _ends(reader, people.name), edge_of(people, begin)
    return [record for record in records if ends.get(record.sequence, begin) >= edge]


def _running(reader: Reader, people: Population) -> Sums | None:
    """Return the sums over all entries of a population, which its last one has; None before the first."""
    last = reader.records(people.name, SPEND, last=True)
    return sums_of(last[0].facts["sums"]) if last else None


def _before(reader: Reader, people: Population, begin: datetime | None) -> Filter:
    """Return the filter with all charged that a new entry has to share its budget with."""
    budget = people.filter()
    if people.window is None or begin is None:
        budget.sums = _running(reader, people) or Sums()
        return budget
    for record in _counted(reader, people, begin):
        budget.sums = budget.sums.plus(sums_of(record.facts["price"]))
    return budget


def _now(reader: Reader) -> datetime:
    """Return the time by the clock of this machine, never before that of the last record."""
    now, last = _clock(), reader.record(reader.head()[0])
    return now if last is None else max(now, datetime.fromisoformat(last.facts["time"]))


def _clock() -> datetime:
    return datetime.now(UTC)


def _since(people: Population, since: datetime | str | None, now: datetime) -> datetime | None:
    if since is None:
        return None
    if people.window is None:
        raise ValueError(f"since is for populations with a window, and {people.name!r} has none; leave it out")
    if since == "now":
        # Where the clock was put back data carry its times: the earlier of the two takes no entry out of the window.
        return min(now, _clock())
    try:
        found = datetime.fromisoformat(since) if isinstance(since, str) else since
    except ValueError:
        found = None
    if not isinstance(found, datetime):
        raise ValueError(f"since must be 'now' or a time such as 2026-01-31T12:00:00+00:00, got {since!r}")
    if found.tzinfo is None:
        raise ValueError(f"since must say its time zone, such as 2026-01-31T12:00:00+00:00, got {since!r}")
    if found > now:
        raise ValueError(f"since must not lie in the future, got {since!r}; enter it when its data begin")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"since must be a time of this era, got {since!r}; leave it out for data of any age") from None


def _check_name(what: str, name: str) -> None:
    # Two names must not look the same: no blanks around them, and nothing that cannot be seen.
    if not isinstance(name, str) or not name or name != name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise ValueError(
            f"{what} must be a word or a few, of at most {_LONGEST} letters, no blanks around them, got {name!r}"
        )


def _check_note(note: str) -> None:
    if not isinstance(note, str) or len(note) > _NOTE or not note.isprintable():
        raise ValueError(f"note must be one line of at most {_NOTE:,} letters that can be printed, got {note!r:.100}")


def _check_neighbors(neighbors: str) -> None:
    if neighbors not in NEIGHBORS:
        raise ValueError(f"neighbors must be one of {', '.join(map(repr, NEIGHBORS))}, got {neighbors!r}")
