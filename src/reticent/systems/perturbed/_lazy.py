"""Plans of lazy perturbed leaders without privacy (Sherman and Koren 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import scipy

from reticent._core import _names
from reticent._core._check import integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.systems._checks import check_body
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan
from reticent.systems.pcomw._switching import expected_switches, variation_sum
from reticent.systems.perturbed._law import (
    best_lam,
    check_face,
    check_smooth,
    drift,
    goal_smoothness,
    leader_regret,
    swelling,
)


@saved("plan of Sherman-Koren")
@dataclass(frozen=True, kw_only=True)
class ShermanKorenPlan(SystemPlan):
    """A regularised leader with noise `sigma`, kept as long as a coupling of its next law with the present one allows.

    With `smoothness` 0 losses must be linear, and the coupling is the best there is: the noisy sum is kept or
    reflected, and changes with a chance of at most 2 N(G/(2 sigma)) - 1. Otherwise a coin of scale `phi` keeps the
    minimiser, as in `ObjectivePlan`; `general` is for losses that are not generalised linear (docs/theory, R5).

    >>> from reticent.domains import Ball
    >>> plan = ShermanKorenPlan(Ball(3), 1000, 1.0, sigma=4.0, lam=40.0)
    >>> round(plan.expected_switches, 3)
    99.476
    """

    system: ClassVar[str] = _names.SHERMAN_KOREN
    work: ClassVar[str] = "solves"
    reference: ClassVar[str] = "Sherman and Koren 2021 (derived from the published idea)"
    assumes: ClassVar[str] = "linear losses, or smooth ones (balls, boxes)"
    adversary: ClassVar[str] = "oblivious"

    sigma: float
    lam: float
    phi: float = 1.0
    smoothness: float = 0.0
    general: bool = False

    def _check(self) -> None:
        check_body(self.domain)
        self._set(general=bool(self.general))
        self._set(lam=positive("lam", self.lam), smoothness=positive("smoothness", self.smoothness, zero=True))
        check_face(self.domain, self.smoothness)
        self._set(sigma=positive("sigma", self.sigma, zero=not self.smoothness), phi=real("phi", self.phi))
        if not 1 <= self.phi <= 1e300:
            raise ValueError(f"phi must be from 1 to 1e+300, got {self.phi!r}")

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not smooth."""
        check_smooth(type(self).__name__, loss, self.smoothness, self.rank, self.domain.chart_dim)

    @property
    def rank(self) -> int:
        """In how many fixed directions the gradient of one round's loss lies."""
        return self.domain.chart_dim if self.general else 1

    @cached_property
    def clip(self) -> float:
        """The mass that clipping moves per round at most; none where the sum is reflected."""
        if not self.smoothness:
            return 0.0
        swell = swelling(self.smoothness / self.lam, self.rank, 1, self.rank)
        return drift(math.log(self.phi), self.lipschitz / self.sigma, swell, self.rank)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5d."""
        astray = float(variation_sum(self.horizon, 0.0, self.clip))
        regret = leader_regret(self.domain, self.horizon, self.lipschitz, self.lam, self.sigma)
        return regret + self.lipschitz * self.domain.diameter * astray

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R5h for linear losses, P4g for others."""
        if self.smoothness:
            return float(expected_switches(self.horizon, 0.0, math.log(self.phi), self.clip))
        if not self.sigma:
            return float(self.horizon)
        return self.horizon * math.erf(self.lipschitz / (math.sqrt(8) * self.sigma))


def plan_sherman_koren(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    max_switches: int,
    *,
    smoothness: float = 0.0,
    general: bool = False,
) -> ShermanKorenPlan:
    """Return the lazy perturbed leader that changes `max_switches` times in expectation, with the best regulariser.

    `smoothness` and `general` are those of `plan_objective`.

    >>> from reticent.domains import Ball
    >>> plan = plan_sherman_koren(Ball(3), 10_000, 1.0, 500)
    >>> round(plan.expected_switches, 6), plan.regret_bound < 140
    (500.0, True)
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    S, beta = integer("max_switches", max_switches, least=1), positive("smoothness", smoothness, zero=True)
    if not beta:
        sigma = 0.0 if S >= T else G / (math.sqrt(8) * float(scipy.special.erfinv(_SPARE * S / T)))
        return ShermanKorenPlan(domain, T, G, sigma=sigma, lam=best_lam(domain, T, G, sigma))
    S = min(S, T)
    rank = domain.chart_dim if general else 1
    plans = [_smooth(domain, T, G, S, beta, rank, width, more) for width in _WIDTHS for more in _MORE]
    found = [plan for plan in plans if plan is not None]
    if not found:
        raise ValueError(f"no plan was found for max_switches={S} in {T} rounds; allow more")
    return min(found, key=lambda plan: plan.regret_bound)


_SPARE = 1 - 1e-12  # what is aimed at of the switches allowed, so that rounding never shows more
# Candidates of log phi, in deviations of the coin's ratio (what is clipped adds up over T^2 pairs of rounds: the widest
# serve horizons up to 2^53), and of lam, relative to the best for flat losses.
_WIDTHS = (3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
_MORE = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


def _smooth(
    domain: Domain, T: int, G: float, S: int, beta: float, rank: int, width: float, more: float
) -> ShermanKorenPlan | None:
    """Return the plan with the least noise that keeps to S switches in expectation, if there is one."""

    def plan(sigma: float) -> ShermanKorenPlan:
        lam, noise = more * best_lam(domain, T, G, sigma), G / sigma
        log_phi = min(wide * noise + noise**2 / 2 + swelling(beta / lam, rank, 1, rank), 300.0)
        phi, general = math.exp(log_phi), rank > 1
        return ShermanKorenPlan(domain, T, G, sigma=sigma, lam=lam, phi=phi, smoothness=beta, general=general)

    wide = width + math.sqrt(rank - 1)
    low, high = math.log(G * wide / 2), math.log(G * wide * 100 * T / S)
    if plan(math.exp(high)).expected_switches > S:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if plan(math.exp(middle)).expected_switches <= S else (middle, high)
    return plan(math.exp(high))


def _sherman_koren(goal: Goal) -> ShermanKorenPlan:
    smoothness = goal_smoothness(goal)
    if goal.max_switches is None:
        raise NotApplicable("needs max_switches")
    goal.need_a_switch()
    general = isinstance(goal.loss, Custom)
    return plan_sherman_koren(*goal.size, goal.max_switches, smoothness=smoothness, general=general)


LAZY = (System(ShermanKorenPlan.system, _sherman_koren, lazy=True),)
