"""The ledger: refusing in time, one budget for all who write, books in which changes show."""

import json
import math
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent, dp_event
from dp_accounting.pld import PLDAccountant
from writers import EPSILON

import reticent as rt
from reticent.ledger import check_chain, read_export
from reticent.ledger._chain import FIRST, SPEND, next_record, written
from reticent.ledger._export import as_json, csv_lines, opendp_terms
from reticent.privacy import Cost, Filter
from reticent.privacy._adaptive import Sums
from reticent.privacy._serial import canonical, event_from_plain, event_to_plain
from reticent.privacy._terms import Terms, compose

GOAL = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture
def ledger(tmp_path):
    book = rt.Ledger(tmp_path / "privacy.db")
    book.add("people", **GOAL)
    return book


def ftrl(epsilon=0.3, **more):
    return rt.planning.plan_ftrl(rt.Ball(2), 100, 1.0, epsilon, 1e-6, **more)


# Asked before anything starts.


def test_learners_and_trackers_are_entered_before_their_first_round(ledger):
    learner = ledger.start("people", ftrl(), rt.Linear(), seed=1, note="scorer")
    assert learner.rounds == 0
    ledger.spend("people", rt.PrivateQuantile(0.9, 0.0, 60.0, 0.2))
    first, second = ledger.entries("people")
    assert (first.note, first.unit, first.terms.square > 0) == ("scorer", "row", True)
    assert second.terms.pure == 0.2
    learner.observe([0.1, 0.0])
    with pytest.raises(ValueError, match="1 rounds already"):
        ledger.spend("people", learner)
    intervals = rt.PrivateIntervals(_Line(), largest=1.0, learn="openly")
    with pytest.raises(ValueError, match="model"):
        ledger.spend("people", intervals)
    with pytest.raises(ValueError, match="makes no privacy claim"):
        ledger.spend("people", rt.plan_lazy(rt.Ball(2), 100, 1.0, max_switches=10))


class _Line:
    def predict_one(self, x):
        return 0.0


def test_refused_says_what_is_left_and_enters_nothing(ledger):
    for _ in range(3):
        ledger.spend("people", Cost(mu=0.1))
    before = ledger.records()
    with pytest.raises(ValueError, match=r"'people' refuses DP-FTRL.* is left.*epsilon = 0\.\d+"):
        ledger.spend("people", ftrl(1.0))
    assert ledger.records() == before
    standing = ledger.standing("people")
    assert ledger.allows("people", Cost(mu=standing.left_mu * 0.999))
    assert not ledger.allows("people", Cost(mu=standing.left_mu * 1.001))
    ledger.spend("people", Cost(epsilon=standing.left_epsilon * (1 - 1e-8)))
    with pytest.raises(ValueError, match=r"no population 'others'.*there are 'people'"):
        ledger.spend("others", Cost(mu=0.1))
    with pytest.raises(ValueError, match="already"):
        ledger.add("people", 2.0, 1e-6)


def test_pure_entries_add_up_to_epsilon_exactly(ledger):
    for _ in range(10):
        ledger.spend("people", Cost(epsilon=0.1))
    assert ledger.standing("people").left_epsilon == 0
    assert not ledger.allows("people", Cost(epsilon=1e-6))
    assert ledger.total("people").epsilon <= 1.0


def test_pure_entries_leave_what_is_left_of_epsilon(ledger):
    """The filter alone would say that nothing is left after a tenth of epsilon."""
    ledger.spend("people", Cost(epsilon=0.3))
    standing = ledger.standing("people")
    assert standing.left == pytest.approx(0.7)
    assert standing.left_epsilon == pytest.approx(0.7)


def test_a_first_entry_may_take_all(ledger):
    ledger.spend("people", ftrl(1.0))  # the whole budget, which the filter alone has no room for
    assert not ledger.allows("people", Cost(epsilon=1e-6))
    assert ledger.total("people").epsilon == pytest.approx(1.0, abs=1e-3)
    ledger.verify()
    ledger.add("others", **GOAL)
    assert not ledger.allows("others", ftrl(1.01))


def test_decisions_are_the_filters_not_those_of_a_fixed_total(ledger):
    """What is admitted is what Filter admits; the tight total is below, and would admit more."""
    same = Filter(1.0, 1e-6, slack=5e-7)
    for epsilon in (0.02, 0.07, 0.01) * 100:
        cost = Cost(epsilon=epsilon)
        assert ledger.allows("people", cost) == same.allows(cost)
        if not same.allows(cost):
            break
        ledger.spend("people", cost)
        same.charge(cost)
    standing = ledger.standing("people")
    assert standing.entries == same.releases > 10
    assert standing.total.epsilon < 1.0


# Neighbours and units.


def test_neighbours_are_converted_where_that_is_right_and_refused_else(ledger):
    assert ledger.spend("people", ftrl(0.1, neighbors="zero-out")).factor == 2
    event = GaussianDpEvent(20.0)
    with pytest.raises(ValueError, match="neighbours"):
        ledger.spend("people", event)
    added = ledger.spend("people", event, neighbors="add-remove")
    replaced = ledger.spend("people", event, neighbors="replace")
    assert added.terms.square == pytest.approx(0.01) == replaced.terms.square
    ledger.add("rows", **GOAL, neighbors="add-remove")
    for of in ("replace", "zero-out"):
        with pytest.raises(ValueError, match="no factor leads"):
            ledger.spend("rows", ftrl(0.1, neighbors=of), factor=2)


def test_persons_need_a_factor(ledger):
    ledger.add("persons", 3.0, 1e-6, unit="person")
    with pytest.raises(ValueError, match=r"protects one row, the population one person; give factor"):
        ledger.spend("persons", ftrl(0.1))
    one, five = ledger.spend("people", ftrl(0.1)), ledger.spend("persons", ftrl(0.1), factor=5)
    assert five.terms.square == pytest.approx(25 * one.terms.square)
    grouped = Terms.of_cost(Cost(epsilon=0.1, delta=1e-9)).times(3)
    assert next(iter(grouped.steps)) == pytest.approx((0.3, 1e-9 * (1 + math.exp(0.1) + math.exp(0.2))))


def bounded(epsilon, **options):
    return rt.planning.plan_filtered(rt.Ball(2), None, 1.0, epsilon=epsilon, delta=1e-7, max_rows=3, **options)


def test_a_plan_for_persons_needs_no_factor_for_persons(ledger):
    ledger.add("persons", 3.0, 1e-6, unit="person")
    plan = bounded(0.2)
    assert plan.unit == "person"
    entry = ledger.spend("persons", plan)
    assert (entry.factor, entry.unit) == (1, "person")
    assert entry.terms.square == pytest.approx(plan.mu() ** 2)
    grouped = rt.planning.for_persons(rt.planning.plan_ftrl, max_rows=3)(rt.Ball(2), 1000, 1.0, 0.2, 1e-7)
    assert ledger.spend("persons", grouped).factor == 1
    tracker = rt.PrivateQuantile(0.9, 0.0, 1.0, epsilon=0.1, max_rows=2)
    assert ledger.spend("persons", tracker).unit == "person"


def test_a_budget_that_is_renewed_is_not_one_for_ever(ledger):
    ledger.add("persons", 3.0, 1e-6, unit="person")
    with pytest.raises(ValueError, match=r"protects one person-window, the population one person"):
        ledger.spend("persons", bounded(0.2, window=500))
    with pytest.raises(ValueError, match=r"protects one person-window, the population one row"):
        ledger.spend("people", bounded(0.2, window=24, clock=10))
    assert ledger.spend("persons", bounded(0.2, window=500), factor=4).factor == 4


def test_what_protects_a_person_protects_a_row_of_theirs(ledger):
    """A row in the place of another may be somebody else's: two persons, unless it is said that it never is."""
    assert ledger.spend("people", bounded(0.1)).factor == 2
    assert ledger.spend("people", bounded(0.1), factor=1).factor == 1
    # One row less is not one person less: who is left out comes back without it.
    ledger.add("zeroed", 9.0, 1e-6, neighbors="zero-out")
    assert ledger.spend("zeroed", bounded(0.1, neighbors="zero-out"), factor=1).factor == 2
    assert ledger.spend("people", bounded(0.1, neighbors="zero-out")).factor == 4
    assert ledger.spend("zeroed", bounded(0.1), factor=1).factor == 1
    # Bounds for groups say nothing of a row that goes to somebody else: whoever enters one says that none does.
    grouped = rt.planning.for_persons(rt.planning.plan_ftrl, max_rows=3)(rt.Ball(2), 1000, 1.0, 0.1, 1e-7)
    with pytest.raises(ValueError, match="protects one person, the population one row; give factor="):
        ledger.spend("people", grouped)
    assert ledger.spend("people", grouped, factor=1).factor == 1


# Events of others.

EVENTS = [
    (LaplaceDpEvent(8.0), "add-remove"),
    (LaplaceDpEvent(8.0), "replace"),
    (SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 20), "add-remove"),
    (SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 20), "replace"),
    (dp_event.ComposedDpEvent([dp_event.ZCDpEvent(0.001), GaussianDpEvent(30.0)]), "replace"),
    (dp_event.RandomizedResponseDpEvent(0.95, 2), "replace"),
]


@pytest.mark.parametrize(("event", "neighbors"), EVENTS, ids=lambda x: getattr(x, "name", type(x).__name__))
def test_events_are_charged_at_least_what_they_cost(event, neighbors, ledger):
    assert event_from_plain(json.loads(json.dumps(event_to_plain(event)))) == event
    ledger.add("same", 20.0, 1e-6, neighbors=neighbors)
    entry = ledger.spend("same", event, neighbors=neighbors)
    exact = compose(entry.terms, 1e-6).epsilon
    tight = Filter(exact * 0.98, 1e-6, slack=5e-7)  # no filter may admit what is not private
    assert not tight.allows(entry.terms.price(tight, 5e-9))
    if neighbors == "add-remove":
        theirs = PLDAccountant().compose(event).get_epsilon(1e-6)
        assert exact == pytest.approx(theirs, rel=1e-3)


def test_events_that_nobody_can_account_for_are_refused(ledger):
    with pytest.raises(ValueError, match="cannot say what"):
        ledger.spend("people", dp_event.UnsupportedDpEvent(), neighbors="replace")
    with pytest.raises(ValueError, match="no finite cost"):
        ledger.spend("people", dp_event.NonPrivateDpEvent(), neighbors="replace")
    with pytest.raises(ValueError, match="must be a plan"):
        ledger.spend("people", 0.1)


def test_export_to_dp_accounting_never_understates(ledger):
    for what in (Cost(mu=0.05), Cost(epsilon=0.1), Cost(epsilon=0.1), Cost(epsilon=0.01, delta=1e-8)):
        ledger.spend("people", what)
    event, delta = ledger.dp_event("people")
    assert delta == 1e-8
    theirs = PLDAccountant().compose(event).get_epsilon(1e-6 - delta)
    assert ledger.total("people").epsilon <= theirs < 2.2 * ledger.total("people").epsilon
    rows = opendp_terms(ledger.entries("people"), "replace", 1e-6)
    assert [row["epsilon"] for row in rows] == [None, 0.1, 0.1, None, None]
    assert rows[0]["rho"] == pytest.approx(0.05**2 / 2)
    assert (rows[-1]["entry"], rows[-1]["rho"]) == ("total", None)


# The chain.


@pytest.fixture
def spent(ledger):
    for epsilon in (0.1, 0.2, 0.3):
        ledger.spend("people", Cost(epsilon=epsilon))
    return ledger


CHANGES = {
    "edit": ("UPDATE reticent_ledger SET content = replace(content, '0.2', '0.1') WHERE sequence = 3", "changed"),
    "deletion": ("DELETE FROM reticent_ledger WHERE sequence = 3", "record 3 is missing"),
    "end cut off": ("DELETE FROM reticent_ledger WHERE sequence = 4", "cut off"),
    "exchange": (
        "UPDATE reticent_ledger SET sequence = CASE sequence WHEN 2 THEN 30 WHEN 3 THEN 2 ELSE sequence END;"
        "UPDATE reticent_ledger SET sequence = 3 WHERE sequence = 30",
        "does not follow",
    ),
    "another label": ("UPDATE reticent_ledger SET population = 'x' WHERE sequence = 4", "filed under"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_found(name, spent, tmp_path):
    last, head = spent.verify()
    assert last == 4
    assert spent.verify(head) == (last, head)
    statements, told = CHANGES[name]
    with sqlite3.connect(tmp_path / "privacy.db") as connection:
        connection.executescript(statements)
    with pytest.raises(ValueError, match=told):
        spent.verify()


def test_all_written_anew_is_found_by_a_noted_digest(spent, tmp_path):
    _, head = spent.verify()
    again = rt.Ledger(tmp_path / "again.db")
    again.add("people", **GOAL)
    again.verify()
    with pytest.raises(ValueError, match="written anew"):
        again.verify(head)


def test_exports_can_be_checked_and_read_again(spent, tmp_path):
    import csv

    (tmp_path / "l.json").write_text(as_json(spent))
    with open(tmp_path / "l.csv", "w", newline="") as file:
        csv.writer(file).writerows(csv_lines(spent))
    for name in ("l.json", "l.csv"):
        assert read_export(tmp_path / name) == spent.records()
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("0.2", "0.1"))
        with pytest.raises(ValueError, match="record 3 was changed"):
            read_export(tmp_path / name)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no export"):
        read_export(tmp_path / "x.csv")


def test_what_is_no_ledger_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no ledger at"):
        rt.Ledger(tmp_path / "none.db", create=False)
    (tmp_path / "text.db").write_text("x" * 5000)
    with pytest.raises(ValueError, match="cannot be used as a ledger"):
        rt.Ledger(tmp_path / "text.db")
    with pytest.raises(ValueError, match="outlive"):
        rt.Ledger("sqlite://")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ImportError, match=r"pip install 'reticent\[ledger\]'"):
        rt.Ledger(tmp_path / "l.db")


# Many writers, and crashes.


def at_once(work, count):
    """Run `work` in so many threads, and wait for all of them."""
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)


def killed(url, kills, seed, room):
    """Let two writers be killed so often: nothing told may be lost, and as many entries are made as there is room."""
    ledger = rt.Ledger(url)
    ledger.add("people", room * EPSILON, 1e-30)
    script = Path(__file__).with_name("writers.py")
    done = subprocess.run(
        [sys.executable, script, str(url), str(kills), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100 + 5 * kills,
    )
    assert done.returncode == 0, done.stderr
    count, *told = map(int, done.stdout.split())
    entries = {entry.number for entry in ledger.entries("people")}
    assert len(told) == len(set(told))
    assert set(told) <= entries
    assert len(entries) == room
    assert len(entries) - len(told) <= count, "at most the entry in the making of a killed writer is not heard of"
    ledger.verify()
    return count


def test_two_writers_and_a_few_kills(tmp_path):
    assert killed(tmp_path / "l.db", 4, 1, 40) >= 2


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing(tmp_path):
    assert killed(tmp_path / "l.db", 200, 2, 1500) >= 200


# Thousands of entries.


def filled(path, costs):
    """Return a ledger with an entry for each cost, written at once."""
    ledger = rt.Ledger(path)
    people = ledger.add("people", 100.0, 1e-6)
    head, sums, rows, when = ledger.verify(), Sums(), [], ledger.records()[0].facts["time"]
    budget = people.filter()
    for cost in costs:
        terms, price = Terms.of_cost(cost), budget.price(cost)
        sums = sums.plus(price)
        facts = {"kind": SPEND, "population": "people", "time": when, "what": "a stated cost", "note": "", "factor": 1}
        facts |= {"neighbors": "replace", "unit": "row", "since": None, "terms": terms.to_plain()}
        record = next_record(head, facts | {"price": written(price), "sums": written(sums)})
        head = record.sequence, record.digest
        rows.append((record.sequence, "people", SPEND, record.content, record.digest))
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO reticent_ledger VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute("UPDATE reticent_ledger_head SET sequence = ?, digest = ?", head)
    return ledger


def test_ten_thousand_entries_are_few_compositions(tmp_path):
    kinds = [Cost(epsilon=0.01), Cost(mu=0.02), Cost(epsilon=0.02), Cost(mu=0.015)]
    ledger = filled(tmp_path / "l.db", kinds * 2500)
    standing = ledger.standing("people")
    assert standing.entries == 10_000
    assert standing.total.compositions == 3  # all Gaussian ones are one, and pure ones are counted
    brute = Terms(2500 * (0.02**2 + 0.015**2), 0.0, {(0.01, 0.0): 2500, (0.02, 0.0): 2500}, {})
    assert standing.total == compose(brute, 1e-6)
    assert ledger.verify()[0] == 10_001
    assert ledger.spend("people", Cost(mu=0.01)).number == 10_002


def test_all_different_epsilons_are_at_most_64_compositions():
    steps = {(0.001 + 1e-6 * k, 0.0): 1 for k in range(5000)}
    total = compose(Terms(0.0, 0.0, steps, {}), 1e-6)
    assert total.compositions == 64
    largest = compose(Terms(0.0, 0.0, {(0.001 + 1e-6 * 4999, 0.0): 5000}, {}), 1e-6)
    assert total.epsilon < largest.epsilon


def test_different_pure_events_are_at_most_64_compositions():
    """Two thousand noises of Laplace, no two the same: as steps of their epsilon, which reveal at least as much."""
    events = {(canonical(event_to_plain(LaplaceDpEvent(50 + k / 100))), "add-remove"): 1 for k in range(2_000)}
    total = compose(Terms(0.0, 0.0, {}, events), 1e-6)
    assert total.compositions == 64
    same = {(canonical(event_to_plain(LaplaceDpEvent(noise))), "add-remove"): 2_000 for noise in (50.0, 70.0)}
    most, least = (compose(Terms(0.0, 0.0, {}, {key: 2_000}), 1e-6).epsilon for key in same)
    assert least < total.epsilon < 1.3 * most


def test_chain_of_nothing():
    assert check_chain([]) == (0, FIRST)
