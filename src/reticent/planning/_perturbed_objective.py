"""Plans of private objective perturbation with rejection-limited switching (Agarwal, Kale, Singh and Thakurta 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from reticent._check import integer, positive, real
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.planning._goal import Goal, System
from reticent.planning._perturbed_law import (
    bend_change,
    check_face,
    check_smooth,
    draw_gdp,
    drift,
    goal_smoothness,
    leader_regret,
)
from reticent.planning._plan import check_body
from reticent.planning._switching import expected_switches, overrun, variation_sum
from reticent.planning._system import SystemPlan

if TYPE_CHECKING:
    from reticent.privacy._coin import Coin
    from reticent.privacy._ledger import Statement

_LARGEST_PHI = 1e300


@dataclass(frozen=True, kw_only=True)
class ObjectivePlan(SystemPlan):
    """Parameters of objective perturbation: noise `sigma`, regulariser `lam`, and the coin that limits switching.

    The decision is the minimiser of past losses plus lam/2 |x|^2 plus Z.x, Z ~ N(0, sigma^2 I). After each round a
    coin keeps it (`p` is the chance of a forced switch, `phi` the scale of the coin), or Z is drawn afresh, `budget`
    times at most. `smoothness` bounds the second derivatives of every round's loss; 0 is for linear losses
    (docs/theory.md, R5).

    >>> from reticent.domains import Ball
    >>> plan = ObjectivePlan(Ball(3), 1000, 1.0, sigma=2000.0, lam=200.0, p=0.1, phi=1.004, budget=200)
    >>> plan.max_switches, plan.account().epsilon(1e-6) < 1.0
    (200, True)
    """

    system: ClassVar[str] = "objective perturbation (Agarwal et al.)"
    reference: ClassVar[str] = "Agarwal, Kale, Singh and Thakurta 2023 (derived from the published idea)"
    assumes: ClassVar[str] = "linear losses, or smooth generalised linear ones (balls, boxes)"
    adversary: ClassVar[str] = "oblivious"

    sigma: float
    lam: float
    p: float
    phi: float
    budget: int
    smoothness: float = 0.0

    def _check(self) -> None:
        check_body(self.domain)
        for name in ("sigma", "lam"):
            self._set(**{name: positive(name, getattr(self, name))})
        self._set(smoothness=positive("smoothness", self.smoothness, zero=True))
        check_face(self.domain, self.smoothness)
        self._set(p=real("p", self.p), phi=real("phi", self.phi), budget=integer("budget", self.budget, least=0))
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be a probability from 0 to 1, got {self.p!r}")
        if not 1 <= self.phi <= _LARGEST_PHI:
            raise ValueError(f"phi must be from 1 to {_LARGEST_PHI:g}, got {self.phi!r}; p = 1 switches at every coin")

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not smooth."""
        check_smooth(type(self).__name__, loss, self.smoothness)

    @property
    def log_phi(self) -> float:
        """The logarithm of `phi`."""
        return math.log(self.phi)

    @property
    def noise(self) -> float:
        """K = G/sigma: the deviation of the logarithm of a coin's ratio."""
        return self.lipschitz / self.sigma

    @property
    def bend(self) -> float:
        """How much of the curvature one round's loss can be at most: smoothness/lam."""
        return self.smoothness / self.lam

    @cached_property
    def clip(self) -> float:
        """The mass that clipping moves per coin at most."""
        return drift(self.log_phi, self.noise, self.bend)

    @cached_property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R5d."""
        T, arguments = self.horizon, (self.p, self.log_phi, self.clip)
        astray = float(variation_sum(T, self.p, self.clip)) + float(overrun(self.budget, T - 1, *arguments))
        trivial = self.lipschitz * self.domain.diameter
        return leader_regret(self.domain, T, self.lipschitz, self.lam, self.sigma) + trivial * min(astray, T)

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory.md, P4g, and the budget."""
        return min(float(expected_switches(self.horizon, self.p, self.log_phi, self.clip)), float(self.budget))

    @property
    def max_switches(self) -> int:
        """The budget, which the learner keeps."""
        return self.budget

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        cost = (
            "Every switch solves a regularised problem over all past rounds (only sums are kept for Linear and "
            "Squared): long runs of curved losses with many switches are slow."
        )
        if not self.smoothness:
            return ()
        return (cost, "The certificate pays for smoothness in every draw; PCOMW needs none.")

    @cached_property
    def draw(self) -> float:
        """The mu for which one draw is mu-GDP (docs/theory.md, R5e)."""
        if not self.smoothness:
            return self.change / self.sigma
        times = 2 if self.neighbors == "replace" else 1
        return times * draw_gdp(self.noise, self.bend)

    @property
    def later_coin(self) -> Coin:
        """The coin after the changed round (docs/theory.md, R5f)."""
        from reticent.privacy._coin import Coin

        eta = self.lipschitz * self.change / self.sigma**2 + bend_change(self.bend)
        return Coin(self.p, min(eta, 2 * self.log_phi))

    @property
    def special_coin(self) -> Coin:
        """The coin of the changed round: whatever Z is, the clip confines it."""
        from reticent.privacy._coin import Coin

        return Coin(self.p, 2 * self.log_phi)

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return the composition of draws and coins (docs/theory.md, R5g)."""
        from reticent.privacy._coin import NO_LOSS
        from reticent.privacy._ledger import Statement
        from reticent.privacy._terms import Bound, Term

        coin, count = self.later_coin, max(rounds - 1, 0)
        draws = min(self.budget, rounds)
        mu = self.draw * math.sqrt(draws) if draws else 0.0
        # Without a switch ever there is no coin either.
        tossed = rounds > 0 and self.budget > 0
        special = self.special_coin.directions() if tossed else (NO_LOSS,)
        terms = tuple((Term(mu, coin, count if tossed else 0, other),) for other in special)
        return (Statement("pld", Bound(terms)),)

    def dp_event(self) -> Any:
        """Return Gaussian events for draws and coins: an upper bound, looser than the account (docs/theory.md, Q10)."""
        from dp_accounting import dp_event as events

        from reticent.privacy._events import gdp

        draws = min(self.budget, self.horizon)
        if not draws:
            return events.NoOpDpEvent()
        parts = [events.SelfComposedDpEvent(events.GaussianDpEvent(1 / self.draw), draws)]
        for coin, count in ((self.later_coin, self.horizon - 1), (self.special_coin, 1)):
            if not count or coin.silent:
                continue
            if math.isinf(coin.step):
                return events.NonPrivateDpEvent()
            parts.append(events.SelfComposedDpEvent(events.GaussianDpEvent(1 / gdp(coin)), count))
        return events.ComposedDpEvent(parts)


def plan_objective(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    smoothness: float,
    neighbors: str = "replace",
    max_switches: int | None = None,
) -> ObjectivePlan:
    """Return the objective perturbation with the least certified regret that is (epsilon, delta)-private.

    `smoothness` bounds the second derivatives of every round's loss, 0 for `Linear`; `max_switches` is a hard cap.

    >>> from reticent.domains import Ball
    >>> plan = plan_objective(Ball(3), 10_000, 1.0, 1.0, 1e-6, smoothness=0.0)
    >>> plan.account().epsilon(1e-6) <= 1.0, plan.vacuous
    (True, False)
    """
    from reticent.planning._perturbed_search import search

    return search(domain, horizon, lipschitz, epsilon, delta, smoothness, neighbors, max_switches)


def _objective(goal: Goal) -> ObjectivePlan:
    goal.need_a_switch()
    smooth, cap = goal_smoothness(goal), goal.max_switches
    return plan_objective(*goal.target, smoothness=smooth, neighbors=goal.neighbors, max_switches=cap)


SYSTEMS = (System(ObjectivePlan.system, _objective, private=True, lazy=True),)
