"""The regret certificate of a plan, part by part (docs/theory.md, P6 and P7)."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.planning._first_term import first_term
from reticent.planning._plan import Plan
from reticent.planning._switching import Switching


@dataclass(frozen=True)
class RegretBound:
    """A bound on expected regret against losses that do not depend on the decisions, by its parts.

    `first` is what it costs to start from the prior, `stability` that each measure lags one batch behind, `drift`
    the clipping of the coin, `budget` the chance that the switches run out, `inexact` the draws' distance from exact.
    """

    first: float
    stability: float
    drift: float
    budget: float
    inexact: float

    @property
    def total(self) -> float:
        """The bound itself: the sum of the parts."""
        return self.first + self.stability + self.drift + self.budget + self.inexact


def regret_bound(plan: Plan) -> RegretBound:
    """Return the certificate of `plan`, which must have a horizon.

    >>> from reticent.domains import Interval
    >>> plan = Plan(Interval(-1.0, 1.0), 1000, 1.0, beta=0.1, lam=30.0, p=0.0, phi=1.25)
    >>> round(regret_bound(plan).stability, 3)
    16.667
    """
    if plan.horizon is None:
        raise ValueError("a regret bound needs a horizon, got a plan with horizon=None; ask for plan.epoch(k)")
    law, G, D = Switching(plan), plan.lipschitz, plan.domain.diameter
    left_over = plan.horizon - plan.coins * plan.batch
    squares = plan.coins * plan.batch**2 + left_over**2
    return RegretBound(
        first=first_term(plan.domain, plan.beta, plan.lam, G * plan.horizon),
        stability=squares * G * G / (2 * plan.lam),
        drift=G * D * law.weighted_variation(),
        budget=G * D * law.weighted_overrun(),
        inexact=G * D * plan.horizon * law.failure,
    )
