"""Compiled projections onto polytopes agree with those of the domains, also for degenerate rows and far points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

import reticent as rt
from reticent.systems._nearest import nearest

FAR = (0.3, 1.0, 3.0, 1e2, 1e4, 1e6)


def compiled(domain, u):
    out = np.empty_like(u)
    nearest(domain.body, u, out)
    return out


def check(domain, u):
    """Feasible, and the way from the point to its projection is a sum of outer normals of the rows that it is on."""
    body, x = domain.body, compiled(domain, u)
    rows, levels = body.A[: body.rows], body.b[: body.rows]
    size = domain.radius
    assert (rows @ x - levels).max() <= 2e-12 * size
    assert domain.contains(domain.from_chart(x))
    far = np.linalg.norm(u - x)
    touched = rows[rows @ x - levels >= -1e-9 * size]
    if far > 0:
        residual = nnls(touched.T, (u - x) / far)[1] * far if len(touched) else far
        assert residual <= 1e-9 * size + 1e-14 * far
    if far <= 1e2 * size:  # further out the domain itself allows for more
        found = domain.to_chart(domain.project(domain.from_chart(u)))
        assert np.abs(found - x).max() <= 1e-9 * size
    again = u.copy()
    nearest(body, again, again)
    assert (again == x).all()


@settings(max_examples=150, deadline=None, derandomize=True)
@given(n=st.integers(3, 8), far=st.sampled_from(FAR), seed=st.integers(0, 10**6), ties=st.booleans())
def test_simplices(n, far, seed, ties):
    domain, rng = rt.Simplex(n), np.random.default_rng(seed)
    p = rng.normal(size=n)
    u = domain.to_chart(far * (np.round(p) if ties else p) + 1 / n)
    check(domain, u)


def polytope(dim, seed, redundant):
    """A box, cut by random rows; with `redundant`, also by rows through its vertices and by near copies of others."""
    rng = np.random.default_rng(seed)
    eye = np.eye(dim)
    A = [*eye, *-eye, *rng.normal(size=(rng.integers(1, 2 * dim + 2), dim))]
    b = [*np.ones(2 * dim), *rng.uniform(0.5, 2.0, size=len(A) - 2 * dim) * np.linalg.norm(A[2 * dim :], axis=1)]
    if redundant:
        corner = np.where(rng.random(dim) < 0.5, -1.0, 1.0)
        for _ in range(3):
            normal = corner * rng.random(dim)
            A.append(normal)
            b.append(float(normal @ corner))
        A += [A[0] + A[1 % dim], A[-1] * 3.0, A[0] + 1e-7 * rng.normal(size=dim)]
        b += [b[0] + b[1 % dim], b[-1] * 3.0, b[0]]
    return rt.Polytope(A, b, center=np.zeros(dim))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(dim=st.integers(2, 6), seed=st.integers(0, 10**6), redundant=st.booleans())
def test_polytopes(dim, seed, redundant):
    domain, rng = polytope(dim, seed, redundant), np.random.default_rng(seed + 1)
    for far in FAR:
        y = rng.normal(size=dim)
        check(domain, far * y)
        check(domain, far * np.round(y))


@pytest.mark.parametrize("domain", [rt.Ball(3), rt.Box([-1, 0], [1, 4]), rt.Interval(0.0, 1.0)], ids=repr)
def test_other_bodies(domain):
    rng = np.random.default_rng(0)
    for u in 3 * rng.normal(size=(50, domain.chart_dim)):
        assert np.allclose(compiled(domain, u), domain.to_chart(domain.project(domain.from_chart(u))), atol=1e-12)


def test_a_vertex_is_the_same_to_the_last_bit_from_everywhere():
    domain = rt.Simplex(6)
    corner = np.full(6, -1.0)
    corner[2] = 5.0
    way, rng = domain.to_chart(corner), np.random.default_rng(0)
    found = np.array([compiled(domain, rng.uniform(3, 30) * way + rng.normal(size=5)) for _ in range(50)])
    assert (found == found[0]).all()
    assert domain.from_chart(found[0]).argmax() == 2


def test_where_the_active_set_gives_up_the_slow_method_finds_the_point():
    from reticent.systems import _nearest as parts

    domain = rt.Simplex(5)
    body = domain.body
    for u in np.random.default_rng(0).normal(size=(20, 4)):
        x = u.copy()
        parts._hildreth(body.A, body.b, body.rows, body.radius, x)
        assert np.abs(x - compiled(domain, u)).max() <= 1e-11
