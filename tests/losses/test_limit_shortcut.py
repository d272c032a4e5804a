"""The quick look at a block never passes a row that the full check would not."""

import numpy as np
import pytest

import reticent as rt
from reticent.losses import Rows
from reticent.losses._limit import SLACK, _surely_within, steepness


@pytest.mark.parametrize("loss", [rt.Logistic(), rt.Huber(0.5), rt.Squared(), rt.Hinge(0.5)], ids=repr)
@pytest.mark.parametrize("domain", [rt.Ball(3, 2.0), rt.Box([-1.0, -0.2], [0.5, 2.0])], ids=repr)
def test_whatever_passes_is_within_the_limit(domain, loss):
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(300):
        n = int(rng.integers(1, 9))
        rows = Rows(rng.normal(size=(n, domain.dim)) * rng.choice([1e-3, 1.0, 10.0]), rng.normal(size=n))
        constants = steepness(domain, rows, loss.slope_bound)
        limit = float(constants.max() * rng.choice([0.5, 0.999999999, 1.0, 1.2, 3.0])) or 1.0
        if _surely_within(domain, rows, loss.slope_bound, limit):
            passed += 1
            assert (constants <= limit * (1 + SLACK)).all()
    assert passed > 50
