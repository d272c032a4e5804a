"""The integrals log_z against quadrature, closed forms and their own bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special

from reticent.domains import Ball, Box, Domain, Interval, Polytope, Simplex

KS = [0.0, 1e-12, 1e-3, 1.0, 7.0, 300.0]
TRIANGLE = Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1], center=[0.2, 0.3])
TETRAHEDRON = Polytope(np.vstack([-np.eye(3), np.ones((1, 3))]), [0, 0, 0, 1])


@pytest.mark.parametrize("k", KS)
def test_interval_and_ball_of_dimension_1(k: float) -> None:
    value, _ = integrate.quad(lambda x: math.exp(-k * x * x / 2), -2, 2, epsabs=0, epsrel=1e-12)
    for body in (Interval(-1, 3), Ball(1, 2.0), Polytope([[1.0], [-1.0]], [3.0, 1.0])):
        for side in ("upper", "lower"):
            assert body.log_z(k, side) == pytest.approx(math.log(value), abs=1e-10)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_ball_by_radial_quadrature(k: float, dim: int) -> None:
    radius = 1.7
    value, _ = integrate.quad(
        lambda r: r ** (dim - 1) * math.exp(-k * r * r / 2),
        0,
        radius,
        epsabs=0,
        epsrel=1e-12,
        points=[0.1, 0.4],
    )
    area = 2 * math.pi ** (dim / 2) / math.gamma(dim / 2)
    assert Ball(dim, radius).log_z(k) == pytest.approx(math.log(area * value), abs=1e-10)


@pytest.mark.parametrize("k", KS)
def test_box_is_the_product_of_its_sides(k: float) -> None:
    sides = [Interval(0, 1), Interval(-3, -2.5), Interval(0, 1e-3)]
    box = Box([0, -3, 0], [1, -2.5, 1e-3])
    assert box.log_z(k) == pytest.approx(sum(s.log_z(k) for s in sides), rel=1e-13)


def test_ball_is_continuous_where_the_formula_changes() -> None:
    for dim in (2, 3, 50, 501):
        low, high = (Ball(dim).log_z(dim * (1 + e)) for e in (-1e-13, 1e-13))
        assert low == pytest.approx(high, rel=1e-11)


def test_ball_where_the_incomplete_gamma_function_underflows() -> None:
    dim, k = 500, 1e-3
    assert special.gammainc(dim / 2, k / 2) == 0
    # The mean of exp(-k|x|^2/2), by its Taylor series: E|x|^(2i) = d/(d + 2i).
    mean = sum((-k / 2) ** i / math.factorial(i) * dim / (dim + 2 * i) for i in range(6))
    volume = dim / 2 * math.log(math.pi) - special.gammaln(dim / 2 + 1)
    assert Ball(dim).log_z(k) == pytest.approx(volume + math.log(mean), rel=1e-13)
    assert Ball(dim).log_z(0) == pytest.approx(volume, rel=1e-13)


def test_large_k_is_the_gaussian_integral() -> None:
    for body in (Box([-1, -1], [1, 1]), Ball(2)):
        assert body.log_z(1e6) == pytest.approx(math.log(2 * math.pi / 1e6), rel=1e-12)
        assert math.isfinite(body.log_z(1e300))


def test_extreme_scales() -> None:
    assert Ball(2, 1e150).log_z(1.0) == pytest.approx(math.log(2 * math.pi), rel=1e-12)
    assert Ball(2, 1e200).log_z(1.0) == pytest.approx(math.log(2 * math.pi), rel=1e-12)
    assert Interval(0, 1e-200).log_z(1e-200) == pytest.approx(math.log(1e-200), rel=1e-12)


@pytest.mark.parametrize("k", KS)
def test_triangle_is_enclosed(k: float) -> None:
    x0, y0 = TRIANGLE.center
    value, _ = integrate.dblquad(
        lambda y, x: math.exp(-k * ((x - x0) ** 2 + (y - y0) ** 2) / 2), 0, 1, 0, lambda x: 1 - x, epsrel=1e-9
    )
    assert TRIANGLE.log_z(k, "lower") - 1e-8 <= math.log(value) <= TRIANGLE.log_z(k) + 1e-8
    assert TRIANGLE.log_z(k) - TRIANGLE.log_z(k, "lower") < 2


@pytest.mark.parametrize("k", [0.0, 0.1, 5.0, 100.0])
def test_simplex_of_dimension_3_is_enclosed(k: float) -> None:
    # Over (p1, p2), with the volume of the chart sqrt(3) times that of the two coordinates.
    value, _ = integrate.dblquad(
        lambda y, x: math.exp(-k * (x * x + y * y + (1 - x - y) ** 2 - 1 / 3) / 2), 0, 1, 0, lambda x: 1 - x
    )
    exact = math.log(value) + math.log(3) / 2
    assert Simplex(3).log_z(k, "lower") - 1e-9 <= exact <= Simplex(3).log_z(k) + 1e-9


@pytest.mark.parametrize("k", [0.0, 1.0, 40.0])
def test_tetrahedron_is_enclosed(k: float) -> None:
    a, b, c = TETRAHEDRON.center
    nodes, weights = np.polynomial.legendre.leggauss(30)
    t, w = (nodes + 1) / 2, weights / 2
    # The cube onto the tetrahedron: x = r, y = (1-r) s, z = (1-r)(1-s) t.
    r, s, q = np.meshgrid(t, t, t, indexing="ij")
    x, y, z = r, (1 - r) * s, (1 - r) * (1 - s) * q
    weight = w[:, None, None] * w[None, :, None] * w * (1 - r) ** 2 * (1 - s)
    value = float((weight * np.exp(-k * ((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / 2)).sum())
    assert TETRAHEDRON.log_z(k, "lower") - 1e-8 <= math.log(value) <= TETRAHEDRON.log_z(k) + 1e-8
    if k == 0:
        assert TETRAHEDRON.log_z(k) == pytest.approx(-math.log(6), abs=1e-8)
        assert TETRAHEDRON.log_z(k, "lower") == pytest.approx(-math.log(6), abs=1e-8)


@pytest.mark.parametrize("n", [2, 3, 10, 200])
@pytest.mark.parametrize("k", KS)
def test_simplex_bounds_are_ordered(n: int, k: float) -> None:
    body = Simplex(n)
    assert body.log_z(k, "lower") <= body.log_z(k) + 1e-12
    if k == 0:
        volume = math.log(n) / 2 - math.lgamma(n)
        assert body.log_z(k, "lower") == pytest.approx(volume)
        assert body.log_z(k) == pytest.approx(volume)
    if n == 2:
        half = math.sqrt(0.5)
        assert body.log_z(k) == pytest.approx(Interval(-half, half).log_z(k), abs=1e-12)


@pytest.mark.parametrize("dim", [2, 4, 6, 7, 10])
@pytest.mark.parametrize("k", KS)
def test_polytope_encloses_the_box_it_is(dim: int, k: float) -> None:
    rng = np.random.default_rng(dim)
    high = rng.uniform(0.5, 1.5, dim)
    box: Domain = Box(-high, high)
    same = Polytope(np.vstack([np.eye(dim), -np.eye(dim)]), np.concatenate([high, high]), center=np.zeros(dim))
    assert same.log_z(k, "lower") <= box.log_z(k) + 1e-12
    assert box.log_z(k) - 1e-12 <= same.log_z(k) <= box.log_z(k) + 1e-6
    if dim <= 6 and k == 0:
        assert same.log_z(k, "lower") == pytest.approx(box.log_z(k), abs=1e-8)
    if dim <= 6:
        jensen = box.log_z(0) - k / 2 * float((high**2).sum()) / 3
        assert same.log_z(k, "lower") >= jensen - 1e-7 * (1 + k)


def test_polytope_without_volume_still_has_bounds() -> None:
    rng = np.random.default_rng(0)
    A = np.vstack([rng.normal(size=(5, 10)), np.eye(10), -np.eye(10)])
    body = Polytope(A, np.ones(25))
    for k in KS:
        assert -math.inf < body.log_z(k, "lower") <= body.log_z(k) + 1e-12 < math.inf
