"""Plans of the online Newton step, for losses with curvature along their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.losses import Logistic, Loss, Squared
from reticent.planning._goal import Goal, NotApplicable, System
from reticent.planning._plan import check_body
from reticent.planning._system import SystemPlan

_LEAST_RIDGE = 1e-13  # of the largest sum of squared gradients: below, rounding makes it indefinite


@dataclass(frozen=True, kw_only=True)
class NewtonPlan(SystemPlan):
    """The online Newton step for losses l with exp(-`exp_concavity` l) concave on the domain.

    `ridge` is the multiple of the identity that the sum of squared gradients starts from. Regret is at most
    d log(1 + T G^2/(d ridge))/(2 gamma) + gamma ridge R^2/2 (docs/theory.md, R7): it grows with log T only. Every
    round's exp-concavity is checked by the learner.

    >>> from reticent.domains import Ball
    >>> plan_newton(Ball(3), 100_000, 1.0, 0.25).regret_bound < 320
    True
    """

    system: ClassVar[str] = "online Newton step"
    reference: ClassVar[str] = "Hazan, Agarwal and Kale 2007; Hazan 2016"
    assumes: ClassVar[str] = "exp-concave losses"

    exp_concavity: float
    ridge: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(exp_concavity=positive("exp_concavity", self.exp_concavity), ridge=positive("ridge", self.ridge))
        least = _LEAST_RIDGE * self.horizon * self.lipschitz**2
        if self.ridge < least:
            raise ValueError(
                f"ridge must be at least {least:g} for sums of squared gradients to be factored in double precision, "
                f"got {self.ridge!r}; plan_newton finds the best one"
            )

    @property
    def gamma(self) -> float:
        """How curved losses are along their gradients: see `curvature`."""
        return curvature(self.exp_concavity, self.lipschitz * self.domain.diameter)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory.md, R7."""
        d, G, R = self.domain.chart_dim, self.lipschitz, self.domain.radius
        volume = d * math.log1p(self.horizon * G * G / (d * self.ridge))
        return volume / (2 * self.gamma) + self.gamma * self.ridge * R * R / 2

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses without curvature along their gradients, and those whose curvature nobody can check."""
        if not isinstance(loss, Logistic | Squared):
            raise ValueError(
                f"loss must be Logistic() or Squared() for the online Newton step, which needs exp-concave losses that "
                f"can be checked, got {loss!r}; online gradient descent (plan_descent), FTRL (plan_leader) and P-COMW "
                "need no curvature"
            )


def curvature(exp_concavity: float, span: float) -> float:
    """Return the largest gamma with l(x) >= l(y) + g.(x-y) + gamma/2 (g.(x-y))^2, g the gradient at y, for all l.

    `span` bounds |g.(x-y)|. With u = exp_concavity * span it is 2 (u - log(1+u)) / (u span): between the half of
    min(1/span, exp_concavity) of the literature and four times that (docs/theory.md, R7).

    >>> round(curvature(1.0, 1.0), 6), round(curvature(1e-9, 1.0) * 1e9, 6)
    (0.613706, 1.0)
    """
    u = exp_concavity * span
    # For small u the difference has lost its digits; the series is alternating and cut from below.
    part = u / 2 - u * u / 3 if u < 1e-5 else (u - math.log1p(u)) / u
    return 2 * part / span


def plan_newton(domain: Domain, horizon: int, lipschitz: float, exp_concavity: float) -> NewtonPlan:
    """Return the online Newton step with the best `ridge`.

    `exp_concavity` is an alpha with exp(-alpha loss) concave on the domain, for every round. A row of `Logistic()` has
    exp(its least margin over the domain), a row of `Squared()` 1/(its largest margin)^2; rows with less are refused.

    >>> from reticent.domains import Ball
    >>> plan = plan_newton(Ball(2), 1000, 1.0, exp_concavity=0.3)
    >>> plan.regret_bound < 70, plan.max_switches is None
    (True, True)
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    alpha = positive("exp_concavity", exp_concavity)
    gamma = curvature(alpha, G * domain.diameter)
    # Where the derivative vanishes: ridge^2 + ridge T G^2/d = T G^2/(gamma R)^2, solved without cancellation.
    half, root = T * G * G / (2 * domain.chart_dim), math.sqrt(T) * G / (gamma * domain.radius)
    ridge = root * (root / (half + math.hypot(half, root)))
    return NewtonPlan(domain, T, G, exp_concavity=alpha, ridge=ridge)


def logistic_exp_concavity(domain: Domain, lipschitz: float) -> float:
    """Return the least exp-concavity of a logistic row within the Lipschitz limit, on a domain around the origin.

    A row a is steep by |a| s(r |a|) at most, s the logistic function and -r|a| its least margin; the largest r|a|
    within the limit belongs to the largest r, the radius.

    >>> from reticent.domains import Ball
    >>> alpha = logistic_exp_concavity(Ball(2), 1.0)
    >>> w = -math.log(alpha)
    >>> round(w / (1 + math.exp(-w)), 9)
    1.0
    """
    import scipy

    target = lipschitz * domain.radius
    # w s(w) lies between w/2 and w; a margin a little larger than the root is on the safe side.
    root = float(scipy.optimize.brentq(lambda w: w / (1 + math.exp(-w)) - target, 0.0, 2 * target + 1, xtol=1e-14))
    return math.exp(-root * (1 + 1e-12))


def _propose(goal: Goal) -> NewtonPlan:
    if not isinstance(goal.loss, Logistic | Squared):
        raise NotApplicable("needs exp-concave losses: Logistic or Squared")
    alpha = goal.exp_concavity
    if alpha is None:
        if isinstance(goal.loss, Squared):
            raise NotApplicable("needs exp_concavity=..., 1/(largest residual)^2 for squared losses")
        if goal.domain.center.any():
            raise NotApplicable("needs exp_concavity=... on a domain that is not centred at the origin")
        alpha = logistic_exp_concavity(goal.domain, goal.lipschitz)
        if alpha < 1e-100:
            raise NotApplicable(f"logistic losses this steep have an exp-concavity of {alpha:g} only")
    return plan_newton(*goal.size, alpha)


SYSTEMS = (System(NewtonPlan.system, _propose),)
