"""What a run can reveal at most: how many draws and coins, and how much each of them (docs/theory.md, Q0 to Q5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reticent._check import integer
from reticent.privacy._coin import Coin

if TYPE_CHECKING:
    from reticent.planning import Plan


@dataclass(frozen=True)
class Exposure:
    """The draws and coins after a changed round, at most, and the constants of docs/theory.md, Q0 to Q6.

    `shift` is s, `eta` that of a later coin, `eta_special` that of the coin of the changed batch, `length` s_L = b G
    sqrt(beta/lam). For oblivious adversaries `clip` and `clip_low` bound what clipping moves per coin (P4), and
    `slip` the chance that some draw is not what an exact draw would have been (P7).
    """

    shift: float
    eta: float
    eta_special: float
    p: float
    log_phi: float
    length: float
    draws: int
    later: int
    special: bool
    clip: float = 0.0
    clip_low: float = 0.0
    slip: float = 0.0

    @property
    def coin(self) -> Coin:
        """The pair that dominates a coin after the changed batch (docs/theory.md, Q2)."""
        return Coin(self.p, self.eta)

    @property
    def special_coin(self) -> Coin:
        """The pair that dominates the coin of the changed batch (docs/theory.md, Q3)."""
        return Coin(self.p, self.eta_special)

    @property
    def nothing(self) -> bool:
        """Whether the decisions cannot depend on the changed round at all."""
        return self.draws == 0 and self.later == 0 and not self.special


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
    G, D = plan.lipschitz, plan.domain.diameter
    change = 2 * G if plan.neighbors == "replace" else G
    log_phi, root = math.log(plan.phi), math.sqrt(plan.beta / plan.lam)
    # How far a draw moves between the two worlds, at most; the chance to keep is confined by the clip as well.
    moved = min(change / plan.lam, D)
    slack = 2 * _rough_coin(plan)
    clip = _clip(plan) if plan.adversary == "oblivious" else 0.0
    return Exposure(
        shift=change * root + 2 * plan.distance,
        eta=min(2 * log_phi, plan.beta * plan.batch * G * moved + slack),
        eta_special=min(2 * log_phi, plan.beta * ((plan.batch - 1) * G * moved + change * D) + slack),
        p=plan.p,
        log_phi=log_phi,
        length=plan.batch * G * root + 2 * plan.distance,
        draws=budget if moves else 0,
        later=max(coins - 1, 0) if moves else 0,
        special=moves,
        clip=clip,
        # With one auxiliary draw the lower clip loses exactly 1/phi of what the upper one does (P4a).
        clip_low=clip / plan.phi if plan.draws == 1 else clip,
        slip=_slip(plan, rounds) if plan.adversary == "oblivious" else 0.0,
    )


def _rough_coin(plan: Plan) -> float:
    """Return what auxiliary draws that are not exact add to a coin's eta in each world (docs/theory.md, Q5)."""
    if plan.distance == 0:
        return 0.0
    reach = min(2 * math.log(plan.phi), plan.beta * plan.batch * plan.lipschitz * plan.domain.diameter)
    apart = math.erf(plan.distance * math.sqrt(plan.draws / 8))
    return math.log1p(math.expm1(min(reach, 700.0)) * apart)


def _clip(plan: Plan) -> float:
    from reticent.planning._switching import Switching  # planning knows this package

    return Switching(plan).clip


def _slip(plan: Plan, rounds: int) -> float:
    """Return the chance that any draw is not what an exact draw would have been (docs/theory.md, P7)."""
    if plan.distance == 0:
        return 0.0
    from reticent.planning._switching import Switching

    return Switching(replace(plan, horizon=max(rounds, 1))).failure
