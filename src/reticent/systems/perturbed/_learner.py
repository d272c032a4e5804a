"""Perturbed regularised leaders: private (Agarwal et al. 2023), and lazy without privacy (Sherman and Koren 2021)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, Linear, Loss, Objects, Rows, Squared
from reticent.losses._custom import pulled_bend
from reticent.losses._gate import Gate
from reticent.saving import refuse_unless
from reticent.systems._decider import NEVER, Changes, Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._smooth import SmoothGate, check_bend, check_turn, limit_inbox
from reticent.systems._steps import CompiledLoss, StepWalk, gradient_at
from reticent.systems._walk import odds_of
from reticent.systems.perturbed._lazy import ShermanKorenPlan
from reticent.systems.perturbed._objective import ObjectivePlan

_STALLED = 20  # Newton steps in a row that are not half as long as the shortest before them: it goes no further

# The walks of perturbed leaders: the state that coins keep, and the rounds that its minimiser needs.


@saved("perturbed walk")
class PerturbedWalk:
    """The minimiser in play, its noise Z, and the Hessian there; past rows where their sums do not tell all.

    `block` and `block_H` are gradient and Hessian, at the minimiser, of the rounds since the last end of a batch.
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
        "rest_Z",
        "block",
        "block_H",
        "rest_block",
        "rest_block_H",
        "nu",
        "level",
        "counts",
        "torn",
        "u",
    )

    def __init__(self, plan: ObjectivePlan | ShermanKorenPlan, loss: Loss, rng: np.random.Generator) -> None:
        from reticent.systems._kernels import next_coin  # numba loads on first use

        self.domain, self.rng, self.sigma, self.lam = plan.domain, rng, plan.sigma, plan.lam
        self.reader = CompiledLoss(loss)
        p, self.cap, self.batch = 0.0, NEVER, 1
        if isinstance(plan, ObjectivePlan):
            p, self.cap, self.batch = plan.p, plan.budget, plan.batch
        self.odds = (math.log(plan.phi), *odds_of(p, 2.0 * math.log(plan.phi)))
        d = self.domain.chart_dim
        self.columns = self._new_past(loss)
        self.sum, self.Z, self.H, self.free = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.ones(d, dtype=np.bool_)
        self.block, self.block_H = np.zeros(d), np.zeros((d, d))
        # What rounding has left of the sums.
        self.rest, self.rest_H, self.rest_Z = np.zeros(d), np.zeros((d, d)), np.zeros(d)
        self.rest_block, self.rest_block_H = np.zeros(d), np.zeros((d, d))
        self.nu, self.level = np.zeros(1), np.zeros(1)
        self.counts = np.array([0, NEVER, 0])
        self.torn = False
        self.u: Array = np.zeros(d)
        self._first()
        self.counts[1], self.level[0] = next_coin(rng, self.odds[1:], 0, self.batch, NEVER)

    def _new_past(self, loss: Loss) -> Any:
        """Return what holds past rounds: nothing where sums do."""
        from reticent.gibbs._history import Columns

        return None if isinstance(loss, Linear | Squared) else Columns(self.domain.chart_dim)

    def _first(self) -> None:
        """Go to the first decision: there is nothing but Z, and the row of zeros is not read."""
        from reticent.systems.perturbed._kernel import renew

        d = self.domain.chart_dim
        fixed = (self.domain.body, self.reader.code, self.reader.parameter, self.lam, self.sigma)
        self.nu[0] = renew(
            self.rng, *fixed, np.zeros((1, d)), np.zeros(1), 0, self.sum, self.Z, self.u, self.H, self.free
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only, and no batches."""
        vars(self).update(state)
        vars(self).setdefault("batch", 1)
        for name in ("rest", "rest_Z", "block", "rest_block"):
            vars(self).setdefault(name, np.zeros_like(self.sum))
        for name in ("rest_H", "block_H", "rest_block_H"):
            vars(self).setdefault(name, np.zeros_like(self.H))

    def _catch_up(self, found: PerturbedWalk) -> None:
        """Let a walk from a file of an older version, which had them in another form, have the odds of its plan."""
        if vars(found).pop("coin", None) is not None:
            found.odds = self.odds

    def _check_moved(self) -> None:
        done, due, spent = self.counts.tolist()
        # Once the budget is spent nobody looks at coins any more.
        waits = self.frozen or done < due <= NEVER
        refuse_unless(0 <= spent <= self.cap and waits, f"its next coin is due at round {due} of {done}")
        refuse_unless(0.0 <= self.level[0] <= 1.0, "its next coin has no chance")
        refuse_unless(due == NEVER or due % self.batch == 0, f"its next coin is due at round {due}, inside of a batch")
        open_block = done % self.batch and not self.frozen
        block = self.block, self.block_H, self.rest_block, self.rest_block_H
        refuse_unless(bool(open_block) or not any(part.any() for part in block), "it has a block that is not open")
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
        start, count = play(
            self.rng,
            self.domain.body,
            self.reader.code,
            self.reader.parameter,
            self.lam,
            self.sigma,
            self.odds,
            self.batch,
            self.cap,
            vectors,
            offsets,
            start,
            (self.sum, self.rest),
            self._state(),
            self.nu,
            self.counts,
            self.level,
            (places, points),
        )
        changes.add_many(places[:count], points[:count])
        return int(start)

    def _state(self) -> tuple[Any, ...]:
        sums = self.Z, self.block, self.rest_Z, self.rest_block
        bends = self.H, self.block_H, self.rest_H, self.rest_block_H
        return self.u, self.free, sums, bends


@saved("perturbed walk, custom losses")
class CustomWalk(PerturbedWalk):
    """The same for custom losses, read through the caller's functions: gradients and Hessians, round by round."""

    def __init__(self, plan: ObjectivePlan | ShermanKorenPlan, loss: Custom, rng: np.random.Generator) -> None:
        self.loss, self.smoothness = loss, plan.smoothness
        super().__init__(plan, loss, rng)

    def _new_past(self, loss: Loss) -> Any:
        from reticent.gibbs._history import ObjectHistory

        assert isinstance(loss, Custom)
        return ObjectHistory(self.domain, loss)

    def _first(self) -> None:
        self._renew()

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; each is looked at, where the decision is, before anything of it is recorded."""
        from reticent.systems._kernels import next_coin
        from reticent.systems.perturbed._kernel import absorb

        fixed = (self.domain.body, self.lam, self.sigma, self.odds, self.batch)
        for i in range(len(rows)):
            if self.frozen:
                self.counts[0] += len(rows) - i
                break
            gradient, centre = (gradient_at(self.domain, self.loss, rows, i, u) for u in (self.u, 0.0 * self.u))
            # A Hessian says nothing of a gradient that jumps.
            check_turn(np.array([centre, gradient]), np.array([0.0 * self.u, self.u]), self.smoothness)
            bend = self._bend(rows, i)
            self.torn = True
            self.columns.add(rows[i : i + 1])
            counted = (self.nu, self.counts, self.level)
            if absorb(*fixed, gradient, bool(bend.any()), bend, self._state(), *counted):
                before = self.u
                self.u = before.copy()  # the present one may have been given away
                self._renew()
                self.counts[2] += 1
                if (before != self.u).any():
                    changes.add(self.done, self.u)
            if self.counts[0] == self.counts[1]:
                self.counts[1], self.level[0] = next_coin(self.rng, self.odds[1:], self.done, self.batch, NEVER)
            self.torn = False
        if self.frozen:
            self.columns = self._new_past(self.loss)  # nothing will ever be solved again

    def _bend(self, rows: Objects, i: int) -> Array:
        """Return the Hessian of object `i` at the decision, in the chart; refuse what the plan does not cover."""
        found = float(rows.scales[i]) * pulled_bend(
            self.domain, self.loss.bend(self.domain.from_chart(self.u), rows.items[i])
        )
        check_bend(found[None], self.smoothness)
        return np.ascontiguousarray(found)

    def _renew(self) -> None:
        """Draw Z afresh and go to its minimiser, as the kernel `minimise` does: Newton steps, cut back."""
        from reticent.systems.perturbed._kernel import (
            GOOD,
            LATE,
            NEAR,
            TURNS,
            distance,
            fresh,
            half_widths,
            newton_point,
            settle,
        )

        body, R = self.domain.body, self.domain.body.radius
        half, size = half_widths(body, self.u.size), np.full(self.u.size, math.fsum(self.columns.bounds))
        fresh(self.rng, self.sigma, self.Z)
        size += np.abs(self.Z)
        x, y = self.u, np.empty_like(self.u)
        g, H = self._derivatives(x)
        shortest, stalled = math.inf, 0
        for turn in range(TURNS):
            self.nu[0] = newton_point(body, self.lam, x, g, H, y)
            step, far = y - x, float(distance(self.lam, size, half, x, y))
            if far <= NEAR or (turn >= LATE and far <= 1e-9):
                x = y.copy()  # the last step, as in `minimise`
                g, H = self._derivatives(x)
                break
            stalled = 0 if far < shortest / 2 else stalled + 1
            shortest = min(shortest, far)
            if stalled == _STALLED and far <= GOOD:
                raise RuntimeError(
                    f"the minimiser of the perturbed losses was found to {far:.1g} of half the width only; write "
                    "value, subgradient and hessian of the loss in double precision"
                )
            gain, room, part = -float(g @ step), 1e-14 * float(np.linalg.norm(g)) * R, 1.0
            while True:
                x_next = y.copy() if part == 1.0 else x + part * step
                g_next, H_next = self._derivatives(x_next)
                if g_next @ step <= 0.25 * gain + room or part < 1e-4:
                    break
                part *= 0.4
            x, g, H = x_next, g_next, H_next
        settle(body, self.lam, x, g, H, size, self.free)
        self.u, self.H = x, H
        for rest in (self.rest_H, self.rest_Z):
            rest[:] = 0.0

    def _derivatives(self, x: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian of past losses plus Z.x at x, then add lam/2 |x|^2 to the gradient."""
        _, slope = self.columns.value_and_gradient(x)
        return slope + self.lam * x + self.Z, np.ascontiguousarray(self.columns.hessian(x))


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
    det(1 + Hessian of l times M), M = -dx/dZ. Keep with probability (1-p) clip(r/phi, phi^-2, 1), else draw Z afresh,
    at most `budget` times; with a `batch` l is the sum of so many rounds. Theorem: differentially private for losses
    that may react to decisions, even if Z were released; regret and switches as certified for losses that do not
    (docs/theory, R5). Assumes linear losses, or on balls and boxes smooth ones with second derivatives up to
    `plan.smoothness`: `Logistic`, `Squared`, `Huber`, whose rounds are refused above it, or with a plan that is
    `general` a `Custom` loss with its `hessian`, on trust (some points are looked at); and exact minimisers: Newton's
    method goes on to the accuracy of the arithmetic.
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
        return _walk(self.plan, self.loss, self._rng)


@saved("Sherman-Koren")
class ShermanKoren(SystemLearner):
    """Plays a perturbed regularised leader that is kept as long as a coupling of its next law with the present allows.

    Algorithm: for linear losses the noisy sum W = S + Z is kept with probability min(1, next density/present density),
    else reflected about the hyperplane midway between the two means; x = argmin W.x + lam/2 |x|^2. For smooth losses
    the coin of `ObjectivePerturbation` with p = 0, without a budget. Theorem: expected switches and regret are as
    certified, for losses that do not react to decisions (docs/theory, R5). Assumes linear losses, or smooth ones on
    balls and boxes, as `ObjectivePerturbation` does. Not private.
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
        return _walk(plan, self.loss, self._rng)


def _walk(plan: ObjectivePlan | ShermanKorenPlan, loss: Loss, rng: np.random.Generator) -> Decider:
    return CustomWalk(plan, loss, rng) if isinstance(loss, Custom) else PerturbedWalk(plan, loss, rng)
