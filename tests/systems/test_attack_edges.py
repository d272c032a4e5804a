"""Attacks on the learner and its certificate that once succeeded."""

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._history import RowHistory
from reticent.losses import Rows
from reticent.systems._inbox import Inbox
from reticent.systems.pcomw import _kernels
from reticent.systems.pcomw._regret import first_term

rng = np.random.default_rng(5)
N = 240


def plan(domain, horizon=N, lipschitz=5.0, **options):
    return rt.Plan(domain, horizon, lipschitz, **({"beta": 0.1, "lam": 100.0, "p": 0.3, "phi": 1.3} | options))


def by_rows_and_block(loss, domain, features, targets, **options):
    one, many = (rt.PCOMW(plan(domain), loss, seed=5, **options) for _ in range(2))
    decisions = []
    for row, target in zip(features, targets, strict=True):
        decisions.append(one.decision)
        one.observe(row, target)
    return np.array(decisions), many.observe_many(features, targets).decisions()


def test_fortran_ordered_blocks_give_the_transcript_of_their_rows():
    X = rng.normal(size=(N, 10))
    X /= np.linalg.norm(X, axis=1)[:, None]
    ball = rt.Ball(10, 1.0, np.linspace(0.3, -0.7, 10))
    np.testing.assert_array_equal(*by_rows_and_block(rt.Logistic(), ball, np.asfortranarray(X), np.sign(X[:, 0])))


def test_clipped_squared_rows_give_the_transcript_of_their_block():
    X = rng.normal(size=(N, 10)) * rng.uniform(0.1, 4.0, size=(N, 1))
    box = rt.Box(-np.linspace(0.5, 1.0, 10), np.linspace(1.0, 0.7, 10))
    np.testing.assert_array_equal(*by_rows_and_block(rt.Squared(), box, X, X[:, 0], on_steep="clip"))


@pytest.mark.parametrize(
    ("loss", "lipschitz", "row"),
    [(rt.Squared(), 1.0, ([1e-170], 1e299)), (rt.Linear(), 1e-100, ([1e-99],))],
    ids=["squared", "linear"],
)
def test_steep_rows_whose_square_underflows_are_refused(loss, lipschitz, row):
    learner = rt.PCOMW(plan(rt.Interval(-1, 1), lipschitz=lipschitz, beta=1 / lipschitz), loss, seed=1)
    with pytest.raises(ValueError, match="above the limit"):
        learner.observe(*row)
    # The inbox by itself may be handed any limit.
    assert not Inbox(rt.Interval(-1, 1), rt.Linear(), 1e-170).push(([1e-163],))
    assert Inbox(rt.Interval(-1, 1), rt.Linear(), 1e-170).push(([0.0],))


def test_large_lipschitz_constants_make_learners_up_to_a_limit_that_is_named():
    big = plan(rt.Ball(2), lipschitz=1e100, beta=1e-100, lam=1e100)
    assert rt.PCOMW(big, rt.Linear(), seed=1).rounds == 0
    with pytest.raises(ValueError, match="other units"):
        plan(rt.Ball(2), lipschitz=1e200, beta=1e-200, lam=1e200)


def test_huge_whole_numbers_are_refused_by_name():
    learner = rt.PCOMW(plan(rt.Interval(-1, 1)), rt.Absolute(), seed=1)
    with pytest.raises(ValueError, match="fit into double precision"):
        learner.observe([1.0], 10**400)
    with pytest.raises(ValueError, match="fit into double precision"):
        learner.observe([10**400], 1.0)
    with pytest.raises(ValueError, match="fit into double precision"):
        learner.observe_many([[1.0]], [10**400])


def test_an_interrupt_in_the_middle_of_taking_in_rounds_ends_a_learner(monkeypatch):
    play, calls = _kernels.play_linear, []

    def interrupted(*args):
        calls.append(play(*args))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return calls[-1]

    private = plan(rt.Ball(2), 10_000, p=0.9, lam=1e9, epsilon=1.0, delta=1e-6)
    learner = rt.PCOMW(private, rt.Linear(), seed=1)
    monkeypatch.setattr(_kernels, "play_linear", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.observe_many(np.full((9_000, 2), 0.1))
    monkeypatch.undo()
    # Nobody can tell how many rounds are in, so that a private horizon could be overrun: nothing more is taken.
    for give in (lambda: learner.observe([0.1, 0.1]), lambda: learner.observe_many(np.full((5, 2), 0.1))):
        with pytest.raises(RuntimeError, match="resume a saved one"):
            give()


@pytest.mark.parametrize("loss", [rt.Logistic(), rt.Hinge()], ids=repr)
def test_an_interrupt_while_rows_are_stored_ends_a_learner(monkeypatch, loss):
    learner = rt.PCOMW(plan(rt.Ball(2)), loss, seed=1)
    store = RowHistory.store

    def interrupted(history, rows):
        store(history, rows)
        raise KeyboardInterrupt

    monkeypatch.setattr(RowHistory, "store", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.observe_many(np.full((50, 2), 0.1), np.ones(50))
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="resume a saved one"):
        learner.observe([0.1, 0.1], 1)


def test_a_custom_loss_that_fails_at_the_decision_says_that_its_rounds_are_in():
    broken = rt.Custom(lambda x, c: 0.0 if not x.any() else np.nan, lambda x, c: np.zeros(2), lipschitz=1.0)
    learner = rt.PCOMW(plan(rt.Ball(2), p=0.0, phi=1.0), broken, seed=1)
    with pytest.raises(ValueError, match="finite") as caught:
        learner.observe_many([1, 2, 3])
    assert learner.rounds == 0 or "3 of the 3 rounds" in "".join(getattr(caught.value, "__notes__", []))


def test_clipped_rows_of_a_long_batch_are_copied_once_each(monkeypatch):
    copies, copy = [], Rows.copy
    monkeypatch.setattr(Rows, "copy", lambda rows: copies.append(len(rows)) or copy(rows))
    long = plan(rt.Ball(2), 10**6, 1.0, batch=10**5, p=0.0, phi=1e6)
    learner = rt.PCOMW(long, rt.Absolute(), seed=1, on_steep="clip")
    for _ in range(200):
        learner.observe([2.0, 0.0], 0.1)
    assert sum(copies) <= 200


def test_rows_of_length_one_are_plainly_good_whatever_their_rounding():
    X = rng.normal(size=(2000, 10))
    X /= np.linalg.norm(X, axis=1)[:, None]
    inbox = Inbox(rt.Ball(10), rt.Logistic(), 1.0)
    assert all(inbox.push((row, 1.0)) for row in X)
    assert not inbox.push((1.0001 * X[0], 1.0))


@pytest.mark.parametrize("domain", [rt.Interval(-1, 1), rt.Box([-1, -1], [1, 1]), rt.Simplex(2)], ids=repr)
@pytest.mark.parametrize("beta", [1e-12, 1e-14, 1e-16, 1e-20])
@pytest.mark.parametrize("k", [1e-9, 1.0, 1e6])
def test_the_first_term_is_never_below_what_a_steady_slope_costs_the_centre(domain, beta, k):
    # The prior is symmetric, so a constant slope of length G costs G R T whatever beta is, when beta G T is tiny.
    assert first_term(domain, beta, k / beta, 100.0) >= 100.0 * domain.radius * (1 - 1e-6 - beta * 200)


@pytest.mark.parametrize("domain", [rt.Interval(-1, 1), rt.Box([-1, -1], [1, 1])], ids=repr)
def test_a_plan_that_never_switches_claims_no_less_than_it_costs(domain):
    for horizon in (10**6, 10**8, 10**9, 10**12):
        still = rt.plan_lazy(domain, horizon, 1.0, 0)
        assert still.regret_bound >= domain.radius * horizon * (1 - 1e-9)
