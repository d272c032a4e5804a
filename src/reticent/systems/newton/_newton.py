"""The online Newton step, for losses with curvature along their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Logistic, Loss, Rows, Squared
from reticent.losses._gate import Gate
from reticent.losses._limit import SLACK, margin_range
from reticent.saving import refuse_unless
from reticent.systems._checks import check_body
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk

_LEAST_RIDGE = 1e-13  # of the largest sum of squared gradients: below, rounding makes it indefinite


@saved("plan of Newton steps")
@dataclass(frozen=True, kw_only=True)
class NewtonPlan(SystemPlan):
    """The online Newton step for losses l with exp(-`exp_concavity` l) concave on the domain.

    `ridge` is the multiple of the identity that the sum of squared gradients starts from. Regret is at most
    d log(1 + T G^2/(d ridge))/(2 gamma) + gamma ridge R^2/2 (docs/theory, R7): it grows with log T only. Every
    round's exp-concavity is checked by the learner.

    >>> from reticent.domains import Ball
    >>> plan_newton(Ball(3), 100_000, 1.0, 0.25).regret_bound < 320
    True
    """

    system: ClassVar[str] = _names.NEWTON
    reference: ClassVar[str] = "Hazan, Agarwal and Kale 2007; Hazan 2016"
    assumes: ClassVar[str] = "exp-concave losses"
    work: ClassVar[str] = "matrices"

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
        """The bound of docs/theory, R7."""
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
    min(1/span, exp_concavity) of the literature and four times that (docs/theory, R7).

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


# The online Newton step, for exp-concave losses.


@saved("Newton steps")
class OnlineNewtonStep(SystemLearner):
    """Steps against the gradient in the norm that past gradients make: regret grows with log T only.

    Algorithm: A_t = ridge I + g_1 g_1' + ... + g_t g_t'; y = x_t - A_t^-1 g_t / gamma; x_{t+1} is the point of the
    domain nearest to y in the norm of A_t (to a relative 1e-12 or so). Theorem: regret is at most
    d log(1 + T G^2/(d ridge))/(2 gamma) + gamma ridge R^2/2, for losses that may react to decisions (docs/theory,
    R7). Assumes losses with exp(-alpha loss) concave, alpha = `plan.exp_concavity`: every row is checked, and one with
    less is refused before anything changes. Logistic and squared losses only. Not private, not lazy.
    References: Hazan, Agarwal and Kale 2007; Hazan 2016, chapter 4.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_newton(rt.Interval(-1.0, 1.0), 1000, 1.0, exp_concavity=0.35)
    >>> learner = rt.learners.OnlineNewtonStep(plan, rt.Logistic())
    >>> trace = learner.observe_many(np.ones((1000, 1)), np.where(np.arange(1000) % 3, 1, -1))
    >>> float(trace.regret()) <= plan.regret_bound < 15
    True
    """

    plan_type: ClassVar[type[SystemPlan]] = NewtonPlan

    def _new_gate(self) -> Gate:
        plan = self.plan
        return CurvedGate(plan.domain, self.loss, plan.lipschitz, self._on_steep, plan.exp_concavity)

    def _new_walk(self) -> Decider:
        # The inbox takes rounds that are plainly within the Lipschitz limit. Of curvature it knows nothing: it stays
        # only where that limit says enough, for logistic rows |a| <= G with margins of -|a| (R + |center|) at least.
        reach = self.plan.lipschitz * (1 + SLACK) * self._inbox.reach
        if not isinstance(self.loss, Logistic) or self.plan.exp_concavity > math.exp(-reach):
            self._inbox.capacity = 0
        return _Newton(self.plan, self.loss)


@saved("curved gate")
class CurvedGate(Gate):
    """A gate that also refuses rounds that are less exp-concave than `least`.

    >>> import reticent as rt
    >>> gate = CurvedGate(rt.Ball(2), rt.Squared(), 4.0, "raise", 0.25)
    >>> [len(part) for part in gate.prepare([[1.0, 0.0]], [0.5])]
    [1]
    """

    def __init__(self, domain: Domain, loss: Loss, lipschitz: float | None, on_steep: str, least: float) -> None:
        """Take the limit on exp-concavity beside those of every gate."""
        super().__init__(domain, loss, lipschitz, on_steep)
        self.least = least

    def prepare(self, *block: Any) -> list[Any]:
        """Return a block of rounds, checked, in parts; nothing is recorded."""
        parts = super().prepare(*block)
        before = 0
        for rows in parts:
            found = self._exp_concavity(rows)
            flat = np.flatnonzero(~(found >= self.least * (1 - 1e-12)))
            if flat.size:
                i = int(flat[0])
                raise ValueError(
                    f"row {before + i} has exp-concavity {found[i]:.6g} on the domain, below the plan's exp_concavity="
                    f"{self.least:.6g}; plan with a smaller one, scale the data down by a public bound, or take a "
                    "method that needs no curvature: online gradient descent, FTRL or P-COMW"
                )
            before += len(rows)
        return parts

    def _exp_concavity(self, rows: Rows) -> Array:
        """Return the least phi''/phi'^2 over the margins of each row (docs/theory, R7)."""
        low, high = margin_range(self.domain, rows)
        with np.errstate(over="ignore", divide="ignore"):
            if isinstance(self.loss, Logistic):
                found: Array = np.exp(low)
            else:
                found = 1 / np.maximum(low**2, high**2)
        return np.where(rows.vectors.any(axis=1), found, np.inf)  # a constant loss has all the concavity there is


@saved("walk of Newton steps")
class _Newton(StepWalk):
    _moves = ("A",)

    def __init__(self, plan: NewtonPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss)
        self.gamma, self.A = plan.gamma, plan.ridge * np.eye(self.u.size)

    def _check_moved(self) -> None:
        refuse_unless(bool(np.linalg.eigvalsh(self.A)[0] > 0.0), "its matrix is not positive definite")

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.newton._kernel import newton_ball, newton_rows

        body = self.domain.body
        play = newton_ball if body.ball else newton_rows
        play(body, code, self.reader.parameter, vectors, offsets, self.gamma, self.A, self.u.copy(), after)
