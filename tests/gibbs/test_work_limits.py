"""A draw that cannot be made says so, whatever its work goes into."""

import numpy as np
import pytest

import reticent as rt


def test_a_row_much_longer_than_the_others_does_not_keep_a_draw_for_ever():
    """Found in review: it has almost all the weight of thinning, so that one proposal read 1e18 rows."""
    measure = rt.Gibbs(rt.Box([-10.0] * 2, [10.0] * 2), rt.Huber(1.0), beta=3.0, lam=1e-3, limit=1000)
    measure.observe([1e9, 0.0], 0.0)
    measure.observe_many(np.tile([0.0, 1.0], (4, 1)), np.array([5.0, 0.5, 0.5, 0.5]))
    with pytest.raises(rt.WorkLimitError, match="limit=1000 proposals, or far more rows"):
        measure.draw(1, "curved")


def test_rows_read_are_counted_for_each_draw_anew():
    measure = rt.Gibbs(rt.Ball(2), rt.Logistic(), beta=1.0, lam=1.0, limit=1000)
    rng = np.random.default_rng(0)
    measure.observe_many(rng.normal(size=(200, 2)), rng.choice([-1.0, 1.0], 200))
    for seed in range(20):
        assert measure.draw(seed, "curved").losses_read < 10_000
    assert measure._samplers["curved"].work[8] == 0
