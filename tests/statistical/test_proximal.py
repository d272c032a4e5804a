"""The certified chain: how fast it contracts, and that the distance it reports bounds the one measured."""

import numpy as np
import pytest
from laws import ALPHA, data, draws, law_on, log_law, make_loss, observe
from scipy import stats

import reticent as rt


def quantiles(log_density, grid, levels):
    f = log_density(grid)
    mass = np.exp(f - f.max())
    cdf = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
    return np.interp(levels, cdf / cdf[-1], grid)


@pytest.mark.parametrize("h", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("kind", ["absolute", "logistic"])
def test_a_step_contracts(kind, h):
    # The inner law from y and from y + delta, coupled by quantiles: no pair ends farther than delta / (1 + h beta lam).
    a, y = data(kind, 20, 1, seed=1)
    beta, lam = 0.7, 1.3
    density = log_law(kind, a, y, beta=beta, lam=lam, center=[0.0])
    grid = np.linspace(-1.0, 1.0, 8001)
    base = density(grid[:, None])
    levels = np.linspace(1e-3, 1 - 1e-3, 400)
    for start in (-2.0, -0.3, 0.4, 1.5):
        for delta in (0.01, 0.3, 1.0):
            one = quantiles(lambda x, s=start: base - (x - s) ** 2 / (2 * h), grid, levels)
            two = quantiles(lambda x, s=start + delta: base - (x - s) ** 2 / (2 * h), grid, levels)
            assert np.abs(two - one).max() <= delta / (1 + h * beta * lam) * (1 + 1e-3)


def test_the_inner_step_has_its_law():
    a, y = data("absolute", 20, 1, seed=1)
    measure = rt.Gibbs(rt.Interval(-1.0, 1.0), rt.Absolute(), beta=0.7, lam=1.3)
    measure.observe_many(a, y)
    sampler = measure._sampler("proximal")
    rng = np.random.default_rng(0)
    h, x = 0.02, np.array([0.9])
    density = log_law("absolute", a, y, beta=0.7, lam=1.3, center=[0.0])
    moved = np.array([sampler._back(sampler._noised(x, h, rng), h, rng, 10_000)[0][0] for _ in range(3000)])
    # A mixture over y of the inner laws, by quadrature on both.
    grid = np.linspace(-1, 1, 801)
    base = density(grid[:, None])
    cdf = np.zeros(801)
    for step, weight in zip(*np.polynomial.hermite_e.hermegauss(60), strict=True):
        f = base - (grid - x[0] - np.sqrt(h) * step) ** 2 / (2 * h)
        mass = np.exp(f - f.max())
        part = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
        cdf += weight * part / part[-1]
    cdf /= cdf[-1]
    assert stats.kstest(moved, lambda t: np.interp(t, grid, cdf)).pvalue > ALPHA
    # Control: the same against the law that the chain has in the end.
    mass = np.exp(base - base.max())
    final = np.concatenate([[0.0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
    assert stats.kstest(moved, lambda t: np.interp(t, grid, final / final[-1])).pvalue < ALPHA


@pytest.mark.parametrize("asked", [0.5, 2.0])
def test_reported_distance_bounds_the_measured_one(asked):
    # Total variation is at most 2 Phi(w/2) - 1; that of a histogram is no more, up to sampling noise.
    a, y = data("absolute", 6, 1, seed=2)
    domain = rt.Interval(-1.0, 1.0)
    measure = rt.Gibbs(domain, rt.Absolute(), beta=2.0, lam=1.0, distance=asked)
    measure.observe_many(a, y)
    found = [measure.draw(np.random.default_rng(seed), method="proximal") for seed in range(1500)]
    w = max(d.distance for d in found)
    assert 0 < w <= asked
    points = np.array([d.point[0] for d in found])
    grid, _ = law_on(domain, log_law("absolute", a, y, beta=2.0, lam=1.0, center=[0.0]), 2000)
    cdf = np.concatenate([[0.0], np.cumsum(grid.weights)])
    edges = np.interp(np.linspace(0, 1, 11), cdf, grid.edges[0])
    seen = np.histogram(points, edges)[0] / len(points)
    variation = 0.5 * np.abs(seen - 0.1).sum()
    noise = 3.0 * np.sqrt(10 * 0.1 / len(points))
    assert variation <= 2 * stats.norm.cdf(w / 2) - 1 + noise


def test_a_short_distance_is_the_law():
    a, y = data("logistic", 20, 2, seed=3)
    domain = rt.Ball(2)
    measure = rt.Gibbs(domain, rt.Logistic(), beta=0.5, lam=2.0, distance=1e-3)
    measure.observe_many(a, y)
    grid, place = law_on(domain, log_law("logistic", a, y, beta=0.5, lam=2.0, center=[0.0, 0.0]), 160)
    assert grid.p_value(place(draws(measure, 500, method="proximal"))) > ALPHA


def test_control_one_step_from_the_edge():
    # A chain that stops after one short step is not at the law, and the certificate says so.
    a, y = data("logistic", 20, 1, seed=3)
    domain = rt.Interval(-1.0, 1.0)
    measure = rt.Gibbs(domain, make_loss("logistic"), beta=0.5, lam=2.0)
    observe(measure, a, y)
    sampler = measure._sampler("proximal")
    rng = np.random.default_rng(0)
    moved = np.array(
        [sampler._back(sampler._noised(np.array([1.0]), 0.05, rng), 0.05, rng, 10_000)[0] for _ in range(500)]
    )
    grid, _ = law_on(domain, log_law("logistic", a, y, beta=0.5, lam=2.0, center=[0.0]), 1500)
    assert grid.p_value(moved) < ALPHA
    assert sampler.distance(0.05, 1) > 5.0


def test_a_chain_that_was_given_up_is_gone_on_with():
    """To begin anew would favour chains that happen to be fast; with the same noise it is the same chain."""

    def measure(limit):
        made = rt.Gibbs(rt.Interval(-1.0, 1.0), rt.Absolute(), beta=1.0, lam=3.0, distance=1e-3, limit=limit)
        made.observe_many(np.ones((5, 1)), [-0.6, -0.6, -0.6, 0.4, 0.4])
        return made

    free, rng = measure(10**6), np.random.default_rng(0)
    wanted = [free.draw(rng, "proximal") for _ in range(30)]
    tight, rng = measure(int(np.median([draw.proposals for draw in wanted]))), np.random.default_rng(0)
    found, given_up = [], 0
    while len(found) < 30:
        try:
            # Halfway, the default is the chain too.
            halfway = tight._sampler("proximal").halfway
            found.append(tight.draw(rng, None if halfway else "proximal").point)
        except rt.WorkLimitError:
            given_up += 1
    assert given_up > 5
    assert np.array_equal([draw.point for draw in wanted], found)
