"""Plans of noisy descent in blocks, with or without a horizon, and their planner (docs/theory, R8)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_body, check_firm, check_target, least_batch
from reticent.systems._goal import Goal, System
from reticent.systems._persons import check_cap
from reticent.systems._plan import WithoutEnd
from reticent.systems._words import number
from reticent.systems.gate._base import GatePlan, blocks_of, level_for, refuse_clock
from reticent.systems.gate._release import BlockRelease

_TRIED = 400  # lengths of blocks that a search looks at: all of those around the best one unless there are more


@saved("plan of noisy descent")
@dataclass(frozen=True, kw_only=True)
class NoisyDescentPlan(GatePlan):
    """Dual averaging on block sums of gradients that are released once each, with noise of deviation `sigma`.

    After every `batch` rounds h_k = (sum of the block's gradients at the decision in play, in integers on a public
    grid) + rounded normal noise is released; the next decision is the point of the body nearest to
    -(h_1 + ... + h_k)/lam. Each round enters one release, so a run is mu-GDP for any number of rounds (docs/theory,
    R8). With `horizon=None` there is no `lam`: it is sqrt(2 k V)/R in block k, V = batch^2 G^2 + d sigma^2, and
    `regret_at(T)` holds for every T. `regret_bound` is for losses that are fixed in advance;
    `reacting_regret_bound` for those that react.

    >>> from reticent.domains import Ball
    >>> plan = NoisyDescentPlan(Ball(2), 1000, 1.0, sigma=8.0, batch=10, lam=450.0)
    >>> plan.mu(), plan.mu(9), plan.max_switches
    (0.25, 0.0, 100)
    """

    system: ClassVar[str] = _names.NOISY_DESCENT
    reference: ClassVar[str] = (
        "noisy steps in one pass: Song, Chaudhuri and Sarwate 2013; dual averaging: Nesterov 2009, Xiao 2010"
    )

    sigma: float
    lam: float | None = None

    def _check(self) -> None:
        super()._check()
        self._set(sigma=positive("sigma", self.sigma))
        if (self.lam is None) != (self.horizon is None):
            raise ValueError(
                f"lam must be given for a plan with a horizon, and only for that, got lam={self.lam!r} and "
                f"horizon={self.horizon!r}; use plan_noisy_descent, which finds the best"
            )
        if self.lam is not None:
            self._set(lam=check_firm("lam", self.lam, self.domain, self.lipschitz))
        self.release()  # refuses numbers for which there is no grid

    def release(self) -> BlockRelease:
        """Return the mechanism that releases the blocks."""
        return BlockRelease(self.lipschitz, self.sigma, self.grid_rows, self.domain.chart_dim)

    def block_end(self, rounds: int) -> int:
        """Return the first end of a block at which at least so many rounds are over."""
        return -(-rounds // self.batch) * self.batch

    def block_start(self, rounds: int) -> int:
        """Return after how many rounds the block began that is open when so many are over."""
        return rounds // self.batch * self.batch

    @property
    def spread(self) -> float:
        """The bound V on the mean square of a release: batch^2 G^2 + d sigma^2."""
        return _spread(self.release(), self.batch)

    def lam_of(self, block: int) -> float:
        """Return the regulariser of the decision in block number `block`, counted from 1."""
        if self.lam is not None:
            return self.lam
        return self.first_lam * math.sqrt(block)

    @property
    def first_lam(self) -> float:
        """The regulariser of the first block, sqrt(2 V)/R without a horizon; it grows as the square root from there."""
        return math.sqrt(2 * self.spread) / self.domain.radius if self.lam is None else self.lam

    def regret_at(self, rounds: int) -> float:
        """Return the bound on the expected regret after `rounds` rounds, for losses fixed in advance (docs/theory, R8).

        >>> from reticent.domains import Ball
        >>> plan = plan_noisy_descent(Ball(10), None, 1.0, 1.0, 1e-6)
        >>> round(plan.regret_at(10**6) / plan_noisy_descent(Ball(10), 10**6, 1.0, 1.0, 1e-6).regret_bound, 2)
        1.41
        """
        self.check_certifies()
        return _regret(self.domain, self.release(), integer("rounds", rounds, least=1), self.lam)

    def reacting_regret_at(self, rounds: int) -> float:
        """Return the bound after `rounds` rounds for losses that may react to decisions: R sigma sqrt(k d) is added.

        k is the number of releases that decisions in these rounds have used.
        """
        release, T = self.release(), integer("rounds", rounds, least=1)
        used = (T - 1) // self.batch
        return self.regret_at(T) + self.domain.radius * release.deviation * math.sqrt(used * release.dim)

    @property
    def regret_bound(self) -> float | None:
        """The bound of docs/theory, R8, for losses fixed in advance; None without a horizon: see `regret_at`."""
        return None if self.horizon is None else self.regret_at(self.horizon)

    @property
    def reacting_regret_bound(self) -> float | None:
        """The bound for losses that react to decisions; None without a horizon: see `reacting_regret_at`."""
        return None if self.horizon is None or not self.certifies else self.reacting_regret_at(self.horizon)

    @property
    def max_switches(self) -> int | None:
        """One change after each full block; without a horizon there is no cap."""
        return None if self.horizon is None else self.horizon // self.batch

    @property
    def level(self) -> float:
        """The mu of one release, and of all; for persons, of as many releases as their rows may be in."""
        return self.change * math.sqrt(self.at_stake) / self.sigma

    def without_bound(self) -> str:
        """Say why nothing is certified."""
        return "Nothing is proved of the decisions: blocks end by a clock, or rows of persons are left out or clipped."

    def without_end(self) -> WithoutEnd:
        """Say what holds without a horizon."""
        if not self.certifies:
            often = "at most one for each block" if self.clock else f"at most one in {number(self.batch)} rounds"
            return WithoutEnd(often, "none", "It holds for any number of rounds.", self.without_bound())
        scale = self.regret_at(10**6 * self.batch) / math.sqrt(10**6 * self.batch)
        return WithoutEnd(
            switches=f"at most one in {number(self.batch)} rounds",
            regret=f"plan.regret_at(T), about {number(scale)} sqrt(T), in expectation, for losses that do not depend "
            "on the decisions",
            privacy="Each round enters one release, so the promise holds for any number of rounds.",
            quality="Against the best fixed decision in hindsight, the decisions cost at most plan.regret_at(T) more "
            f"over the first T rounds, whatever T is: about {scale:.4g} sqrt(T). {self.losses_in_words()}",
        )

    def losses_in_words(self) -> str:
        """Say for which losses the regret bound holds, and what holds for others."""
        also = "plan.reacting_regret_at(T)"
        if self.reacting_regret_bound is not None:
            also = f"{number(self.reacting_regret_bound)} (plan.reacting_regret_bound)"
        return f"{super().losses_in_words()} For losses that react the bound is {also}."


def _best(domain: Domain, rounds: int, release: BlockRelease) -> tuple[float, int, float]:
    """Return the lowest bound with these blocks, their length, and the regulariser that has it."""
    lam = math.sqrt(_squares(release, rounds)) / domain.radius
    return _regret(domain, release, rounds, lam), release.block, lam


def _squares(release: BlockRelease, rounds: int) -> float:
    """Return a bound on the sum of the mean squares of the blocks as decisions use them: the last without noise."""
    used = (rounds - 1) // release.block
    return release.clip**2 * block_squares(rounds, release.block) + used * release.dim * release.deviation**2


def _spread(release: BlockRelease, rows: int) -> float:
    return (rows * release.clip) ** 2 + release.dim * release.deviation**2


def _regret(domain: Domain, release: BlockRelease, rounds: int, lam: float | None) -> float:
    """Return the bound of docs/theory, R8, after so many rounds; `lam` None is the one that grows with the blocks."""
    R, W, G = domain.radius, release.block, release.clip
    drift = release.error * domain.diameter * rounds  # rows are rounded to the grid
    played = -(-rounds // W)  # blocks in which a decision was in play; the noise of the last has not been used
    if played == 1:
        return G * R * rounds  # the centre was in play all the time
    if lam is not None:
        return lam * R**2 / 2 + _squares(release, rounds) / (2 * lam) + drift
    V = _spread(release, W)
    last = math.sqrt(2 * played * V) / R
    # The sum of k^(-1/2) for k below `played` is at most 2 sqrt(played - 1) - 1.
    earlier = R * math.sqrt(V / 8) * (2 * math.sqrt(played - 1) - 1)
    return last * R**2 / 2 + earlier + (G * (rounds - (played - 1) * W)) ** 2 / (2 * last) + drift


def plan_noisy_descent(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    max_switches: int | None = None,
    neighbors: str = "replace",
    max_rows: int | None = None,
    window: int | None = None,
    clock: int | None = None,
) -> NoisyDescentPlan:
    """Return noisy descent with the length of blocks, and the regulariser, that have the lowest certificate.

    Without `max_switches` blocks are about sqrt(d) sigma/G rounds long; with it, at least so long that there are no
    more changes (a hard cap). `horizon=None` plans for any number of rounds: no epochs, one account. `max_rows`,
    `window` and `clock` are as for `rt.private_learner`; with them nothing is certified of decisions.

    >>> from reticent.domains import Ball
    >>> plan = plan_noisy_descent(Ball(10), 10**6, 1.0, epsilon=1.0, delta=1e-6)
    >>> round(plan.regret_bound / 10**6, 4), plan.max_switches
    (0.0073, 37037)
    """
    check_body(domain)
    target = check_target(domain, 1 if horizon is None else horizon, lipschitz, epsilon, delta, neighbors)
    change = 2 * target.lipschitz if neighbors == "replace" else target.lipschitz
    cap = check_cap(max_rows, window)
    sigma = change * math.sqrt(1 if cap is None else cap.at_stake) / level_for(target, max_rows)
    claim: dict[str, Any] = {"epsilon": target.epsilon, "delta": target.delta, "neighbors": neighbors}
    claim |= {"max_rows": max_rows, "window": window}
    d, G = domain.chart_dim, target.lipschitz
    around = math.sqrt(d) * sigma / G
    if horizon is None:
        if max_switches is not None:
            raise ValueError(
                f"max_switches must be None for a plan without a horizon, got {max_switches!r}: the decision may "
                "change at the end of every block, for ever; give a horizon"
            )
        # The bound grows as sqrt(T V/batch), but for the rounding of rows.
        batch = min(_lengths(around), key=lambda W: _spread(BlockRelease(G, sigma, W, d), W) / W)
        return NoisyDescentPlan(domain, None, G, sigma=sigma, **claim, **blocks_of(clock, batch))
    if clock is not None:
        refuse_clock(clock, horizon)
    T = target.horizon
    least = least_batch(T, max_switches)
    tried = {min(W, T) for W in _lengths(around)} | {least}
    # Of all lengths with the same number of blocks the shortest is best.
    tried |= {-(-T // -(-T // W)) for W in tried}
    _, batch, lam = min(_best(domain, T, BlockRelease(G, sigma, W, d)) for W in tried if least <= W)
    return NoisyDescentPlan(domain, T, G, sigma=sigma, batch=batch, lam=lam, **claim)


def _lengths(around: float) -> list[int]:
    """Return lengths of blocks from half to twice the one that is best in real numbers; all, or many of them."""
    low, high = max(1, math.floor(around / 2)), max(2, math.ceil(2 * around))
    if high - low <= _TRIED:
        return list(range(low, high + 1))
    return sorted({round(x) for x in np.geomspace(low, high, _TRIED)})


def _noisy(goal: Goal) -> NoisyDescentPlan:
    return plan_noisy_descent(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


SYSTEMS = (System(NoisyDescentPlan.system, _noisy, private=True, lazy=True),)
