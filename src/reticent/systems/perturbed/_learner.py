"""Perturbed regularised leaders: private (Agarwal et al. 2023), and lazy without privacy (Sherman and Koren 2021)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Linear, Loss, Rows, Squared
from reticent.losses._gate import Gate
from reticent.saving import refuse_unless
from reticent.systems._decider import NEVER, Changes, Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._smooth import SmoothGate, limit_inbox
from reticent.systems._steps import CompiledLoss, StepWalk
from reticent.systems._walk import odds_of
from reticent.systems.perturbed._lazy import ShermanKorenPlan
from reticent.systems.perturbed._objective import ObjectivePlan

# The walks of perturbed leaders: the state that coins keep, and the rounds that its minimiser needs.


@saved("perturbed walk")
class PerturbedWalk:
    """The minimiser in play, its noise Z, and the Hessian there; past rows where their sums do not tell all.

    Randomness is used where a coin is looked at and then for finding the next, so rounds may be cut into any blocks.
    """

    _moves: ClassVar[tuple[str, ...]] = (
        "columns",
        "sum",
        "Z",
        "H",
        "free",
        "rest",
        "rest_H",
        "nu",
        "level",
        "counts",
        "torn",
        "u",
    )

    def __init__(
        self,
        domain: Domain,
        loss: Loss,
        rng: np.random.Generator,
        sigma: float,
        lam: float,
        p: float,
        phi: float,
        budget: int | None,
    ) -> None:
        from reticent.gibbs._history import Columns  # numba loads on first use
        from reticent.systems._kernels import next_coin
        from reticent.systems.perturbed._kernel import renew

        self.domain, self.rng, self.sigma, self.lam = domain, rng, sigma, lam
        self.reader = CompiledLoss(loss)
        self.cap = NEVER if budget is None else budget
        self.coin = (math.log(phi), *odds_of(p, 2.0 * math.log(phi)))
        d = domain.chart_dim
        self.columns = None if isinstance(loss, Linear | Squared) else Columns(d)
        self.sum, self.Z, self.H, self.free = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.ones(d, dtype=np.bool_)
        self.rest, self.rest_H = np.zeros(d), np.zeros((d, d))  # what rounding has left of the sums
        self.nu, self.level = np.zeros(1), np.zeros(1)
        self.counts = np.array([0, NEVER, 0])
        self.torn = False
        self.u: Array = np.zeros(d)
        # Before the first round there is nothing but Z: the row of zeros is not read.
        fixed = (domain.body, self.reader.code, self.reader.parameter, lam, sigma)
        self.nu[0] = renew(rng, *fixed, np.zeros((1, d)), np.zeros(1), 0, self.sum, self.Z, self.u, self.H, self.free)
        self.counts[1], self.level[0] = next_coin(rng, self.coin[1:], 0, 1, NEVER)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if "rest" not in state:
            self.rest, self.rest_H = np.zeros_like(self.sum), np.zeros_like(self.H)

    def _check_moved(self) -> None:
        done, due, spent = self.counts.tolist()
        refuse_unless(0 <= spent <= self.cap and done < due <= NEVER, f"its next coin is due at round {due} of {done}")
        refuse_unless(0.0 <= self.level[0] <= 1.0, "its next coin has no chance")
        kept = 0 if self.frozen else done
        refuse_unless(self.columns is None or len(self.columns) == kept, f"it does not hold {kept} rounds")

    @property
    def done(self) -> int:
        """Rounds taken in."""
        return int(self.counts[0])

    @property
    def due(self) -> int:
        """When the next coin has to be looked at."""
        return NEVER if self.frozen else int(self.counts[1])

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return bool(self.counts[2] >= self.cap)

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are added."""
        if not len(rows):
            return
        vectors, offsets = self.reader.plain(rows)
        start = 0
        self.torn = True
        if self.columns is not None and not self.frozen:
            start = len(self.columns)
            self.columns.append(vectors, offsets)
            vectors, offsets = self.columns.vectors, self.columns.offsets
        self.u = self.u.copy()  # the present one may have been given away
        while start < len(offsets):
            start = self._play(vectors, offsets, start, changes)
        if self.columns is not None and self.frozen:
            self.columns = type(self.columns)(self.u.size)  # nothing will ever be solved again
        self.torn = False

    def _play(self, vectors: Array, offsets: Array, start: int, changes: Changes) -> int:
        from reticent.systems.perturbed._kernel import play

        places, points = changes.buffer(self.u.size)
        state: tuple[Any, ...] = (self.sum, self.rest, self.Z, self.u, self.H, self.rest_H, self.free)
        start, count = play(
            self.rng,
            self.domain.body,
            self.reader.code,
            self.reader.parameter,
            self.lam,
            self.sigma,
            self.coin,
            self.cap,
            vectors,
            offsets,
            start,
            state,
            self.nu,
            self.counts,
            self.level,
            (places, points),
        )
        changes.add_many(places[:count], points[:count])
        return int(start)


@saved("reflected walk")
class ReflectedWalk(StepWalk):
    """The noisy sum of linear losses, kept or reflected round after round."""

    _moves = ("S", "Z")

    def __init__(self, domain: Domain, loss: Loss, rng: np.random.Generator, sigma: float, lam: float) -> None:
        super().__init__(domain, loss)
        self.rng, self.sigma, self.lam = rng, sigma, lam
        self.S, self.Z = np.zeros_like(self.u), sigma * rng.standard_normal(self.u.size)
        self.u = domain.to_chart(domain.project(domain.from_chart(-self.Z / lam)))

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.perturbed._kernel import reflect

        reflect(self.rng, self.domain.body, self.lam, self.sigma, vectors, self.S, self.Z, self.u.copy(), after)


# Perturbed regularised leaders: private (Agarwal et al. 2023), and lazy without privacy (Sherman and Koren 2021).


@saved("objective perturbation")
class ObjectivePerturbation(SystemLearner):
    """Plays a private minimiser of the past losses plus random linear term, and keeps it as long as a coin allows.

    Algorithm: x = argmin over K of F(x) + lam/2 |x|^2 + Z.x, Z ~ N(0, sigma^2 I). When a loss l arrives, keeping x is
    moving Z to Z - grad l(x); r is the ratio of densities, next over present, there, with the determinant
    1 + phi'' a'Ma. Keep with probability (1-p) clip(r/phi, phi^-2, 1), else draw Z afresh, at most `budget` times.
    Theorem: differentially private for losses that may react to decisions, even if Z were released; regret and switches
    as certified for losses that do not (docs/theory, R5). Assumes linear losses, or on balls and boxes smooth
    generalised linear ones (`Logistic`, `Squared`, `Huber`) with second derivatives up to `plan.smoothness` (rounds
    above it are refused), and exact minimisers: Newton's method goes on to the accuracy of the arithmetic.
    Cost: a switch takes passes over all past rounds, O(t d^2) each, but for `Linear` and `Squared`, which keep sums.
    Reference: Agarwal, Kale, Singh and Thakurta 2023; derived from the published idea, with an account of our own.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_objective(rt.Ball(2), 1000, 1.0, 1.0, 1e-6, smoothness=1.0)
    >>> learner = rt.learners.ObjectivePerturbation(plan, rt.Logistic(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)), np.ones(1000))
    >>> trace.switches <= plan.budget, learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ObjectivePlan

    def _new_gate(self) -> Gate:
        return SmoothGate(self.plan, self.loss, self._on_steep)

    def _new_walk(self) -> Decider:
        limit_inbox(self._inbox, self.loss, self.plan.smoothness)
        plan = self.plan
        return PerturbedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam, plan.p, plan.phi, plan.budget)


@saved("Sherman-Koren")
class ShermanKoren(SystemLearner):
    """Plays a perturbed regularised leader that is kept as long as a coupling of its next law with the present allows.

    Algorithm: for linear losses the noisy sum W = S + Z is kept with probability min(1, next density/present density),
    else reflected about the hyperplane midway between the two means; x = argmin W.x + lam/2 |x|^2. For smooth losses
    the coin of `ObjectivePerturbation` with p = 0, without a budget. Theorem: expected switches and regret are as
    certified, for losses that do not react to decisions (docs/theory, R5). Assumes linear losses, or smooth
    generalised linear ones on balls and boxes. Not private.
    Reference: Sherman and Koren 2021; derived from the published idea.

    >>> import numpy as np
    >>> import reticent as rt
    >>> plan = rt.planning.plan_sherman_koren(rt.Ball(2), 1000, 1.0, 50)
    >>> learner = rt.learners.ShermanKoren(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> trace.switches < 100, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ShermanKorenPlan

    def _new_gate(self) -> Gate:
        return SmoothGate(self.plan, self.loss, self._on_steep)

    def _new_walk(self) -> Decider:
        plan = self.plan
        if not plan.smoothness:
            assert isinstance(self.loss, Linear)
            return ReflectedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam)
        limit_inbox(self._inbox, self.loss, plan.smoothness)
        return PerturbedWalk(plan.domain, self.loss, self._rng, plan.sigma, plan.lam, 0.0, plan.phi, None)
