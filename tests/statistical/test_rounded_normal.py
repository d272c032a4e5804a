"""The law of rounded normal variables made from bits (docs/theory, R8d), against the normal distribution function.

Significance 1e-6; samplers that are nearly right fail at the same sample size.
"""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, norm

from reticent.systems.gate import _normal
from reticent.systems.gate._normal import rounded_normals

LEVEL = 1e-6


def p_value(sample, shift):
    """Compare counts of whole numbers with differences of the normal distribution function."""
    edges = np.arange(-3 * 2**shift, 3 * 2**shift + 1)
    chances = np.diff(norm.cdf((edges - 0.5) / 2**shift))
    chances = np.concatenate(
        [[norm.cdf((edges[0] - 0.5) / 2**shift)], chances, [norm.sf((edges[-1] - 0.5) / 2**shift)]]
    )
    counts = np.bincount(np.clip(sample, edges[0] - 1, edges[-1]) - edges[0] + 1, minlength=chances.size)
    assert counts.size == chances.size
    return chisquare(counts, chances * len(sample)).pvalue


@pytest.mark.parametrize(
    ("word", "count", "shift"), [(1, 1_500, 1), (2, 2_000, 1), (3, 3_000, 3), (62, 400_000, 1), (62, 400_000, 3)]
)
def test_words_of_any_length_give_the_same_law(word, count, shift):
    # With short words nearly every comparison is close, and draws more digits.
    assert p_value(rounded_normals(np.random.default_rng(1), count, shift, word), shift) > LEVEL


def test_fine_grids_are_normal():
    sample = rounded_normals(np.random.default_rng(2), 400_000, 32) / 2.0**32
    assert kstest(sample, "norm").pvalue > LEVEL
    low = rounded_normals(np.random.default_rng(3), 400_000, 32) & 255
    assert chisquare(np.bincount(low, minlength=256)).pvalue > LEVEL


def test_close_comparisons_agree_with_all_others(monkeypatch):
    """Compared exactly, one by one, trials have the outcomes that floating point gives them."""
    plain = rounded_normals(np.random.default_rng(4), 1_000, 40)
    looked = []
    exact = _normal._looked_at
    monkeypatch.setattr(_normal, "_looked_at", lambda *given: looked.append(given) or exact(*given))
    monkeypatch.setattr(_normal, "_CLOSE", 1e-3)
    assert np.array_equal(rounded_normals(np.random.default_rng(4), 1_000, 40), plain)
    assert looked


@pytest.mark.parametrize("fault", ["settled too early", "moved by one", "limit too high"])
def test_samplers_that_are_nearly_right_are_caught(fault, monkeypatch):
    exact = _normal._looked_at
    if fault == "settled too early":
        monkeypatch.setattr(_normal, "_looked_at", lambda rng, whole, part, height, shift, word: (
            height < 0.8 * 2**whole * math.exp(-((whole + part / 2**word) ** 2) / 2) * 2**word,
            exact(rng, whole, part, 0, shift, word)[1],
        ))  # fmt: skip
    elif fault == "moved by one":
        monkeypatch.setattr(_normal, "_looked_at", lambda rng, whole, *rest: exact(rng, whole + 1, *rest))
    else:
        monkeypatch.setattr(_normal, "Decimal", lambda value: Decimal("1.6") if value == "0.8" else Decimal(value))
    assert p_value(rounded_normals(np.random.default_rng(1), 3_000, 3, 3), 3) < LEVEL


def test_the_limit_is_a_chance_and_exp_is_as_right_as_is_taken_for_granted():
    places = np.linspace(0, 12, 2_001)
    with localcontext() as context:
        context.prec = 60
        exact = np.array([float((-Decimal(x) * Decimal(x) / 2).exp()) for x in places.tolist()])
    assert np.abs(np.exp(-0.5 * places * places) / exact - 1).max() < 1e-13
    assert all(0.8 * 2**k * math.exp(-(k**2) / 2) < 0.98 for k in range(60))


def test_any_shift_that_a_grid_has_is_there():
    found = rounded_normals(np.random.default_rng(5), 20_000, 55)  # the finest: see BlockRelease
    assert np.std(found / 2.0**55) == pytest.approx(1.0, abs=0.04)
    assert rounded_normals(np.random.default_rng(5), 0, 30).shape == (0,)
