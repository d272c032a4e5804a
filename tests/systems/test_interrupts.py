"""An interrupt (Ctrl-C) at any function's entry: the learner goes on with every round and coin once, or refuses."""

import numpy as np
import pytest
from interrupts import interrupted

import reticent as rt

N = 12


def rows(loss):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, 2))
    features /= 2 * np.linalg.norm(features, axis=1)[:, None]
    return (features,) if isinstance(loss, rt.Linear) else (features, np.sign(features[:, 0]))


CASES = {
    "linear": (rt.Linear(), {}),
    "compiled": (rt.Logistic(), {}),
    "plain": (rt.Squared(), {}),
    "plain, coins that read": (rt.Squared(), {"p": 0.0, "phi": 3.0}),
    "constant work": (rt.Squared(), {"constant_work": True}),
    "epochs": (rt.Squared(), {"horizon": None, "first_epoch": 4}),
    "batches": (rt.Logistic(), {"batch": 2}),
}


@pytest.mark.parametrize("waiting", [0, 3], ids=["nothing waits", "rounds wait"])
@pytest.mark.parametrize("name", CASES)
def test_every_round_and_coin_once_or_refused(name, waiting):
    loss, more = CASES[name]
    data = rows(loss)
    settings = {"horizon": 50, "lipschitz": 3.0, "beta": 0.3, "lam": 40.0, "p": 1.0, "phi": 1.0, "distance": 0.0} | more
    plan = rt.Plan(rt.Ball(2), **settings)
    went_on = refused = 0
    for after in range(1, 10_000):
        learner = rt.PCOMW(plan, loss, seed=1)
        if waiting and learner.plan.batch == 1 and plan.p == 1.0:
            learner._wake = 10**9  # the coins are due every round: let rounds wait all the same
        for i in range(3):
            learner.observe(*(part[i] for part in data)) if waiting else learner.observe_many(
                *(part[i : i + 1] for part in data)
            )
        if not interrupted(lambda: learner.observe_many(*(part[3:6] for part in data)), after):  # noqa: B023
            break
        rest = tuple(part[learner.rounds :] for part in data)
        if learner._torn():
            for call in (lambda: learner.observe_many(*rest), lambda: learner.observe(*(part[0] for part in rest))):  # noqa: B023
                with pytest.raises(RuntimeError, match="was interrupted"):
                    call()
            with pytest.raises((RuntimeError, ValueError), match="was interrupted"):
                learner.save("nowhere")
            refused += 1
            continue
        learner.observe_many(*rest)
        went_on += 1
        assert learner.rounds == N
        assert learner._walk.done == N
        if plan.p == 1.0 and plan.horizon is not None:
            assert learner._walk.spent == N // plan.batch  # a coin is a switch, and draws once
    assert went_on
    assert refused
