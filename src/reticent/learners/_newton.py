"""The online Newton step, for exp-concave losses."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.losses import Logistic, Loss, Rows
from reticent.losses._gate import Gate
from reticent.losses._limit import SLACK
from reticent.losses._margins import margin_range
from reticent.planning._newton import NewtonPlan
from reticent.planning._system import SystemPlan

from ._steps import StepWalk
from ._system import SystemLearner


class OnlineNewtonStep(SystemLearner):
    """Steps against the gradient in the norm that past gradients make: regret grows with log T only.

    Algorithm: A_t = ridge I + g_1 g_1' + ... + g_t g_t'; y = x_t - A_t^-1 g_t / gamma; x_{t+1} is the point of the
    domain nearest to y in the norm of A_t (to a relative 1e-12 or so). Theorem: regret is at most
    d log(1 + T G^2/(d ridge))/(2 gamma) + gamma ridge R^2/2, for losses that may react to decisions (docs/theory.md,
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

    def _begin(self) -> None:
        super()._begin()
        # The inbox takes rounds that are plainly within the Lipschitz limit. Of curvature it knows nothing: it stays
        # only where that limit says enough, for logistic rows |a| <= G with margins of -|a| (R + |center|) at least.
        reach = self.plan.lipschitz * (1 + SLACK) * self._inbox.reach
        if not isinstance(self.loss, Logistic) or self.plan.exp_concavity > math.exp(-reach):
            self._inbox.capacity = 0

    def _new_walk(self) -> Any:
        return _Newton(self.plan, self.loss)


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
        """Return the least phi''/phi'^2 over the margins of each row (docs/theory.md, R7)."""
        low, high = margin_range(self.domain, rows)
        with np.errstate(over="ignore", divide="ignore"):
            if isinstance(self.loss, Logistic):
                found: Array = np.exp(low)
            else:
                found = 1 / np.maximum(low**2, high**2)
        return np.where(rows.vectors.any(axis=1), found, np.inf)  # a constant loss has all the concavity there is


class _Newton(StepWalk):
    def __init__(self, plan: NewtonPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss)
        self.gamma, self.A = plan.gamma, plan.ridge * np.eye(self.u.size)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._newton_kernel import newton_ball, newton_rows

        body = self.domain.body
        play = newton_ball if body.ball else newton_rows
        play(body, code, self.reader.parameter, vectors, offsets, self.gamma, self.A, self.u.copy(), after)
