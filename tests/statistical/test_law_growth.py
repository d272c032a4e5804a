"""Draws between blocks of rounds leave no stale summary behind: the law at the end is that of all rounds."""

import numpy as np
import pytest
from laws import ALPHA, PARAMETERS, against, data, make_loss

import reticent as rt

CASES = {
    "line": (rt.Interval(-1.0, 1.0), "absolute", 0.1, 1.0),
    "line-huber": (rt.Interval(-1.0, 1.0), "huber", 0.1, 1.0),
    "curved": (rt.Ball(2), "logistic", 0.3, 1.0),
    "curved-box": (rt.Box([-1, -1], [1, 1]), "logistic", 0.3, 1.0),
    "gaussian": (rt.Simplex(3), "squared", 0.05, 1.0),
    "tangent": (rt.Ball(2), "pinball", 0.005, 5.0),
    "quartic": (rt.Ball(2), "absolute", 0.02, 10.0),
    "quartic-simplex": (rt.Simplex(3), "hinge", 0.05, 20.0),
}


@pytest.mark.parametrize("last", [100, 7], ids=["tenth", "few"])
@pytest.mark.parametrize("name", CASES)
def test_draws_between_blocks(name, last):
    domain, kind, beta, lam = CASES[name]
    method = name.split("-")[0]
    parameter = PARAMETERS.get(kind, ())
    a, y = data(kind, 1000 + last, domain.dim, seed=6)
    # The stream drifts: what came last pulls elsewhere.
    a[1000:], y[1000:] = np.abs(a[1000:]) * 2, (1.0 if kind in ("logistic", "hinge") else 9.0)
    measure = rt.Gibbs(domain, make_loss(kind, *parameter), beta=beta, lam=lam)
    for start in (*range(0, 1000, 100), 1000):
        rows = slice(start, min(start + 100, len(a)))
        measure.observe_many(a[rows], y[rows])
        if start < 1000 or last == 100:
            try:
                measure.draw(start, method=method)
            except rt.WorkLimitError:
                assert method == "quartic"  # no bound for few rounds: that is said, not guessed
    count = 600 if method == "tangent" else 3000
    assert against(measure, kind, parameter, a, y, method=method, count=count, points=120) > ALPHA


def test_control_forgets_the_last_tenth():
    # The same draws against the law of all rounds, from a measure that never saw the last ones.
    a, y = data("absolute", 1090, 2, seed=6)
    a[1000:], y[1000:] = np.abs(a[1000:]) * 2, 9.0
    measure = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=0.02, lam=10.0)
    measure.observe_many(a[:1000], y[:1000])
    assert against(measure, "absolute", (), a, y, method="quartic", count=2000, points=100) < ALPHA


@pytest.mark.parametrize("waiting", [1, 30, 90])
def test_rows_that_wait_for_the_next_quartic_bound(waiting):
    # Up to a tenth more rows do not rebuild the bound; their slope must count all the same.
    a, y = data("absolute", 1000, 2, seed=7)
    b, c = np.tile([[20.0 / waiting, 6.0 / waiting]], (waiting, 1)) * 2, np.full(waiting, 1000.0)
    measure = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=0.02, lam=10.0)
    measure.observe_many(a, y)
    measure.draw(0, method="quartic")
    measure.observe_many(b, c)
    every = np.vstack([a, b]), np.concatenate([y, c])
    assert against(measure, "absolute", (), *every, method="quartic", count=2000, points=100) > ALPHA


def test_a_refused_block_leaves_the_law_as_it_was():
    a, y = data("logistic", 200, 2, seed=8)
    measure = rt.Gibbs(rt.Ball(2), rt.Logistic(), beta=0.5, lam=1.0)
    measure.observe_many(a, y)
    measure.draw(0)
    bad = np.where(np.arange(50) == 49, 7.0, 1.0)
    with pytest.raises(ValueError, match="label"):
        measure.observe_many(np.full((50, 2), 3.0), bad)
    assert against(measure, "logistic", (), a, y, count=2000, points=120) > ALPHA
