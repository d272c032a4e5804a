"""Attempts to overspend, and to change the books without a trace: each was tried by hand first, and is kept here."""

import math
import os
import sqlite3
import threading
from datetime import UTC, date, datetime, timedelta

import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
from dp_accounting import dp_event as events
from test_ledger import at_once

import reticent as rt
from reticent.ledger import _ledger, _store, check_chain
from reticent.ledger._chain import FIRST, next_record
from reticent.ledger._population import edge_of
from reticent.privacy import Cost
from reticent.privacy._terms import Terms, compose

DELTA = 1e-30  # so small that pure epsilons simply add up
NOW = datetime(2100, 3, 1, 12, tzinfo=UTC)  # later than any clock that a fixture may have read
DAY = timedelta(days=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "l.db"


@pytest.fixture
def ledger(path):
    book = rt.Ledger(path)
    book.add("people", 1.0, 1e-6)
    return book


# Overspending.


def test_many_threads_make_one_ledger_and_spend_its_budget_once(path):
    ready, admitted, refused = threading.Barrier(8, timeout=60), [], []

    def attempt(act):
        try:
            found = act()
            return [getattr(found, "number", 0)]
        except ValueError as error:
            refused.append(str(error))
            return []

    def spend():
        ready.wait()
        book = rt.Ledger(path)
        attempt(lambda: book.add("people", 12.0, DELTA))
        for _ in range(4):
            admitted.extend(attempt(lambda: book.spend("people", Cost(epsilon=1.0))))

    at_once(spend, 8)
    assert len(admitted) == len(set(admitted)) == 12
    assert len(refused) == 7 + 20
    assert all("already" in told or "refuses" in told for told in refused)
    assert rt.Ledger(path).verify()[0] == 13


def test_a_person_who_is_replaced_is_all_rows_less_and_as_many_more(ledger):
    """Zero-out privacy of one row: to replace a person of 4 rows is 8 changes, not 4."""
    ledger.add("persons", 9.0, 1e-6, unit="person")
    plan = rt.planning.plan_ftrl(rt.Ball(2), 100, 1.0, 0.1, 1e-6, neighbors="zero-out")
    one = Terms.of_event(plan.dp_event(), "zero-out").square
    entry = ledger.spend("persons", plan, factor=4)
    assert entry.factor == 8
    assert entry.terms.square >= 64 * one
    assert ledger.spend("persons", Cost(mu=0.1), neighbors="add-remove", factor=2, unit="row").factor == 4
    ledger.add("zeroed", 9.0, 1e-6, unit="person", neighbors="zero-out")
    assert ledger.spend("zeroed", plan, factor=4).factor == 4


def test_what_the_machine_may_fail_by_is_part_of_delta(ledger):
    plan = rt.planning.plan_objective(rt.Simplex(3), 100, 1.0, 0.5, 1e-6, smoothness=0.0)
    failure = plan.account().failure
    assert failure > 0
    assert 2 * failure < ledger.spend("people", plan).price.delta < 1e-3 * plan.delta


BAD_COSTS = [{"mu": math.nan}, {"mu": math.inf}, {"mu": 1e160}, {"mu": 1e200}, {"epsilon": 1e308}, {"epsilon": -0.1}]
BAD_COSTS += [{"rho": 1e308}, {"delta": 1.0}, {"delta": 1.5}, {"epsilon": math.nan}, {"mu": 1e60, "rho": 1e120}]


@pytest.mark.parametrize("cost", BAD_COSTS, ids=str)
def test_numbers_that_are_no_costs_or_too_large_enter_nothing(ledger, cost):
    with pytest.raises(ValueError, match=r"must be|refuses"):
        ledger.spend("people", Cost(**cost))
    assert len(ledger.records()) == 1


def zcdp(rho):
    return events.ZCDpEvent(rho)


BAD_EVENTS = [
    (events.ComposedDpEvent([zcdp(-0.5), zcdp(0.6)]), "add-remove"),
    (zcdp(math.nan), "replace"),
    (LaplaceDpEvent(0.0), "replace"),
    (LaplaceDpEvent(-2.0), "add-remove"),
    (events.DiscreteLaplaceDpEvent(0.5, -1), "zero-out"),
    (events.RandomizedResponseDpEvent(1.5, 2), "replace"),
    (events.RandomizedResponseDpEvent(0.9, 0), "replace"),
    (events.PoissonSampledDpEvent(1.01, GaussianDpEvent(10.0)), "add-remove"),
    (SelfComposedDpEvent(GaussianDpEvent(1e9), 10**400), "replace"),
    (SelfComposedDpEvent(GaussianDpEvent(1.0), -1), "replace"),
    (events.SampledWithoutReplacementDpEvent(10, 1000, GaussianDpEvent(3.0)), "replace"),
]


@pytest.mark.parametrize(("event", "neighbors"), BAD_EVENTS, ids=lambda x: str(x)[:60])
def test_events_with_fields_out_of_their_range_enter_nothing(ledger, event, neighbors):
    """A negative rho beside a positive one was once a discount; others ended in a traceback of dp_accounting."""
    ledger.add("same", 1.0, 1e-6, neighbors=neighbors)
    with pytest.raises(ValueError, match=r"\w"):
        ledger.spend("same", event, neighbors=neighbors)
    assert len(ledger.records()) == 2


def test_many_randomised_responses_cost_more_than_one():
    """The PLD accountant of dp_accounting ignores their number."""
    many = Terms.of_event(SelfComposedDpEvent(events.RandomizedResponseDpEvent(0.9, 2), 50), "replace")
    once = Terms.of_event(events.RandomizedResponseDpEvent(0.9, 2), "replace")
    assert compose(many, 1e-6).epsilon > 5 * compose(once, 1e-6).epsilon


def test_deltas_add_up_to_the_slack_and_no_further(ledger):
    for _ in range(5):
        ledger.spend("people", Cost(delta=1e-7))
    with pytest.raises(ValueError, match="slack"):
        ledger.spend("people", Cost(delta=1e-12))
    ledger.spend("people", Cost(epsilon=0.01))  # without a delta there is room


@pytest.mark.parametrize("factor", [10**6, 10**400], ids=["million", "huge"])
def test_huge_factors_are_refused_and_not_lost_in_arithmetic(ledger, factor):
    assert not ledger.allows("people", Cost(epsilon=0.001, delta=1e-30), factor=factor)
    assert not ledger.allows("people", Cost(mu=0.001), factor=factor)


# Windows and clocks.


@pytest.fixture
def clock(monkeypatch):
    """A clock of this machine that can be put anywhere."""
    times = [NOW]
    monkeypatch.setattr(_ledger, "_clock", lambda: times[0])
    return times


def test_a_window_ends_where_it_ends(ledger, clock):
    ledger.add("riders", 1.0, DELTA, window=10)
    first = ledger.spend("riders", Cost(epsilon=0.8), since="now")
    clock[0] += DAY
    ledger.end(first)
    ended = clock[0]
    for begin, allowed in ((ended + 10 * DAY, False), (ended + 10 * DAY + timedelta(microseconds=1), True)):
        clock[0] = begin
        assert ledger.allows("riders", Cost(epsilon=0.5), since="now") is allowed
    assert not ledger.allows("riders", Cost(epsilon=0.5)), "data of any age share the budget with everything"


def test_a_clock_that_is_put_back_opens_no_window(ledger, clock):
    ledger.add("riders", 1.0, DELTA, window=10)
    first = ledger.spend("riders", Cost(epsilon=0.8), since="now")
    clock[0] = NOW - 300 * DAY
    second = ledger.spend("riders", Cost(epsilon=0.1), since="now")
    assert second.time == first.time, "records never go back"
    assert second.since == clock[0], "data are as old as the clock says"
    ledger.end(first)
    assert not ledger.allows("riders", Cost(epsilon=0.5), since="now")
    clock[0] = NOW + 9 * DAY
    assert not ledger.allows("riders", Cost(epsilon=0.5), since="now")
    ledger.verify()


def test_times_at_the_ends_of_the_calendar(ledger, clock):
    people = ledger.add("riders", 1.0, DELTA, window=1e7)
    entry = ledger.spend("riders", Cost(epsilon=0.8), since="0001-01-01T00:00:00+00:00")
    ledger.end(entry)
    assert not ledger.allows("riders", Cost(epsilon=0.5), since="now")
    assert edge_of(people, NOW) == datetime.min.replace(tzinfo=UTC)
    for since in ("0001-01-01T00:00:00+14:00", date(2026, 1, 1), 0, "NOW", datetime(2026, 1, 1), NOW + DAY):
        with pytest.raises(ValueError, match="since must"):
            ledger.spend("riders", Cost(epsilon=0.1), since=since)
    ledger.verify()


# Changing the books.


def rewritten(path, change):
    """Write all records anew with a right chain, after `change` of the facts: what only a noted digest shows."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT content FROM reticent_ledger ORDER BY sequence").fetchall()
        facts = [next_record((0, FIRST), {})._replace(content=row[0]).facts for row in rows]
        head, records = (0, FIRST), []
        for one in change(facts):
            record = next_record(head, {k: v for k, v in one.items() if k not in ("sequence", "previous")})
            head = record.sequence, record.digest
            records.append((*record, one["population"], one["kind"]))
        connection.execute("DELETE FROM reticent_ledger")
        connection.executemany(
            "INSERT INTO reticent_ledger (sequence, content, digest, population, kind) VALUES (?, ?, ?, ?, ?)", records
        )
        connection.execute("UPDATE reticent_ledger_head SET sequence = ?, digest = ?", head)


def more(facts):
    """Add a second, larger budget."""
    first = facts[0]
    return [*facts, {**first, "time": facts[-1]["time"], "budget": {**first["budget"], "epsilon": 50.0}}]


def cheaper(facts):
    price = [part / 2 for part in facts[1]["price"]]
    facts[1] |= {"price": price, "sums": price}
    rest = [0.0, 0.0, 0.0]
    for one in facts[1:]:
        rest = [a + b for a, b in zip(rest, one["price"], strict=True)]
        one["sums"] = rest
    return facts


def wider(facts):
    """Enter a cost of 0.6 with its right price, twice."""
    return [*facts, *({**facts[-1]} for _ in range(2))]


def earlier(facts):
    return [*facts[:-1], {**facts[-1], "time": "2020-01-01T00:00:00+00:00"}]


def ended(facts):
    return [*facts, {"kind": "end", "population": "people", "time": facts[-1]["time"], "of": 99}]


def stranger(facts):
    return [*facts, {"kind": "gift", "population": "people", "time": facts[-1]["time"]}]


FORGED = {more: "already", cheaper: "charged", wider: "add up|exceed", earlier: "time", ended: "99", stranger: "gift"}


@pytest.mark.parametrize("change", FORGED, ids=lambda f: f.__name__)
def test_forged_records_with_a_right_chain_are_found(ledger, path, change):
    ledger.spend("people", Cost(epsilon=0.3))
    ledger.spend("people", Cost(epsilon=0.6))
    rewritten(path, lambda facts: facts)
    rt.Ledger(path).verify()  # the same again is no change
    rewritten(path, change)
    with pytest.raises(ValueError, match=FORGED[change]):
        rt.Ledger(path).verify()


def test_forged_windows_are_found(path, clock):
    ledger = rt.Ledger(path)
    ledger.add("riders", 1.0, DELTA, window=10)
    for _ in range(3):
        entry = ledger.spend("riders", Cost(epsilon=0.9), since="now")
        clock[0] += DAY
        ledger.end(entry)
        clock[0] += 11 * DAY
    ledger.verify()

    def nearer(facts):
        """Let the second begin within the window of the first."""
        facts[3]["since"] = facts[2]["time"]
        return facts

    rewritten(path, nearer)
    with pytest.raises(ValueError, match="exceed"):
        rt.Ledger(path).verify()


def copied(source, target):
    with sqlite3.connect(source) as one, sqlite3.connect(target) as two:
        one.backup(two)
    one.close()
    two.close()


def test_an_old_copy_that_is_put_back_is_found(ledger, path, tmp_path):
    copied(path, tmp_path / "old.db")
    entry = ledger.spend("people", Cost(epsilon=0.9))
    copied(tmp_path / "old.db", path)
    for attempt in (lambda: ledger.spend("people", Cost(epsilon=0.9)), ledger.verify, ledger.entries):
        with pytest.raises(ValueError, match="an older copy"):
            attempt()
    fresh = rt.Ledger(path)  # a program that starts later knows nothing of it: a noted digest does
    assert fresh.verify()[0] == 1
    with pytest.raises(ValueError, match="is gone"):
        fresh.verify(entry.digest)


def test_an_entry_that_is_made_while_one_looks_is_no_alarm(ledger, monkeypatch):
    """The look began before it, and does not show it: that is not an older copy."""
    look, made = _store.Reader.head, []

    def head(reader):
        found = look(reader)
        if not made:
            made.append(True)
            ledger.spend("people", Cost(epsilon=0.1))
        return found

    monkeypatch.setattr(_store.Reader, "head", head)
    assert ledger.standing("people").entries == 0
    assert ledger.standing("people").entries == 1


def test_an_end_that_was_cut_off_admits_nothing_more(ledger, path):
    """Without its last entry the ledger would have room for it once more."""
    ledger.spend("people", Cost(epsilon=0.9))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM reticent_ledger WHERE sequence = 2")
    for book in (ledger, rt.Ledger(path)):
        with pytest.raises(ValueError, match="cut off"):
            book.spend("people", Cost(epsilon=0.9))


def test_chains_of_garbage_end_in_a_sentence():
    odd = next_record((0, FIRST), {"kind": "spend", "population": "people"})
    with pytest.raises(ValueError, match="record 1"):
        check_chain([odd])


# Names and places.

NAMES = ["x'; DROP TABLE reticent_ledger; --", '"', "%s %(x)s :name", "[red]a[/red]", "ü", "población", "数据"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_only_names(ledger, name):
    ledger.add(name, 1.0, 1e-6, unit=name)
    ledger.spend(name, Cost(epsilon=0.5), note=name)
    assert [(entry.note, entry.unit) for entry in ledger.entries(name)] == [(name, name)]
    assert not ledger.entries("people")
    ledger.verify()


@pytest.mark.parametrize("name", ["", " ", "people ", " people", "a\x00b", "a\nb", "\u200bpeople", "a" * 201, 5, None])
def test_names_that_look_like_others_are_refused(ledger, name):
    with pytest.raises(ValueError, match="letters"):
        ledger.add(name, 1.0, 1e-6)
    with pytest.raises(ValueError, match=r"note must be one line"):
        ledger.spend("people", Cost(epsilon=0.1), note="\x1b[31m\n=cmd()")


PLACES = {
    "sqlite://": "outlive",
    "sqlite:///:memory:": "outlive",
    "sqlite:///file::memory:?uri=true": "options",
    "sqlite:///file:x?mode=memory&cache=shared&uri=true": "options",
    "sqlite:///x.db?nolock=1&uri=true": "options",
    "sqlite:///x.db?timeout=0": "options",
    "nonsense://a": "URL of SQLAlchemy",
    "http://x": "URL of SQLAlchemy",
    "://": "URL of SQLAlchemy",
    "": "path must be",
    "no/such/folder/l.db": "path must be",
}


@pytest.mark.parametrize("place", PLACES)
def test_places_that_no_ledger_can_rely_on_are_refused(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=PLACES[place]):
        rt.Ledger(place)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["books?nolock=1&uri=true", "a#b", "a%20b", "file:x", b"bytes.db"])
def test_a_path_is_the_path_of_that_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rt.Ledger(name).add("people", 1.0, 1e-6)
    assert os.path.exists(name)
    assert rt.Ledger(name, create=False).verify()[0] == 1
