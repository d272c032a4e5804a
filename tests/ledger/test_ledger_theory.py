"""What docs/theory, Q14 and Q15 claim, by enumeration: interactive entries that take turns, and windows."""

import itertools
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import reticent as rt
from reticent.ledger import _ledger
from reticent.privacy import Cost, Filter
from reticent.privacy._losses import hockey_stick
from reticent.privacy._terms import Terms

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


# The lemma of Q14a: one draw for a mechanism that answers twice.

QUESTIONS, ANSWERS = 2, 2


def mechanism(rng):
    """Chances of the answers in both worlds, by history: a first answer for each question, then a second."""
    first = rng.dirichlet([1.0] * ANSWERS, (QUESTIONS, 2))
    second = rng.dirichlet([1.0] * ANSWERS, (QUESTIONS, ANSWERS, QUESTIONS, 2))
    return first, second


def chances(one, history):
    """Both laws of the next answer for each question; none after two answers."""
    first, second = one
    if len(history) == 0:
        return first
    return second[history[0]] if len(history) == 1 else first[:0]  # by the first question and its answer


def best(ones, histories, alpha, free=True):
    """The largest hockey stick at alpha over all who may ask any mechanism anything next, knowing all answers.

    Who is not free asks the first mechanism question 0, then the second, and so on.
    """
    found = [max(1.0 - alpha, 0.0)]
    for i, one in enumerate(ones):
        for q, (p, other) in enumerate(chances(one, histories[i])):
            if not free and q:
                continue
            total = 0.0
            for y in range(ANSWERS):
                after = (*histories[:i], (*histories[i], (q, y)), *histories[i + 1 :])
                total += p[y] * best(ones, after, alpha * other[y] / p[y], free)
            found.append(total)
    return max(found)


def product(ones, alpha, free=True):
    """At alpha the curve of the product of two pairs, each that of all who ask one mechanism; from above.

    The first curve is replaced by chords of itself: mass a at each place where the slope changes, and b = place x a.
    """
    places = np.concatenate(([0.0], np.geomspace(1e-3, 1e3, 400)))
    heights = np.array([best(ones[:1], ((),), place, free) for place in places])
    slopes = np.append(np.diff(heights) / np.diff(places), 0.0)
    bends = np.diff(slopes)  # of b, at the place a/b
    total = heights[-1] + sum(
        bend * place * best(ones[1:], ((),), alpha / place, free)
        for bend, place in zip(bends, places[1:], strict=True)
        if bend > 1e-15
    )
    return total


def test_mechanisms_that_take_turns_stay_below_the_product_of_their_curves():
    rng = np.random.default_rng(5)
    for _ in range(3):
        ones = (mechanism(rng), mechanism(rng))
        for alpha in (1.0, 2.0):
            turns = best(ones, ((), ()), alpha)
            assert turns <= product(ones, alpha) + 1e-9
            assert turns > product(ones, alpha, free=False) + 1e-6, "who asks as planned in advance is no bound"


@pytest.mark.parametrize(("mu", "failure"), [(0.2, 1e-12), (1.0, 1e-6), (0.01, 1e-4), (0.0, 1e-9)])
def test_a_run_that_is_only_near_is_below_its_price(mu, failure):
    (delta,) = [delta for _, delta in Terms(mu**2, 0.0, {}, {}).nearly(failure).steps]
    alpha = np.concatenate((np.linspace(1, 3, 2001), np.geomspace(3, 1e12, 2000)))
    normal = hockey_stick(mu, np.log(alpha))
    truth = np.minimum.accumulate(normal + (1 + alpha) * failure)
    assert np.all(truth <= delta + (1 - delta) * normal)
    assert np.any(truth > (delta + (1 - delta) * normal) / 3), "it is not much more than is needed"


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
