"""Q1, Q2, Q3, Q10: one draw, one coin, and the pairs that dominate them, by quadrature in one and two dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

EPS = np.array([-2.0, -1.0, -0.3, 0.0, 0.1, 0.3, 0.7, 1.2, 2.0])


def gauss(eps: np.ndarray, s: float) -> np.ndarray:
    """The hockey-stick curve of N(0, 1) and N(s, 1) at alpha = e^eps."""
    return ndtr(s / 2 - eps / s) - np.exp(eps) * ndtr(-s / 2 - eps / s)


def hockey(p: np.ndarray, q: np.ndarray, eps: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - math.exp(e) * q, 0).sum() for e in eps])


def convex_loss(rng: np.random.Generator, x: np.ndarray, steep: float) -> np.ndarray:
    """A convex piecewise linear function with slopes in [-steep, steep]."""
    slopes = np.sort(rng.uniform(-steep, steep, 5))
    slopes[0], slopes[-1] = (-steep, steep) if rng.random() < 0.5 else (slopes[0], slopes[-1])
    kinks = np.sort(rng.uniform(x[0], x[-1], 4))
    return slopes[0] * x + sum(
        (b - a) * np.maximum(x - k, 0) for a, b, k in zip(slopes, slopes[1:], kinks, strict=False)
    )


def normal(weights: np.ndarray) -> np.ndarray:
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def line(points: int, radius: float = 1.0) -> np.ndarray:
    return radius * ((np.arange(points) + 0.5) / points * 2 - 1)


@pytest.mark.parametrize("seed", range(12))
def test_a_draw_is_gaussian_private_on_random_convex_losses(seed: int) -> None:
    rng, x = np.random.default_rng(seed), line(200_001)
    beta, lam = math.exp(rng.uniform(-1, 3)), math.exp(rng.uniform(-1, 3))
    past = sum(convex_loss(rng, x, 1.0) for _ in range(rng.integers(0, 6)))
    one, two = convex_loss(rng, x, 1.0), convex_loss(rng, x, 1.0)
    p, q = (normal(-beta * (past + loss + lam * x**2 / 2)) for loss in (one, two))
    slope = np.abs(np.diff(one - two)).max() / (x[1] - x[0])  # Delta, at most 2 G
    assert slope <= 2 + 1e-6
    bound = gauss(EPS, slope * math.sqrt(beta / lam))
    assert np.all(hockey(p, q, EPS) <= bound + 1e-9)
    assert np.all(hockey(q, p, EPS) <= bound + 1e-9)
    # Zero-out: the other loss is a constant, and Delta is the slope of the one.
    flat = normal(-beta * (past + lam * x**2 / 2))
    steep = np.abs(np.diff(one)).max() / (x[1] - x[0])
    assert np.all(hockey(p, flat, EPS) <= gauss(EPS, steep * math.sqrt(beta / lam)) + 1e-9)


def test_linear_losses_on_a_wide_body_reach_the_bound() -> None:
    x, beta, lam = line(400_001, 12.0), 1.3, 2.0
    p, q = (normal(-beta * (a * x + lam * x**2 / 2)) for a in (1.0, -1.0))
    s = 2 * math.sqrt(beta / lam)
    assert hockey(p, q, EPS) == pytest.approx(gauss(EPS, s), abs=1e-8)
    # Negative control: s with G in place of Delta = 2G, or lam and beta exchanged, is too small.
    assert np.any(hockey(p, q, EPS) > gauss(EPS, s / 2) + 1e-2)
    assert np.any(hockey(p, q, EPS) > gauss(EPS, 2 / math.sqrt(beta * lam)) + 1e-2)


def test_only_one_potential_has_to_be_convex() -> None:
    x, beta, lam = line(200_001), 4.0, 1.0
    rng = np.random.default_rng(5)
    one = convex_loss(rng, x, 1.0)
    two = one + np.cumsum(np.sign(np.sin(9 * x))) * (x[1] - x[0])  # not convex; the difference has slope 1
    p, q = normal(-beta * (one + lam * x**2 / 2)), normal(-beta * (two + lam * x**2 / 2))
    bound = gauss(EPS, math.sqrt(beta / lam))
    assert np.all(hockey(p, q, EPS) <= bound + 1e-9)
    assert np.all(hockey(q, p, EPS) <= bound + 1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("disc", [False, True])
def test_a_draw_in_the_plane(seed: int, disc: bool) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(line(500), line(500))
    inside = x**2 + y**2 <= 1 if disc else np.full(x.shape, True)
    beta, lam = math.exp(rng.uniform(0, 2)), math.exp(rng.uniform(-1, 2))

    def loss() -> np.ndarray:
        ways, shifts = rng.normal(size=(4, 2)), rng.uniform(-0.5, 0.5, 4)
        ways /= np.maximum(np.hypot(*ways.T), 1)[:, None]
        return np.max([a * x + b * y + c for (a, b), c in zip(ways, shifts, strict=True)], axis=0)

    past, one, two = loss() + loss(), loss(), loss()
    p, q = (normal(-beta * (past + part + lam * (x**2 + y**2) / 2)[inside]) for part in (one, two))
    bound = gauss(EPS, 2 * math.sqrt(beta / lam))
    assert np.all(hockey(p, q, EPS) <= bound + 1e-9)
    assert np.all(hockey(q, p, EPS) <= bound + 1e-9)


def quantiles(p: np.ndarray, x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    step = x[1] - x[0]
    return np.interp(levels, np.concatenate([[0.0], np.cumsum(p)]), np.append(x - step / 2, x[-1] + step / 2))


@pytest.mark.parametrize("seed", range(8))
def test_winf_by_quantile_coupling(seed: int) -> None:
    rng, x = np.random.default_rng(seed), line(100_001)
    beta, lam = math.exp(rng.uniform(0, 3)), math.exp(rng.uniform(0, 3))
    past, one, two = (convex_loss(rng, x, 1.0) for _ in range(3))
    p, q = (normal(-beta * (past + loss + lam * x**2 / 2)) for loss in (one, two))
    slope = np.abs(np.diff(one - two)).max() / (x[1] - x[0])
    levels = np.linspace(1e-4, 1 - 1e-4, 5001)
    assert np.abs(quantiles(p, x, levels) - quantiles(q, x, levels)).max() <= slope / lam + 1e-6


def keep(loss: np.ndarray, here: np.ndarray, mu: np.ndarray, beta: float, phi: float, draws: int) -> np.ndarray:
    """E clip(H / phi, phi^-2, 1), one or two auxiliary draws, at the points with losses `here`."""
    terms = np.exp(beta * (loss[None, :] - here[:, None]))
    if draws == 1:
        return np.clip(terms / phi, phi**-2, 1) @ mu
    both = (terms[:, :, None] + terms[:, None, :]) / 2
    return np.einsum("xij,i,j->x", np.clip(both / phi, phi**-2, 1), mu, mu)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize("log_phi", [0.05, 0.4, 3.0])
def test_keep_probabilities_move_by_eta_and_eta_0(seed: int, draws: int, log_phi: float) -> None:
    rng, x = np.random.default_rng(seed), line(3001 if draws == 1 else 201)
    b, beta, lam, phi = 3, math.exp(rng.uniform(-1, 1)), math.exp(rng.uniform(1, 3)), math.exp(log_phi)
    spots = np.arange(0, len(x), len(x) // 10)
    past, rest, one, two = (convex_loss(rng, x, g) for g in (2.0, b - 1.0, 1.0, 1.0))
    whole = convex_loss(rng, x, float(b))
    base = past + lam * x**2 / 2
    slope = np.abs(np.diff(one - two)).max() / (x[1] - x[0])
    eta = beta * b * min(slope / lam, 2.0)
    slack = 3 * beta * b * (x[1] - x[0])  # the grid: quantiles are known to one step
    # After the change: one more batch, the same in both worlds.
    worlds = [normal(-beta * (base + rest + part + whole)) for part in (one, two)]
    later = np.log(np.divide(*(keep(whole, whole[spots], mu, beta, phi, draws) for mu in worlds)))
    assert np.abs(later).max() <= min(eta, 2 * log_phi) + slack
    # In the changed batch L itself differs too.
    at = []
    for part in (one, two):
        loss = rest + part
        at.append(keep(loss, loss[spots], normal(-beta * (base + loss)), beta, phi, draws))
    sharp = beta * ((b - 1) * min(2 / lam, 2.0) + 2 * 2)  # replace-one, Delta = 2G, D = 2
    plain = eta + beta * slope * 2
    assert np.abs(np.log(at[0] / at[1])).max() <= min(2 * log_phi, plain, sharp) + slack


def test_coin_ratios_reach_eta_and_nearly_eta_0() -> None:
    """Linear losses: eta is attained, so eta/2 is wrong; at a far x the changed coin needs far more than eta."""
    x, beta, lam, b = line(20_001, 8.0), 1.0, 4.0, 2
    total = lam * x**2 / 2
    phi = math.exp(beta * b * 16)  # nothing is clipped
    eta = beta * b * 2 / lam
    worlds = [normal(-beta * (total + a * x + b * x)) for a in (1.0, -1.0)]
    ratio = np.log(np.divide(*(keep(b * x, b * x[:1], mu, beta, phi, 1) for mu in worlds)))
    assert abs(ratio[0]) == pytest.approx(eta, rel=1e-4)
    at = [keep(a * x, a * x[:1], normal(-beta * (total + a * x)), beta, phi, 1) for a in (1.0, -1.0)]
    assert abs(np.log(at[0] / at[1])[0]) == pytest.approx(beta * 2 * 8, rel=0.01)  # from the centre: half of D


def ternary(p: float, eta: float) -> tuple[np.ndarray, np.ndarray]:
    """The symmetric pair of Q2."""
    up = 1 - (1 - p) * math.exp(-eta)
    low, high = (p, up) if p + up <= 1 else (1 - up, 1 - p)
    return np.array([low, high, 1 - low - high]), np.array([high, low, 1 - low - high])


def curve(pair: tuple[np.ndarray, np.ndarray], eps: np.ndarray) -> np.ndarray:
    return hockey(pair[0], pair[1], eps)


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.05, 0.3, 0.6, 0.97, 1.0])
@pytest.mark.parametrize("eta", [0.0, 1e-3, 0.1, 1.0])
def test_the_ternary_pair_dominates_every_coin_and_nothing_smaller_does(p: float, eta: float) -> None:
    rng, eps = np.random.default_rng(1), np.linspace(-3, 3, 121)
    bound = curve(ternary(p, eta), eps)
    for _ in range(200):
        stay = (1 - p) * rng.random() ** rng.choice([0.1, 1.0])
        other = min(1 - p, stay * math.exp(eta * rng.choice([-1, 1, rng.uniform(-1, 1)])))
        one, two = np.array([1 - stay, stay]), np.array([1 - other, other])
        assert np.all(hockey(one, two, eps) <= bound + 1e-12)
    up = 1 - (1 - p) * math.exp(-eta)
    worst = [hockey(np.array(a), np.array(b), eps) for a, b in [((p, 1 - p), (up, 1 - up)), ((up, 1 - up), (p, 1 - p))]]
    assert np.max(worst, axis=0) == pytest.approx(bound, abs=1e-12)  # per coin nothing is lost
    if 0 < p < 1 and eta > 0:
        g = ndtri(up) - ndtri(p)  # Q10: the least Gaussian that dominates the coin
        assert np.all(bound <= gauss(eps, g) + 1e-12)
        touch = np.array([-g * ndtri(p) - g**2 / 2])  # where the two curves meet
        assert curve(ternary(p, eta), touch) == pytest.approx(gauss(touch, g), rel=1e-6)
        assert np.all(gauss(touch, 0.97 * g) < curve(ternary(p, eta), touch))
