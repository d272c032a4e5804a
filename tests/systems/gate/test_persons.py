"""Persons at the gate: who counts, what is released, files and journals, and attacks on sums with the noise known."""

import math

import numpy as np
import pytest
from interrupts import interrupted

import reticent as rt
from reticent.planning import plan_filtered, plan_noisy_descent
from reticent.systems import _learner
from reticent.systems._persons import Roll
from reticent.systems._saved import pack_learner

GOAL = {"epsilon": 1.0, "delta": 1e-6}
PLANNERS = {"noisy": plan_noisy_descent, "filtered": plan_filtered}


def stream(count, dim=3, people=40, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dim))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    return rows, rng.integers(0, people, size=count)


def made(name="noisy", dim=3, loss=None, seed=1, **options):
    plan = PLANNERS[name](rt.Ball(dim), None, 1.0, **GOAL, **options)
    return rt.make(plan, loss or rt.Linear(), seed=seed, on_steep="clip")


def releases(learner, feed):
    """Return all that a learner releases while it is fed, in steps, and the shift of each."""
    found, walk = [], learner._walk
    end = walk._end

    def watched(changes):
        shift = walk.release.shift
        end(changes)
        found.append((walk.released.copy(), shift))

    walk._end = watched
    feed(learner)
    del walk._end
    return found


def distance(one, two):
    """Return how far apart two runs with the same noise are, as a GDP number: what an attacker has at best."""
    return math.sqrt(sum(float(((a - b) ** 2.0).sum()) / 4.0**s for (a, s), (b, _) in zip(one, two, strict=True)))


@pytest.mark.parametrize("options", [{}, {"window": 500}], ids=["all", "window"])
@pytest.mark.parametrize("name", PLANNERS)
def test_rows_and_blocks_files_and_journals_agree_to_the_last_bit(name, options, tmp_path):
    X, keys = stream(3000)
    names = [f"person {key}" for key in keys]
    whole = made(name, max_rows=6, **options)
    trace = whole.observe_many(X, persons=names)
    assert len(trace) == whole.rounds == 3000
    assert whole._roll.left_out > 0
    single = made(name, max_rows=6, **options)
    for i in range(3000):
        single.observe(X[i], person=names[i])
        if i == 1234:
            single.save(tmp_path / "state")
            single = rt.load(tmp_path / "state")
    assert pack_learner(single) == pack_learner(whole)
    path = tmp_path / "journal"
    with rt.Journal(path, batch=16, checkpoint=10**9) as journal:
        durable = journal.start(made(name, max_rows=6, **options))
        durable.observe_many(X[:700], persons=names[:700])
        for i in range(700, 1500):
            durable.observe(X[i], person=names[i])
        durable._end("as if it had crashed")
    with rt.Journal(path) as journal:
        durable = journal.resume()
        durable.observe_many(X[durable.rounds :], persons=names[durable.rounds :])
        assert np.array_equal(durable.decision, whole.decision)
        assert pack_learner(durable._inner) == pack_learner(whole)
    with rt.journal.Reader(path) as reader:
        assert reader.verify().rounds == 3000
        assert reader.spent() == whole.spent()


def test_what_is_released_is_the_sum_of_clipped_sums_of_the_first_rows_of_each():
    learner = made(max_rows=5)
    plan, X, keys = learner.plan, *stream(8 * learner.plan.batch, people=12)
    shadow = np.random.Generator(np.random.PCG64(1))
    shadow.bytes(32)  # the secret of the roll
    found = releases(learner, lambda learner: learner.observe_many(X, persons=keys))
    gate, seen = plan.release(), dict.fromkeys(range(12), 0)
    for k, (released, _) in enumerate(found):
        sums = {}
        for i in range(k * plan.batch, (k + 1) * plan.batch):
            seen[keys[i]] += 1
            if seen[keys[i]] <= 5:
                sums[keys[i]] = sums.get(keys[i], 0) + gate.rounded(X[i : i + 1])[0]
        total = np.zeros(3, dtype=np.int64)
        for part in sums.values():
            total += gate.shortened(part[None])[0]
        assert np.array_equal(released, gate.released(total, shadow))


def test_keys_are_texts_whole_numbers_or_bytes_and_kept_as_keyed_hashes():
    roll, other = Roll(2, b"a" * 32), Roll(2, b"b" * 32)
    assert roll.owner("17") != roll.owner(17) != roll.owner(b"17")
    assert roll.owner(17) == roll.owner(np.int64(17)) == roll.owners(np.array([17]))[0] == roll.owners([17, "x"])[0]
    assert roll.owner(17) != other.owner(17)
    mixed = ["1", 1, b"1", np.int32(1), None, 1.0, True, math.nan, "\udc80"]
    assert roll.owners(mixed).tolist() == [roll.owner(key) for key in mixed]
    assert [int(key) for key in roll.owners(mixed)[4:8]] == [0, 0, 0, 0]
    pandas = pytest.importorskip("pandas")
    texts = ["ann", "bob", None, "ann", "17"]
    column = pandas.Series(texts)
    assert roll.owners(column).tolist() == roll.owners(texts).tolist() == [roll.owner(key) for key in texts]
    assert roll.owners(pandas.Series([17, 3])).tolist() == [roll.owner(17), roll.owner(3)]
    assert roll.owners(pandas.Series(mixed[:-1], dtype=object)).tolist() == [roll.owner(key) for key in mixed[:-1]]
    assert roll.owners(pandas.Categorical(texts)).tolist() == roll.owners(texts).tolist()
    assert roll.owners(np.array(["ann", "bob"])).tolist() == roll.owners(["ann", "bob"]).tolist()
    learner = made(max_rows=2)
    learner.observe([1.0, 0.0, 0.0], person="Ann Example")
    assert b"Ann" not in pack_learner(learner)


def test_a_cap_counts_row_by_row_as_block_by_block():
    rng = np.random.default_rng(1)
    owners = rng.integers(1, 30, size=500)
    one, many = Roll(4, b"x" * 32), Roll(4, b"x" * 32)
    single = [bool(one.admit(owners[i : i + 1])[0]) for i in range(500)]
    parts = [many.admit(part) for part in np.split(owners, [7, 8, 100, 350])]
    assert np.concatenate(parts).tolist() == single
    assert one.counts == many.counts
    assert one.left_out == many.left_out == 500 - sum(single)
    kept = many.admit(owners[:50])
    many.put_back(owners[:50], kept)
    assert one.counts == many.counts
    assert one.left_out == many.left_out


def test_what_is_not_given_or_not_asked_for_is_refused_and_leaves_no_mark():
    learner, plain = made(max_rows=2), made()
    row = [1.0, 0.0, 0.0]
    for call, words in (
        (lambda: learner.observe(row), "person must be given"),
        (lambda: learner.observe_many([row]), "persons must be given"),
        (lambda: learner.observe(row, person=None), "person=None"),
        (lambda: learner.observe_many([row, row], persons=["a", 1.5]), "no such key in row 1"),
        (lambda: learner.observe_many([row, row], persons=["a"]), "one key for each of the 2 rounds, got 1"),
        (lambda: plain.observe(row, person="a"), "max_rows="),
        (lambda: plain.observe_many([row], persons=["a"]), "max_rows="),
        (lambda: learner.close_block(), "clock="),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert learner.rounds == plain.rounds == 0
    assert not learner._roll.counts
    for wrong in ({"max_rows": 0}, {"window": 10}, {"max_rows": 2, "window": 0}, {"max_rows": 2.5}):
        with pytest.raises(ValueError, match=r"max_rows|window"):
            made(**wrong)


def test_rows_of_nobody_are_empty_rounds_where_bad_rows_are():
    learner = rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, max_rows=2, seed=1)
    X, y = np.tile([0.6, 0.8], (4, 1)), np.ones(4)
    with pytest.warns(rt.learners.EmptyRoundWarning, match="2 of 4"):
        learner.observe_many(X, y, persons=["a", None, "a", math.nan])
    with pytest.warns(rt.learners.EmptyRoundWarning, match="1 of 1"):
        learner.observe(X[0], 1.0, person=None)
    assert learner.rounds == 5
    assert [*learner._roll.counts.values()] == [2]


def test_a_key_that_is_missing_is_one_round_and_no_key_of_another_changes():
    """A column of whole numbers with one missing key must not give everybody else another key, or none."""
    pandas = pytest.importorskip("pandas")
    roll = Roll(2, b"a" * 32)
    found, there = [roll.owner(7), 0, roll.owner(8)], [roll.owner(7), roll.owner(9), roll.owner(8)]
    for column in (
        pandas.Series([7, None, 8], dtype="Int64"),
        pandas.array([7, None, 8], dtype="UInt8"),
        pandas.Series(pandas.Categorical([7, None, 8])),
        np.ma.array([7, 9, 8], mask=[False, True, False]),
        np.array([7, None, 8], dtype=object),
    ):
        assert roll.owners(column).tolist() == found
    assert roll.owners(pandas.Series([7, 9, 8])).tolist() == there
    # Such a column as floating point numbers has other keys for all: refused, whether one is missing or not.
    for column in (pandas.Series([7, None, 8]), np.array([7.0, 9.0, 8.0]), pandas.Series([7.0], dtype="Float64")):
        with pytest.raises(ValueError, match="room for missing ones"):
            roll.owners(column)
    # What is no column of keys would be taken for one of other persons.
    for wrong in ("ann", b"ann", {"ann": 1}, {"ann"}, np.array([["ann"], ["bob"]]), np.array([[1], [2]]), np.array(7)):
        with pytest.raises(ValueError, match="one key for every round"):
            roll.owners(wrong)
    assert roll.owner(10**5000) == roll.owners([10**5000])[0] != 0


def test_no_more_persons_are_taken_than_the_chance_of_a_shared_hash_is_for(monkeypatch):
    monkeypatch.setattr(_learner, "MOST_PERSONS", 5)
    absent, replaced = made(max_rows=2, neighbors="zero-out"), made(max_rows=2)
    row = [1.0, 0.0, 0.0]
    for learner in (absent, replaced):
        learner.observe_many([row] * 3, persons=["a", "b", "c"])
        learner.observe(row, person="d")
    with pytest.raises(ValueError, match="2 rounds more may be of too many"):
        absent.observe_many([row] * 2, persons=["e", "f"])
    absent.observe(row, person="e")
    with pytest.raises(ValueError, match="5 of them at most"):
        absent.observe(row, person="f")
    assert absent.rounds == 5
    replaced.observe_many([row] * 3, persons=["e", "f", "g"])


@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize("neighbors", ["replace", "zero-out"])
def test_no_two_lives_of_a_person_are_farther_apart_than_the_account_says(name, rows, neighbors):
    """With the noise known, releases differ by what a person moves; linear losses do not ask for the decision."""
    learner = made(name, dim=1, max_rows=rows, neighbors=neighbors)
    plan, rng, worst = learner.plan, np.random.default_rng(rows), 0.0
    count = 6 * plan.batch if name == "noisy" else plan.epoch(2).start
    keys = rng.integers(1, 5, size=count)
    X = rng.choice([-1.0, 1.0], size=(count, 1))
    for attempt in range(6):
        mine = np.zeros(count, dtype=bool)
        if attempt == 0:  # the first blocks, one row each: where all columns are longest
            mine[: rows * plan.batch : plan.batch] = True
        else:
            mine[rng.choice(count, size=rng.integers(1, 4 * rows), replace=False)] = True
        whose = np.where(mine, 0, keys)
        other = (
            np.where(mine, -1.0, X[:, 0])[:, None] if neighbors == "replace" else np.where(mine, 0.0, X[:, 0])[:, None]
        )
        first = np.where(mine, 1.0, X[:, 0])[:, None]
        runs = [
            releases(
                made(name, dim=1, max_rows=rows, neighbors=neighbors),
                lambda learner, s=s, whose=whose: learner.observe_many(s, persons=whose),
            )
            for s in (first, other)
        ]
        worst = max(worst, distance(*runs))
        assert worst <= plan.level * (1 + 1e-9)
    assert worst > 0.9 * plan.level


def test_a_person_who_comes_at_other_times_costs_no_more():
    """In one stream rounds are hers, in the other others are; where they are not, they are empty (of nobody)."""
    rows, rng, worst = 3, np.random.default_rng(3), 0.0
    plan = made(dim=1, max_rows=rows).plan
    count = 8 * plan.batch
    for _ in range(30):
        base, keys = rng.choice([-1.0, 1.0], size=(count, 1)), rng.integers(1, 6, size=count)
        hers = rng.choice(count, size=12, replace=False)
        sides = []
        for _ in range(2):
            X, whose = base.copy(), keys.copy()
            X[hers], whose[hers] = 0.0, 1000 + np.arange(12)  # rows of zeros, of nobody else
            there = rng.choice(hers, size=rng.integers(0, 9), replace=False)
            X[there, 0], whose[there] = rng.choice([-1.0, 1.0], size=there.size), 0
            sides.append((X, whose))
        runs = [
            releases(made(dim=1, max_rows=rows), lambda learner, s=s: learner.observe_many(s[0], persons=s[1]))
            for s in sides
        ]
        worst = max(worst, distance(*runs))
    assert 0 < worst <= plan.level * (1 + 1e-9)


def test_more_rows_than_count_would_show_without_the_cap():
    """The same stream to a learner of single rounds: a person with many rows is far beyond its account."""
    plain = made(dim=1)
    count = 8 * plain.plan.batch
    X = np.ones((count, 1))
    runs = [releases(made(dim=1), lambda learner, s=s: learner.observe_many(s * X)) for s in (1.0, -1.0)]
    assert distance(*runs) > 10 * plain.plan.level
    keys = np.zeros(count, dtype=int)
    plan = made(dim=1, max_rows=3).plan
    runs = [
        releases(made(dim=1, max_rows=3), lambda learner, s=s: learner.observe_many(s * X, persons=keys))
        for s in (1.0, -1.0)
    ]
    assert distance(*runs) <= plan.level


def test_losses_of_the_callers_own_have_persons_too():
    called = []

    def slope(x, datum):
        called.append(datum)
        return np.array([float(datum), 0.0])

    loss = rt.Custom(lambda x, datum: float(datum * x[0]), slope, lipschitz=1.0)
    learner = rt.private_learner(loss, rt.Ball(2), **GOAL, max_rows=1, seed=1)
    learner.observe_many([0.5, 0.25, -0.5], persons=["a", "a", "b"])
    assert learner.rounds == 3
    assert learner._walk.people.owners.size == 2
    assert called.count(0.25) == 1  # looked at once when it came in, and not learned from


@pytest.mark.parametrize("options", [{}, {"window": 150}], ids=["all", "window"])
def test_interrupts_leave_a_learner_that_goes_on_as_if_nothing_had_been_or_refuses(options):
    X, keys = stream(400, people=100)
    straight = made(max_rows=2, **options)
    straight.observe_many(X, persons=keys)
    went_on, refused, after = 0, 0, 1
    while True:
        learner = made(max_rows=2, **options)
        if not interrupted(lambda learner=learner: learner.observe_many(X[:300], persons=keys[:300]), after):
            break
        after += 1 + after // 8
        if learner._torn():
            refused += 1
            with pytest.raises(RuntimeError, match="interrupted"):
                learner.observe_many(X[:1], persons=keys[:1])
            continue
        went_on += 1
        done = learner.rounds
        learner.observe_many(X[done:], persons=keys[done:])
        assert pack_learner(learner) == pack_learner(straight)
    assert went_on
    assert refused


def test_forged_rolls_are_refused(tmp_path):
    learner = made(max_rows=2)
    learner.observe_many(*stream(100)[:1], persons=stream(100)[1])
    for forge, words in (
        (lambda found: found._roll.counts.update({5: 3}), "counted more"),
        (lambda found: setattr(found._roll, "cap", 3), "roll of persons"),
        (lambda found: delattr(found, "_roll"), "plan says otherwise"),
        (lambda found: setattr(found._roll, "secret", b""), "roll of persons"),
        (lambda found: setattr(found._walk.people, "sums", found._walk.people.sums[1:]), "open block"),
    ):
        learner.save(tmp_path / "state")
        found = rt.load(tmp_path / "state")
        forge(found)
        found.save(tmp_path / "forged")
        with pytest.raises(ValueError, match=words):
            rt.load(tmp_path / "forged")


def test_words_say_who_is_protected():
    learner = rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, max_rows=3)
    told = " ".join(learner.plan.explain().split())
    assert "change everything that one person does" in told
    assert "the first 3 rows count in all" in told
    assert "A person with k rounds" not in told
    assert "unit" in str(learner.plan)
    assert "one person's" in str(learner.plan.account())
    windows = rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, max_rows=3, window=1000)
    told = " ".join(windows.plan.explain().split())
    assert "in any 1,000 rounds in a row" in told
    assert "in n windows costs more, up to n times as much" in told
    assert "versions of one person" in str(windows.plan)
    absent = rt.private_learner(rt.Logistic(), rt.Ball(2), **GOAL, max_rows=3, neighbors="zero-out")
    told = " ".join(absent.plan.explain().split())
    assert "what this person has done if they were there, hold either for equally likely" in told
    assert "two things that this person can have done" not in told  # those are twice as far apart
