"""What a hostile reader of the gate found, kept: nothing of one round may move what others add to a sum."""

import numpy as np
import pytest

import reticent as rt
from reticent._core._check import norms
from reticent.systems.gate._base import MOST


@pytest.mark.parametrize("dim", [1, 7, 64, 129, 1000, 8191, MOST])
def test_a_row_adds_up_in_one_way_however_many_are_beside_it(dim):
    rng = np.random.default_rng(dim)
    X, u = rng.standard_normal((9, dim)), rng.standard_normal(dim)
    for product in (lambda rows: np.einsum("ij,j->i", rows, u), norms):
        whole = product(X)
        for k in (1, 2, 3, 5):
            assert np.array_equal(whole, np.concatenate([product(X[i : i + k]) for i in range(0, 9, k)]))


def test_beyond_that_plans_are_refused():
    for planner in (rt.planning.plan_filtered, rt.planning.plan_noisy_descent):
        with pytest.raises(ValueError, match=f"at most {MOST} dimensions, got {MOST + 1}"):
            planner(rt.Ball(MOST + 1), None, 1.0, 1.0, 1e-6)


def test_a_custom_round_is_clipped_where_it_is_steeper_than_declared():
    """It would be refused at some decisions and not at others, and all later rounds would move."""

    def slope(x, datum):
        return np.array([3.0 * datum if x[0] != 0 else datum])

    loss = rt.Custom(lambda x, datum: float(datum * x[0]), slope, lipschitz=1.0)
    learner = rt.private_learner(loss, rt.Ball(1), epsilon=1.0, delta=1e-6, seed=3)
    rounds = 3 * learner.plan.batch
    for _ in range(rounds):
        learner.observe(1.0)
    assert learner.rounds == rounds
    assert np.abs(learner._walk.open).max() <= learner.plan.batch * learner._walk.release.largest


def test_what_numpy_does_about_underflow_is_the_callers_affair():
    learner = rt.private_learner(rt.Logistic(), rt.Ball(2), epsilon=1.0, delta=1e-6, seed=1)
    with np.errstate(all="raise"):
        for _ in range(learner.plan.batch + 1):
            learner.observe_many(np.array([[1e-320, 0.5]]), np.array([1.0]))
    assert learner.rounds == learner.plan.batch + 1
    learner.whole()


def test_scales_that_filters_cannot_square_are_refused():
    with pytest.raises(ValueError, match=r"lipschitz/radius must be from 1e-60 to 1e60"):
        rt.private_learner(rt.Linear(), rt.Ball(2, radius=1e-70), epsilon=1.0, delta=1e-6, lipschitz=1e70)
