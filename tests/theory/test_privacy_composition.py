"""Q4, Q7, Q9: whole transcripts, every outcome and every adaptive adversary, against products of fixed pairs."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from grid import Grid
from scipy.special import ndtr, ndtri

Pair = tuple[tuple[float, ...], tuple[float, ...]]


def gauss(eps: np.ndarray | float, s: float) -> np.ndarray:
    """The hockey-stick curve of N(0, 1) and N(s, 1) at alpha = e^eps."""
    if s == 0:
        return np.maximum(1 - np.exp(eps), 0)
    return ndtr(s / 2 - eps / s) - np.exp(eps) * ndtr(-s / 2 - eps / s)


def rises(p: float, eta: float) -> float:
    return 1 - (1 - p) * math.exp(-eta)


def ternary(p: float, eta: float) -> Pair:
    up = rises(p, eta)
    low, high = (p, up) if p + up <= 1 else (1 - up, 1 - p)
    return (low, high, 1 - low - high), (high, low, 1 - low - high)


def both_ways(p: float, eta: float) -> tuple[Pair, Pair]:
    up = rises(p, eta)
    one, two = (p, 1 - p), (up, 1 - up)
    return (one, two), (two, one)


def product(pairs: list[Pair], s: float, alpha: float) -> float:
    """H_alpha of the product of finite pairs and a Gaussian pair with shift s: exact, outcome by outcome."""
    total = 0.0
    for outcome in itertools.product(*(range(len(pair[0])) for pair in pairs)):
        one = math.prod(pair[0][i] for pair, i in zip(pairs, outcome, strict=True))
        two = math.prod(pair[1][i] for pair, i in zip(pairs, outcome, strict=True))
        if one > 0:
            ratio = alpha * two / one
            total += one * (float(gauss(math.log(ratio), s)) if ratio > 0 else 1.0)
    return total


# --- the composition lemma itself: extreme pairs, adaptive order and directions --------------------------------------


def game(kinds: list[tuple[Pair, ...]], counts: tuple[int, ...], alpha: float) -> float:
    """The value of the game in which an adversary picks, step by step, a kind that is left and a pair of that kind."""

    @cache
    def value(left: tuple[int, ...], level: float) -> float:
        alpha = math.exp(level)
        best = max(1 - alpha, 0.0)
        for j, count in enumerate(left):
            if count == 0:
                continue
            less = (*left[:j], count - 1, *left[j + 1 :])
            for one, two in kinds[j]:
                parts = (
                    a * (value(less, round(level + math.log(b / a), 12)) if b > 0 else 1.0)
                    for a, b in zip(one, two, strict=True)
                    if a > 0
                )
                best = max(best, sum(parts))
        return best

    return value(counts, round(math.log(alpha), 12))


def binned(s: float) -> tuple[Pair, Pair]:
    """A Gaussian pair seen through five cells, both ways."""
    cuts = s / 2 + np.array([-np.inf, -1.5, -0.5, 0.5, 1.5, np.inf])
    one, two = tuple(np.diff(ndtr(cuts))), tuple(np.diff(ndtr(cuts - s)))
    return (one, two), (two, one)


ALPHAS = [0.7, 1.0, 1.05, 1.2, 1.5, 2.0, 3.0]


@pytest.mark.parametrize(
    ("p", "eta", "eta_0", "s"), [(0.1, 0.05, 0.6, 0.3), (0.3, 0.3, 1.0, 0.1), (0.7, 0.2, 0.5, 0.2)]
)
def test_adaptive_order_and_directions_cost_nothing(p: float, eta: float, eta_0: float, s: float) -> None:
    draws, coins, special = binned(s), both_ways(p, eta), both_ways(p, eta_0)
    for alpha in ALPHAS:
        free = game([draws, coins, special], (2, 2, 1), alpha)
        pairs = [draws[0]] * 2 + [ternary(p, eta)] * 2 + [ternary(p, eta_0)]
        assert free <= product(pairs, 0.0, alpha) + 1e-12
        # The special coin comes first, so its direction is fixed given the prefix: the larger of two products (Q4d).
        first = max(
            sum(a * game([draws, coins], (2, 2), alpha * b / a) for a, b in zip(*way, strict=True)) for way in special
        )
        sharp = max(product([*pairs[:-1], way], 0.0, alpha) for way in special)
        assert first <= sharp + 1e-12
        assert sharp <= product(pairs, 0.0, alpha) + 1e-12
        # Gaussian domination of every coin (Q10) is valid too.
        g, g_0 = (ndtri(rises(p, e)) - ndtri(p) for e in (eta, eta_0))
        assert free <= gauss(math.log(alpha), math.sqrt(2 * s**2 + 2 * g**2 + g_0**2)) + 1e-12


def test_wrong_counts_are_caught() -> None:
    p, eta, eta_0, s = 0.3, 0.3, 1.0, 0.4
    draws, coins, special = binned(s), both_ways(p, eta), both_ways(p, eta_0)
    truth = np.array([game([draws, coins, special], (2, 2, 1), alpha) for alpha in ALPHAS])

    def bound(m: int, eta: float, extra: list[Pair]) -> np.ndarray:
        pairs = [draws[0]] * m + [ternary(p, eta)] * 2 + extra
        return np.array([product(pairs, 0.0, alpha) for alpha in ALPHAS])

    right = [ternary(p, eta_0)]
    assert np.all(truth <= bound(2, eta, right) + 1e-12)
    assert np.any(truth > bound(2, eta, []) + 1e-3)  # the special coin left out
    assert np.any(truth > bound(1, eta, right) + 1e-3)  # B - 1 draws
    assert np.any(truth > bound(2, eta / 2, right) + 1e-3)  # eta / 2
    assert np.any(truth > bound(2, eta, [ternary(p, eta)]) + 1e-3)  # the special coin taken for a later one


@pytest.mark.parametrize(("p", "eta", "n"), [(0.1, 0.05, 3), (0.3, 0.3, 4), (0.02, 0.1, 4)])
def test_an_alternating_adversary_beats_both_fixed_directions(p: float, eta: float, n: int) -> None:
    ways = both_ways(p, eta)
    gain = []
    for alpha in np.exp(np.linspace(0, n * eta, 25)):
        value = game([ways], (n,), float(alpha))
        fixed = max(product([way] * n, 0.0, float(alpha)) for way in ways)
        gain.append(value - fixed)
        assert value <= product([ternary(p, eta)] * n, 0.0, float(alpha)) + 1e-12
    assert min(gain) >= -1e-12
    assert max(gain) > 1e-4 * eta


def test_blocks_of_the_game_may_be_composed() -> None:
    """Q9c: the value of n1 + n2 coins is at most the product of the two blocks' curves, and of the ternary pairs."""
    p, eta = 0.15, 0.2
    ways = both_ways(p, eta)
    grid = np.exp(np.linspace(-4, 4, 4001))
    block = np.array([game([ways], (2,), float(a)) for a in grid])
    # A pair with that curve: second differences of the convex curve are its masses.
    slopes = np.diff(block) / np.diff(grid)
    two = np.diff(slopes, prepend=-1.0, append=0.0)  # Q-mass of the ratio P/Q at the grid points
    assert two.min() >= -1e-9
    for alpha in (1.0, 1.1, 1.4):
        four = game([ways], (4,), alpha)
        composed = sum(m * t * game([ways], (2,), alpha / t) for t, m in zip(grid, two, strict=True) if m > 1e-13)
        assert four <= composed + 1e-6
        assert composed <= product([ternary(p, eta)] * 4, 0.0, alpha) + 1e-3


# --- the mechanism: an interval, two and three coins -----------------------------------------------------------------


class Mechanism(Grid):
    """P-COMW on a fine grid of [-R, R], b = 1 and M = 1, and the best adaptive adversary from finitely many losses."""

    def __init__(self, beta: float, lam: float, phi: float, p: float, radius: float = 1.0, points: int = 60) -> None:
        super().__init__(beta, lam, phi, p, radius, points)
        self.losses = [self.x, -self.x, np.abs(self.x - radius / 3), 0 * self.x]

    def step(
        self,
        at: np.ndarray,
        alpha: np.ndarray,
        ones: tuple[np.ndarray, np.ndarray],
        worlds: list[np.ndarray],
        left: int,
        budget: int,
    ) -> np.ndarray:
        """Toss a coin (and draw) in both worlds, then play on: the hockey stick from each (x, alpha)."""
        mu, nu = (self.law(total) for total in worlds)
        c, d = (self.stay(loss, m)[at] for loss, m in zip(ones, (mu, nu), strict=True))
        kept = c * self.play(at, alpha * d / np.maximum(c, 1e-300), worlds, left - 1, budget)
        u, v = 1 - c, 1 - d
        levels = (alpha * v / u)[:, None] * (nu / mu)[None, :]
        everywhere = np.broadcast_to(np.arange(len(self.x)), levels.shape)
        drawn = self.play(everywhere.ravel(), levels.ravel(), worlds, left - 1, budget - 1).reshape(levels.shape)
        return kept + u * (drawn @ mu)

    def play(self, at: np.ndarray, alpha: np.ndarray, worlds: list[np.ndarray], left: int, budget: int) -> np.ndarray:
        if left == 0 or budget == 0:
            return np.maximum(1 - alpha, 0)
        best = np.zeros(len(at))
        for loss in self.losses[:3]:
            moved = [total + loss for total in worlds]
            best = np.maximum(best, self.step(at, alpha, (loss, loss), moved, left, budget))
        return best

    def challenge(self, start: int, alpha: float, coins: int, budget: int, zero_out: bool = False) -> float:
        """The worst case over pairs l, l' given the released prefix x_1."""
        best = 0.0
        pairs = itertools.permutations(self.losses[:3], 2)
        if zero_out:
            pairs = (way for loss in self.losses[:3] for way in ((loss, self.losses[3]), (self.losses[3], loss)))
        for one, two in pairs:
            value = self.step(np.array([start]), np.array([alpha]), (one, two), [one, two], coins, budget)
            best = max(best, float(value[0]))
        return best


CASES = [
    # beta, lam, phi, p, radius, coins, budget
    (1.0, 30.0, 1.4, 0.10, 1.0, 2, 2),
    (1.0, 30.0, 3.0, 0.05, 1.0, 2, 1),
    (0.3, 2.0, 1.1, 0.5, 3.0, 2, 2),
    (0.5, 4.0, 1.5, 0.02, 2.0, 2, 2),
]


def certificate(m: Mechanism, alpha: float, delta: float, coins: int, draws: int, halve: float = 1.0) -> float:
    """Q4 with b = 1, G = 1: s, eta and eta_0 of the interval."""
    wide = 2 * (m.x[-1] + (m.x[1] - m.x[0]) / 2)
    s = delta * math.sqrt(m.beta / m.lam)
    eta = min(2 * math.log(m.phi), m.beta * min(delta / m.lam, wide)) * halve
    eta_0 = min(2 * math.log(m.phi), m.beta * delta * wide)
    ways = both_ways(m.p, eta_0)
    later = [ternary(m.p, eta)] * (coins - 1)
    return max(product([way, *later], s * math.sqrt(draws), alpha) for way in ways)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("zero_out", [False, True])
def test_transcripts_stay_below_the_certificate(case: tuple[float, ...], zero_out: bool) -> None:
    beta, lam, phi, p, radius, coins, budget = case
    m = Mechanism(beta, lam, phi, p, radius)
    worst = 0.0
    for alpha in (1.0, 1.2, 1.6, 2.5):
        bound = certificate(m, alpha, 1.0 if zero_out else 2.0, int(coins), int(budget))
        for start in (0, 20, 59):  # given every prefix: no average over x_1
            truth = m.challenge(start, alpha, int(coins), int(budget), zero_out)
            assert truth <= bound + 1e-9
            worst = max(worst, truth / bound)
    assert worst > 0.3  # the bound is not empty


def test_three_coins_with_every_adaptive_adversary() -> None:
    m = Mechanism(0.6, 6.0, 1.6, 0.1, 1.0, points=24)
    for alpha in (1.1, 1.8):
        bound = certificate(m, alpha, 2.0, 3, 2)
        assert max(m.challenge(start, alpha, 3, 2) for start in (0, 23)) <= bound


def test_a_special_coin_left_out_is_caught_in_the_mechanism() -> None:
    m = Mechanism(1.0, 60.0, 8.0, 0.02)
    alpha = 2.0
    truth = max(m.challenge(start, alpha, 2, 2) for start in (0, 59))
    s, eta = 2 * math.sqrt(1 / 60), 2 / 60
    assert truth > product([ternary(0.02, eta)] * 2, s * math.sqrt(2), alpha) + 0.05
    assert truth <= certificate(m, alpha, 2.0, 2, 2)


def test_a_draw_too_few_is_caught_in_the_mechanism() -> None:
    m = Mechanism(0.5, 1.0, 1.5, 1.0, radius=9.0, points=400)  # p = 1: draws only, on a wide body
    alpha, s = 1.5, 2 * math.sqrt(0.5)
    value = m.step(np.array([0]), np.array([alpha]), (m.x, -m.x), [m.x, -m.x], 1, 2)
    assert value[0] == pytest.approx(gauss(math.log(alpha), s), abs=1e-4)
    m = Mechanism(0.5, 1.0, 1.5, 1.0, radius=9.0, points=150)
    two = float(m.step(np.array([0]), np.array([alpha]), (m.x, -m.x), [m.x, -m.x], 2, 2)[0])
    assert two == pytest.approx(gauss(math.log(alpha), s * math.sqrt(2)), abs=2e-3)
    assert two > gauss(math.log(alpha), s) + 0.1


# --- Renyi version ---------------------------------------------------------------------------------------------------


def moment(pair: Pair, order: float) -> float:
    return sum(a**order * b ** (1 - order) for a, b in zip(*pair, strict=True))


@pytest.mark.parametrize(("p", "eta", "eta_0", "s"), [(0.1, 0.05, 0.6, 0.3), (0.4, 0.3, 1.0, 0.5)])
def test_renyi_lies_above_the_game(p: float, eta: float, eta_0: float, s: float) -> None:
    coins, special = both_ways(p, eta), both_ways(p, eta_0)
    assert all(
        moment(ternary(p, e), a) >= moment(w, a) for e in (eta, eta_0) for w in both_ways(p, e) for a in (1.5, 4)
    )
    for alpha in (1.5, 2.0, 3.0):
        bounds = []
        for order in 1 + np.exp(np.linspace(-2, 5, 60)):
            log_moment = order * (order - 1) * 2 * s**2 / 2
            log_moment += 2 * math.log(max(moment(w, order) for w in coins))
            log_moment += math.log(max(moment(w, order) for w in special))
            power = log_moment - (order - 1) * math.log(alpha) - math.log(order) + (order - 1) * math.log1p(-1 / order)
            bounds.append(math.exp(min(power, 0.0)))
        assert game([binned(s), coins, special], (2, 2, 1), alpha) <= min(bounds)


# --- stopping times (Q7) ---------------------------------------------------------------------------------------------


def test_the_odometer_does_not_hold_at_stopping_times_chosen_from_the_output() -> None:
    """eps_m has H = delta at each fixed m; stopping where the loss has passed eps_m collects more than delta."""
    high, n, delta = 0.6, 7, 0.05
    pair: Pair = ((high, 1 - high), (1 - high, high))
    eps = []
    for m in range(1, n + 1):
        low, top = 0.0, 5.0
        for _ in range(50):
            mid = (low + top) / 2
            low, top = (mid, top) if product([pair] * m, 0.0, math.exp(mid)) > delta else (low, mid)
        eps.append(top)
    assert eps == sorted(eps)

    def best(m: int, loss: int) -> float:
        """Stop at m, or go on, whichever collects more of P - e^{eps_tau} Q; loss in units of log(high / low)."""
        ratio = (high / (1 - high)) ** loss
        stop = max(1 - math.exp(eps[m - 1]) / ratio, 0.0) if m else 0.0
        return stop if m == n else max(stop, high * best(m + 1, loss + 1) + (1 - high) * best(m + 1, loss - 1))

    assert best(0, 0) > 1.3 * delta
    # What does hold: whatever the rule, the certificate of the last time it may choose.
    level = math.exp(eps[-1])
    stopped = 0.0
    for path in itertools.product((0, 1), repeat=n):
        for m in range(1, n + 1):
            one, two = (math.prod(side[i] for i in path[:m]) for side in pair)
            if one > level * two or m == n:
                stopped += math.prod(pair[0][i] for i in path) * max(1 - level * two / one, 0.0)
                break
    assert stopped <= delta + 1e-9
