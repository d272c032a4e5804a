"""P1, P2, P3, P5: the coin, enumerated exactly on a few points (the identities hold for every base measure)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

BETA = 0.7
CASES = [(seed, draws) for seed in range(4) for draws in (1, 2, 3)]


def problem(seed: int, points: int = 5, rounds: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Losses (rounds x points) and the measures mu_1..mu_{rounds+1} on points with random base weights."""
    rng = np.random.default_rng(seed)
    losses = rng.uniform(-1, 1, (rounds, points))
    base = rng.uniform(0.2, 1, points)
    sums = np.vstack([np.zeros(points), np.cumsum(losses, axis=0)])
    weights = base * np.exp(-BETA * sums)
    return losses, weights / weights.sum(axis=1, keepdims=True)


def keep(loss: np.ndarray, following: np.ndarray, phi: float, draws: int) -> np.ndarray:
    """Mean of clip(mean_i exp(beta (L(y_i) - L(x))) / phi, phi^-2, 1) over y_i ~ following, for every x."""
    out = np.zeros(len(loss))
    for ys in itertools.product(range(len(loss)), repeat=draws):
        ratio = np.mean([np.exp(BETA * (loss[y] - loss)) for y in ys], axis=0) / phi
        out += np.prod(following[list(ys)]) * np.clip(ratio, phi**-2, 1)
    return out


@pytest.mark.parametrize(("seed", "draws"), CASES)
def test_one_draw_gives_the_ratio_of_densities(seed: int, draws: int) -> None:
    losses, mu = problem(seed)
    for k, loss in enumerate(losses):
        assert keep(loss, mu[k + 1], 1e6, draws) * 1e6 == pytest.approx(mu[k + 1] / mu[k], rel=1e-12)
        # Negative control: draws from mu_k instead of mu_{k+1} give another number.
        assert np.abs(keep(loss, mu[k], 1e6, draws) * 1e6 / (mu[k + 1] / mu[k]) - 1).max() > 1e-3


def histories(mu: np.ndarray, coins: list[np.ndarray], p: float) -> dict[tuple[int, ...], np.ndarray]:
    """For every sequence of switch indicators the sub-density of the decision after it."""
    states = {(): mu[0]}
    for k, coin in enumerate(coins):
        stay = (1 - p) * coin
        states = {
            (*past, switch): (f @ (1 - stay)) * mu[k + 1] if switch else f * stay
            for past, f in states.items()
            for switch in (0, 1)
        }
    return states


@pytest.mark.parametrize(("seed", "draws"), CASES)
def test_without_clipping_the_law_is_exact_given_the_switches(seed: int, draws: int) -> None:
    losses, mu = problem(seed)
    p = 0.1
    phi = math.exp(BETA * max(np.ptp(loss) for loss in losses))
    q = 1 - (1 - p) / phi
    coins = [keep(loss, mu[k + 1], phi, draws) for k, loss in enumerate(losses)]
    for history, f in histories(mu, coins, p).items():
        switches = sum(history)
        assert f.sum() == pytest.approx(q**switches * (1 - q) ** (len(history) - switches), rel=1e-12)
        assert f / f.sum() == pytest.approx(mu[-1], rel=1e-12)
    # Negative control: half of that log phi clips, and the law is no longer exact.
    coins = [keep(loss, mu[k + 1], math.sqrt(phi), draws) for k, loss in enumerate(losses)]
    assert any(np.abs(f / f.sum() - mu[-1]).max() > 1e-3 for f in histories(mu, coins, p).values())


@pytest.mark.parametrize("phi", [1.05, 1.5, 4.0])
def test_adaptive_losses_switch_more_than_q_but_never_more_than_the_cap(phi: float) -> None:
    points, p = np.array([-1.0, 1.0]), 0.05
    switching, unclipped = 0.0, phi >= math.exp(2 * BETA)
    for x, chance in zip(points, (0.5, 0.5), strict=True):
        loss = np.sign(x) * points  # l_1 = sign(x_1) x
        weights = np.exp(-BETA * loss)
        coin = keep(loss, weights / weights.sum(), phi, 1)
        switching += chance * (1 - (1 - p) * coin[points == x][0])
    q, cap = 1 - (1 - p) / phi, 1 - (1 - p) / phi**2
    assert switching <= cap + 1e-12
    if unclipped:
        assert switching > q + 0.05  # so x_k ~ mu_k and the binomial law fail


@pytest.mark.parametrize(("seed", "draws"), CASES)
def test_switches_are_dominated_by_a_binomial(seed: int, draws: int) -> None:
    losses, mu = problem(seed)
    p, phi, n = 0.1, 1.3, len(losses)
    coins = [keep(loss, mu[k + 1], phi, draws) for k, loss in enumerate(losses)]
    counts = np.zeros(n + 1)
    for history, f in histories(mu, coins, p).items():
        counts[sum(history)] += f.sum()
    for j in range(1, n + 1):
        assert counts[j:].sum() <= stats.binom.sf(j - 1, n, 1 - (1 - p) / phi**2)


@pytest.mark.parametrize(("seed", "draws"), CASES)
def test_more_draws_clip_less(seed: int, draws: int) -> None:
    losses, mu = problem(seed)
    for k, loss in enumerate(losses):
        errors = []
        for m in (draws, draws + 1):
            upper = 0.0
            for ys in itertools.product(range(len(loss)), repeat=m):
                ratio = np.mean([np.exp(BETA * (loss[y] - loss)) for y in ys], axis=0)
                upper += np.prod(mu[k + 1][list(ys)]) * (mu[k] @ np.maximum(ratio / 1.2 - 1, 0))
            errors.append(upper)
        assert errors[1] <= errors[0] * (1 + 1e-12)


@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("phi", [1.1, 2.0])
def test_lazy_evaluation_keeps_the_law_and_the_cost(p: float, phi: float) -> None:
    floor = phi**-2
    event = 1 - (1 - p) * floor
    for clipped in np.linspace(floor, 1, 7):  # the value of the clip, given x and the y_i
        plain = (1 - p) * clipped
        late = (1 - event) + event * (1 - p / event) * (clipped - floor) / (1 - floor)
        assert late == pytest.approx(plain, abs=1e-14)
    for draws, n in itertools.product((1, 4), (1, 3)):
        # Draws: x_1, then per event 1 if forced, else draws and one more on a switch; the worst case always switches.
        worst = 1 + n * event * (p / event + (1 - p / event) * (draws + 1))
        assert worst == pytest.approx(1 + n * (p + (1 - p) * (1 - floor) * (draws + 1)))
    # Skipping: the gaps between events are geometric, so the set of event times is that of independent coins.
    n = 4
    for times in itertools.product((0, 1), repeat=n):
        chance, last = 1.0, 0
        for t in [i + 1 for i in range(n) if times[i]]:
            chance *= event * (1 - event) ** (t - last - 1)
            last = t
        chance *= (1 - event) ** (n - last)
        assert chance == pytest.approx(math.prod(event if s else 1 - event for s in times))
