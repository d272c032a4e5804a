"""The accountant of the paper: its Theorem "Privacy", for plans that meet its conditions (docs/theory.md, P9)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.privacy._solve import smallest

if TYPE_CHECKING:
    from reticent.planning import Plan

# Parameters count as those of the theorem up to this relative difference: floating point.
_SAME = 1e-9


@dataclass(frozen=True)
class Theorem:
    """Epsilon and delta of the paper's Theorem "Privacy", with the constants that its proof gives (10 and 14)."""

    horizon: int
    ratio: float
    log_phi: float
    least: float
    """The smallest delta for which phi is as large as the theorem needs, and its failures are within delta/3."""

    def epsilon(self, delta: float) -> float:
        """Return the theorem's epsilon; refuse a delta that its conditions exclude."""
        from reticent.planning._theorems import privacy_formula  # planning knows this package

        if not self.least * (1 - _SAME) <= delta <= 0.5:
            raise ValueError(
                f"delta must be from {self.least:.4g} to 0.5 for the paper's Theorem 'Privacy' with these parameters, "
                f"got {delta!r}; method='pld' has no such condition"
            )
        return privacy_formula(self.horizon, delta, self.ratio, self.log_phi)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for which the theorem states `epsilon`; 1 if there is none."""
        if self.epsilon(0.5) > epsilon:
            return 1.0
        if self.epsilon(self.least) <= epsilon:
            return self.least
        # Epsilon falls in delta: the smallest x = log(delta/least) that will do.
        span = math.log(0.5 / self.least)
        x = smallest(lambda x: self.epsilon(self.least * math.exp(min(x, span))), epsilon)
        return self.least * math.exp(min(x, span))


def theorem(plan: Plan) -> Theorem:
    """Return the paper's theorem for a plan; refuse one that does not meet its conditions."""
    from reticent.planning._theorems import _log_density_ratio

    T = plan.horizon
    assert T is not None
    ratio, log_phi = plan.beta * plan.lipschitz**2 / plan.lam, math.log(plan.phi)
    if plan.batch != 1 or plan.distance != 0:
        raise ValueError(
            f"the paper's Theorem 'Privacy' is about batches of one round and exact draws, got batch={plan.batch} and "
            f"distance={plan.distance:g}; use method='pld'"
        )
    if log_phi == 0:
        raise ValueError("phi must be greater than 1 for the paper's Theorem 'Privacy', got 1.0; use method='pld'")
    p = min(1.0, max(T ** (-1 / 3), (ratio / log_phi) ** (2 / 3)))
    rate = p - math.expm1(-2 * log_phi)
    if abs(plan.p - p) > _SAME * p or plan.budget is None or plan.budget > 3 * rate * T * (1 + _SAME):
        raise ValueError(
            f"the paper's Theorem 'Privacy' needs p = {p:.6g} and a budget of at most {math.floor(3 * rate * T)} for "
            f"these parameters, got p={plan.p:.6g} and budget={plan.budget}; use method='pld'"
        )
    # The three conditions on delta: T >= 12 log(1/delta), a large enough phi, and 3 T exp(-pt T) <= delta/3 (P9).
    least = max(math.exp(-T / 12), 9 * T * math.exp(-rate * T))
    if least < 0.5:
        low, high = math.log(max(least, 1e-300)), math.log(0.5)
        for _ in range(80):
            middle = (low + high) / 2
            needed = 2 * _log_density_ratio(9 * ratio, math.exp(middle) / (60 * T**2))
            low, high = (low, middle) if needed <= log_phi * (1 + _SAME) else (middle, high)
        least = max(least, math.exp(high))
    if least >= 0.5 * (1 - _SAME):
        raise ValueError(
            f"phi = {plan.phi:.6g} or the horizon of {T} is too small for the paper's Theorem 'Privacy' at any delta "
            "up to 1/2; use method='pld'"
        )
    return Theorem(T, ratio, log_phi, least)
