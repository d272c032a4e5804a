"""Plans of the filtered gate: epochs of correlated noise, each round used once, for ever (docs/theory, R10)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, ClassVar

from reticent._core import _names
from reticent._core._check import integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import GeneralisedLinear, Loss
from reticent.systems._checks import check_body, check_target
from reticent.systems._goal import Goal, System
from reticent.systems._persons import check_cap
from reticent.systems._plan import WithoutEnd
from reticent.systems._words import number
from reticent.systems.filtered._buffers import TABLE
from reticent.systems.filtered._release import EpochRelease
from reticent.systems.gate import GatePlan, plan_noisy_descent
from reticent.systems.gate._base import blocks_of, level_for, refuse_clock

BLOCK = 2.0
"""Rounds of the first blocks, in units of sqrt(dim) times change/mu: where noise and gradients are about as large."""
LONGER = 1.4
"""How much longer blocks are in every next epoch."""
SMOOTH_CLIP = 0.5
"""Where gradients of smooth losses are clipped, in units of the Lipschitz constant: slopes are rarely near it, and
noise is added for what is clipped to. Chosen on synthetic streams (bench/constants.py)."""
_LENGTHS = sorted(TABLE)


@saved("epoch of the filtered gate")
@dataclass(frozen=True)
class Epoch:
    """So many blocks of so many rounds each, from round `start` on (counted from 0)."""

    number: int
    start: int
    blocks: int
    block: int

    @property
    def end(self) -> int:
        """The rounds that are over when the epoch is."""
        return self.start + self.blocks * self.block


def _epochs(batch: int, longer: float = LONGER) -> Iterator[Epoch]:
    """Go through the epochs of a plan whose first blocks have `batch` rounds, without an end."""
    last, start = len(_LENGTHS) - 1, 0
    for k in count():
        found = Epoch(k, start, _LENGTHS[min(k, last)], round(batch * longer ** min(k, last)))
        yield found
        start = found.end


def blocks_in(rounds: int, batch: int) -> int:
    """Return how many blocks are over after so many rounds: a decision has changed so often at most.

    >>> blocks_in(79, 10), blocks_in(94, 10)
    (7, 9)
    """
    over = 0
    for epoch in _epochs(batch):
        if epoch.end > rounds:
            break
        over += epoch.blocks
    return over + (rounds - epoch.start) // epoch.block


@saved("plan of the filtered gate")
@dataclass(frozen=True, kw_only=True)
class FilteredPlan(GatePlan):
    """A filter's decisions from block sums of gradients, released with correlated noise in epochs that do not compose.

    Gradients are clipped to `clip`; the first blocks have `batch` rounds. Epochs have 8, 16, 32, ... and at last 4096
    blocks, each 1.4 times as long as in the epoch before. In an epoch, sums are mixed with those before them and
    released with noise of `noise` times what one round can move them by: a run is (1/noise)-GDP for any number of
    rounds (docs/theory, R10). What decisions cost is measured, not certified.

    >>> from reticent.domains import Ball
    >>> plan = FilteredPlan(Ball(2), 1000, 1.0, noise=4.0, clip=0.5, batch=10)
    >>> plan.mu(), plan.mu(9), plan.max_switches, plan.epoch(1)
    (0.25, 0.0, 58, Epoch(number=1, start=80, blocks=16, block=14))
    """

    system: ClassVar[str] = _names.FILTERED
    reference: ClassVar[str] = "correlated noise: Denisov et al. 2022, Dvijotham et al. 2024; filters: Kalman 1960"

    noise: float
    clip: float

    def _check(self) -> None:
        super()._check()
        self._set(noise=positive("noise", self.noise), clip=positive("clip", self.clip))
        if self.clip > self.lipschitz:
            raise ValueError(f"clip must be at most lipschitz={self.lipschitz:g}, got {self.clip!r}")
        steep = self.lipschitz / self.domain.radius
        if not 1e-60 <= steep <= 1e60:
            raise ValueError(f"lipschitz/radius must be from 1e-60 to 1e60, got {steep:.3g}; choose other units")
        for epoch in self._epochs():
            if epoch.number == len(_LENGTHS) or (self.horizon is not None and epoch.start >= self.horizon):
                break
            self.release(epoch)  # refuses numbers for which there is no grid

    @property
    def level(self) -> float:
        """The mu of an epoch's releases together, and of all."""
        return 1 / self.noise

    def epoch(self, k: int) -> Epoch:
        """Return epoch number k, counted from 0."""
        return next(islice(self._epochs(), integer("k", k, least=0), None))

    def _epochs(self) -> Iterator[Epoch]:
        """Go through all epochs; on a clock they are counted in blocks."""
        return _epochs(1, 1.0) if self.clock else _epochs(self.batch)

    def _epoch_at(self, rounds: int) -> Epoch:
        """Return the epoch in which rounds come when so many are over."""
        return next(epoch for epoch in self._epochs() if rounds < epoch.end)

    def block_end(self, rounds: int) -> int:
        """Return the first end of a block at which at least so many rounds are over."""
        epoch = self._epoch_at(max(rounds - 1, 0))
        return epoch.start - (epoch.start - rounds) // epoch.block * epoch.block

    def block_start(self, rounds: int) -> int:
        """Return after how many rounds the block began that is open when so many are over."""
        epoch = self._epoch_at(rounds)
        return epoch.start + (rounds - epoch.start) // epoch.block * epoch.block

    def release(self, epoch: Epoch) -> EpochRelease:
        """Return the mechanism of an epoch."""
        # On a clock a row may be left out of one epoch and put into another, like a person with one row.
        change, rows = self.change / self.lipschitz, self.at_stake if self.clock or self.max_rows is not None else None
        block = self.most_rows if self.clock else epoch.block
        return EpochRelease(self.clip, self.noise, block, epoch.blocks, self.domain.chart_dim, change, rows)

    @property
    def regret_bound(self) -> float | None:
        """None: no bound is proved but the one that any decisions have."""
        return None

    @property
    def max_switches(self) -> int | None:
        """One change after each full block; without a horizon there is no cap."""
        return None if self.horizon is None else blocks_in(self.horizon, self.batch)

    def without_bound(self) -> str:
        """Say that nothing is certified of decisions, and what is of others."""
        said = "Nothing is proved of the decisions but what holds for any: they were measured on many streams instead."
        if self.epsilon is None or self.delta is None:
            return said
        goal = self.horizon, self.lipschitz, self.epsilon, self.delta
        if not self.certifies:
            return said
        other = plan_noisy_descent(self.domain, *goal, neighbors=self.neighbors)
        bound = "plan.regret_at(T)" if other.regret_bound is None else f"{other.regret_bound:,.6g}"
        return (
            f"{said} For a certificate at the same epsilon take rt.planning.plan_descent(..., epsilon=, delta=), whose "
            f"regret is at most {bound} in expectation."
        )

    def without_end(self) -> WithoutEnd:
        """Say what holds without a horizon."""
        often = f"at most one in {number(self.batch)} rounds, and ever fewer"
        return WithoutEnd(
            switches="at most one for each block" if self.clock else often,
            regret="none: decisions are measured, not certified",
            privacy="Each round enters the releases of one epoch, so the promise holds for any number of rounds.",
            quality=self.without_bound(),
        )


def plan_filtered(
    domain: Domain,
    horizon: int | None,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    clip: float | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
    max_rows: int | None = None,
    window: int | None = None,
    clock: int | None = None,
) -> FilteredPlan:
    """Return the filtered gate for this privacy; `horizon=None` is for any number of rounds.

    `clip` is the length that gradients are clipped to, `lipschitz` unless given; half of it is better for smooth losses
    (`rt.private_learner` knows). `max_switches`, a hard cap over the horizon, makes blocks longer where need be.
    `max_rows`, `window` and `clock` are as for `rt.private_learner`.

    >>> from reticent.domains import Ball
    >>> plan = plan_filtered(Ball(10), None, 1.0, epsilon=1.0, delta=1e-6)
    >>> plan.batch, plan_filtered(Ball(10), 10**5, 1.0, 1.0, 1e-6, max_switches=20).max_switches
    (53, 20)
    """
    check_body(domain)
    target = check_target(domain, 1 if horizon is None else horizon, lipschitz, epsilon, delta, neighbors)
    noise, G = 1 / level_for(target, max_rows), target.lipschitz
    change = 2.0 if neighbors == "replace" else 1.0
    claim = {"epsilon": target.epsilon, "delta": target.delta, "neighbors": neighbors}
    cap, more = check_cap(max_rows, window), 1.0
    if cap is not None:  # how much more noise there is for persons, in the first epoch
        claim |= {"max_rows": cap.rows, "window": cap.window}
        first = TABLE[_LENGTHS[0]]
        more = first.person_sensitivity(_LENGTHS[0], cap.at_stake) / first.sensitivity(_LENGTHS[0])
    if clock is not None and horizon is not None:
        refuse_clock(clock, horizon)

    def plan(batch: int) -> FilteredPlan:
        rest: dict[str, Any] = {"noise": noise, "clip": G if clip is None else clip, **blocks_of(clock, batch)}
        return FilteredPlan(domain, horizon, G, **rest, **claim)  # type: ignore[arg-type]

    best = plan(max(1, round(BLOCK * math.sqrt(domain.chart_dim) * change * noise * more)))
    if max_switches is None:
        return best
    most = integer("max_switches", max_switches, least=0)
    if horizon is None:
        raise ValueError(
            f"max_switches must be None for a plan without a horizon, got {max_switches!r}: the decision may change at "
            "the end of every block, for ever; give a horizon"
        )
    # The shortest first blocks, from the best on, with which there are no more changes.
    low, high = best.batch, max(best.batch, target.horizon + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if blocks_in(target.horizon, middle) <= most else (middle + 1, high)
    return plan(low)


def clip_for(loss: Loss, lipschitz: float) -> float:
    """Return where gradients of this loss are clipped: lower for smooth ones, whose noise matters little.

    >>> from reticent.losses import Hinge, Logistic
    >>> clip_for(Logistic(), 2.0), clip_for(Hinge(), 2.0)
    (1.0, 2.0)
    """
    if not isinstance(loss, GeneralisedLinear):
        return lipschitz
    pieces = loss.pieces()
    return SMOOTH_CLIP * lipschitz if pieces is None or not pieces[1].any() else lipschitz


def _filtered(goal: Goal) -> FilteredPlan:
    clip = clip_for(goal.loss, goal.lipschitz)
    return plan_filtered(*goal.target, clip=clip, max_switches=goal.max_switches, neighbors=goal.neighbors)


SYSTEMS = (System(FilteredPlan.system, _filtered, private=True, lazy=True, ordinary=True),)
