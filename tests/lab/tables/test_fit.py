"""Fitted exponents: right, with intervals that cover, and honest where they cannot be told apart."""

import itertools
import math

import numpy as np

from reticent.lab.tables._make import fit

GRID = list(itertools.product((1e4, 1e5, 1e6), (2, 16), (0.1, 1.0)))


def rows(power=(0.4, 0.5, -0.6), noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = power
    return [
        {"T": T, "d": d, "epsilon": e, "regret": 7 * T**a * d**b * e**c * math.exp(noise * rng.standard_normal())}
        for T, d, e in GRID
    ]


def test_a_power_law_is_found_exactly():
    found = fit(rows(), ("T", "d", "epsilon"))
    for name, value in (("T", 0.4), ("d", 0.5), ("epsilon", -0.6)):
        assert abs(found.exponents[name].value - value) < 1e-9
    assert found.identifiable
    assert found.residual < 1e-9


def test_intervals_cover_as_often_as_they_say():
    # 400 fits: with coverage 0.95 fewer than 350 hits has a chance below 1e-9; intervals half as wide cover 0.67.
    hits = half = 0
    for seed in range(400):
        one = fit(rows(noise=0.2, seed=seed), ("T", "d", "epsilon")).exponents["d"]
        hits += one.low <= 0.5 <= one.high
        half += abs(one.value - 0.5) <= (one.high - one.low) / 4
    assert hits >= 350
    assert half < 350


def test_variables_that_move_together_are_called_confounded():
    tied = [{"T": T, "d": 2, "epsilon": T ** (-1 / 6) * wobble, "regret": T**0.5}
            for T in (1e4, 1e5, 1e6) for wobble in (0.999, 1.001)]  # fmt: skip
    assert not fit(tied, ("T", "d", "epsilon")).identifiable
    exactly = [row | {"epsilon": row["T"] ** -0.5} for row in tied]
    assert fit(exactly, ("T", "d", "epsilon")).exponents == {}


def test_what_does_not_vary_is_left_out_and_too_few_points_give_none():
    flat = [row for row in rows() if row["d"] == 2]
    assert set(fit(flat, ("T", "d", "epsilon")).exponents) == {"T", "epsilon"}
    assert fit(rows()[:3], ("T", "d", "epsilon")) is None
    assert fit([], ("T", "d", "epsilon")) is None
