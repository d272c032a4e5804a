"""Doubling experts: one expert for each block, drawn once from the block before; pure privacy without an end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Rows
from reticent.privacy._account import Statement, SystemAccount
from reticent.privacy._pure import PureAccount, flipped, pure_event
from reticent.saving import refuse_unless
from reticent.systems._checks import check_claim, check_horizon
from reticent.systems._decider import Changes, Decider
from reticent.systems._plan import SystemPlan, WithoutEnd
from reticent.systems._words import number
from reticent.systems.experts._hedge import ExpertsPlan, check_experts
from reticent.systems.experts._learner import ExpertsLearner, one_hot

_GRID = 20  # binary digits of a loss on the grid: sums of 2^40 rounds fit into 64 bits
_RATE = 32  # binary digits of the rate after the point
_LONGEST = 40  # doublings after which blocks grow no more: nobody gets there


@saved("plan of doubling experts")
@dataclass(frozen=True, kw_only=True)
class DoublingPlan(ExpertsPlan):
    """One expert for each block of rounds, blocks of `first`, 2 `first`, 4 `first`, ... rounds.

    The expert of a block is drawn at the end of the one before, from the losses of that block only: from a random order
    of the experts the first that a coin of chance exp(-rate (its loss - the least loss)/G) takes. Each round enters
    one draw, so a run is `rate * change/G`-private with delta = 0 for any number of rounds (docs/theory, R12). Losses
    are whole numbers on a public grid and the coins are exact.

    `regret_at` is for losses that are independent draws of one law; for others nothing is certified: somebody who knows
    the blocks makes every second round cost the most.

    >>> from reticent.domains import Experts
    >>> plan = plan_doubling(Experts(10), None, 1.0, epsilon=1.0)
    >>> plan.account().epsilon(0.0), round(plan.regret_at(10**6, gap=0.1), -1), plan.switches_at(10**6)
    (1.0, 1640.0, 19)
    """

    system: ClassVar[str] = _names.DOUBLING
    reference: ClassVar[str] = "after Cesari and Colomboni 2026; the draw: McKenna and Sheldon 2020"
    assumes: ClassVar[str] = "linear losses over experts that are independent draws of one law"

    horizon: int | None = field(kw_only=False)  # type: ignore[assignment]
    rate: float
    first: int = 1

    def _check(self) -> None:
        super()._check()
        self._set(rate=positive("rate", self.rate), first=integer("first", self.first, least=1))
        if math.ldexp(self.rate, _RATE) % 1:
            raise ValueError(
                f"rate must be a whole number of 2^-{_RATE}, so that coins are exact, got {self.rate!r}; "
                "plan_doubling rounds it"
            )

    def _check_horizon(self) -> int | None:
        return None if self.horizon is None else check_horizon(self.horizon)

    def _check_claim(self) -> None:
        if self.delta != 0:
            super()._check_claim()
            return
        if self.epsilon is None:
            raise ValueError(f"epsilon and delta go together, got epsilon=None and delta={self.delta!r}")
        self._set(epsilon=check_claim(self.epsilon, 0.5)[0], delta=0.0)
        if self._pure > self.epsilon:
            raise ValueError(f"epsilon must be at least {self._pure!r} for rate={self.rate!r}, got {self.epsilon!r}")

    @property
    def _pure(self) -> float:
        """The epsilon of the draws that the rounds of what is protected may enter: one, or those of a person."""
        return self.rate * (2.0 if self.neighbors == "replace" else 1.0) * self.at_stake

    def block(self, number: int) -> int:
        """Return the length of a block, counted from 0."""
        return self.first << min(number, _LONGEST)

    def switches_at(self, rounds: int) -> int:
        """Return how often the expert has changed after so many rounds, at most: once after each full block."""
        return (integer("rounds", rounds, least=0) // self.first + 1).bit_length() - 1

    def regret_at(self, rounds: int, gap: float = 0.0) -> float:
        """Return a bound on the expected regret after `rounds` rounds that are independent draws of one law.

        `gap` is by how much, a round, every expert but one loses more in the mean, where that is known and there are no
        ties (two experts that are equally good are a gap of 0); then the bound stays as rounds come, about
        G (log n)(8 G/gap + 4/rate) and the grid's part (docs/theory, R12).
        """
        self.check_certifies()
        T, G, n = integer("rounds", rounds, least=1), self.lipschitz, self.n
        least = max(0.0, positive("gap", gap, zero=True) / G - math.ldexp(1.0, -_GRID))
        total, begin, k = float(min(self.first, T)), self.first, 0
        while begin < T:
            length = min(self.block(k + 1), T - begin)
            total += length * _shortfall(n, self.block(k), self.rate, least)
            begin, k = begin + self.block(k + 1), k + 1
        luck = math.sqrt(2 * T * math.log(n))  # how far the best in hindsight is below the best in the mean
        if least > 0:
            luck = min(luck, (n - 1) / least * math.exp(-T * least**2 / 2))
        return G * min(float(T), total + luck + math.ldexp(T, -_GRID))

    @property
    def regret_bound(self) -> float | None:
        """The bound of docs/theory, R12, whatever the gaps are; None without a horizon: see `regret_at`."""
        return None if self.horizon is None else self.regret_at(self.horizon)

    @property
    def max_switches(self) -> int | None:
        """One change after each full block; without a horizon there is no cap."""
        return None if self.horizon is None else self.switches_at(self.horizon)

    @property
    def expected_switches(self) -> float | None:  # type: ignore[override]
        """The cap, over the horizon."""
        return None if self.horizon is None else float(self.switches_at(self.horizon))

    def statements(self, rounds: int | None) -> tuple[Statement, ...]:
        """Return that all draws together reveal what one of them does; nothing before the first."""
        return (flipped(self._revealed(rounds)),)

    def _revealed(self, rounds: int | None) -> float:
        return self._pure if rounds is None or rounds >= self.first else 0.0

    def account(self, rounds: int | None = None, method: str = "pld") -> SystemAccount:
        """Return what the first `rounds` rounds (any number, unless given) can reveal about any one of them."""
        count = self.horizon if rounds is None else integer("rounds", rounds, least=0)
        return PureAccount.of(count, self.neighbors, self._revealed(count))

    def dp_event(self) -> Any:
        """Return a Gaussian event that bounds what a run reveals, for dp_accounting's default relation.

        Pure privacy is stronger: compose epsilons by adding them where all others are pure too.
        """
        return pure_event(self._pure)

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return "none: any number of rounds" if self.horizon is None else super().horizon_in_words()

    def without_end(self) -> WithoutEnd:
        """Say what holds without a horizon."""
        often = "about log2(T): at most one after each block"
        lasting = "Each round enters one draw, so the promise holds for any number of rounds."
        if not self.certifies:
            return super().without_end()._replace(switches=often, privacy=lasting)
        return WithoutEnd(
            switches=often,
            regret=f"plan.regret_at(T, gap), {number(self.regret_at(10**6))} after a million rounds whatever the gap",
            privacy=lasting,
            quality="If losses are independent draws of one law, the regret after T rounds is at most "
            "plan.regret_at(T, gap) in the mean. Nothing is certified for other losses.",
        )

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        if self.horizon is None:
            return "At most once after each block, and blocks double: about log2(T) times in T rounds."
        return super().changes_in_words()

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        return (
            f"losses are of the kind that the method is for: {self.assumes} (privacy does not need that); sums are "
            "whole numbers and coins exact, so no rounding can tell on a round;"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        return (
            "Nothing but the trivial bound holds for losses that are chosen by someone, or whose law changes: the "
            "private dartboard has a certificate for those.",
            "Blocks are counted in rounds: a round that is left out or put in moves all later ones to other places, "
            "and no claim covers that. Rounds are replaced or zeroed, one by one.",
        )


def _shortfall(n: int, block: int, rate: float, gap: float) -> float:
    """Return by how much an expert drawn from a block is worse than the best in the mean, a round, at most.

    Sums over experts of x q(x), q(x) = exp(-block x^2/8) + exp(-rate block x/2), from the level y on, and y below it.
    """

    def beyond(y: Array) -> Array:
        noise, draw = 2 / math.sqrt(block), 2 / (rate * block)  # where x q(x) is largest, term by term
        a, b = np.maximum(y, noise), np.maximum(y, draw)
        found: Array = a * np.exp(-block * a**2 / 8) + b * np.exp(-rate * block * b / 2)
        return found

    levels = np.geomspace(1e-9, 1.0, 400)
    levels = levels[levels > gap]
    found = float((n - 1) * beyond(np.array([gap]))[0]) if gap > 0 else 1.0
    return min(1.0, found, float((levels + (n - 1) * beyond(levels)).min())) if levels.size else min(1.0, found)


def plan_doubling(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    epsilon: float,
    delta: float = 0.0,
    *,
    max_switches: int | None = None,
    neighbors: str = "replace",
) -> DoublingPlan:
    """Return doubling experts with pure privacy `epsilon`, with or without a horizon.

    A `delta` above 0 buys nothing here. With `max_switches`, which needs a horizon, the first block is so long that
    there are no more changes (a hard cap).

    >>> from reticent.domains import Experts
    >>> plan_doubling(Experts(5), 10_000, 1.0, epsilon=1.0, max_switches=5).first
    159
    """
    check_experts(domain)
    eps = check_claim(epsilon, 0.5)[0]
    if not 0 <= real("delta", delta) < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {delta!r}; 0 is pure privacy")
    first = 1
    if max_switches is not None:
        if horizon is None:
            raise ValueError(
                f"max_switches must be None for a plan without a horizon, got {max_switches!r}: blocks double for "
                "ever, with a change after each; give a horizon"
            )
        first = check_horizon(horizon) // ((2 << integer("max_switches", max_switches, least=0)) - 1) + 1
    steps = math.floor(math.ldexp(eps / (2.0 if neighbors == "replace" else 1.0), _RATE))
    rate = math.ldexp(steps, -_RATE)
    return DoublingPlan(
        domain, horizon, lipschitz, rate=rate, first=first, epsilon=eps, delta=float(delta), neighbors=neighbors
    )


@saved("doubling experts")
class DoublingExperts(ExpertsLearner):
    """Follows one expert through each block; blocks double, and each expert is drawn from the block before alone.

    Algorithm: the first expert is drawn uniformly; at the end of a block go through the experts in random order and
    take the first for which a coin of chance exp(-rate (its sum - the least sum)/G) says yes (permute and flip).
    Theorem: `rate * change/G`-private with delta = 0 for any number of rounds, also for losses that react to decisions,
    in machine arithmetic; for losses that are independent draws of one law expected regret is O(log(n)(1/gap + 1/rate))
    with about log2(T) changes (docs/theory, R12). Linear losses over experts, of range G.
    References: Cesari and Colomboni 2026 for the blocks; McKenna and Sheldon 2020 for the draw. Derived from these.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_doubling(rt.Experts(3), None, 1.0, epsilon=1.0)
    >>> learner = rt.learners.DoublingExperts(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.random.default_rng(0).random((10_000, 3)) * [1.0, 0.6, 0.9])
    >>> learner.expert, trace.switches < 14, learner.spent()
    (1, True, 1.0)
    """

    plan_type: ClassVar[type[SystemPlan]] = DoublingPlan

    def _new_walk(self) -> Decider:
        return Doubling(self.plan, self._rng)

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It is 0 until the first block is over, and the same ever after.
        """
        return float(self.plan.account(self._rounds).epsilon(self._level(delta)))

    def __repr__(self) -> str:
        """Say where the learner stands."""
        of = "" if self.plan.horizon is None else f" of {self.plan.horizon}"
        return f"<DoublingExperts {self.loss!r}: {self._rounds} rounds{of}, {self._switches} switches>"


@saved("walk of doubling experts")
class Doubling:
    """Adds up a block's losses in whole numbers, and draws the next expert at its end."""

    _moves: ClassVar[tuple[str, ...]] = ("done", "torn", "number", "end", "sums", "expert", "u")

    def __init__(self, plan: DoublingPlan, rng: np.random.Generator) -> None:
        """Draw the first expert, for which no loss has been seen."""
        self.plan, self.rng = plan, rng
        self.done, self.torn, self.frozen = 0, False, False
        self.number, self.end = 0, plan.block(0)
        self.sums = np.zeros(plan.n, dtype=np.int64)  # of the block that is not over: secret
        self.expert = int(rng.integers(plan.n))
        self.u: Array = one_hot(np.array([self.expert]), plan.n)[0]

    def _check_moved(self) -> None:
        plan = self.plan
        began = sum(plan.block(k) for k in range(min(self.number, self.done + 1)))  # a block has a round at least
        right = self.end == began + plan.block(self.number) and began <= self.done < self.end
        refuse_unless(right, f"its block does not end at round {self.end}, or round {self.done} is not in it")
        within = self.sums.min() >= 0 and self.sums.max() <= (self.done - began) << _GRID
        refuse_unless(bool(within), "its open block holds more than its rounds can have brought")
        there = 0 <= self.expert < plan.n and np.array_equal(self.u, one_hot(np.array([self.expert]), plan.n)[0])
        refuse_unless(there, f"it does not follow expert {self.expert} of {plan.n}")

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when the decision may change next: at the end of the block."""
        return self.end

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, and draw at the ends of blocks; changes of decision are added."""
        start = 0
        while start < len(rows):
            stop = min(len(rows), start + self.end - self.done)
            part = on_grid(rows.vectors[start:stop], self.plan.lipschitz).sum(axis=0)
            self.torn = True
            self.sums += part
            self.done += stop - start
            if self.done == self.end:
                self._draw(changes)
            self.torn = False
            start = stop

    def _draw(self, changes: Changes) -> None:
        steps = int(math.ldexp(self.plan.rate, _RATE))
        chosen = permute_and_flip(self.rng, (self.sums - self.sums.min()).tolist(), steps, _GRID + _RATE)
        self.sums = np.zeros_like(self.sums)
        self.number += 1
        self.end += self.plan.block(self.number)
        if chosen != self.expert:
            self.expert = chosen
            self.u = one_hot(np.array([chosen]), self.plan.n)[0]
            changes.add(self.done, self.u)


def on_grid(rows: Array, lipschitz: float) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return losses, of which the least of a row is 0, in whole 2^-20 of the largest that is allowed.

    A row by itself, and never above 2^20, whatever floating point does: so the sensitivity of sums is exact.

    >>> on_grid(np.array([[0.0, 0.5, 1.0], [0.0, 1e-9, 1.0000001]]), 1.0).tolist()
    [[0, 524288, 1048576], [0, 0, 1048576]]
    """
    steps = np.rint(rows * (math.ldexp(1.0, _GRID) / lipschitz))
    return np.clip(steps, 0.0, math.ldexp(1.0, _GRID)).astype(np.int64)


# The exact draw: whole numbers, uniform bits and comparisons.


def permute_and_flip(rng: np.random.Generator, above: list[int], steps: int, digits: int) -> int:
    """Return the first of a random order that a coin of chance exp(-steps * above/2^digits) takes (docs/theory, R12).

    One entry of `above` is 0, so that somebody is taken.
    """
    for i in rng.permutation(len(above)):
        if exponential_coin(rng, steps * above[i], digits):
            return int(i)
    raise AssertionError("nobody has the least loss")


def exponential_coin(rng: np.random.Generator, steps: int, digits: int) -> bool:
    """Return True with a chance of exactly exp(-steps/2^digits) (Canonne, Kamath and Steinke 2020).

    >>> rng = np.random.default_rng(0)
    >>> exponential_coin(rng, 0, 52), exponential_coin(rng, 1 << 80, 52)
    (True, False)
    """
    whole, part = steps >> digits, steps & ((1 << digits) - 1)
    for _ in range(whole):
        if not _short_coin(rng, 1 << digits, digits):
            return False
    return _short_coin(rng, part, digits)


def _short_coin(rng: np.random.Generator, part: int, digits: int) -> bool:
    """Return True with a chance of exp(-part/2^digits), part at most 2^digits.

    The chance that k coins of chances g, g/2, ..., g/k all say yes is g^k/k!; an even number of them has the chance
    exp(-g).
    """
    k = 1
    while int(rng.integers(0, 1 << digits)) < part and int(rng.integers(0, k)) == 0:
        k += 1
    return k % 2 == 1
