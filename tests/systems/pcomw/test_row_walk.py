"""The compiled walk over rows: the transcript of the plain walk to the last bit, whatever happens on the way."""

import pickle

import numpy as np
import pytest
from coin_settings import COINS

import reticent as rt
from reticent.gibbs import Gibbs
from reticent.systems._decider import NEVER, Changes
from reticent.systems._walk import Walk
from reticent.systems.pcomw import _kernels
from reticent.systems.pcomw._walk import STAGE, TAKING, AuxiliaryCoin, RowWalk

N = 603
NO_SWITCH = (0.0, 1.0, 1, 1, None)
INTERVAL = rt.Interval(-1.0, 2.0)
CASES = [
    (rt.Ball(3, center=[0.5, 0.0, 0.0]), rt.Logistic()),
    (rt.Box([-1.0, 0.0], [0.5, 1.0]), rt.Logistic()),
    (rt.Simplex(3), rt.Logistic()),
    (rt.Ball(1), rt.Logistic()),
    (rt.Ball(2), rt.Huber(0.4)),
    (INTERVAL, rt.Pinball(0.9)),
    (INTERVAL, rt.Hinge(0.5)),
    (INTERVAL, rt.Huber(0.4)),
]


def data(domain, loss, rounds=N):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(rounds, domain.dim)) + 0.3
    features /= np.linalg.norm(features, axis=1)[:, None]
    labels = isinstance(loss, rt.Logistic | rt.Hinge)
    return features, rng.choice([-1.0, 1.0], rounds) if labels else rng.uniform(-1.0, 1.0, rounds)


def start(kind, plan, loss, length=NEVER, **options):
    measure = Gibbs(plan.domain, loss, plan.beta, plan.lam, lipschitz=3.0, distance=0.0, **options)
    return kind(plan, measure, np.random.default_rng(5), AuxiliaryCoin(plan), length), Changes()


def feed(walk, changes, block, sizes):
    """Take in rounds, again from where a draw was given up; return how often one was."""
    (rows,) = walk.measure.gate.prepare(*block)
    failures = 0
    while walk.done < len(rows):
        try:
            walk.take(rows[walk.done : walk.done + sizes], changes)
        except rt.WorkLimitError:
            failures += 1
    return failures


def agree(plain, compiled):
    (a, one), (b, two) = plain, compiled
    assert one.places().tolist() == two.places().tolist()
    np.testing.assert_array_equal(one.points(a.u.size), two.points(b.u.size))
    np.testing.assert_array_equal(a.u, b.u)
    assert (a.done, a.due, a.spent, a.frozen) == (b.done, b.due, b.spent, b.frozen)
    assert a.measure.rounds == b.measure.rounds
    # Nothing is left in a different state: both generators go on alike.
    assert a.rng.bit_generator.state == b.rng.bit_generator.state


@pytest.mark.parametrize(("domain", "loss"), CASES, ids=str)
@pytest.mark.parametrize(("p", "phi", "batch", "draws", "budget"), [*COINS, NO_SWITCH])
def test_the_transcript_is_that_of_the_plain_walk(domain, loss, p, phi, batch, draws, budget):
    plan = rt.Plan(domain, N, 3.0, beta=0.3, lam=4.0, p=p, phi=phi, batch=batch, draws=draws, budget=budget)
    block = data(domain, loss)
    for length in (NEVER, 600):
        plain = start(Walk, plan, loss, length)
        feed(*plain, block, N)
        for sizes in (N, 7):
            compiled = start(RowWalk, plan, loss, length)
            feed(*compiled, block, sizes)
            agree(plain, compiled)
    assert len(plain[1]) > 10 or budget == 0 or (p == 0.0 and phi == 1.0)


def test_it_is_taken_where_draws_need_nothing_from_python():
    def kind(domain, loss, **options):
        plan = rt.Plan(domain, N, 3.0, beta=0.3, lam=4.0, p=0.1, phi=1.1, **options)
        return type(rt.PCOMW(plan, loss, seed=1)._walk)

    for domain, loss in CASES:
        assert kind(domain, loss, distance=0.0) is RowWalk
    assert kind(rt.Ball(2), rt.Huber(0.4), distance=1e-6) is Walk  # may turn to the chain
    assert kind(rt.Ball(2), rt.Absolute()) is Walk
    assert kind(INTERVAL, rt.Squared()) is Walk
    assert kind(rt.Ball(2), rt.Logistic(), constant_work=True) is Walk


FAR = rt.Plan(rt.Ball(3, 4.0), N, 3.0, beta=1.5, lam=0.01, p=0.2, phi=1.3, draws=2)


@pytest.mark.parametrize("sizes", [N, 7])
def test_the_reference_point_moves_alike(monkeypatch, sizes):
    moves, recentre = [], rt.gibbs._history.RowHistory.recentre
    monkeypatch.setattr(
        rt.gibbs._history.RowHistory,
        "recentre",
        lambda history, *at: moves.append(len(history)) or recentre(history, *at),
    )
    block = data(FAR.domain, rt.Logistic())
    plain, compiled = start(Walk, FAR, rt.Logistic()), start(RowWalk, FAR, rt.Logistic())
    feed(*plain, block, N)
    half = len(moves)
    feed(*compiled, block, sizes)
    agree(plain, compiled)
    assert half > 3
    assert moves[:half] == moves[half:]


@pytest.mark.parametrize("limit", [1, 3])
def test_a_draw_that_is_given_up_leaves_its_coin_open(limit):
    plan = rt.Plan(rt.Ball(3), N, 3.0, beta=1.0, lam=1.0, p=0.2, phi=1.3, draws=2)
    block = data(plan.domain, rt.Logistic())
    plain, compiled = (start(kind, plan, rt.Logistic()) for kind in (Walk, RowWalk))
    for walk, _ in (plain, compiled):
        walk.measure.limit = limit
    failures = feed(*plain, block, N)
    assert failures > 5
    assert feed(*compiled, block, N) == failures
    agree(plain, compiled)


def test_more_changes_than_one_call_can_report():
    plan = rt.Plan(INTERVAL, 3000, 3.0, beta=0.3, lam=4.0, p=1.0, phi=1.0)
    block = data(INTERVAL, rt.Pinball(0.5), 3000)
    plain, compiled = start(Walk, plan, rt.Pinball(0.5)), start(RowWalk, plan, rt.Pinball(0.5))
    for walk in (plain, compiled):
        feed(*walk, block, 3000)
    agree(plain, compiled)
    assert len(compiled[1]) == 3000 > 2 * len(Changes.buffer(1)[0])


@pytest.mark.parametrize(("domain", "loss"), [(INTERVAL, rt.Pinball(0.9)), (rt.Ball(3), rt.Logistic())], ids=str)
def test_rows_blocks_and_pickles_agree(domain, loss):
    plan = rt.Plan(domain, N, 3.0, beta=0.3, lam=4.0, p=0.05, phi=1.2, batch=3, distance=0.0)
    one, many = (rt.PCOMW(plan, loss, seed=3) for _ in range(2))
    features, targets = data(domain, loss)
    for i in range(N):
        one.observe(features[i], targets[i])
        if i % 200 == 77:
            one = pickle.loads(pickle.dumps(one))
    trace = many.observe_many(features, targets)
    assert one.switches == many.switches == trace.switches > 20
    np.testing.assert_array_equal(one.decision, many.decision)
    assert one._rng.bit_generator.state == many._rng.bit_generator.state


def test_an_interrupt_within_the_loop_ends_a_learner(monkeypatch):
    play = _kernels.play_rows

    def interrupted(*args):
        play(*args)
        raise KeyboardInterrupt

    learner = rt.PCOMW(rt.Plan(INTERVAL, N, 3.0, beta=0.3, lam=4.0, p=0.5, phi=1.1), rt.Pinball(0.5), seed=1)
    monkeypatch.setattr(_kernels, "play_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.observe_many(np.ones(50), np.zeros(50))
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="resume a saved one"):
        learner.observe(1.0, 0.0)


def test_a_draw_that_is_interrupted_goes_on(monkeypatch):
    block = data(FAR.domain, rt.Logistic())
    plain, compiled = start(Walk, FAR, rt.Logistic()), start(RowWalk, FAR, rt.Logistic())
    feed(*plain, block, N)
    sampler = compiled[0].measure.compiled()
    tend, stages = sampler.tend, []

    def interrupted():
        if len(stages) < 4:
            stages.append(compiled[0]._counts[STAGE])
            raise KeyboardInterrupt
        tend()

    monkeypatch.setattr(sampler, "tend", interrupted)
    while len(stages) < 4:
        with pytest.raises(KeyboardInterrupt):
            feed(*compiled, block, N)
    feed(*compiled, block, N)
    assert TAKING not in stages
    agree(plain, compiled)
