"""What docs/theory, Q14 and Q15 claim, by enumeration: interactive entries that take turns, and windows."""

import itertools
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import reticent as rt
from reticent.ledger import _ledger
from reticent.privacy import Cost, Filter

SMALL, LARGE = 0.4, 0.9


def answers(epsilon, world):
    """The law of (mask, masked) of an interactive mechanism: a response r to the world, hidden behind a fair bit."""
    truth = 1 / (1 + math.exp(-epsilon))
    return {
        (mask, mask ^ r): 0.5 * (truth if r == world else 1 - truth) for mask, r in itertools.product((0, 1), repeat=2)
    }


def curve(laws, epsilon):
    """The larger hockey stick of two laws on transcripts."""
    p, q = laws
    places = set(p) | set(q)
    return max(
        sum(max(a.get(z, 0.0) - math.exp(epsilon) * b.get(z, 0.0), 0.0) for z in places) for a, b in ((p, q), (q, p))
    )


def transcripts(world, policy, third):
    """Two mechanisms, mask of the first, then as the policy says: the second with an epsilon chosen from that mask.

    `policy` maps the first answer to (epsilon of the second, which answer comes next); `third`, what is seen of both,
    to the epsilon of a third release, which may be 0.
    """
    law = {}
    for one, chance in answers(LARGE, world).items():
        epsilon, order = policy[one[0]]
        for two, other in answers(epsilon, world).items():
            seen = (one[0], *((two[0], one[1], two[1]) if order else (one[1], two[0], two[1])))
            last = third(epsilon, one[0] ^ one[1], two[0] ^ two[1])
            truth = 1 / (1 + math.exp(-last))
            for r in (0, 1):
                key = (epsilon, order, seen, r)
                law[key] = law.get(key, 0.0) + chance * other * (truth if r == world else 1 - truth)
    return law


def worst(goal, delta, honest):
    """The largest delta over all policies that a filter admits; a dishonest one returns charges by what came out."""
    budget = Filter(goal, delta)

    def third(epsilon, r1, r2):
        spent = Filter(goal, delta)
        spent.charge(Cost(epsilon=LARGE))
        if spent.allows(Cost(epsilon=epsilon)):
            spent.charge(Cost(epsilon=epsilon))
        if not honest and r1 == r2 == 1:
            spent = budget  # nothing charged for two answers "yes"
        return next((e for e in (LARGE, SMALL) if spent.allows(Cost(epsilon=e))), 0.0)

    start = Filter(goal, delta)
    start.charge(Cost(epsilon=LARGE))
    affordable = [e for e in (SMALL, LARGE) if start.allows(Cost(epsilon=e))]
    choices = list(itertools.product(affordable, (0, 1)))
    return max(
        curve([transcripts(world, dict(enumerate(pair)), third) for world in (0, 1)], goal)
        for pair in itertools.product(choices, repeat=2)
    )


@pytest.mark.parametrize("goal", [1.3, 1.8, 2.0])
def test_entries_that_take_turns_keep_the_goal(goal):
    assert worst(goal, 1e-9, honest=True) <= 1e-9


def test_charging_what_came_out_is_caught():
    assert worst(1.3, 1e-9, honest=False) > 1e-3


# Windows.

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW, LIMIT = 10.0, 1.0


def schedule(ledger, monkeypatch, rng, count):
    """Enter runs at random times with random ends; return (begin, end, epsilon, time of entry) of those admitted."""
    clock, runs, opened = START, {}, []
    monkeypatch.setattr(_ledger, "_now", lambda _: clock)
    for _ in range(count):
        clock += DAY * float(rng.exponential(2.0))
        epsilon = float(rng.choice([0.2, 0.3, 0.5]))
        begin = clock - DAY * float(rng.choice([0.0, 3.0]))
        try:
            entry = ledger.spend("people", Cost(epsilon=epsilon), since=begin)
        except ValueError:
            pass
        else:
            runs[entry.number] = [begin, None, epsilon, clock]
            opened.append(entry.number)
        while opened and (rng.random() < 0.5 or len(opened) > 3):
            done = opened.pop(0)
            ledger.end(done)
            runs[done][1] = clock
    return [(b, e or clock + 100 * DAY, epsilon, t) for b, e, epsilon, t in runs.values()]


def most(runs, meets):
    """The largest sum of epsilons of runs that meet an interval of the window's length, over all intervals."""
    edges = {time for run in runs for time in run[:2]}
    starts = {edge - shift for edge in edges for shift in (timedelta(), WINDOW * DAY)}
    return max(sum(run[2] for run in runs if meets(run, at)) for at in starts)


def test_every_window_keeps_the_budget(tmp_path, monkeypatch):
    ledger = rt.Ledger(tmp_path / "l.db")
    # A delta so small that pure epsilons simply add up.
    ledger.add("people", LIMIT, 1e-30, window=WINDOW)
    runs = schedule(ledger, monkeypatch, np.random.default_rng(1), 45)
    assert len(runs) > 10
    assert sum(run[2] for run in runs) > 3 * LIMIT, "entries fall out of the window"
    assert most(runs, lambda run, at: run[0] <= at + WINDOW * DAY and run[1] >= at) <= LIMIT + 1e-9


def test_counting_by_times_of_entry_is_caught(tmp_path, monkeypatch):
    def by_entry(reader, people, begin):
        edge = begin - DAY * people.window
        found = reader.records(people.name, _ledger.SPEND)
        return [one for one in found if datetime.fromisoformat(one.facts["time"]) >= edge]

    monkeypatch.setattr(_ledger, "_counted", by_entry)
    ledger = rt.Ledger(tmp_path / "l.db")
    ledger.add("people", LIMIT, 1e-30, window=WINDOW)
    runs = schedule(ledger, monkeypatch, np.random.default_rng(1), 45)
    assert most(runs, lambda run, at: run[0] <= at + WINDOW * DAY and run[1] >= at) > LIMIT + 0.1
