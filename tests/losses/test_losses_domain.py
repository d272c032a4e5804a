"""Losses over a domain: normal form, Lipschitz constants, curvature and the limit on steep rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent._core._check import Array, norms
from reticent.losses import GeneralisedLinear, Hinge, Linear, Logistic, Rows, Squared
from reticent.losses._label import Label
from reticent.losses._limit import margin_range

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32 - 1)


def data(loss: GeneralisedLinear, seed: int, n: int, dim: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, dim)) * 10.0 ** rng.uniform(-2, 2, size=(n, 1))
    if isinstance(loss, Label):
        return features, rng.choice([-1.0, 1.0], size=n)
    return features, rng.normal(size=n) * 3


def points(domain, seed: int, n: int) -> Array:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed + 1)
    lo, hi = domain.body.lo, domain.body.hi
    inner = rng.uniform(lo, hi, size=(n, lo.size))
    return np.vstack([inner, rng.choice([0.0, 1.0], size=(n, lo.size)) * (hi - lo) + lo])


@quick
@given(seed=seeds)
def test_normal_form_gives_the_same_values(glm, slab, seed: int) -> None:  # type: ignore[no-untyped-def]
    features, targets = data(glm, seed, 5, slab.dim)
    rows = glm.prepare(slab, features, targets)
    assert rows.vectors.flags.c_contiguous
    for u in points(slab, seed, 3):
        direct = glm.values(slab.push(u), features, targets)
        np.testing.assert_allclose(direct, glm.phi(rows.vectors @ u + rows.offsets), rtol=1e-9, atol=1e-9)


@quick
@given(seed=seeds)
def test_linear_normal_form(slab, seed: int) -> None:  # type: ignore[no-untyped-def]
    gradients = np.random.default_rng(seed).normal(size=(4, slab.dim))
    rows = Linear().prepare(slab, gradients)
    u = points(slab, seed, 1)[0]
    np.testing.assert_allclose(Linear().values(slab.push(u), gradients), rows.vectors @ u + rows.offsets, atol=1e-12)
    np.testing.assert_array_equal(Linear().subgradients(slab.push(u), gradients), gradients)
    np.testing.assert_allclose(Linear().lipschitz(slab, gradients), np.linalg.norm(gradients @ slab.frame, axis=1))


@quick
@given(seed=seeds)
def test_values_and_subgradients_row_by_row(glm, seed: int) -> None:  # type: ignore[no-untyped-def]
    features, targets = data(glm, seed, 4, 3)
    x, z = np.random.default_rng(seed).normal(size=(2, 3))
    margins = [y * (a @ x) if isinstance(glm, Label) else a @ x - y for a, y in zip(features, targets, strict=True)]
    here, there = glm.values(x, features, targets), glm.values(z, features, targets)
    np.testing.assert_allclose(here, [glm.phi(np.array(m)) for m in margins])
    slopes = glm.subgradients(x, features, targets)
    assert slopes.shape == (4, 3)
    assert np.all(there >= here + slopes @ (z - x) - 1e-9 * (1 + np.abs(here) + np.abs(there)))


@quick
@given(seed=seeds)
def test_margins_lipschitz_and_curvature_hold_over_the_domain(glm, slab, seed: int) -> None:  # type: ignore[no-untyped-def]
    features, targets = data(glm, seed, 6, slab.dim)
    rows = glm.prepare(slab, features, targets)
    low, high = margin_range(slab, rows)
    constants = glm.lipschitz(slab, features, targets)
    lower, upper = glm.curvature(slab, features, targets)
    us = points(slab, seed, 20)
    slack = 1e-9 * (1 + np.abs(low) + np.abs(high))
    for u, w in zip(us, us[::-1], strict=True):
        m = rows.vectors @ u + rows.offsets
        assert np.all((m >= low - slack) & (m <= high + slack))
        assert np.all(lower <= glm.d2phi(m) + 1e-12)
        assert np.all(upper >= glm.d2phi(m) - 1e-12)
        along = glm.subgradients(slab.push(u), features, targets) @ slab.frame
        assert np.all(np.linalg.norm(along, axis=1) <= constants * (1 + 1e-9) + 1e-12)
        gap = np.abs(glm.phi(m) - glm.phi(rows.vectors @ w + rows.offsets))
        assert np.all(gap <= constants * np.linalg.norm(u - w) * (1 + 1e-9) + 1e-9)


def test_margin_ranges_take_the_tighter_of_ball_and_box(cube, slab) -> None:  # type: ignore[no-untyped-def]
    low, high = margin_range(cube, Rows(np.array([[3.0, 0.0], [1.0, -2.0]]), np.array([1.0, 0.0])))
    np.testing.assert_allclose(low, [-2, -3])
    np.testing.assert_allclose(high, [4, 3])
    low, high = margin_range(slab, Rows(np.array([[1.0, -1.0]]), np.array([0.0])))
    np.testing.assert_allclose((low, high), [[-3.0], [0.75]])
    slab.radius = 2.0  # as if the domain were the part of the box in a ball
    low, high = margin_range(slab, Rows(np.array([[1.0, -1.0]]), np.array([0.0])))
    np.testing.assert_allclose((low, high), [[-2 * 2**0.5], [0.75]])


@quick
@given(seed=seeds, limit=st.floats(1e-3, 30))
def test_clipping_keeps_to_the_limit_and_leaves_the_rest(glm, slab, seed: int, limit: float) -> None:  # type: ignore[no-untyped-def]
    features, targets = data(glm, seed, 8, slab.dim)
    plain, before = glm.prepare(slab, features, targets), glm.lipschitz(slab, features, targets)
    rows = glm.prepare(slab, features, targets, lipschitz=limit, on_steep="clip")
    after = glm.rows_lipschitz(slab, rows)
    steep = before > limit * (1 + 1e-12)
    assert np.all(after[steep] <= limit)
    np.testing.assert_array_equal(rows.vectors[~steep], plain.vectors[~steep])
    np.testing.assert_array_equal(rows.offsets[~steep], plain.offsets[~steep])
    # The whole row is scaled, offset too, by the largest factor there is: a little more is too much.
    if steep.any():
        factors = norms(rows.vectors[steep]) / norms(plain.vectors[steep])
        np.testing.assert_allclose(rows.offsets[steep], plain.offsets[steep] * factors, rtol=1e-9)
        assert np.all((factors > 0) & (factors < 1))
        more = Rows(rows.vectors[steep] * (1 + 1e-9), rows.offsets[steep] * (1 + 1e-9))
        assert np.all(glm.rows_lipschitz(slab, more) > limit)


def test_clipping_depends_on_each_row_alone(glm, slab) -> None:  # type: ignore[no-untyped-def]
    features, targets = data(glm, 11, 9, slab.dim)
    together = glm.prepare(slab, features, targets, lipschitz=0.3, on_steep="clip")
    for i in range(9):
        alone = glm.prepare(slab, features[i], targets[i], lipschitz=0.3, on_steep="clip")
        np.testing.assert_allclose(alone.vectors[0], together.vectors[i], rtol=1e-11)
        np.testing.assert_allclose(alone.offsets[0], together.offsets[i], rtol=1e-11)


def test_clipping_extreme_rows(glm, cube) -> None:  # type: ignore[no-untyped-def]
    features = np.array([[1e300, -1e300], [1e150, 0.0], [1e-300, 1e-300], [0.0, 0.0]])
    rows = glm.prepare(cube, features, -np.ones(4), lipschitz=1.5, on_steep="clip")
    assert np.isfinite(rows.vectors).all()
    assert np.isfinite(rows.offsets).all()
    assert np.all(glm.rows_lipschitz(cube, rows) <= 1.5)
    assert np.all(norms(rows.vectors[:3]) > 0)


def test_a_logistic_row_whose_steepness_is_not_monotone_in_the_factor(cube) -> None:  # type: ignore[no-untyped-def]
    domain = type(cube)(1)
    domain.pull = lambda rows: (rows, np.array([9.0]))
    rows = Logistic().prepare(domain, [[3.0]], [1], lipschitz=0.005, on_steep="clip")
    assert Logistic().rows_lipschitz(domain, rows) <= 0.005
    assert rows.vectors[0, 0] == pytest.approx(0.0101, rel=1e-2)


def test_linear_rows_are_clipped_to_the_limit(slab) -> None:  # type: ignore[no-untyped-def]
    gradients = np.random.default_rng(0).normal(size=(50, slab.dim)) * 3
    size = Linear().lipschitz(slab, gradients)
    rows = Linear().prepare(slab, gradients, lipschitz=2.0, on_steep="clip")
    after = norms(rows.vectors)
    assert np.all(after <= 2.0)
    np.testing.assert_allclose(after, np.minimum(size, 2.0), rtol=1e-12)
    np.testing.assert_allclose(rows.offsets, gradients @ slab.center * after / size)


def test_steep_rows_are_refused_by_name(cube) -> None:  # type: ignore[no-untyped-def]
    features, targets = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([0.0, 0.0])
    kept = features.copy()
    with pytest.raises(ValueError, match=r'row 1 has Lipschitz constant 35, .*lipschitz=2; .*"clip".*public'):
        Squared().prepare(cube, features, targets, lipschitz=2.0)
    with pytest.raises(ValueError, match="row 1 has Lipschitz constant 5, "):
        Linear().prepare(cube, features, lipschitz=2.0)
    Squared().prepare(cube, features, targets, lipschitz=2.0, on_steep="clip")
    np.testing.assert_array_equal(features, kept)
    assert len(Squared().prepare(cube, features[:1], targets[:1], lipschitz=1.0)) == 1


@pytest.mark.parametrize("limit", [0.0, -1.0, np.inf, np.nan])
def test_the_limit_must_be_positive(cube, limit: float) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="lipschitz must be"):
        Linear().prepare(cube, [1.0, 0.0], lipschitz=limit)


def test_hinge_rows_beyond_the_margin_are_flat(cube) -> None:  # type: ignore[no-untyped-def]
    domain = type(cube)(1)
    domain.pull = lambda rows: (rows, np.array([9.0]))
    assert Hinge().lipschitz(domain, [[3.0]], [1]) == 0
    assert Hinge().lipschitz(domain, [[3.0]], [-1]) == 3


def test_no_copy_where_nothing_changes(cube, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "features.npy"
    np.save(path, np.random.default_rng(0).normal(size=(1000, 2)))
    mapped = np.load(path, mmap_mode="r")
    for rows in (
        Linear().prepare(cube, mapped, lipschitz=100.0, on_steep="clip"),
        Squared().prepare(cube, mapped, np.zeros(1000), lipschitz=100.0),
        Logistic().prepare(cube, mapped, np.ones(1000)),
    ):
        assert np.shares_memory(rows.vectors, mapped)
    clipped = Linear().prepare(cube, mapped, lipschitz=0.1, on_steep="clip")
    assert not np.shares_memory(clipped.vectors, mapped)


def test_long_blocks_are_worked_in_parts(cube, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    rows = Rows(rng.normal(size=(23, 2)), rng.normal(size=23))
    whole = margin_range(cube, rows)
    monkeypatch.setattr("reticent.losses._limit._CHUNK", 10)
    np.testing.assert_allclose(margin_range(cube, rows), whole)
