"""Where rounding and geometry are hardest: residuals on kinks, huge and tiny bodies, means far outside, odd rows."""

import numpy as np
import pytest
from laws import ALPHA, PARAMETERS, against, check, data, draws, law_on, log_law
from scipy import stats

import reticent as rt
from reticent.domains._gaussian import envelope, propose

CELLS = 700


def envelope_gap(domain, h, P, floor, count=20_000):
    """How far the mass that an envelope claims is from the true one, in standard errors, with its kind."""
    body = domain.body
    env = envelope(h, P, floor, body, True)
    middles = (np.arange(CELLS) + 0.5) / CELLS
    if body.ball:
        r, t = np.meshgrid(np.sqrt(middles) * body.radius, middles * 2 * np.pi)
        x = np.stack([r * np.cos(t), r * np.sin(t)], axis=2).reshape(-1, 2)
        volume = np.pi * body.radius**2
    else:
        x = np.stack(np.meshgrid(*(a + (b - a) * middles for a, b in zip(body.lo, body.hi, strict=True))), axis=2)
        x, volume = x.reshape(-1, 2), np.prod(body.hi - body.lo)
    f = x @ h - 0.5 * ((x @ P) * x).sum(axis=1)
    f[~(x @ body.A.T <= body.b).all(axis=1)] = -np.inf
    true = f.max() + np.log(np.exp(f - f.max()).mean() * volume)
    rng, out = np.random.default_rng(0), np.empty(2)
    kept = np.exp([propose(rng, env, body, out) for _ in range(count)])
    # A proposal is kept with the mean chance (true mass) / (mass of the envelope).
    share = np.exp(true - env.log_mass)
    return (kept.mean() - share) / (kept.std() / np.sqrt(count) + 2e-3 * share), env.kind


@pytest.mark.parametrize(
    "domain", [rt.Ball(2), rt.Box([-1, -1], [1, 1]), rt.Simplex(3)], ids=["ball", "box", "simplex"]
)
@pytest.mark.parametrize(
    ("h", "P"),
    [
        ((0.0, 0.0), ((1.0, 0.0), (0.0, 1.0))),
        ((3.0, 0.0), ((1.0, 0.0), (0.0, 1.0))),
        ((10.0, 3.0), ((5.0, 0.5), (0.5, 6.0))),
        ((20.0, -20.0), ((30.0, 10.0), (10.0, 20.0))),
        ((30.0, 0.0), ((20.0, 0.0), (0.0, 60.0))),
        ((0.3, 0.2), ((0.0, 0.0), (0.0, 0.9))),
    ],
    ids=str,
)
def test_envelope_mass(domain, h, P):
    # Mixtures of envelopes weigh them by their masses: a mass must be that of the proposals, not nearly so.
    P = np.array(P)
    gap, kind = envelope_gap(domain, np.array(h), P, max(0.0, float(np.linalg.eigvalsh(P)[0])) * 0.999)
    assert abs(gap) < 6, f"kind {kind}"


def test_mixture_of_core_and_tail_near_the_sphere():
    # What lies beyond the quartic part of the bound, against quadrature: a wrong mass of either part shows here.
    rng = np.random.default_rng(300)
    rounds, beta, lam = int(rng.integers(20, 1200)), 10 ** rng.uniform(-3, 0.5), 10 ** rng.uniform(-1, 2)
    heavy = rng.random() >= 0.5
    a = rng.standard_t(2.5, size=(rounds, 2)) if heavy else rng.normal(size=(rounds, 2))
    pull = rng.normal(size=2) * rng.uniform(0.3, 2)
    y = a @ pull + rng.uniform(0.05, 2) * rng.normal(size=rounds)
    measure = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=beta, lam=lam)
    measure.observe_many(a, y)
    x = draws(measure, 60_000, 1, "quartic")
    grid, place = law_on(measure.domain, log_law("absolute", a, y, beta=beta, lam=lam, center=[0.0, 0.0]), 400)
    assert grid.p_value(place(x)) > ALPHA
    bound, _, core = measure._samplers["quartic"].built
    z = measure._history.summary.z
    # The grid is polar: its points back in the plane need the angle it starts from.
    start = place(np.array([[1.0, 0.0]]))[0, 1]
    r, turn = grid.points[:, 0], grid.points[:, 1] - start
    plane = np.column_stack([r * np.cos(turn), r * np.sin(turn)])
    beyond = [np.linalg.norm((p - z) @ bound.whiten, axis=1) > core.radial.rho1 for p in (plane, x)]
    chance = grid.weights[beyond[0]].sum()
    assert stats.binomtest(int(beyond[1].sum()), len(x), chance).pvalue > ALPHA


def corner_rows():
    """Decimal rows whose residual at (1, 1) is 0 but for rounding, with a sign that hangs on the order of adding up."""
    rows = [(i / 100, j / 100, round((i + j) / 100, 2)) for i in range(1, 200) for j in range(1, 60)]
    chosen = np.array([(a, b, y) for a, b, y in rows if ((a - y) + b < 0) != ((a + b) - y < 0)])[:500]
    push = np.tile([[1.0, 0.0, 3.0], [0.0, 1.0, 3.0]], (400, 1))
    every = np.vstack([chosen, push])
    return every[:, :2], every[:, 2]


@pytest.mark.parametrize("beta", [0.002, 0.02])
def test_residuals_on_their_kinks_in_a_corner(beta):
    a, y = corner_rows()
    box = rt.Box([-1, -1], [1, 1])
    assert check(box, "absolute", (), a, y, beta=beta, lam=5.0, method="quartic", count=3000) > ALPHA


def test_huber_on_a_long_interval():
    # Quadratic sums reckoned from a far end lose the peak to rounding.
    rng = np.random.default_rng(0)
    a, y = np.ones((10_000, 1)), 0.3 * rng.normal(size=10_000)
    measure = rt.Gibbs(rt.Interval(-1e6, 1e6), rt.Huber(1.0), beta=1.0, lam=0.0)
    measure.observe_many(a, y)
    x = draws(measure, 2000, method="line")
    # All residuals are in the quadratic part around the peak: the law is normal.
    assert np.abs(y).max() < 1.3
    grid, _ = law_on(rt.Interval(-1, 1), log_law("huber", a, y, 1.0, beta=1.0, lam=0.0, center=[0.0]), 1000)
    assert grid.p_value(x) > ALPHA


@pytest.mark.parametrize("tightness", [1e6, 1e12, 1e17])
@pytest.mark.parametrize("radius", [1e-6, 1.0, 1e6])
def test_narrow_peak_in_a_ball(radius, tightness):
    # A sharp peak well inside: normal to all appearance, whatever the size of the ball.
    ball, k = rt.Ball(2, radius=radius), tightness / radius**2
    mean = np.array([0.3, 0.2]) * radius
    rng = np.random.default_rng(0)
    z = (np.array([ball.draw_gaussian(mean, k, rng) for _ in range(3000)]) - mean) * np.sqrt(k)
    for direction in ([1.0, 0.0], [0.0, 1.0], [0.83205, 0.5547]):
        assert stats.kstest(z @ direction, "norm").pvalue > ALPHA


@pytest.mark.parametrize("size", [1e-6, 1e6])
@pytest.mark.parametrize("kind", ["linear", "squared", "absolute", "huber", "logistic"])
def test_size_of_the_body(kind, size):
    # The same problem in other units: features shrink as the body grows, and lam with its square.
    a, y = data(kind, 30, 2, towards=[0.9, 0.4], seed=1)
    for domain in (rt.Ball(2, radius=size), rt.Box([-size, -size], [size, size])):
        found = check(
            domain, kind, PARAMETERS.get(kind, ()), a / size, y, beta=0.25, lam=size**-2, count=800, points=120
        )
        assert found > ALPHA


@pytest.mark.parametrize("kind", ["squared", "absolute", "logistic"])
def test_body_far_from_the_origin(kind):
    domain = rt.Box([1e4, -1e4], [1e4 + 1.0, 1.0 - 1e4])
    a, y = data(kind, 30, 2, seed=2)
    if kind == "logistic":
        a[:, 1] = a[:, 0] + 1e-4 * a[:, 1]
    else:
        y = y + a @ domain.center
    assert check(domain, kind, (), a, y, beta=0.5, lam=1.0, count=1000) > ALPHA


@pytest.mark.parametrize("strength", [1e-9, 1e7])
def test_strength_of_the_regulariser(strength):
    a, y = data("logistic", 30, 2, seed=3)
    assert check(rt.Ball(2), "logistic", (), a, y, beta=1.0, lam=strength, count=1000) > ALPHA
    assert check(rt.Box([-1, -1], [1, 2]), "squared", (), a, y, beta=1.0, lam=strength, count=1000) > ALPHA


@pytest.mark.parametrize("kind", ["squared", "huber", "logistic"])
@pytest.mark.parametrize("domain", [rt.Ball(2), rt.Simplex(3)], ids=["ball", "simplex"])
def test_odd_rows(kind, domain):
    # Rows of zeros, one row many times, one enormous row and one tiny one.
    a = np.zeros((60, domain.dim))
    a[20:50] = np.arange(1, domain.dim + 1) / 5
    a[50] = 40.0 * (np.arange(domain.dim) - 0.5)
    a[51] = 1e-9
    y = np.where(np.arange(60) % 3 > 0, 1.0, -1.0)
    for lam in (0.0, 1.0):
        found = check(domain, kind, PARAMETERS.get(kind, ()), a, y, beta=0.3, lam=lam, count=800, points=200)
        assert found > ALPHA


@pytest.mark.parametrize("far", [10.0, 1e6])
def test_gaussian_far_outside(far):
    # Squared losses whose minimiser is nowhere near the body.
    a = np.array([[1.0, 0.2], [0.1, 2.0], [0.5, 0.5]])
    y = far * np.ones(3)
    for domain in (rt.Ball(2), rt.Box([-1, -1], [1, 1]), rt.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1])):
        assert check(domain, "squared", (), a, y, beta=1.0, lam=0.1, count=1500, points=400) > ALPHA


def test_all_zero_rows_with_a_kink():
    # Nothing to bound by quartics, and nothing to learn: the default must still draw.
    measure = rt.Gibbs(rt.Ball(2), rt.Absolute(), beta=0.3, lam=1.0)
    a, y = np.zeros((300, 2)), np.ones(300)
    measure.observe_many(a, y)
    assert against(measure, "absolute", (), a, y, count=300) > ALPHA
