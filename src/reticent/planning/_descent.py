"""Plans of gradient methods that are not private: online gradient descent, in blocks for laziness, and FTRL."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.planning._goal import Goal, System
from reticent.planning._plan import check_body, check_firm
from reticent.planning._system import SystemPlan


@dataclass(frozen=True, kw_only=True)
class DescentPlan(SystemPlan):
    """Online gradient descent with steps of size `step` at the end of every `batch` rounds.

    The block's gradients, all taken at the decision in play, are summed (docs/theory.md, R1). Regret is at most
    R^2/(2 step) + step * sum of (block length)^2 * G^2 / 2.

    >>> from reticent.domains import Ball
    >>> round(plan_descent(Ball(3), 10_000, 1.0).regret_bound, 9)
    100.0
    """

    system: ClassVar[str] = "online gradient descent"
    reference: ClassVar[str] = "Zinkevich 2003; in blocks Merhav et al. 2002, Anava et al. 2015"

    step: float
    batch: int = 1

    def _check(self) -> None:
        check_body(self.domain)
        self._set(step=positive("step", self.step), batch=integer("batch", self.batch, least=1))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R1."""
        squares = block_squares(self.horizon, self.batch)
        return self.domain.radius**2 / (2 * self.step) + self.step * self.lipschitz**2 * squares / 2

    @property
    def max_switches(self) -> int:
        """One change after each full block."""
        return self.horizon // self.batch


@dataclass(frozen=True, kw_only=True)
class LeaderPlan(SystemPlan):
    """Follow the regularised leader: the least of the sum of linearised losses plus `lam`/2 |x - center|^2.

    Regret is at most lam R^2 / 2 + T G^2 / (2 lam) (docs/theory.md, R1; Hazan 2016, chapter 5).

    >>> from reticent.domains import Ball
    >>> round(plan_leader(Ball(3), 10_000, 1.0).regret_bound, 9)
    100.0
    """

    system: ClassVar[str] = "FTRL"
    reference: ClassVar[str] = "Shalev-Shwartz and Singer 2007; Hazan 2016"

    lam: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(lam=check_firm("lam", self.lam, self.domain, self.lipschitz))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R1."""
        return self.lam * self.domain.radius**2 / 2 + self.horizon * self.lipschitz**2 / (2 * self.lam)


def plan_descent(domain: Domain, horizon: int, lipschitz: float, *, max_switches: int | None = None) -> DescentPlan:
    """Return online gradient descent with the best step, in blocks if `max_switches` asks for it.

    Blocks are as short as the number of switches allows. It is a hard cap, and the guarantee holds for losses that
    react to decisions: G R sqrt(T b) with blocks of b rounds.

    >>> from reticent.domains import Ball
    >>> plan = plan_descent(Ball(3), 10_000, 1.0, max_switches=100)
    >>> plan.batch, plan.max_switches
    (100, 100)
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    batch = 1
    if max_switches is not None:
        S = integer("max_switches", max_switches, least=0)
        # The fewest rounds per block with at most S full blocks: a change after the last round counts as one.
        batch = T // (S + 1) + 1
    step = domain.radius / (G * math.sqrt(block_squares(T, batch)))
    return DescentPlan(domain, T, G, step=step, batch=batch)


def plan_leader(domain: Domain, horizon: int, lipschitz: float) -> LeaderPlan:
    """Return FTRL with the best regulariser."""
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    return LeaderPlan(domain, T, G, lam=G * math.sqrt(T) / domain.radius)


def block_squares(horizon: int, batch: int) -> int:
    """Return the sum of the squared lengths of the blocks that a horizon is cut into; the last may be short.

    >>> block_squares(10, 4)
    36
    """
    full, rest = divmod(horizon, batch)
    return full * batch**2 + rest**2


def _descent(goal: Goal) -> DescentPlan:
    return plan_descent(*goal.size, max_switches=goal.max_switches)


def _leader(goal: Goal) -> LeaderPlan:
    return plan_leader(*goal.size)


SYSTEMS = (System(DescentPlan.system, _descent, lazy=True), System(LeaderPlan.system, _leader))
