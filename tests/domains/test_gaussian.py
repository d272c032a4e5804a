"""Gaussians on bodies: masses by closed forms, laws by Kolmogorov-Smirnov at 1e-6 (docs/theory, S1-S5)."""

import math

import numpy as np
import pytest
from scipy import special, stats

import reticent as rt
from reticent.domains._gaussian import draw_ball, log_kummer
from reticent.domains._gaussian_polytope import CORNER, polytope_envelope
from reticent.domains._normal import draw_normal, draw_scaled, erfcx, log_mass

ALPHA = 1e-6


def ks(sample, cdf) -> float:
    return float(stats.kstest(sample, cdf).pvalue)


def test_scaled_complementary_error_function():
    for x in np.linspace(0.0, 60.0, 300):
        assert erfcx(x) == pytest.approx(special.erfcx(x), rel=1e-14)


@pytest.mark.parametrize(
    ("a", "b"),
    [(-1, 2), (5, 6), (30, 31), (-40, -39), (3, 3.0001), (100, 1e9), (-np.inf, 1), (2, np.inf)],
)
def test_log_mass(a, b):
    # Reflect into the lower half line, where scipy's logarithm of the distribution function is accurate.
    low, high = (-b, -a) if a > 0 else (a, b)
    reference = special.log_ndtr(high) + np.log1p(-np.exp(special.log_ndtr(low) - special.log_ndtr(high)))
    assert log_mass(float(a), float(b)) == pytest.approx(reference, rel=1e-9)
    assert log_mass(1.0, 1.0) == -np.inf
    for place in (-1e-9, 2.0, 35.0):  # so narrow that the density is flat
        flat = math.log(2e-9) - 0.5 * (place + 1e-9) ** 2 - 0.5 * math.log(2 * math.pi)
        assert log_mass(place, place + 2e-9) == pytest.approx(flat, rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(-1, 2), (0.1, 0.4), (2, 2.5), (6, 40), (-9, -8), (35, 36), (-3, 0.01)])
def test_truncated_normals(a, b):
    rng = np.random.default_rng(int(abs(a) * 7 + b))
    sample = np.array([draw_normal(rng, float(a), float(b)) for _ in range(8000)])
    assert sample.min() >= a
    assert sample.max() <= b

    def cdf(x):
        return np.exp([log_mass(float(a), float(q)) - log_mass(float(a), float(b)) for q in x])

    assert ks(sample, cdf) > ALPHA
    assert ks(0.8 * (sample - a) + a, cdf) < ALPHA  # negative control: drawn too near to one end


def test_draws_keep_their_accuracy_far_out():
    # A mean 1e9 standard deviations away: the distance from the end is exponential with that rate.
    rng = np.random.default_rng(0)
    steps = np.array([draw_scaled(rng, 1e9, 0.0, 1.0, 1.0) for _ in range(4000)])
    assert ks(steps * 1e9, stats.expon.cdf) > ALPHA
    assert ks(steps * 1.3e9, stats.expon.cdf) < ALPHA


@pytest.mark.parametrize("a", [0.5, 4.5, 50.0, 500.0])
def test_kummer(a):
    for x in (0.3, a / 2, a, 2 * a + 40, 1e4):
        part = special.gammainc(a, x)
        if part > 1e-250:
            reference = special.gammaln(a) + math.log(part) - a * math.log(x)
            assert log_kummer(a, x) == pytest.approx(reference, rel=1e-9, abs=1e-9)
    assert log_kummer(a, 1e-12) == pytest.approx(-math.log(a), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("d", [2, 3, 10, 30])
@pytest.mark.parametrize(("pull", "k"), [(0, 0), (5, 0), (0, 5), (3, 20), (500, 20), (1e6, 10), (200, 270), (300, 270)])
def test_isotropic_gaussians_on_the_ball(d, pull, k):
    rng = np.random.default_rng(d)
    h = np.zeros(d)
    h[-1] = pull
    sample, out = np.empty((4000, d)), np.empty(d)
    for i in range(4000):
        draw_ball(rng, h, float(k), 1.0, out)
        sample[i] = out
    depth = 1.0 - sample[:, -1]
    across = (sample[:, :-1] ** 2).sum(axis=1)
    assert (np.linalg.norm(sample, axis=1) <= 1 + 1e-12).all()
    a = 0.5 * (d - 1)
    # The depth below the cap by quadrature, the radius given the depth by its distribution function.
    grid = np.linspace(0.0, min(2.0, 1.6 * depth.max()), 20_001)[1:]
    room = np.clip(grid * (2.0 - grid), 1e-300, None)
    inner = special.gammainc(a, 0.5 * k * room) if k else room**a
    with np.errstate(divide="ignore"):
        logs = (k - pull) * grid - 0.5 * k * grid**2 + np.log(inner)
    mass = np.cumsum(np.exp(logs - logs.max()))
    cdf = mass / mass[-1]
    assert ks(depth, lambda q: np.interp(q, grid, cdf)) > ALPHA
    assert ks(1.15 * depth, lambda q: np.interp(q, grid, cdf)) < ALPHA
    limit = depth * (2.0 - depth)
    if k and (special.gammainc(a, 0.5 * k * limit) > 1e-250).all():
        uniform = special.gammainc(a, 0.5 * k * across) / special.gammainc(a, 0.5 * k * limit)
    else:
        uniform = (across / limit) ** a
    if k == 0 or k * limit.max() > 1e-3:
        assert ks(uniform, "uniform") > ALPHA
    if d > 2:
        direction = sample[:, 0] / np.sqrt(across)
        assert ks(0.5 * (direction + 1.0), stats.beta(0.5 * (d - 2), 0.5 * (d - 2)).cdf) > ALPHA


BODIES = {
    "ball": rt.Ball(2, 1.5, [4.0, -1.0]),
    "box": rt.Box([0.0, -2.0], [1.0, 1.0]),
    "simplex": rt.Simplex(3),
    "polytope": rt.Polytope([[1, 1], [-1, 0.3], [0, -1], [1, -1]], [1.0, 0.5, 0.5, 0.8]),
    "interval": rt.Interval(-1.0, 3.0),
}
SHAPES = {"flat": (1e-3, 0.0), "inside": (60.0, 0.1), "edge": (8.0, 1.5), "outside": (20.0, 30.0), "far": (5.0, 300.0)}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    "shape", ["inside", "edge", "outside", *(pytest.param(one, marks=pytest.mark.slow) for one in ("flat", "far"))]
)
def test_gaussians_on_every_body(body, shape):
    domain = BODIES[body]
    strength, distance = SHAPES[shape]
    rng = np.random.default_rng(abs(hash((len(body), len(shape)))) % 1000)
    d = domain.dim
    direction = np.array([1.0, 0.7, -0.4])[:d]
    mean = domain.center + distance * direction / np.linalg.norm(direction)
    root = np.eye(d) + 0.5 * np.ones((d, d))
    precision = strength * root @ root
    points = np.array([domain.draw_gaussian(mean, precision, rng) for _ in range(3000)])
    assert all(domain.contains(p) for p in points)
    chart = domain.to_chart(points)
    # Quadrature on a grid where the draws are and a margin around them; a draw outside it would show.
    low, high = chart.min(axis=0), chart.max(axis=0)
    pad = 0.15 * (high - low)
    low, high = np.maximum(low - pad, domain.body.lo), np.minimum(high + pad, domain.body.hi)
    sides = [np.linspace(a, b, 1200 if len(low) == 2 else 20_000) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(low))
    inside = (grid**2).sum(axis=1) <= domain.body.radius**2
    if not domain.body.ball:
        inside = (grid @ domain.body.A.T <= domain.body.b + 1e-12).all(axis=1)
    moved = domain.from_chart(grid) - mean
    logs = np.where(inside, -0.5 * np.einsum("ij,jk,ik->i", moved, precision, moved), -np.inf)
    weight = np.exp(logs - logs.max())
    for way in ([1.0, 0.0], [0.0, 1.0], [0.6, 0.8])[: 3 if len(low) == 2 else 1]:
        along = grid @ np.array(way)[: len(low)]
        order = np.argsort(along)
        cdf = np.cumsum(weight[order]) / weight.sum()
        drawn = chart @ np.array(way)[: len(low)]
        assert ks(drawn, lambda q, x=along[order], c=cdf: np.interp(q, x, c)) > ALPHA
        middle = np.median(drawn)
        shrunk = middle + 0.8 * (drawn - middle)
        assert ks(shrunk, lambda q, x=along[order], c=cdf: np.interp(q, x, c)) < ALPHA


@pytest.mark.parametrize("n", [11, pytest.param(31, marks=pytest.mark.slow)])
def test_the_uniform_law_on_a_large_simplex(n):
    rng = np.random.default_rng(n)
    points = np.array([rt.Simplex(n).draw_gaussian(np.full(n, 1 / n), 0.0, rng) for _ in range(2000)])
    for entry in (0, n // 2, n - 1):
        assert ks(points[:, entry], stats.beta(1, n - 1).cdf) > ALPHA
        assert ks(1.2 * points[:, entry], stats.beta(1, n - 1).cdf) < ALPHA


@pytest.mark.parametrize("n", [4, 11, 36])
@pytest.mark.parametrize("pull", [1e2, 1e4, 1e6])
def test_a_simplex_pulled_to_a_vertex(n, pull):
    # Far out the distances from the vertex are independent exponentials, with rates by the pull.
    domain = rt.Simplex(n)
    c = pull * (1.0 + np.arange(n) / n)
    c[2] = 0.0
    rng = np.random.default_rng(n)
    points = np.array([domain.draw_gaussian(domain.center - c / 1e-3, 1e-3, rng) for _ in range(400)])
    for entry in (0, n - 1):
        assert ks(points[:, entry] * c[entry], stats.expon.cdf) > (ALPHA if pull > 1e3 else 0.0)
    assert points[:, 2].mean() > 1 - 2 * n / pull


@pytest.mark.parametrize("d", [3, 4, 6, 10, 15])
def test_a_polytope_pressed_into_a_corner(d):
    # At a vertex the slacks of the d rows that meet there are independent exponentials, by the multipliers of the rows.
    rng = np.random.default_rng(d)
    A = np.vstack([rng.normal(size=(2 * d, d)), np.eye(d), -np.eye(d)])
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    domain = rt.Polytope(A, np.concatenate([np.abs(rng.normal(size=2 * d)) + 0.3, np.full(2 * d, 2.0)]))
    h = rng.normal(size=d)
    h *= 1e5 / np.linalg.norm(h)
    vertex = domain.support(-h)
    rows, levels = domain.body.A[: domain.body.rows], domain.body.b[: domain.body.rows]
    slack = levels - rows @ domain.to_chart(vertex)
    active = np.flatnonzero(slack < 1e-7)
    assert len(active) == d
    rates = np.linalg.solve(rows[active].T, h)
    points = np.array([domain.draw_gaussian(domain.center + h / 10.0, 10.0, rng) for _ in range(400)])
    slacks = (levels - domain.to_chart(points) @ rows.T)[:, active] * rates
    for k in range(d):
        if rates[k] > 2000.0:  # so far out that the curvature no longer shows
            assert ks(slacks[:, k], stats.expon.cdf) > ALPHA
            assert ks(2.0 * slacks[:, k], stats.expon.cdf) < ALPHA


def test_a_narrow_side_keeps_its_digits_in_the_coordinates_of_a_corner():
    # Slacks were taken to be as long as the radius: on a narrow side all draws were multiples of 2^-54.
    domain = rt.Box([-1.0, -1e-7], [1.0, 1e-7])
    body, rng = domain.body, np.random.default_rng(3)
    P, h = np.array([[1.2, -2.4], [-2.4, 5.4]]), np.array([4.5, -23.0])
    kind = polytope_envelope(h, P, body.A, body.b, body.suffix, body.lo, body.hi, body.radius, body.rows)[0]
    assert kind == CORNER
    points = np.array([domain.draw_gaussian(np.linalg.solve(P, h), P, rng) for _ in range(200)])
    assert np.mean(points[:, 1] * 2.0**54 % 1.0 == 0.0) < 0.1


def test_refusals():
    ball = rt.Ball(2)
    with pytest.raises(ValueError, match="symmetric 2 by 2"):
        ball.draw_gaussian([0, 0], [[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="negative eigenvalue"):
        ball.draw_gaussian([0, 0], [[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(ValueError, match="precision must be at least 0"):
        ball.draw_gaussian([0, 0], -1.0)
    with pytest.raises(ValueError, match="mean must be a vector of length 2"):
        ball.draw_gaussian([0, 0, 0], 1.0)
    rng = np.random.default_rng(0)
    with pytest.raises(rt.WorkLimitError, match="limit=1 proposals"):
        [rt.Simplex(12).draw_gaussian(np.full(12, 1 / 12), 0.0, rng, limit=1) for _ in range(200)]
