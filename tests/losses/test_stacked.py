"""Rows of a differentiated loss are read together: the same numbers as one by one, checked, in few calls."""

from collections import Counter, namedtuple

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._history import ObjectHistory
from reticent.systems._saved import pack_learner, unpack_learner

BALL = rt.Ball(2)
Pair = namedtuple("Pair", "wish weight")


def jax_distance(x, datum):
    import jax.numpy as jnp

    wish, weight = datum
    return weight * jnp.sqrt(0.1 + jnp.sum((x - jnp.mean(wish, axis=0)) ** 2))


def torch_distance(x, datum):
    wish, weight = datum
    return weight * (0.1 + ((x - wish.mean(axis=0)) ** 2).sum()).sqrt()


def torch_branching(x, datum):
    wish, weight = datum
    if weight > 0.5:  # the way through it depends on the datum
        return weight * (0.1 + ((x - wish.mean(axis=0)) ** 2).sum()).sqrt()
    return weight * (x - wish.mean(axis=0)).abs().sum() / 2


@pytest.fixture(params=["jax", "torch", "branching"])
def loss(request):
    if request.param == "jax":
        pytest.importorskip("jax")
        return rt.losses.from_jax(jax_distance, lipschitz=1.0, probe=2)
    pytest.importorskip("torch")
    fn = torch_distance if request.param == "torch" else torch_branching
    return rt.losses.from_torch(fn, lipschitz=1.0, probe=2)


def data_of(count, seed=0):
    """Pairs of several shapes and structures."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        wish, weight = rng.uniform(-1, 1, size=(1 + i % 2, 2)), float(rng.uniform(0.1, 1))
        yield (wish, weight) if i % 5 else Pair(wish, np.float64(weight))


def history(loss, rows, domain=BALL):
    found = ObjectHistory(domain, loss)
    found.add(loss.prepare(domain, rows))
    return found


def counted(monkeypatch, loss):
    """Count the calls of the engine."""
    calls = Counter()

    def counting(name, inner):
        def call(*args):
            calls[name] += 1
            return inner(*args)

        return call

    for name in ("value", "both", "many", "heights", "across"):
        monkeypatch.setattr(loss.engine, name, counting(name, getattr(loss.engine, name)))
    return calls


def test_sums_are_those_of_one_row_at_a_time(loss):
    rows = list(data_of(70))
    together = history(loss, rows)
    alone = ObjectHistory(BALL, rt.Custom(loss.value, loss.subgradient, lipschitz=1.0))
    alone.add(loss.prepare(BALL, rows))
    for u in np.random.default_rng(1).uniform(-0.7, 0.7, size=(5, 2)):
        assert together.value(u) == pytest.approx(alone.value(u), rel=1e-13)
        values, slopes = zip(together.value_and_gradient(u), alone.value_and_gradient(u), strict=True)
        np.testing.assert_allclose(*values, rtol=1e-13)
        np.testing.assert_allclose(*slopes, rtol=1e-11, atol=1e-13)


def test_calls_of_the_engine_do_not_grow_with_the_rows(monkeypatch):
    pytest.importorskip("jax")
    loss = rt.losses.from_jax(jax_distance, lipschitz=1.0)
    found = []
    for count in (10, 200):
        past = history(loss, [(np.zeros((1, 2)), 0.5)] * count)
        past.value(np.zeros(2))  # the first reading looks at the engine
        with monkeypatch.context() as patch:
            calls = counted(patch, loss)
            past.value(np.full(2, 0.1))
            past.value_and_gradient(np.full(2, 0.1))
        found.append(dict(calls))
    assert found == [{"heights": 1, "across": 1}] * 2


def test_what_cannot_be_read_together_is_decided_once(monkeypatch):
    pytest.importorskip("torch")
    loss = rt.losses.from_torch(torch_branching, lipschitz=1.0)
    past = history(loss, [(np.zeros((1, 2)), w) for w in (0.2, 0.8)])
    past.value(np.zeros(2))
    calls = counted(monkeypatch, loss)
    past.value_and_gradient(np.full(2, 0.1))
    assert calls == {"both": 2}


def test_blocks_and_saving_change_no_bit(loss):
    plan = rt.Plan(BALL, 80, 1.0, beta=0.3, lam=20.0, p=1.0, phi=1.3, batch=40)
    rows = [tuple(row) for row in data_of(80)]
    one, many, saved = (rt.PCOMW(plan, loss, seed=3) for _ in range(3))
    for row in rows:
        one.observe(row)
    trace = many.observe_many(rows)
    saved.observe_many(rows[:47])
    saved = unpack_learner(pack_learner(saved), "it", loss)
    saved.observe_many(rows[47:])
    assert trace.switches > 1
    assert pack_learner(one) == pack_learner(many) == pack_learner(saved)


def test_every_row_is_checked_against_its_own_bound(loss):
    past = history(loss, list(data_of(80)))
    past.bounds[77] = 1e-3
    with pytest.raises(ValueError, match=r"a custom loss has a subgradient of length .* above its declared .* 0.001;"):
        past.value_and_gradient(np.full(2, 0.3))
    past.value(np.full(2, 0.3))


def test_values_that_are_not_finite_are_refused(loss):
    past = history(loss, list(data_of(5)))
    past.items[3] = (np.full((1, 2), np.nan), 1.0)
    for read in (past.value, past.value_and_gradient):
        with pytest.raises(ValueError, match="the value of a custom loss must be finite, got nan"):
            read(np.zeros(2))


def test_numbers_are_the_same_alone_and_among_many():
    jnp = pytest.importorskip("jax.numpy")
    # A small integer beside a plain number would overflow if the number took its type.
    loss = rt.losses.from_jax(lambda x, d: jnp.sum((d[0] + d[1]) * x) * 1e-3, lipschitz=1.0)
    row = (np.array([200, 100], dtype=np.uint8), 200)
    assert history(loss, [row] * 3).value(np.full(2, 0.5)) == pytest.approx(3 * 0.35)
    assert loss.values([0.5, 0.5], [row])[0] == pytest.approx(0.35)


@pytest.mark.parametrize("datum", ["text", None, np.array(["a"]), (np.zeros((1, 2)),), (np.zeros((4, 3)), 1.0), 3.0])
@pytest.mark.parametrize("probe", [0, 16])
def test_a_wrong_datum_is_named_by_its_row(loss, datum, probe):
    good = (np.zeros((1, 2)), 0.5)
    made = type(loss)(loss.engine, 1.0, probe)
    learner = rt.Gibbs(BALL, made, beta=1.0, lam=1.0)
    which = "the loss of row 1" if probe else "a loss"
    with pytest.raises(ValueError, match=rf"^{which} of from_\w+ cannot be evaluated: .*a datum must be") as told:
        learner.observe_many([good, datum])
    assert told.value.__cause__ is not None
    assert learner.rounds == 0


def test_a_tensor_that_keeps_a_record_is_named_by_its_row():
    torch = pytest.importorskip("torch")
    loss = rt.losses.from_torch(lambda x, c: (x - c).abs().sum(), lipschitz=2.0)
    with pytest.raises(ValueError, match=r"the loss of row 0 of from_torch cannot be evaluated: .*requires grad"):
        loss.prepare(BALL, [torch.zeros(2, requires_grad=True)])


def test_a_function_that_returns_no_number_is_told_so_and_no_more():
    pytest.importorskip("jax")
    with pytest.raises(ValueError, match=r"^the function given to from_jax must .* conversions to other types$"):
        rt.losses.from_jax(lambda x, c: x, lipschitz=1.0).prepare(BALL, [0.0])


def test_tensors_are_data_too():
    torch = pytest.importorskip("torch")
    loss = rt.losses.from_torch(lambda x, c: (x - c).abs().sum(), lipschitz=2.0)
    tensor = torch.ones(2)
    past = history(loss, [tensor])
    tensor[:] = 9.0
    assert past.value(np.zeros(2)) == 2.0
