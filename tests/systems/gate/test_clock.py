"""Rows put in and left out, refused rows, and windows: attacks on sums with the noise known (docs/theory, R15, R16)."""

import math
import os
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from test_persons import GOAL, PLANNERS, distance, made, releases, stream

import reticent as rt
from reticent.learners import EmptyRoundWarning
from reticent.systems._persons import Roll
from reticent.systems._saved import pack_learner
from reticent.systems.gate._people import OpenBlock
from reticent.systems.gate._release import BlockRelease


def feed(blocks, persons=None):
    def fed(learner):
        for k, block in enumerate(blocks):
            if len(block):
                learner.observe_many(block, **({} if persons is None else {"persons": persons[k]}))
            learner.close_block()

    return fed


def blocks_of(rng, count=12, most=9):
    return [rng.choice([-1.0, 1.0], size=(rng.integers(0, most), 1)) for _ in range(count)]


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_a_row_put_in_or_left_out_is_covered_on_a_clock(name, neighbors):
    rng, worst = np.random.default_rng(1), 0.0
    options = {"clock": 5, "neighbors": neighbors}
    plan = made(name, dim=1, **options).plan
    for _ in range(12):
        blocks = blocks_of(rng)
        k = int(rng.integers(0, 12)) if worst else 0
        place = int(rng.integers(0, len(blocks[k]) + 1))
        more = [*blocks]
        more[k] = np.insert(blocks[k], place, rng.choice([-1.0, 1.0]), axis=0)
        runs = [releases(made(name, dim=1, **options), feed(side)) for side in (blocks, more)]
        worst = max(worst, distance(*runs))
    most = plan.level if neighbors == "zero-out" else plan.level / 2
    assert 0.7 * most < worst <= most * (1 + 1e-4)
    moved = [*blocks]  # a row that comes at another time: left out here, put in there
    moved[0], moved[3] = np.insert(blocks[0], 0, 1.0, axis=0), blocks[3]
    other = [*blocks]
    other[3] = np.insert(blocks[3], 0, -1.0, axis=0)
    if neighbors == "replace":
        runs = [releases(made(name, dim=1, **options), feed(side)) for side in (moved, other)]
        assert distance(*runs) <= plan.level


@pytest.mark.parametrize("name", PLANNERS)
def test_a_row_put_in_where_blocks_are_counted_shows_in_every_later_block(name):
    """The attack that succeeds, as no promise covers it: rows that alternate turn from one block to the next."""
    plan = made(name, dim=1).plan
    signs = np.repeat(np.where(np.arange(24) % 2, 1.0, -1.0), plan.batch)[:, None]
    more = np.insert(signs, 0, 1.0, axis=0)[:-1]
    runs = [releases(made(name, dim=1), lambda learner, s=s: learner.observe_many(s)) for s in (signs, more)]
    assert distance(*runs) > 1.5 * plan.level


def test_a_refused_row_is_an_insertion_and_an_empty_one_is_not():
    """Somebody's row is bad in one stream: refused, it moves all later rows; as an empty round, none."""
    plan = made(dim=1).plan
    count = 12 * plan.batch
    good = np.repeat(np.where(np.arange(12) % 2, 1.0, -1.0), plan.batch)[:, None]
    bad = good.copy()
    bad[3] = math.nan

    def refusing(learner):
        learner.observe_many(bad[:3])
        with pytest.raises(ValueError, match="finite"):
            learner.observe(bad[3])
        learner.observe_many(bad[4:])

    def taking(learner):
        with pytest.warns(EmptyRoundWarning, match=f"1 of {count} rounds"):
            learner.observe_many(bad)

    def new(on_bad):
        return rt.make(plan, rt.Linear(), seed=1, on_steep="clip", on_bad=on_bad)

    straight = releases(new("raise"), lambda learner: learner.observe_many(good))
    refused = releases(new("raise"), refusing)
    emptied = releases(new("empty"), taking)
    assert len(refused) == len(straight) - 1  # the last block is one row short
    assert distance(straight[:-1], refused) > 3 * plan.level
    assert distance(straight, emptied) <= plan.level / 2 * (1 + 1e-9)


HUGE = [math.nan, math.inf, -math.inf, 1e308, -1e308, 1e200, 1e-320, 0.0, 2.0, 1.0, -1.0]


@pytest.mark.parametrize(
    "loss", [rt.Linear(), rt.Logistic(), rt.Hinge(), rt.Absolute(), rt.Pinball(0.9), rt.Huber()], ids=repr
)
@pytest.mark.parametrize("domain", [rt.Ball(2), rt.Box([1e5, -1.0], [1e5 + 1, 2.0]), rt.Simplex(2)], ids=repr)
@pytest.mark.filterwarnings("ignore::reticent.learners.EmptyRoundWarning")
def test_whatever_numbers_a_row_holds_it_counts_as_one_round(loss, domain):
    rng = np.random.default_rng(0)
    rows = rng.choice(HUGE, size=(60, 2))
    targets = rng.choice(HUGE, size=60)
    block = (rows,) if isinstance(loss, rt.Linear) else (rows, targets)
    one = rt.private_learner(loss, domain, **GOAL, seed=1)
    many = rt.private_learner(loss, domain, **GOAL, seed=1)
    for i in range(60):
        one.observe(*(part[i] for part in block))
        assert one.rounds == i + 1
    trace = many.observe_many(*block)
    assert many.rounds == 60
    assert np.isfinite(trace.losses).all()
    assert pack_learner(one) == pack_learner(many)


def test_calls_that_are_no_rows_are_errors_and_count_for_nothing():
    learner = rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, seed=1)
    for call in (
        lambda: learner.observe([1.0, 2.0, 3.0], 1.0),
        lambda: learner.observe([1.0, 2.0]),
        lambda: learner.observe([["a", "b"]], 1.0),
        lambda: learner.observe_many(np.full((3, 3), math.nan), np.ones(3)),
        lambda: learner.observe_many(np.full((3, 2), math.nan), np.ones(2)),
        lambda: learner.observe(np.full((2, 2), math.nan), np.ones(2)),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert learner.rounds == 0
    with pytest.raises(ValueError, match="on_bad must be"):
        rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, on_bad="skip")
    with pytest.raises(ValueError, match=r'on_bad="empty" needs on_steep="clip"'):
        rt.make(learner.plan, rt.Logistic(), on_bad="empty")


def test_a_warning_that_is_an_error_comes_after_the_round_is_in():
    learner = rt.private_learner(rt.Linear(), rt.Ball(2), **GOAL, seed=1)
    with pytest.raises(EmptyRoundWarning):  # the tests have warnings as errors
        learner.observe([math.nan, 0.0])
    assert learner.rounds == 1


def test_bad_rows_in_files_and_journals(tmp_path):
    learner = rt.private_learner(rt.Linear(), rt.Ball(2), **GOAL, seed=1)
    learner.save(tmp_path / "state")
    loaded = rt.load(tmp_path / "state")
    with rt.Journal(tmp_path / "journal") as journal:
        durable = journal.start(learner)
        with pytest.warns(EmptyRoundWarning):
            durable.observe([math.nan, 0.0])
        with pytest.warns(EmptyRoundWarning, match="1 of 2"):
            durable.observe_many([[math.inf, 0.0], [0.6, 0.8]])
        durable._end("as if it had crashed")
    with pytest.warns(EmptyRoundWarning, match="2 of 3"):
        loaded.observe_many([[0.0, math.nan], [math.inf, 0.0], [0.6, 0.8]])
    with rt.Journal(tmp_path / "journal") as journal:
        assert pack_learner(journal.resume()._inner) == pack_learner(loaded)


@pytest.mark.parametrize("options", [{}, {"max_rows": 3}, {"max_rows": 3, "window": 4}], ids=str)
@pytest.mark.parametrize("name", PLANNERS)
def test_blocks_on_a_clock_in_rows_files_and_journals(name, options, tmp_path):
    X, keys = stream(900)
    given = {} if not options else {"persons": keys}
    rng = np.random.default_rng(2)
    ends = [0, *np.sort(rng.integers(0, 901, size=14)).tolist(), 900]

    def new():
        return made(name, clock=60, **options)

    whole, single = new(), new()
    assert whole.spent() == 0.0
    for a, b in pairwise(ends):
        if b > a:
            whole.observe_many(X[a:b], **({name: part[a:b] for name, part in given.items()}))
            for i in range(a, b):
                single.observe(X[i], **({"person": keys[i]} if given else {}))
        whole.close_block()
        if a == ends[7]:
            single.save(tmp_path / "state")
            single = rt.load(tmp_path / "state")
        single.close_block()
    assert pack_learner(whole) == pack_learner(single)
    assert whole.switches == len(ends) - 1
    assert whole.spent() == pytest.approx(1.0, abs=1e-6)
    path = tmp_path / "journal"
    with rt.Journal(path, batch=16, checkpoint=200) as journal:
        durable = journal.start(new())
        for a, b in pairwise(ends[:9]):
            for i in range(a, b):
                durable.observe(X[i], **({"person": keys[i]} if given else {}))
            durable.close_block()
            assert durable.waiting == 0
        durable._end("as if it had crashed")
    with rt.Journal(path) as journal:
        durable = journal.resume()
        for a, b in pairwise(ends[8:]):
            if b > a:
                durable.observe_many(X[a:b], **({name: part[a:b] for name, part in given.items()}))
            durable.close_block()
        assert pack_learner(durable._inner) == pack_learner(whole)
    with rt.journal.Reader(path) as reader:
        assert pack_learner(reader.verify()) == pack_learner(whole)
        assert reader.spent() == whole.spent()
        assert len(list(reader.changes())) == 1 + whole.switches


def test_a_block_on_a_clock_has_room_for_so_many_rows_and_no_more(tmp_path):
    learner = made(clock=5)
    most = learner.plan.most_rows
    assert most == 1 << 16
    learner.observe_many(np.zeros((most - 1, 3)))
    learner.observe([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"room for 0, got 1 more; call close_block"):
        learner.observe([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="room for 0, got 2 more"):
        learner.observe_many(np.zeros((2, 3)))
    assert learner.rounds == most
    learner.close_block()
    learner.observe([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="horizon"):
        PLANNERS["noisy"](rt.Ball(2), 1000, 1.0, **GOAL, clock=10)


def test_learners_on_a_clock_learn():
    X, _ = stream(40_000)
    labels = np.where(X[:, 0] > 0, 1.0, -1.0)
    learner = rt.private_learner(rt.Logistic(), rt.Ball(3, radius=4.0), **GOAL, clock=400, seed=1)
    for k in range(100):
        learner.observe_many(X[400 * k : 400 * k + 400], labels[400 * k : 400 * k + 400])
        learner.close_block()
    assert learner.decision[0] > 1.0
    assert "close_block" in learner.plan.explain()
    assert "put in or leave out one round" in " ".join(learner.plan.explain().split())


def window_attack(name, rng, rows, window, **options):
    """Return how far apart two streams are that differ in what person 0 does in `window` rounds or blocks in a row."""
    new = made(name, dim=1, max_rows=rows, window=window, **options)
    clock = "clock" in options
    count = 20 if clock else max(12 * new.plan.batch, 4 * window)
    at = int(rng.integers(0, count - window))
    if clock:
        base = [(rng.choice([-1.0, 1.0], size=(6, 1)), rng.integers(0, 3, size=6)) for _ in range(count)]
        sides = []
        for _ in range(2):
            side = [(X.copy(), keys.copy()) for X, keys in base]
            for k in range(at, at + window):
                X, keys = side[k]
                others = keys != 0
                mine = rng.choice([-1.0, 1.0], size=(int(rng.integers(0, 4)), 1))
                side[k] = np.concatenate([X[others], mine]), np.append(keys[others], np.zeros(len(mine), dtype=int))
            sides.append(side)
        runs = [
            releases(
                made(name, dim=1, max_rows=rows, window=window, **options),
                feed([X for X, _ in side], [keys for _, keys in side]),
            )
            for side in sides
        ]
        return distance(*runs), new.plan
    X, keys = rng.choice([-1.0, 1.0], size=(count, 1)), rng.integers(0, 8, size=count)
    sides = []
    for _ in range(2):
        Y, whose = X.copy(), keys.copy()
        mine = at + np.flatnonzero(keys[at : at + window] == 0)
        there = rng.random(mine.size) < 0.7
        Y[mine, 0] = np.where(there, rng.choice([-1.0, 1.0], size=mine.size), 0.0)
        whose[mine] = np.where(there, 0, 1000 + mine)  # else an empty round, of nobody else
        sides.append((Y, whose))
    runs = [
        releases(
            made(name, dim=1, max_rows=rows, window=window, **options),
            lambda learner, side=side: learner.observe_many(side[0], persons=side[1]),
        )
        for side in sides
    ]
    return distance(*runs), new.plan


@pytest.mark.parametrize("name", PLANNERS)
def test_what_a_person_does_in_any_window_is_within_the_account(name):
    rng = np.random.default_rng(5)
    for rows, window, options in ((1, 40, {}), (2, 300, {}), (2, 5, {"clock": 6}), (1, 1, {"clock": 6})):
        found = [window_attack(name, rng, rows, window, **options) for _ in range(8)]
        worst, plan = max(apart for apart, _ in found), found[0][1]
        assert 0.2 * plan.level < worst <= plan.level * (1 + 1e-9), (rows, window, options)


def test_two_windows_can_be_touched_so_both_are_paid_for():
    """One row at the end of a window and one at the beginning of the next: sqrt(2) times what one window costs."""
    plan = made(dim=1, max_rows=1, window=2, clock=3).plan
    sides = [[np.full((1, 1), s) if k in (1, 2) else np.zeros((0, 1)) for k in range(4)] for s in (1.0, -1.0)]
    keys = [["ann"] * len(block) for block in sides[0]]
    runs = [releases(made(dim=1, max_rows=1, window=2, clock=3), feed(side, keys)) for side in sides]
    assert distance(*runs) == pytest.approx(plan.level, rel=1e-6)


def test_a_cap_that_slides_would_let_one_row_decide_for_ever():
    """Why windows tumble: with "at most one row in any two rounds" a row more or less turns all later choices."""

    def sliding(rounds):
        kept, last = [], -9
        for t in rounds:
            if t - last >= 2:
                kept.append(t)
                last = t
        return set(kept)

    with_it, without = sliding(range(100)), sliding(range(1, 100))
    assert len(with_it ^ without) == 100
    assert made(max_rows=1, window=2).plan.cap.at_stake == 2


def sums_of_all_streams(rows, window, length):
    """Return block sums, in clipped rows, of all streams of one person's rows 1 and -1 and of empty rounds."""
    found = {}
    for row in product((0.0, 1.0, -1.0), repeat=length):
        roll, block, sums = Roll(rows, b"s" * 32), OpenBlock(1), []
        release = BlockRelease(1.0, 8.0, 2, 1)
        for t, value in enumerate(row, start=1):
            owners = np.array([1 if value else 0])
            kept = roll.admit(owners)
            block.add(owners[kept], release.rounded(np.full((1, 1), value))[kept])
            if t % 2 == 0:
                sums.append(int(block.close(release)[0]) / release.largest)
                if t - roll.opened >= window:
                    roll.forget(t)
        found[row] = np.array(sums)
    return found


@pytest.mark.parametrize(("rows", "window"), [(1, 2), (1, 3), (2, 3)])
def test_rows_left_out_of_a_window_let_later_ones_count_so_both_sides_are_paid_for(rows, window):
    """All pairs of streams of six rounds: 2k rows bound those that are replaced, not those that are zeroed."""
    found = sums_of_all_streams(rows, window, 6)
    apart, zeroed = 0.0, 0.0
    for at in range(6 - window + 1):
        groups = {}
        for row, sums in found.items():
            groups.setdefault(row[:at] + row[at + window :], []).append((row[at : at + window], sums))
        for group in groups.values():
            (without,) = (sums for inside, sums in group if not any(inside))
            zeroed = max(zeroed, max(((sums - without) ** 2).sum() for _, sums in group))
            sides = np.array([sums for _, sums in group])
            apart = max(apart, ((sides[:, None] - sides[None]) ** 2).sum(axis=2).max())
    assert zeroed > 1.2 * 2 * rows
    assert apart <= 4 * 2 * rows
    for name, planner in PLANNERS.items():
        for clock in (None, 6):
            with pytest.raises(ValueError, match="neighbors must be 'replace' for a plan with a window"):
                planner(rt.Ball(1), None, 1.0, **GOAL, max_rows=rows, window=window, neighbors="zero-out", clock=clock)
            assert planner(rt.Ball(1), None, 1.0, **GOAL, max_rows=rows, window=window, clock=clock).window, name


def test_a_clock_may_strike_where_no_round_has_come(tmp_path):
    """A block without rounds is a release: it costs what others do, since in another stream it has a row."""
    learner = made(clock=5)
    assert learner.spent() == 0.0
    assert learner.close_block()
    assert learner.rounds == 0
    assert learner.spent() == pytest.approx(1.0, abs=1e-6)
    learner.save(tmp_path / "state")
    assert pack_learner(rt.load(tmp_path / "state")) == pack_learner(learner)
    path = tmp_path / "journal"
    with rt.Journal(path, checkpoint=1) as journal:
        journal.start(made(clock=5)).close_block()
    with rt.journal.Reader(path) as reader:
        assert reader.spent() == learner.spent()
        assert pack_learner(reader.verify()) == pack_learner(learner)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_no_block_is_closed_in_a_fork():
    """The noise of the copy is that of the original: two blocks released with it tell their difference exactly."""
    learner = made(clock=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads may be there
        child = os.fork()
    if not child:
        try:
            learner.close_block()
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert learner.close_block()
