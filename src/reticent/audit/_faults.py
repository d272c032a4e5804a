"""Learners with a known fault, for audits of the audit: one that cannot catch them is too weak to be believed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.gibbs import Gibbs
from reticent.learners import PCOMW
from reticent.losses import Loss
from reticent.planning import Plan
from reticent.systems._decider import Changes
from reticent.systems._walk import Toss, Walk
from reticent.systems.pcomw._walk import AuxiliaryCoin

FAULTS = ("budget ignored", "half the noise", "auxiliary draw reused")


@dataclass(frozen=True)
class Faulty:
    """The factory of a learner that claims to follow a plan and does not.

    "budget ignored" switches at will; "half the noise" draws from a measure of half the width (beta times 4);
    "auxiliary draw reused" plays, after a coin that says switch, the very draw that the coin was tossed with.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Interval(-9.0, 9.0), 4, 1.0, beta=1.0, lam=4.0, p=1.0, phi=1.0, budget=1)
    >>> learner = Faulty(plan, rt.Linear(), "budget ignored")(np.random.default_rng(1))
    >>> learner.observe_many(np.zeros((4, 1))).switches
    4
    """

    plan: Plan
    loss: Loss
    fault: str

    def __post_init__(self) -> None:
        """Refuse a fault that is not among them."""
        if self.fault not in FAULTS:
            raise ValueError(f"fault must be one of {', '.join(map(repr, FAULTS))}, got {self.fault!r}")

    def __call__(self, rng: np.random.Generator) -> PCOMW:
        """Return a learner at its beginning."""
        kind = _Reusing if self.fault == "auxiliary draw reused" else PCOMW
        return kind(self.parameters, self.loss, rng)

    @cached_property
    def parameters(self) -> Plan:
        """What the learner really follows, without a claim, which would be checked."""
        plan = replace(self.plan, epsilon=None, delta=None)
        if self.fault == "budget ignored":
            return replace(plan, budget=None)
        return replace(plan, beta=4 * plan.beta) if self.fault == "half the noise" else plan


class _Reusing(PCOMW):
    """P-COMW on a walk that plays auxiliary draws."""

    def _new_walk(self) -> Walk:
        measure = Gibbs(
            self.plan.domain,
            self.loss,
            self.plan.beta,
            self.plan.lam,
            lipschitz=self.plan.lipschitz,
            distance=self.plan.distance,
        )
        return _ReusingWalk(self.plan, measure, self._rng, _TellingCoin(self.plan))


class _TellingCoin(AuxiliaryCoin):
    """The coin of one auxiliary draw, which it does not keep to itself."""

    def switches(self, toss: Toss, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> bool:
        """Say whether the decision changes, and remember the draw that decided it."""
        self.told: Array | None = None
        if toss.forced:
            return True
        self.told = measure.draw_in_chart(rng)[0]
        y, x = measure.loss.total(measure.domain, rows, np.stack([self.told, u]))
        return bool(toss.level > np.exp(min(self.beta * (y - x), 700.0)) / self.phi)


class _ReusingWalk(Walk):
    """A walk whose next decision is the draw that the coin was tossed with, if there was one."""

    def _settle(self, changes: Changes) -> None:
        before = len(changes)
        super()._settle(changes)
        told = getattr(self.coin, "told", None)
        if len(changes) > before and told is not None:
            self.u = told
            changes.put_last(told)
