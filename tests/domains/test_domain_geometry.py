"""Projection, support, sizes and membership of every body, against random points of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent._core._check import Array
from reticent.domains import Ball, Box, Domain, Interval, Polytope, Simplex


def random_polytope(dim: int, rows: int, seed: int, shift: float = 0.0) -> Polytope:
    """Random half-spaces around a shifted point, and a box that bounds them."""
    rng = np.random.default_rng(seed)
    A = np.vstack([rng.normal(size=(rows, dim)), np.eye(dim), -np.eye(dim)])
    b = np.concatenate([rng.uniform(0.2, 2.0, rows), np.full(2 * dim, 1.5)])
    return Polytope(A, b + A @ np.full(dim, shift))


BODIES: list[Domain] = [
    Interval(-1.0, 3.0),
    Box([0, -2, 5], [1, 2, 5.5]),
    Ball(1, 2.0),
    Ball(4, 0.5, [1, 2, 3, 4]),
    Simplex(2),
    Simplex(3),
    Simplex(7),
    Polytope([[2.0], [-1.0], [1.0]], [6.0, 1.0, 30.0]),
    Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]),
    Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1], center=[0.01, 0.9]),
    random_polytope(2, 30, 1, shift=100.0),
    random_polytope(3, 6, 2),
    random_polytope(5, 5, 3),
    random_polytope(10, 4, 4),
]
bodies = st.sampled_from(BODIES)
seeds = st.integers(0, 2**32 - 1)


def some_points(body: Domain, seed: int, count: int = 20) -> Array:
    """Points of the body: mixtures of extreme points and the centre."""
    rng = np.random.default_rng(seed)
    corners = np.array([body.support(rng.normal(size=body.dim)) for _ in range(4)] + [body.center])
    return np.asarray(rng.dirichlet(np.full(5, 0.5), size=count) @ corners, dtype=np.float64)


@settings(deadline=None, max_examples=150)
@given(body=bodies, seed=seeds, reach=st.sampled_from([1e-3, 0.3, 1.0, 3.0, 1e3, 1e6]))
def test_projection_is_the_nearest_point(body: Domain, seed: int, reach: float) -> None:
    y = body.center + reach * body.radius * np.random.default_rng(seed).normal(size=body.dim)
    p = body.project(y)
    assert body.contains(p)
    inner = (p - some_points(body, seed)) @ (y - p)
    assert inner.min() >= -1e-9 * np.linalg.norm(y - p) * body.diameter - 1e-12 * body.diameter**2
    np.testing.assert_allclose(body.project(p), p, rtol=0, atol=1e-9 * body.diameter)
    assert p.flags.writeable


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds)
def test_points_inside_stay(body: Domain, seed: int) -> None:
    for x in some_points(body, seed, 5):
        assert body.contains(x)
        np.testing.assert_allclose(body.project(x), x, rtol=0, atol=1e-12 * (1 + np.abs(x).max()))


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds, scale=st.sampled_from([0.0, 1e-200, 1.0, 1e200]))
def test_support_is_least(body: Domain, seed: int, scale: float) -> None:
    c = scale * np.random.default_rng(seed).normal(size=body.dim)
    s = body.support(c)
    assert body.contains(s)
    gain = (some_points(body, seed + 1) - s) @ c
    assert gain.min() >= -1e-9 * np.abs(c).max() * body.diameter


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds)
def test_sizes_bound_all_points(body: Domain, seed: int) -> None:
    points = some_points(body, seed)
    slack = 1 + 1e-9
    assert np.linalg.norm(points - body.center, axis=1).max() <= body.radius * slack
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert gaps.max() <= body.diameter * slack
    assert body.radius <= body.diameter * slack <= 2 * body.radius * slack**2


@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_sizes_are_attained_by_extreme_points(body: Domain) -> None:
    if body.dim > 8:
        pytest.skip("upper bounds only")
    rng = np.random.default_rng(0)
    directions = np.vstack([rng.normal(size=(3000, body.dim)), np.eye(body.dim), -np.eye(body.dim)])
    corners = np.array([body.support(c) for c in directions])
    distances = np.linalg.norm(corners - body.center, axis=1)
    assert distances.max() == pytest.approx(body.radius, rel=1e-9)
    corners = np.unique(np.round(corners, 9), axis=0)[:1000]
    gaps = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    rough = 0.1 if isinstance(body, Ball) else 1e-6
    assert gaps.max() == pytest.approx(body.diameter, rel=rough)


@settings(deadline=None, max_examples=200)
@given(body=bodies, seed=seeds, reach=st.floats(0.05, 2.0))
def test_body_agrees_with_contains(body: Domain, seed: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    u = rng.normal(size=body.chart_dim)
    u *= reach * body.radius / np.linalg.norm(u)
    seen = body.body
    if seen.ball:
        margin = np.linalg.norm(u) - seen.radius
    else:
        margin = (seen.A @ u - seen.b).max()
        np.testing.assert_allclose(np.linalg.norm(seen.A, axis=1), 1, rtol=1e-12)
    if abs(margin) > 1e-7 * body.diameter:
        assert body.contains(body.from_chart(u)) == (margin < 0)


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds)
def test_body_bounds_hold(body: Domain, seed: int) -> None:
    seen = body.body
    assert seen.dim == body.chart_dim
    assert seen.radius == body.radius
    assert seen.suffix.shape == seen.A.shape == (seen.b.size, seen.dim)
    us = body.to_chart(some_points(body, seed))
    slack = 1e-11 * (body.diameter + np.abs(body.center).max())
    assert (us >= seen.lo - slack).all()
    assert (us <= seen.hi + slack).all()
    assert np.linalg.norm(us, axis=1).max() <= seen.radius + slack
    for c, row in enumerate(seen.A):
        for k in range(seen.dim):
            assert (us[:, k + 1 :] @ row[k + 1 :]).min() >= seen.suffix[c, k] - slack
    assert not seen.suffix[:, -1].any()
    for array in (seen.A, seen.b, seen.lo, seen.hi, seen.suffix):
        assert array.flags.c_contiguous
        assert not array.flags.writeable


@pytest.mark.parametrize("body", [b for b in BODIES if not b.body.ball and b.dim <= 8], ids=repr)
def test_body_bounds_are_tight(body: Domain) -> None:
    seen = body.body
    rows, _ = body.pull(np.eye(body.dim))

    def value(direction: Array) -> float:
        # A linear function of the chart is one of the points, up to a constant that the centre shows.
        c = rows @ direction
        return float(c @ (body.support(c) - body.center))

    eye = np.eye(seen.dim)
    atol = 1e-8 * body.diameter
    np.testing.assert_allclose(seen.lo, [value(e) for e in eye], atol=atol)
    np.testing.assert_allclose(seen.hi, [-value(-e) for e in eye], atol=atol)
    tails = [[value(np.where(np.arange(seen.dim) > k, row, 0.0)) for k in range(seen.dim)] for row in seen.A]
    np.testing.assert_allclose(seen.suffix, tails, atol=atol)


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds)
def test_chart_is_an_isometry_and_inverts(body: Domain, seed: int) -> None:
    points = some_points(body, seed)
    us = body.to_chart(points)
    atol = 1e-12 * (body.diameter + np.abs(body.center).max())
    assert us.shape == (len(points), body.chart_dim)
    np.testing.assert_allclose(body.from_chart(us), points, rtol=0, atol=atol)
    np.testing.assert_allclose(
        np.linalg.norm(us[:, None] - us[None], axis=2),
        np.linalg.norm(points[:, None] - points[None], axis=2),
        atol=atol,
    )
    np.testing.assert_allclose(body.to_chart(body.center), np.zeros(body.chart_dim), atol=atol)
    np.testing.assert_array_equal(body.to_chart(points[0]), us[0])
    np.testing.assert_array_equal(body.to_chart(points[None]), us[None])
    np.testing.assert_array_equal(body.from_chart(us[None]), body.from_chart(us)[None])


@settings(deadline=None, max_examples=100)
@given(body=bodies, seed=seeds)
def test_pull_keeps_values(body: Domain, seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(3, body.dim))
    points = some_points(body, seed)
    pulled, offsets = body.pull(rows)
    expected = rows @ points.T
    actual = pulled @ body.to_chart(points).T + offsets[:, None]
    np.testing.assert_allclose(actual, expected, atol=1e-11 * (1 + np.abs(body.center).max()))
    assert (pulled is rows) == (body.dim == body.chart_dim)


def test_simplex_chart_determines_the_last_entries_first() -> None:
    body = Simplex(5)
    rng = np.random.default_rng(0)
    for known in range(1, 5):
        us = rng.normal(size=(2, 4))
        us[1, :known] = us[0, :known]
        p, q = body.from_chart(us)
        np.testing.assert_allclose(p[-known:], q[-known:], atol=1e-14)
        if known < 4:
            assert abs(p[-known - 1] - q[-known - 1]) > 1e-6


def test_simplex_from_chart_gives_probability_vectors() -> None:
    body = Simplex(6)
    corners = body.from_chart(body.to_chart(np.eye(6)))
    assert (corners >= 0).all()
    np.testing.assert_allclose(corners.sum(axis=1), 1, rtol=1e-15)
    outside = body.from_chart(body.to_chart([1.5, -0.5, 0, 0, 0, 0]))
    np.testing.assert_allclose(outside, [1.5, -0.5, 0, 0, 0, 0], atol=1e-14)


def test_simplex_projects_huge_numbers() -> None:
    np.testing.assert_array_equal(Simplex(3).project([1e308, -1e308, 0.0]), [1, 0, 0])


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_polytope_agrees_with_simplex_and_box(dim: int) -> None:
    rng = np.random.default_rng(dim)
    low, high = -rng.uniform(size=dim), rng.uniform(size=dim)
    box = Box(low, high)
    same = Polytope(np.vstack([np.eye(dim), -np.eye(dim)]), np.concatenate([high, -low]), box.center)
    assert same.radius == pytest.approx(box.radius, rel=1e-12)
    assert same.diameter == pytest.approx(box.diameter, rel=1e-12)
    for y in rng.normal(size=(20, dim)) * 2:
        np.testing.assert_allclose(same.project(y), box.project(y), atol=1e-13)
    n = dim + 1
    simplex = Simplex(n)
    chart = Polytope(simplex.body.A, simplex.body.b)
    for y in rng.normal(size=(20, dim)):
        expected = simplex.to_chart(simplex.project(simplex.from_chart(y)))
        np.testing.assert_allclose(chart.project(y), expected, atol=1e-13)


def test_polytope_with_a_needle_and_repeated_rows() -> None:
    A = np.array([[1.0, 1e-4], [-1.0, 1e-4], [0.0, -1.0], [0.0, -2.0], [2.0, 2e-4]])
    body = Polytope(A, [1e-4, 1e-4, 0.0, 0.0, 2e-4])
    assert body._rows.shape == (3, 2)  # repeated rows are merged; the body has implied ones beside them
    np.testing.assert_allclose(body.project([0.0, 5.0]), [0.0, 1.0], atol=1e-12)
    assert body.diameter == pytest.approx(np.hypot(1e-4, 1), rel=1e-9)


def test_polytope_bounds_without_vertices_are_safe_above_400_entries() -> None:
    body = random_polytope(12, 30, 5)
    seen = body.body
    us = body.to_chart(some_points(body, 0))
    tails = np.array([[(us[:, k + 1 :] @ row[k + 1 :]).min() for k in range(12)] for row in seen.A])
    assert (tails >= seen.suffix).all()


@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_bodies_pickle_compare_and_read_like_the_call(body: Domain) -> None:
    copy = pickle.loads(pickle.dumps(body))
    assert copy == body
    assert hash(copy) == hash(body)
    assert not copy.center.flags.writeable
    assert body != "something else"
    assert sum(body == other for other in BODIES) == 1
    if "..." not in repr(body):
        assert eval(repr(body)) == body
    with pytest.raises(AttributeError):
        body.dim = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        body.center[0] = 1.0


def test_interval_is_not_equal_to_its_box() -> None:
    assert Interval(0, 1) != Box([0], [1])
    assert repr(Ball(2)) == "Ball(2, 1.0)"
