"""Pure privacy: what a run reveals that is epsilon-private with delta = 0, and its event."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from reticent._core._check import real
from reticent.privacy._account import Statement, SystemAccount, check_epsilon
from reticent.privacy._coins import Coin
from reticent.privacy._compose import Bound, Term
from reticent.privacy._events import gaussian_events
from reticent.privacy._losses import Losses, gdp_of_bounded_range


@dataclass(frozen=True)
class PureAccount(SystemAccount):
    """What a run can reveal about one round that is `pure`-private with delta = 0: an epsilon for delta = 0 too.

    Every such pair of laws is dominated by one answer of which one bit is flipped with chance 1/(1 + exp(epsilon)).

    >>> account = PureAccount.of(None, "replace", 1.0)
    >>> account.epsilon(0.0), account.delta(1.0), round(account.epsilon(0.1), 4)
    (1.0, 0.0, 0.8529)
    """

    pure: float

    @classmethod
    def of(cls, rounds: int | None, neighbors: str, epsilon: float) -> PureAccount:
        """Return the account of so many rounds (None: any number)."""
        return cls(rounds, neighbors, (flipped(epsilon),), epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`, which may be 0."""
        if not 0 <= real("delta", delta) < 1:
            raise ValueError(f"delta must be at least 0 and less than 1, got {delta!r}")
        # e^epsilon - delta (1 + e^epsilon), in logarithms: from delta (1 + e^-epsilon) = 1 on nothing is revealed.
        share = 1 - delta * (1 + math.exp(-self.pure))
        return self.pure if delta == 0 else max(0.0, self.pure + math.log(share)) if share > 0 else 0.0

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`."""
        level = check_epsilon(epsilon)
        return max(0.0, -math.expm1(min(level - self.pure, 0.0)) / (1 + math.exp(-self.pure)))


def flipped(epsilon: float) -> Statement:
    """Return the statement of an answer of which one bit is flipped with chance 1/(1 + exp(epsilon))."""
    true = 1 / (1 + math.exp(-epsilon))
    losses = Losses.of([epsilon, -epsilon], [true, 1 - true])
    return Statement("pld", Bound(((Term(0.0, Coin(1.0, 0.0), 0, losses),),)))


def pure_event(epsilon: float) -> Any:
    """Return a Gaussian event that reveals at least as much as anything pure can, for dp_accounting's default relation.

    What neighbours are is in epsilon already. Pure privacy is stronger: add epsilons where all others are pure too.

    >>> pure_event(1.0), type(pure_event(0.0)).__name__
    (GaussianDpEvent(noise_multiplier=0.81...), 'NoOpDpEvent')
    """
    return gaussian_events([(gdp_of_bounded_range(2 * epsilon), 1)])
