"""Plans of follow the lazy leader (Kalai and Vempala 2005) for linear losses over convex bodies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.losses import Linear, Loss
from reticent.planning._goal import Goal, NotApplicable, System
from reticent.planning._plan import check_body
from reticent.planning._system import SystemPlan


@dataclass(frozen=True, kw_only=True)
class LazyLeaderPlan(SystemPlan):
    """Follow the lazy leader: the sum of gradients is seen through a grid of cells of side 1/`scale`, shifted once.

    The decision is the least point of a perturbed sum, and changes where the sum enters another cell: with a chance of
    at most scale * |g|_1 per round. Expected regret is at most T G D min(1, scale sqrt(d) G) plus the expected width
    of the noise over the body (docs/theory.md, R5i).

    >>> from reticent.domains import Ball
    >>> plan = plan_lazy_leader(Ball(2), 10_000, 1.0, max_switches=50)
    >>> round(plan.expected_switches, 6), plan.vacuous
    (50.0, False)
    """

    system: ClassVar[str] = "follow the lazy leader (FLL)"
    reference: ClassVar[str] = "Kalai and Vempala 2005"
    assumes: ClassVar[str] = "linear losses"
    adversary: ClassVar[str] = "oblivious"

    scale: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(scale=positive("scale", self.scale))

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not linear."""
        if not isinstance(loss, Linear):
            raise ValueError(
                f"LazyLeader needs Linear losses, got {loss!r}: gradients taken at its own decisions would react to "
                "them; PCOMW is lazy for any convex loss"
            )

    @property
    def chance(self) -> float:
        """The chance of a change per round, at most."""
        return min(1.0, self.scale * math.sqrt(self.domain.chart_dim) * self.lipschitz)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R5i."""
        stability = self.horizon * self.lipschitz * self.domain.diameter * self.chance
        return stability + noise_width(self.domain) / self.scale

    @property
    def expected_switches(self) -> float:
        """The chance of a change, in every round."""
        return self.horizon * self.chance


def noise_width(domain: Domain) -> float:
    """Return a bound on E max over the body of -u.x, u uniform on [-1/2, 1/2]^d in the chart.

    >>> from reticent.domains import Interval
    >>> noise_width(Interval(-1.0, 1.0))
    0.25
    """
    width = domain.radius * math.sqrt(domain.chart_dim / 12)
    # The box around the body has E|u_i| = 1/4 for each half-width; a body's own box need not be symmetric.
    lo, hi = domain.body.lo, domain.body.hi
    return min(width, float((hi - lo).sum()) / 8 if domain.body.box else math.inf)


def plan_lazy_leader(
    domain: Domain, horizon: int, lipschitz: float, *, max_switches: int | None = None
) -> LazyLeaderPlan:
    """Return follow the lazy leader with the best grid, coarser if `max_switches`, in expectation, asks for it.

    >>> from reticent.domains import Ball
    >>> plan_lazy_leader(Ball(2), 10_000, 1.0).regret_bound < 250
    True
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    root = math.sqrt(domain.chart_dim)
    scale = math.sqrt(noise_width(domain) / (T * G**2 * root * domain.diameter))
    if max_switches is not None:
        scale = min(scale, integer("max_switches", max_switches, least=1) / (T * root * G))
    return LazyLeaderPlan(domain, T, G, scale=scale)


def _lazy_leader(goal: Goal) -> LazyLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("needs linear losses")
    goal.need_a_switch()
    return plan_lazy_leader(*goal.size, max_switches=goal.max_switches)


SYSTEMS = (System(LazyLeaderPlan.system, _lazy_leader, lazy=True),)
