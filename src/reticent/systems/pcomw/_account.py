"""What a run of a plan can reveal at most: draws and coins (docs/theory, Q0 to Q5), and the paper's theorem (P9)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reticent._core._check import integer
from reticent.privacy._account import smallest
from reticent.privacy._exposure import Exposure
from reticent.systems._grid import CELL, DRAW, Rounding, coin_error
from reticent.systems.pcomw._switching import Switching

if TYPE_CHECKING:
    from reticent.systems.pcomw._plan import Plan


def exposure(plan: Plan, rounds: int | None = None) -> Exposure:
    """Return what the first `rounds` rounds of a plan can reveal (all of its horizon unless given).

    A changed round matters from the coin at the end of its batch on: that coin, the later ones, and the draw after
    each of them up to the budget. The worst place is the first batch. Without a budget every coin may draw.
    """
    rounds = plan.horizon if rounds is None else integer("rounds", rounds, least=0)
    if rounds is None:
        raise ValueError(
            "a plan with horizon=None has an account for each epoch, and a changed round lies in one of them: "
            "give plan.epoch(k); plan.epoch(0) is the first"
        )
    coins = rounds // plan.batch
    budget = coins if plan.budget is None else min(plan.budget, coins)
    # Without a switch that is allowed, or possible, the first decision stays whatever the losses are.
    moves = budget > 0 and (plan.p > 0 or plan.phi > 1)
    # What floating point may add, for a plan that claims something and so releases its decisions on a grid (Q11, Q12).
    rounding = Rounding.of(plan.domain, rounds, 1, near=DRAW, cut=True) if plan.private else Rounding()
    G, D = plan.lipschitz * rounding.stretch, plan.domain.diameter
    change = plan.change * rounding.stretch
    log_phi, root = math.log(plan.phi), math.sqrt(plan.beta / plan.lam)
    # How far a draw moves between the two worlds, at most; the chance to keep is confined by the clip as well.
    moved = min(change / plan.lam, D)
    near = plan.distance + rounding.distance
    rough = 2 * _rough_coin(plan)
    # What the machine may be off by is beyond the clip; a coin that is never clipped below 1 keeps for certain.
    length = plan.batch * G * root
    error = coin_error(plan.domain, plan.beta * plan.batch * G, length) if plan.private and log_phi > 0 else 0.0
    clip = _clip(plan) if plan.adversary == "oblivious" else 0.0
    return Exposure(
        shift=change * root + 2 * near,
        eta=min(2 * log_phi, plan.beta * plan.batch * G * moved + rough) + 2 * error,
        eta_special=min(2 * log_phi, plan.beta * ((plan.batch - 1) * G * moved + change * D) + rough) + 2 * error,
        p=plan.p,
        log_phi=log_phi,
        length=length + 2 * near,
        draws=budget if moves else 0,
        later=max(coins - 1, 0) if moves else 0,
        special=moves,
        clip=clip,
        # With one auxiliary draw the lower clip loses exactly 1/phi of what the upper one does (P4a).
        clip_low=clip / plan.phi if plan.draws == 1 else clip,
        # Where losses are fixed in advance the decision in play at the changed batch is one draw more (Q6).
        slip=_slip(plan, rounds) + rounding.failure if plan.adversary == "oblivious" else 0.0,
        miss=(budget if moves else 0) * rounding.failure,
        off=2 * error / plan.p if plan.p > 0 else 0.0,
        blur=_blur(plan, rounds) + 2 * error * coins if plan.private else 0.0,
    )


def _blur(plan: Plan, rounds: int) -> float:
    """Return to what factor, as a logarithm, the chance of the decision in play may be off, twice (Q11)."""
    sums = plan.beta * plan.lipschitz * plan.domain.diameter * (Rounding.of(plan.domain, rounds, 1).stretch - 1)
    return 2 * (CELL * plan.domain.chart_dim + sums)


def _rough_coin(plan: Plan) -> float:
    """Return what auxiliary draws that are not exact add to a coin's eta in each world (docs/theory, Q5)."""
    if plan.distance == 0:
        return 0.0
    reach = min(2 * math.log(plan.phi), plan.beta * plan.batch * plan.lipschitz * plan.domain.diameter)
    apart = math.erf(plan.distance * math.sqrt(plan.draws / 8))
    return math.log1p(math.expm1(min(reach, 700.0)) * apart)


def _clip(plan: Plan) -> float:
    return Switching(plan).clip


def _slip(plan: Plan, rounds: int) -> float:
    """Return the chance that any draw is not what an exact draw would have been (docs/theory, P7)."""
    if plan.distance == 0:
        return 0.0
    return Switching(replace(plan, horizon=max(rounds, 1))).failure


# The accountant of the paper: its Theorem "Privacy", for plans that meet its conditions (docs/theory, P9).
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
            needed = 2 * log_density_ratio(9 * ratio, math.exp(middle) / (60 * T**2))
            low, high = (low, middle) if needed <= log_phi * (1 + _SAME) else (middle, high)
        least = max(least, math.exp(high))
    if least >= 0.5 * (1 - _SAME):
        raise ValueError(
            f"phi = {plan.phi:.6g} or the horizon of {T} is too small for the paper's Theorem 'Privacy' at any delta "
            "up to 1/2; use method='pld'"
        )
    return Theorem(T, ratio, log_phi, least)


def privacy_formula(horizon: int, delta: float, ratio: float, log_phi: float, *, printed: bool = False) -> float:
    """Return the epsilon of the paper's Theorem "Privacy", where `ratio` is `G^2 beta / lambda`.

    The constants 7 and 11 that it prints do not follow from its proof, which gives 10 and 14 (docs/theory, P9).

    >>> privacy_formula(1000, 1e-6, 0.0, 0.0)
    0.0
    """
    T = horizon
    first, last = (7, 11) if printed else (10, 14)
    square: float = first * T ** (2 / 3) * log_phi**2 + 12 * log_phi**3 * T
    square += last * ratio ** (2 / 3) * log_phi ** (4 / 3) * T
    return 1.5 * square + math.sqrt(6 * square) * math.sqrt(math.log(2 / delta))


def log_density_ratio(ratio: float, closeness: float) -> float:
    """Return log Phi of the paper's density-ratio lemma, where `ratio` is `beta G^2 / lambda`."""
    return 2 * ratio + math.sqrt(8 * ratio * math.log(2 / closeness))
