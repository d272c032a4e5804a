"""The choice among systems: every plan that meets a goal, beside its certificate, and why others do not apply."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict, Unpack

from reticent._core._check import integer, positive, real
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.systems import (
    approximate_leader,
    descent,
    experts,
    ftrl,
    implicit,
    l2p,
    lazy_leader,
    newton,
    pcomw,
    perturbed,
)
from reticent.systems._checks import check_adversary, check_neighbors, check_rounds, check_scale
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import BasePlan

SYSTEMS: tuple[System, ...] = (
    *pcomw.SYSTEMS,
    *l2p.SYSTEMS,
    *perturbed.PRIVATE,
    *ftrl.SYSTEMS,
    *implicit.SYSTEMS,
    *approximate_leader.SYSTEMS,
    *perturbed.LAZY,
    *lazy_leader.SYSTEMS,
    *descent.SYSTEMS,
    *newton.SYSTEMS,
    *experts.SYSTEMS,
)
"""Every system that a goal can be put to."""

_NAME, _WIDTH = 44, 118


@dataclass(frozen=True)
class Offer:
    """One system's answer to a goal: a plan, or the reason why there is none."""

    system: str
    plan: BasePlan | None
    reason: str = ""

    @property
    def regret_bound(self) -> float:
        """The certificate; infinite where there is no plan."""
        return float("inf") if self.plan is None or self.plan.regret_bound is None else self.plan.regret_bound

    @property
    def assumes(self) -> str:
        """What the certificate rests on, in words."""
        if self.plan is None:
            return ""
        return self.plan.assumes + ("" if self.plan.adaptive_regret else ", fixed in advance")


@dataclass(frozen=True)
class Comparison:
    """All systems' answers to one goal, the lowest certificate first; prints as a table.

    `offers` are those with a plan, `refusals` the others with their reasons; `best` is the first offer's plan.
    """

    goal: Goal
    offers: tuple[Offer, ...]
    refusals: tuple[Offer, ...]

    @property
    def best(self) -> BasePlan:
        """The plan with the lowest certificate."""
        if not self.offers or self.offers[0].plan is None:
            reasons = "; ".join(f"{offer.system}: {offer.reason}" for offer in self.refusals)
            raise ValueError(f"no system meets this goal ({_wanted(self.goal)}): {reasons}")
        return self.offers[0].plan

    def __iter__(self) -> Iterator[Offer]:
        """Go through the offers, the best first."""
        return iter(self.offers)

    def __getitem__(self, system: str) -> Offer:
        """Return the answer of the system of this name."""
        for offer in (*self.offers, *self.refusals):
            if offer.system == system:
                return offer
        names = ", ".join(offer.system for offer in (*self.offers, *self.refusals))
        raise KeyError(f"no system is called {system!r}; there are {names}")

    def __str__(self) -> str:
        """Lay the comparison out as a table in plain text."""
        T, trivial = self.goal.horizon, self.goal.lipschitz * self.goal.domain.diameter
        lines = [f"{T:,} rounds of {self.goal.loss!r} on {self.goal.domain!r}, {_wanted(self.goal)}", ""]
        lines.append(f"{'system':<{_NAME}}{'regret/round':>13}{'switches':>12}  assumes")
        for offer in self.offers:
            assert offer.plan is not None
            switches = offer.plan.expected_switches
            shown = "" if switches is None else f"{switches:,.0f}"
            per_round = offer.regret_bound / T
            vacuous = " (vacuous)" if per_round >= trivial else ""
            line = f"{offer.system:<{_NAME}}{per_round:>13.6g}{shown:>12}  {offer.assumes}{vacuous}"
            lines.append(line)
        if self.refusals:
            lines += ["", "does not apply"]
            reasons: dict[str, list[str]] = {}
            for offer in self.refusals:
                reasons.setdefault(offer.reason, []).append(offer.system)
            for reason, systems in reasons.items():
                text = f"  {reason}: {'; '.join(systems)}"
                lines += textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(line.rstrip() for line in lines)


class Wanted(TypedDict, total=False):
    """What a goal may name: see `compare_plans`."""

    epsilon: float | None
    delta: float | None
    max_switches: int | None
    neighbors: str
    adversary: str
    smoothness: float | None
    exp_concavity: float | None


def compare_plans(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    loss: Loss,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
    adversary: str = "adaptive",
    smoothness: float | None = None,
    exp_concavity: float | None = None,
) -> Comparison:
    """Return the best plan of every system for one goal, with its certificate, or why it does not apply.

    With `epsilon` and `delta` only private systems apply, with `max_switches` only those that can promise (at least in
    expectation) so few changes; with both, those that do both. `adversary` says against whom privacy must hold. What a
    regret bound assumes stands beside it. `smoothness` (of every round's loss) and `exp_concavity` are for the systems
    that need them, where the loss does not tell.

    >>> import reticent as rt
    >>> found = rt.compare_plans(rt.Ball(3), 1000, 1.0, rt.Hinge(), max_switches=100)
    >>> found["online gradient descent"].plan.max_switches
    100
    >>> found["FTRL"].reason
    'may change its decision every round'
    """
    size, privacy = (domain, horizon, lipschitz, loss), (epsilon, delta)
    goal = checked(Goal(*size, *privacy, max_switches, neighbors, adversary, smoothness, exp_concavity))
    offers, refusals = [], []
    for system in SYSTEMS:
        try:
            offers.append(Offer(system.name, system.answer(goal)))
        except NotApplicable as why:
            refusals.append(Offer(system.name, None, str(why)))
    offers.sort(key=lambda offer: offer.regret_bound)
    return Comparison(goal, tuple(offers), tuple(refusals))


def best_plan(domain: Domain, horizon: int, lipschitz: float, loss: Loss, **goal: Unpack[Wanted]) -> BasePlan:
    """Return the plan with the lowest certificate among all systems that apply; the goal as for `compare_plans`.

    >>> import reticent as rt
    >>> plan = rt.best_plan(rt.Interval(-1.0, 1.0), 1000, 1.0, rt.Absolute(), max_switches=100)
    >>> plan.expected_switches <= 100
    True
    """
    return compare_plans(domain, horizon, lipschitz, loss, **goal).best


def checked(goal: Goal) -> Goal:
    """Return the goal, or refuse it with the value that cannot be."""
    if not isinstance(goal.domain, Domain):
        raise ValueError(f"domain must be a domain such as Ball(dim=2), got {goal.domain!r}")
    if not isinstance(goal.loss, Loss):
        raise ValueError(f"loss must be one of the losses of reticent.losses, got {goal.loss!r}")
    check_rounds("horizon", goal.horizon)
    check_scale(goal.domain, positive("lipschitz", goal.lipschitz))
    if (goal.epsilon is None) != (goal.delta is None):
        raise ValueError(
            f"epsilon and delta go together, got epsilon={goal.epsilon!r} and delta={goal.delta!r}; give both, or "
            "neither"
        )
    if goal.epsilon is not None and goal.delta is not None:
        positive("epsilon", goal.epsilon)
        if not 0 < real("delta", goal.delta) < 1:
            raise ValueError(f"delta must be greater than 0 and less than 1, got {goal.delta!r}")
    if goal.max_switches is not None:
        integer("max_switches", goal.max_switches, least=0)
    check_neighbors(goal.neighbors)
    check_adversary(goal.adversary)
    for name in ("smoothness", "exp_concavity"):
        if getattr(goal, name) is not None:
            positive(name, getattr(goal, name), zero=name == "smoothness")
    return goal


def _wanted(goal: Goal) -> str:
    parts = []
    if goal.epsilon is not None:
        parts.append(f"epsilon {goal.epsilon:g} and delta {goal.delta:g} for {goal.adversary} losses")
    if goal.max_switches is not None:
        parts.append(f"at most {goal.max_switches:,} switches")
    return " and ".join(parts) if parts else "neither private nor lazy"
