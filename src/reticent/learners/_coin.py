"""The coin that keeps the present decision, tossed without partition functions and mostly without a draw."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from reticent._check import Array
from reticent.gibbs import Gibbs
from reticent.planning import Plan

from ._learner import NEVER


class Toss(NamedTuple):
    """The next coin that has to be looked at: after how many batches, and what is known of it beforehand."""

    after: int
    forced: bool
    level: float
    """Keep the decision if the coin's probability of keeping is at least this; unused where forced."""


class KeepingCoin(ABC):
    """A coin that keeps the decision with a chance of at least exp(-floor) unless its switch is forced, with chance p.

    The uniform U of a coin is drawn before anything else: with U <= exp(-floor) the coin keeps, whatever else it would
    say. So the coins that need a look come at geometric distances, and the batches between cost nothing
    (docs/theory.md, P5).
    """

    always_draws = False

    def __init__(self, p: float, floor: float) -> None:
        self.p = p
        self.open = -math.expm1(-floor)  # without the cancellation of a floor close to 0
        self.look = p + (1.0 - p) * self.open
        self.forced = p / self.look if self.look > 0.0 else 0.0

    @abstractmethod
    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep the chart point `u` if the switch is not forced.

        `measure` is the next one, `rows` the batch.
        """

    def next(self, rng: np.random.Generator) -> Toss | None:
        """Return the next coin to look at; None if none ever needs it."""
        if self.look == 0.0:
            return None
        after = batches_ahead(rng.standard_exponential(), self.look)
        if rng.random() < self.forced:
            return Toss(after, True, 0.0)
        return Toss(after, False, 1.0 - self.open * rng.random())

    def wants_rounds(self, toss: Toss) -> bool:
        """Say whether `switches` will read the rounds of its batch."""
        return not toss.forced

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision at chart point `u` changes; `measure` is the next one, `rows` the batch."""
        return toss.forced or toss.level > self.keeps(measure, rows, u, rng)


class AuxiliaryCoin(KeepingCoin):
    """Keeps x with probability clip(mean of exp(beta (L(y) - L(x))) / phi, phi^-2, 1) over draws y of the next measure.

    The lower clip is the floor (docs/theory.md, P1 to P5).
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.p, 2.0 * math.log(plan.phi))
        self.draws, self.beta, self.phi = plan.draws, plan.beta, plan.phi

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep, the upper clip left to the comparison with a uniform number."""
        return self._ratio(measure, rows, u, rng) / self.phi

    def _ratio(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return an unbiased estimate of the ratio of the next density to the present one at u (docs/theory.md, P1)."""
        points = np.empty((self.draws + 1, u.size))
        points[:-1] = measure.draws_in_chart(rng, self.draws)
        points[-1] = u
        losses = measure.loss.total(measure.domain, rows, points)
        # Beyond exp(700) the coin keeps in any case: phi is at most 1e300.
        return float(np.exp(np.minimum(self.beta * (losses[:-1] - losses[-1]), 700.0)).mean())


class SteadyCoin(AuxiliaryCoin):
    """The same coin, doing the same work for every batch: what it was about to say does not show in the time it takes.

    Auxiliary draws are made for every coin, and a fresh decision is drawn for every coin too, kept or not
    (docs/theory.md, Q8). How long one draw takes still depends on the data.
    """

    always_draws = True

    def next(self, rng: np.random.Generator) -> Toss:
        """Return the next coin: every batch has one."""
        return Toss(1, bool(rng.random() < self.p), 1.0 - rng.random())

    def wants_rounds(self, toss: Toss) -> bool:
        """Say that every batch is read."""
        return True

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision changes."""
        keep = max(self.phi**-2, self._ratio(measure, rows, u, rng) / self.phi)
        return toss.forced or toss.level > keep


def batches_ahead(exponential: float, look: float) -> int:
    """Return a geometric number of batches from an exponential: more than k pass with probability (1 - look)^k."""
    if look >= 1.0:
        return 1
    return 1 + math.floor(min(exponential / -math.log1p(-look), float(NEVER)))
