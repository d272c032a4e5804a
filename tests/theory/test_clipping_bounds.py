"""P4: drift, total variation, expected switches and tails of the clipped process, computed exactly on fine grids."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy import special, stats


def tail(z: np.ndarray | float) -> np.ndarray | float:
    return special.ndtr(-np.asarray(z))


def lognormal_call(log_strike: np.ndarray | float, sigma: float) -> np.ndarray | float:
    """D(a, sigma) = E (exp(sigma g - sigma^2/2 - a) - 1)+, g standard normal; Delta0(c, sigma) = D(c sigma, sigma)."""
    a = np.asarray(log_strike, float)
    return np.exp(-a) * tail(a / sigma - sigma / 2) - tail(a / sigma + sigma / 2)


@functools.cache
def upper_clip(phi: float, s: float, draws: int, per_sigma: int = 24, reach: float = 6.0) -> float:
    """An upper bound, sharp to a fraction of a percent, of E (X A / phi - 1)+ (the U of P4)."""
    if draws == 1:
        return float(lognormal_call(math.log(phi), math.sqrt(2) * s))
    step = s / per_sigma
    first = max(1, math.floor(math.exp(-reach * s - s * s / 2) / step))
    last = math.ceil(math.exp(reach * s) / step)
    edges = step * np.arange(first, last + 1)
    z = np.log(edges) / s
    mass = np.diff(special.ndtr(z + s / 2))
    moment = np.diff(special.ndtr(z - s / 2))  # E r over the cell
    weight = np.zeros(len(edges))
    weight[:-1] += (edges[1:] * mass - moment) / step  # chords lie above convex functions
    weight[1:] += (moment - edges[:-1] * mass) / step
    weight[0] += special.ndtr(z[0] + s / 2)  # the function is increasing: the low end moves up
    weight = np.maximum(weight, 0)
    total = weight
    for _ in range(draws - 1):
        total = np.convolve(total, weight)
    mean = step * (draws * first + np.arange(len(total))) / draws
    body = float(total @ lognormal_call(math.log(phi) - np.log(mean), s))
    return body + float(tail(z[-1] - s / 2) + (draws - 1) * tail(z[-1] + s / 2)) / phi


def lower_clip(phi: float, s: float, draws: int) -> float:
    kappa = s * s * (1 - 1 / draws) / 2
    return float(lognormal_call(math.log(phi) - kappa, s * math.sqrt(1 + 1 / draws)) * math.exp(-kappa) / phi)


def closed_form(phi: float, s: float, draws: int, far: float = 12.0) -> tuple[float, float]:
    """The bounds of P4e: upper and lower clip."""
    a, sigma, part = math.log(phi), s * math.sqrt(1 + 1 / draws), 1 - 1 / draws
    f = float(lognormal_call(a, sigma))
    rate = math.exp(-a) * float(tail(a / sigma - sigma / 2)) / f
    curve = 2 * (math.expm1(far * s) - far * s) / (far * s) ** 2
    v = rate * s * s * curve / draws
    lower = f * math.exp((rate - 1) * s * s * part / 2 - a)
    if v >= 1:
        return math.inf, lower
    upper = f * (1 - v) ** (-(draws - 1) / 2) * math.exp(-rate * s * s * part / 2)
    return upper + draws * float(tail(far - s)), lower


class Process:
    """The unbudgeted process on a grid: coins, laws and the law of (point, switches so far)."""

    def __init__(self, losses: np.ndarray, base: np.ndarray, beta: float, phi: float, p: float, draws: int) -> None:
        sums = np.vstack([np.zeros(losses.shape[1]), np.cumsum(losses, axis=0)])
        weights = np.exp(-beta * (sums - sums.min(axis=1, keepdims=True))) * base
        self.mu = weights / weights.sum(axis=1, keepdims=True)
        self.n, points = losses.shape
        self.upper, self.lower, coins = [], [], []
        for k, loss in enumerate(losses):
            r = np.exp(beta * loss)
            if draws == 1:
                values, chance = r, self.mu[k + 1]
            else:
                values = np.add.outer(r, r).ravel() / 2
                chance = np.outer(self.mu[k + 1], self.mu[k + 1]).ravel()
            order = np.argsort(values)
            values, chance = values[order], chance[order]
            # E of clipped values / r(x), by prefix sums: r(x) scales the thresholds.
            mass = np.append(0, np.cumsum(chance))
            moment = np.append(0, np.cumsum(chance * values))
            high, low = np.searchsorted(values, phi * r), np.searchsorted(values, r / phi)
            up = (moment[-1] - moment[high]) / (phi * r) - (mass[-1] - mass[high])
            down = mass[low] / phi**2 - moment[low] / (phi * r)
            coins.append(moment[-1] / (phi * r) - up + down)
            self.upper.append(float(self.mu[k] @ up))
            self.lower.append(float(self.mu[k] @ down))
        state = np.zeros((self.n + 1, points))
        state[0] = self.mu[0]
        self.drift, self.tv, self.switching = [], [0.0], []
        for k, coin in enumerate(coins):
            stay = (1 - p) * coin
            law = state.sum(axis=0)
            self.switching.append(float(law @ (1 - stay)))
            once = self.mu[k] * stay + (self.mu[k] @ (1 - stay)) * self.mu[k + 1]
            self.drift.append(float(np.abs(once - self.mu[k + 1]).sum() / 2))
            switched = state @ (1 - stay)
            state = state * stay
            state[1:] += np.outer(switched[:-1], self.mu[k + 1])
            self.tv.append(float(np.abs(state.sum(axis=0) - self.mu[k + 1]).sum() / 2))
        self.counts = state.sum(axis=1)


def line(beta: float, lam: float, radius: float, points: int = 401) -> tuple[np.ndarray, np.ndarray]:
    edges = np.linspace(-radius, radius, points + 1)
    x = (edges[1:] + edges[:-1]) / 2
    return x, np.exp(-beta * lam * x * x / 2)


def losses_of(kind: str, x: np.ndarray, slope: float, n: int, rng: np.random.Generator) -> np.ndarray:
    spread = np.abs(x).max()
    if kind == "linear":
        return slope * np.outer(rng.choice([-1.0, 1.0], n), x)
    if kind == "drift":
        return slope * np.outer(np.ones(n), x)
    if kind == "absolute":
        return slope * np.abs(x - rng.uniform(-spread / 2, spread / 2, (n, 1)))
    tilt = rng.uniform(-1, 1, (n, 1))
    return slope * (tilt * x + (1 - np.abs(tilt)) * np.abs(x - rng.uniform(-spread / 4, spread / 4, (n, 1))))


KINDS = ["linear", "drift", "absolute", "mixed"]
# (slope of a batch, radius of the interval in standard deviations, log phi in units of s, p)
SETTINGS = [
    (0.3, 6.0, 1.5, 0.05),
    (0.3, 1.0, 0.7, 0.3),
    (0.8, 6.0, 2.5, 0.02),
    (0.8, 0.8, 0.3, 0.0),
    (0.1, 6.0, 2.0, 0.0),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws", [1, 2])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_drift_variation_switches_and_tails(kind: str, draws: int, setting: tuple[float, ...]) -> None:
    s, radius, cut, p = setting  # beta = lam = 1 gives s = slope
    n, phi = 8, math.exp(cut * s)
    x, base = line(1.0, 1.0, radius, 401 if draws == 1 else 161)
    for seed in range(2):
        run = Process(losses_of(kind, x, s, n, np.random.default_rng(seed)), base, 1.0, phi, p, draws)
        up, low = upper_clip(phi, s, draws), lower_clip(phi, s, draws)
        slack = 1 + 2e-4  # the grid in place of the line
        assert max(run.upper) <= up * slack
        assert max(run.lower) <= low * slack
        if draws == 1:
            assert np.allclose(run.lower, np.array(run.upper) / phi, rtol=1e-9, atol=1e-15)
        delta = max(up, low) * slack
        assert max(run.drift) <= (1 - p) * delta
        q = 1 - (1 - p) / phi
        for k, tv in enumerate(run.tv):
            series = sum((1 - p) ** j for j in range(1, k + 1))
            assert tv <= delta * series
            assert series <= min(k, (1 - p) / p if p else math.inf) + 1e-12
        for k, chance in enumerate(run.switching):
            assert chance <= q + (1 - p) * (up * slack + (1 - phi**-2) * run.tv[k])
        e = (1 - p) * up * slack
        for j in range(n + 1):
            bound = (1 + e) ** n * stats.binom.sf(j - 1, n, (q + e) / (1 + e))
            assert run.counts[j:].sum() <= bound + 1e-15


def test_the_bounds_are_nearly_attained_and_weaker_ones_fail() -> None:
    # Linear losses on a wide interval: a Gaussian, where exp(h) is lognormal.
    s, phi, n, p = 0.3, math.exp(0.3), 6, 0.0
    x, base = line(1.0, 1.0, 9.0, 1601)
    run = Process(losses_of("drift", x, s, n, np.random.default_rng(0)), base, 1.0, phi, p, 1)
    up = upper_clip(phi, s, 1)
    q = 1 - (1 - p) / phi
    assert run.upper[0] == pytest.approx(up, rel=1e-3)
    assert run.drift[0] > up / 2  # Delta0/2 is not a bound of the drift
    assert run.switching[0] == pytest.approx(q + (1 - p) * (up - up / phi), rel=1e-6)
    assert run.switching[0] > q  # nor is q one of the switching probability
    for j in (1, n):
        tail_j = run.counts[j:].sum()
        e = (1 - p) * up
        assert tail_j <= (1 + e) ** n * stats.binom.sf(j - 1, n, (q + e) / (1 + e))
        assert tail_j > stats.binom.sf(j - 1, n, q)  # the binomial tail with q is false under clipping
    # Without the drift's allowance the total variation is wrong too.
    assert run.tv[1] > 0


def test_averaging_does_not_give_a_lognormal_of_variance_one_plus_one_over_m() -> None:
    # shared/theory.md claims sigma = sqrt(1 + 1/M) s; on Gaussians the upper clip passes that value.
    for s, cut in ((1.0, 2.0), (0.5, 2.5), (0.3, 3.0)):
        phi = math.exp(cut * s)
        x, base = line(1.0, 1.0, 9.0, 801)
        run = Process(s * x[None, :], base, 1.0, phi, 0.0, 2)
        claimed = lognormal_call(cut * s, s * math.sqrt(1.5))
        assert run.upper[0] > claimed * 1.02
        assert run.upper[0] <= upper_clip(phi, s, 2) * 1.001
        assert run.upper[0] > upper_clip(phi, s, 2) * 0.98
        assert run.lower[0] <= lower_clip(phi, s, 2) * 1.001
        # The lower clip error is no longer exactly 1/phi times the upper one.
        assert abs(run.lower[0] * phi / run.upper[0] - 1) > 5e-3


def test_the_upper_clip_for_many_draws_by_simulation() -> None:
    rng = np.random.default_rng(1)
    for s, draws, cut in ((0.2, 4, 1.5), (0.4, 8, 1.0)):
        g = rng.standard_normal((200_000, draws + 1))
        r = np.exp(s * g - s * s / 2)
        h = r[:, 0] * r[:, 1:].mean(axis=1)
        phi = math.exp(cut * s)
        samples = np.maximum(h / phi - 1, 0)
        bound, error = upper_clip(phi, s, draws), samples.std() / math.sqrt(len(samples))
        assert samples.mean() - 5 * error <= bound <= samples.mean() + 5 * error + 0.01 * bound
        below = np.maximum(phi**-2 - h / phi, 0)
        assert below.mean() <= lower_clip(phi, s, draws) + 5 * below.std() / math.sqrt(len(below))
        assert upper_clip(phi, s, draws) <= upper_clip(phi, s, 1)


@pytest.mark.parametrize("draws", [2, 3, 8])
@pytest.mark.parametrize("s", [0.01, 0.05, 0.2])
def test_the_closed_form_for_averages(draws: int, s: float) -> None:
    for c in (0.5, 2.0, 3.5):
        phi = math.exp(c * s * math.sqrt(1 + 1 / draws))
        upper, lower = closed_form(phi, s, draws)
        sharp = upper_clip(phi, s, draws, 60, 8.0)
        assert sharp * (1 - 2e-3) <= upper  # sharp is itself a bound, a fraction of a percent too large
        assert upper <= sharp * (1.1 if s < 0.1 else 3.0)
        nearer, _ = closed_form(phi, s, draws, 8.0)  # any distance far > s gives a bound
        assert sharp * (1 - 2e-3) <= nearer <= upper
        assert lower_clip(phi, s, draws) <= lower * (1 + 1e-9)


def test_delta0_is_below_its_linear_form() -> None:
    for c in np.linspace(0, 6, 25):
        for sigma in np.geomspace(1e-3, 4, 20):
            linear = sigma * (stats.norm.pdf(c) - c * tail(c))
            assert lognormal_call(c * sigma, sigma) <= linear * (1 + 1e-9) + 1e-16
