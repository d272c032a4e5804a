"""The quartic minorants lie below the hinge, everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.gibbs._quartic import EDGES, WEIGHTS, best_minorant, excess, minorant_tables


def above(a: np.ndarray, rho: float) -> float:
    v = np.concatenate([np.linspace(-60, 60, 240_001), rho + np.linspace(-1, 1, 20_001)])
    p = a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4])))
    return float((p - np.maximum(v - rho, 0.0)).max())


def test_every_entry_of_the_tables_is_a_minorant():
    for table in minorant_tables():
        for rho, a in zip(EDGES, table, strict=True):
            assert a[4] > 0.0 or not a.any()
            assert above(a, rho) <= 0.0
            assert excess(a, rho) <= 0.0


@settings(max_examples=25, deadline=None)
@given(rho=st.floats(0.0, 5.0), weight=st.floats(0.0, 50.0))
def test_minorants_at_any_edge(rho, weight):
    a = best_minorant(rho, weight)
    assert above(a, rho) <= 0.0


def test_the_file_is_what_the_programme_gives():
    for weight, bin in ((0, 0), (1, 7), (3, 12)):
        again = best_minorant(EDGES[bin], WEIGHTS[weight])
        np.testing.assert_allclose(minorant_tables()[weight, bin], again, atol=1e-5)


def test_the_check_notices_a_function_that_is_too_high():
    a = best_minorant(1.0, 0.0)
    a[0] += 1e-6
    assert excess(a, 1.0) > 0.0
    assert above(a, 1.0) > 0.0


def test_they_are_worth_having():
    # Summed over bins of residuals, the minorants recover a good part of the curvature 1/2 v^2 of many kinks.
    total = 2.0 * (EDGES[1] - EDGES[0]) * minorant_tables()[0].sum(axis=0)
    mean = total @ [1.0, 0.0, 1.0, 0.0, -3.0]
    assert mean == pytest.approx(0.5, abs=0.4)
    assert mean > 0.1
