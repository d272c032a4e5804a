"""Ten and thirty dimensions: closed forms where there are any, and exact methods against each other."""

import numpy as np
import pytest
from laws import ALPHA, data, draws, two_sample
from scipy import special, stats

import reticent as rt


def ball_marginal(slope, k, dim, points=6001):
    """CDF of the coordinate along h of exp(h.x - k|x|^2/2) on the unit ball, the others integrated out by hand."""
    t = np.linspace(-1, 1, points)[1:-1]
    rho2, a = 1 - t * t, (dim - 1) / 2
    rest = special.gammainc(a, k * rho2 / 2) if k > 0 else rho2**a
    f = slope * t - k * t * t / 2 + np.log(np.maximum(rest, 1e-300))
    mass = np.exp(f - f.max())
    cdf = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
    return lambda x: np.interp(x, t, cdf / cdf[-1])


@pytest.mark.parametrize("dim", [10, 30])
@pytest.mark.parametrize(("size", "lam"), [(0.0, 0.0), (5.0, 0.0), (60.0, 20.0), (400.0, 1.0)])
def test_linear_on_a_ball(dim, size, lam):
    direction = np.random.default_rng(dim).normal(size=dim)
    direction /= np.linalg.norm(direction)
    measure = rt.Gibbs(rt.Ball(dim), rt.Linear(), beta=1.0, lam=lam)
    measure.observe(-size * direction if size else np.zeros(dim))
    x = draws(measure, 3000)
    assert stats.kstest(x @ direction, ball_marginal(size, lam, dim)).pvalue > ALPHA
    across = x - np.outer(x @ direction, direction)
    # Across the slope no direction is special.
    side = np.linalg.svd(direction[None])[2][1]
    share = (across @ side) ** 2 / (across**2).sum(axis=1)
    assert stats.kstest(share, stats.beta(0.5, (dim - 2) / 2).cdf).pvalue > ALPHA
    if size >= 60:  # control: a slope 15 percent off
        assert stats.kstest(x @ direction, ball_marginal(0.85 * size, lam, dim)).pvalue < ALPHA


@pytest.mark.parametrize("dim", [10, 30])
def test_linear_and_diagonal_on_a_box(dim):
    rng = np.random.default_rng(dim)
    g = rng.normal(size=dim) * np.geomspace(0.01, 100.0, dim)
    measure = rt.Gibbs(rt.Box(-np.ones(dim), np.ones(dim)), rt.Linear(), beta=1.0, lam=2.0)
    measure.observe(g)
    x = draws(measure, 3000)
    for j in range(dim):
        law = stats.truncnorm((-1 + g[j] / 2) * 2**0.5, (1 + g[j] / 2) * 2**0.5, -g[j] / 2, 0.5**0.5)
        if abs(g[j]) < 20:  # scipy's own tails are good to here
            assert stats.kstest(x[:, j], law.cdf).pvalue > ALPHA
        else:
            depth = (1 + np.sign(g[j]) * x[:, j]) * abs(g[j] - np.sign(g[j]) * 2)
            assert stats.kstest(depth, "expon").statistic < 0.06
    # Control: the steepest coordinate against a slope 15 percent less.
    j = int(np.argmax(np.abs(g)))
    assert stats.kstest((1 + np.sign(g[j]) * x[:, j]) * 0.85 * abs(g[j]), "expon").pvalue < ALPHA


@pytest.mark.parametrize("dim", [10, 30])
@pytest.mark.parametrize("body", ["ball", "box"])
def test_squared_well_inside(dim, body):
    # So sharp a peak does not see the boundary: moments and marginals are those of the Gaussian.
    a, y = data("squared", 400, dim, noise=0.1)
    a, y = a, y - a @ np.full(dim, 0.05)
    domain = rt.Ball(dim, radius=2.0) if body == "ball" else rt.Box(-2 * np.ones(dim), 2 * np.ones(dim))
    measure = rt.Gibbs(domain, rt.Squared(), beta=3.0, lam=1.0)
    measure.observe_many(a, y)
    precision = 3.0 * (a.T @ a + np.eye(dim))
    mean = np.linalg.solve(precision, 3.0 * a.T @ y)
    z = (draws(measure, 1500) - mean) @ np.linalg.cholesky(precision)
    assert min(stats.kstest(z[:, j], "norm").pvalue for j in range(dim)) * dim > ALPHA
    assert stats.kstest((z**2).sum(axis=1), stats.chi2(dim).cdf).pvalue > ALPHA
    assert stats.kstest((z**2).sum(axis=1) * 1.15, stats.chi2(dim).cdf).pvalue < ALPHA


def test_squared_on_a_simplex_against_importance_weights():
    # Uniform points of the simplex, weighted: few rounds leave enough of them.
    dim, beta = 10, 2.0
    a, y = data("squared", 5, dim, seed=1)
    measure = rt.Gibbs(rt.Simplex(dim), rt.Squared(), beta=beta, lam=3.0)
    measure.observe_many(a, y)
    x = draws(measure, 3000)
    u = np.random.default_rng(0).dirichlet(np.ones(dim), size=200_000)
    log_w = -beta * (((u @ a.T - y) ** 2).sum(axis=1) / 2 + 1.5 * ((u - 1 / dim) ** 2).sum(axis=1))
    w = np.exp(log_w - log_w.max())
    effective = w.sum() ** 2 / (w**2).sum()
    assert effective > 5000
    for j in (0, 4, 9):
        order = np.argsort(u[:, j])
        cdf = np.cumsum(w[order]) / w.sum()
        gap = stats.kstest(x[:, j], lambda t, o=order, c=cdf, j=j: np.interp(t, u[o, j], c)).statistic
        limit = stats.kstwobign.isf(ALPHA) * np.sqrt(1 / len(x) + 1 / effective)
        assert gap < limit


@pytest.mark.parametrize("dim", [10, 30])
def test_curved_against_tangent(dim):
    a, y = data("logistic", 30, dim, seed=2)
    measure = rt.Gibbs(rt.Ball(dim), rt.Logistic(), beta=0.5, lam=1.0)
    measure.observe_many(a, y)
    one, two = draws(measure, 2500, 1, "curved"), draws(measure, 1500, 2, "tangent")
    assert two_sample(one, two) > ALPHA
    # Control: without the losses.
    empty = rt.Gibbs(rt.Ball(dim), rt.Linear(), beta=0.5, lam=1.0)
    assert two_sample(one, draws(empty, 1500, 3)) < ALPHA


def test_quartic_against_tangent():
    dim = 6
    a, y = data("absolute", 300, dim, seed=3)
    measure = rt.Gibbs(rt.Ball(dim), rt.Absolute(), beta=0.03, lam=300.0)
    measure.observe_many(a, y)
    one, two = draws(measure, 2500, 1, "quartic"), draws(measure, 1500, 2, "tangent")
    assert two_sample(one, two) > ALPHA
    hotter = rt.Gibbs(rt.Ball(dim), rt.Absolute(), beta=0.02, lam=300.0)
    hotter.observe_many(a, y)
    assert two_sample(one, draws(hotter, 1500, 3, "tangent")) < ALPHA
