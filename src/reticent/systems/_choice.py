"""The choice among systems: every plan that meets a goal, by certificate or by public data, and why others do not."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import Any, TypedDict, Unpack

import numpy as np

from reticent._core._check import integer, positive, real
from reticent._core._errors import WorkLimitError
from reticent._core._html import card, grid, join
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.systems import (
    approximate_leader,
    budgeted,
    descent,
    experts,
    filtered,
    ftrl,
    gate,
    grid_descent,
    implicit,
    l2p,
    lazy_leader,
    newton,
    pcomw,
    perturbed,
)
from reticent.systems._checks import check_adversary, check_claim, check_neighbors, check_rounds, check_scale
from reticent.systems._cost import MOST_OPERATIONS, Cost, affordable_switches, in_short
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._likeness import Tried, resting, tried
from reticent.systems._plan import BasePlan

SYSTEMS: tuple[System, ...] = (
    *pcomw.SYSTEMS,
    *l2p.SYSTEMS,
    *perturbed.PRIVATE,
    *ftrl.SYSTEMS,
    *gate.SYSTEMS,
    *filtered.SYSTEMS,
    *implicit.SYSTEMS,
    *approximate_leader.SYSTEMS,
    *perturbed.LAZY,
    *lazy_leader.SYSTEMS,
    *grid_descent.SYSTEMS,
    *budgeted.SYSTEMS,
    *descent.SYSTEMS,
    *newton.SYSTEMS,
    *experts.SYSTEMS,
)
"""Every system that a goal can be put to."""

_WIDTH = 118
_NOTHING = Cost(0.0, 0.0, "")
AIMS = ("certificate", "ordinary")
"""What a plan is chosen by: its certificate for the worst stream, or how it does on public data that are alike."""


@dataclass(frozen=True)
class Offer:
    """One system's answer to a goal: a plan, or the reason why there is none."""

    system: str
    plan: BasePlan | None
    reason: str = ""
    tried: Tried | None = None
    """How the plan did on public data, where it was tried; else `reason` may say why it was not."""
    fewer: bool = False
    """Whether it has as few switches as `max_operations` leaves room for: another offer of this system has more."""

    @property
    def regret_bound(self) -> float:
        """The certificate, never more than what any decisions suffer; infinite where there is none.

        `plan.regret_bound` is what the system's own theorem says, and `plan.vacuous` whether that is worth anything.
        """
        if self.plan is None:
            return float("inf")
        found = self.plan.trivial_regret if self.plan.regret_bound is None else self.plan.certified_regret
        return float("inf") if found is None else found

    def cost(self, loss: Loss) -> Cost | None:
        """Return what the plan costs to run with this kind of loss, an estimate; None where there is no plan."""
        return None if self.plan is None else self.plan.cost(loss)

    @property
    def assumes(self) -> str:
        """What the certificate rests on, in words."""
        if self.plan is None:
            return ""
        return self.plan.assumes + ("" if self.plan.adaptive_regret else ", fixed in advance")


@dataclass(frozen=True)
class Comparison:
    """All systems' answers to one goal, the lowest certificate first; prints as a table.

    With `aim="ordinary"` the lowest loss on public data comes first, and `resting` is the loss a round of a decision
    that never moves there. `offers` are those with a plan, `refusals` the others with their reasons; `best` is the
    first plan whose decisions stay in the domain asked for, and that does not take too much work.
    """

    goal: Goal
    offers: tuple[Offer, ...]
    refusals: tuple[Offer, ...]
    aim: str = AIMS[0]
    certificate_at_most: float | None = None
    resting: float | None = None

    @property
    def best(self) -> BasePlan:
        """The first plan whose decisions stay in the domain, that may run, and promises what was asked for.

        `goal.max_operations` says how much work a run may take, `certificate_at_most` how much regret may be promised.
        """
        staying = [one for one in self.offers if one.plan is not None and one.plan.domain == self.goal.domain]
        most = self.certificate_at_most
        good = [one for one in staying if most is None or one.regret_bound <= most]
        if staying and not good:
            least = min(offer.regret_bound for offer in staying)
            raise ValueError(
                f"certificate_at_most must be at least {_no_less(least, 6)}, the lowest regret that a plan for this "
                f"goal ({_wanted(self.goal)}) promises, got {most!r}"
            )
        for offer in good:
            if offer.plan is not None and self.affordable(offer) and (self.resting is None or offer.tried is not None):
                return offer.plan
        if good:
            least = min((offer.cost(self.goal.loss) or _NOTHING).operations for offer in good)
            raise ValueError(
                f"max_operations must be at least {_no_less(least, 2)} for the cheapest plan that meets this "
                f"goal ({_wanted(self.goal)}), got {self.goal.max_operations!r}; None allows any "
                "(--max-operations inf)"
            )
        if self.goal.epsilon is not None and self.goal.delta is not None:
            check_claim(self.goal.epsilon, self.goal.delta)  # says in one line what every private system would
        reasons = "; ".join(f"{offer.system}: {offer.reason}" for offer in self.refusals)
        raise ValueError(f"no system meets this goal ({_wanted(self.goal)}): {reasons}")

    def affordable(self, offer: Offer) -> bool:
        """Say whether a run of the offer is estimated to take no more than `goal.max_operations`."""
        cost = offer.cost(self.goal.loss)
        return cost is not None and (self.goal.max_operations is None or cost.operations <= self.goal.max_operations)

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
        measured = self.resting is not None
        lines = [self._heading(), ""]
        if measured:
            lines[1:] = [self._on_public_data(), ""]
        _, *heads, _ = self._heads()
        widths = (12, 10, 13, 12, 11, 9)[0 if measured else 2 :]
        name = max(len(offer.system) for offer in self.offers) if self.offers else len("system")
        table = [("system", [*heads, "assumes"]), *((offer.system, self._cells(offer)) for offer in self.offers)]
        for system, (*numbers, assumes) in table:
            shown = "".join(f"{text:>{width}}" for text, width in zip(numbers, widths, strict=True))
            lines.append(f"{system:<{name}}{shown}  {assumes}")
        if self.refusals:
            lines += ["", "does not apply"]
            for reason, systems in self._reasons().items():
                text = f"  {reason}: {'; '.join(systems)}"
                lines += textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same table."""
        table = grid(self._heads(), [[offer.system, *self._cells(offer)] for offer in self.offers])
        refused = [[reason, "; ".join(systems)] for reason, systems in self._reasons().items()]
        below = [table, *([grid(["does not apply", "systems"], refused)] if refused else [])]
        return card(self._heading(), note=self._on_public_data() if self.resting is not None else "", below=join(below))

    def _heading(self) -> str:
        goal = self.goal
        return f"{goal.horizon:,} rounds of {goal.loss!r} on {goal.domain!r}, {_wanted(goal)}"

    def _on_public_data(self) -> str:
        return f"On the public data, never moving costs {self.resting:.6g} a round."

    def _heads(self) -> list[str]:
        """Return what stands above the columns of the table."""
        measured = ["loss there", "changes"] if self.resting is not None else []
        return ["system", *measured, "regret/round", "switches", "ops/round", "memory", "assumes"]

    def _cells(self, offer: Offer) -> list[str]:
        """Return an offer's line of the table, without its name."""
        plan, cost, measured = offer.plan, offer.cost(self.goal.loss), self.resting is not None
        assert plan is not None
        assert cost is not None
        marks = ["vacuous"] if plan.vacuous else ["not certified"] if plan.regret_bound is None else []
        marks += [] if self.affordable(offer) else ["too much work"]
        marks += ["fewer switches, less work"] if offer.fewer else []
        marks += [offer.reason] if measured and offer.tried is None else []
        cells = []
        if measured:
            seen = offer.tried
            cells = ["", ""] if seen is None else [f"{seen.loss:.6g}", f"{seen.switches:,.0f}"]
        cells.append(f"{offer.regret_bound / self.goal.horizon:.6g}")
        cells.append("" if plan.expected_switches is None else f"{plan.expected_switches:,.0f}")
        cells += in_short(cost, self.goal.horizon)
        return [*cells, offer.assumes + (f" ({', '.join(marks)})" if marks else "")]

    def _reasons(self) -> dict[str, list[str]]:
        """Return the systems that do not apply, by the reason."""
        reasons: dict[str, list[str]] = {}
        for offer in self.refusals:
            reasons.setdefault(offer.reason, []).append(offer.system)
        return reasons


class Wanted(TypedDict, total=False):
    """What a goal may name: see `compare_plans`."""

    epsilon: float | None
    delta: float | None
    max_switches: int | None
    neighbors: str
    adversary: str
    smoothness: float | None
    exp_concavity: float | None
    strong_convexity: float | None
    max_operations: float | None
    aim: str
    like: Any
    certificate_at_most: float | None


@np.errstate(under="ignore")  # whatever the caller has numpy do about it
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
    strong_convexity: float | None = None,
    max_operations: float | None = MOST_OPERATIONS,
    aim: str = AIMS[0],
    like: Any = None,
    certificate_at_most: float | None = None,
) -> Comparison:
    """Return the best plan of every system for one goal, with its certificate, or why it does not apply.

    With `epsilon` and `delta` only private systems apply, with `max_switches` only those that can promise (at least in
    expectation) so few changes; with both, those that do both. `adversary` says against whom privacy must hold. What a
    regret bound assumes stands beside it. `smoothness` (of every round's loss), `exp_concavity` and `strong_convexity`
    are for the systems that need them, where the loss does not tell.

    A certificate that says no more than what staying at the centre does is marked as vacuous, and none is shown that is
    above what any decisions suffer. Operations of a round and memory are estimates
    (`plan.cost(loss)` says more); what takes more than `max_operations` over the whole horizon is shown, but is not
    `best`: a second offer of that system has as many switches as this leaves room for.

    `aim="ordinary"` puts first what does well on ordinary streams, each plan with the same privacy and changes as
    before. `like` is **public** data, or a model of yours: arrays as `observe_many` takes them, or a stream of the lab.
    Every plan is run on it, and the lowest mean loss comes first; without it, the systems that are made for ordinary
    data do. The private stream itself must not be passed: what is chosen by it reveals it, and no epsilon covers that.
    `certificate_at_most` is the most regret that the chosen plan may promise for the worst stream.

    >>> import reticent as rt
    >>> found = rt.compare_plans(rt.Ball(3), 1000, 1.0, rt.Hinge(), max_switches=100)
    >>> found["online gradient descent"].plan.max_switches
    100
    >>> found["FTRL"].reason
    'may change its decision every round'
    """
    if aim not in AIMS:
        raise ValueError(f"aim must be {' or '.join(map(repr, AIMS))}, got {aim!r}")
    if like is not None and aim != AIMS[1]:
        raise ValueError('like is for aim="ordinary": certificates look at no data; give that aim, or leave like out')
    if certificate_at_most is not None:
        positive("certificate_at_most", certificate_at_most)
    size, privacy = (domain, horizon, lipschitz, loss), (epsilon, delta)
    known = (smoothness, exp_concavity, strong_convexity)
    goal = checked(Goal(*size, *privacy, max_switches, neighbors, adversary, *known, max_operations))
    offers, refusals = [], []
    for system in SYSTEMS:
        try:
            offers.append(Offer(system.name, system.answer(goal)))
        except NotApplicable as why:
            refusals.append(Offer(system.name, None, str(why)))
    found = Comparison(goal, _in_order(offers), tuple(refusals), aim, certificate_at_most)
    found = replace(found, offers=_in_order([*offers, *_less_work(found)]))
    return found if aim == AIMS[0] else _ordinary(found, like)


def _in_order(offers: list[Offer]) -> tuple[Offer, ...]:
    """Return offers by their certificates; what is capped is told apart by what its own theorem says."""
    return tuple(sorted(offers, key=lambda one: (one.regret_bound, one.plan.regret_bound or 0.0 if one.plan else 0.0)))


def _less_work(found: Comparison) -> list[Offer]:
    """Return plans with fewer switches, of systems that would be chosen if their plans did not take too much work.

    Else more switches, or less privacy, might leave a plan that cannot be afforded, and so promise less.
    """
    goal, less = found.goal, []
    lazy = {system.name: system for system in SYSTEMS if system.lazy}
    for offer in found.offers:
        plan, cap = offer.plan, goal.max_switches
        if plan is None or goal.max_operations is None or plan.domain != goal.domain:
            continue
        if found.affordable(offer):
            break
        count = affordable_switches(plan, goal.loss, goal.max_operations)
        if offer.system not in lazy or not count or (cap is not None and cap <= count):
            continue
        try:
            again = Offer(offer.system, lazy[offer.system].answer(replace(goal, max_switches=count)), fewer=True)
        except NotApplicable:
            continue
        less += [again] if found.affordable(again) else []
    return less


def _ordinary(found: Comparison, like: Any) -> Comparison:
    """Return the comparison with what does well on ordinary data first."""
    if like is None:
        made_for = {system.name for system in SYSTEMS if system.ordinary}
        return replace(found, offers=tuple(sorted(found.offers, key=lambda offer: offer.system not in made_for)))
    goal = found.goal
    offers = [_tried(found, offer, like) for offer in found.offers]
    offers.sort(key=lambda offer: float("inf") if offer.tried is None else offer.tried.loss)
    return replace(found, offers=tuple(offers), resting=resting(goal.domain, goal.loss, goal.lipschitz, like))


def _tried(found: Comparison, offer: Offer, like: Any) -> Offer:
    assert offer.plan is not None
    if not found.affordable(offer):
        return replace(offer, reason="not tried")
    try:
        return replace(offer, tried=tried(offer.plan, found.goal.loss, like))
    except WorkLimitError:
        return replace(offer, reason="needs too much work")


@np.errstate(under="ignore")
def best_plan(domain: Domain, horizon: int, lipschitz: float, loss: Loss, **goal: Unpack[Wanted]) -> BasePlan:
    """Return the plan with the lowest certificate among all systems that apply; the goal as for `compare_plans`.

    With `aim="ordinary"` it is the one with the lowest loss on the public data `like`; `compare_plans` says what else
    was tried there.
    A plan that would take more than `max_operations` (1e13 unless given; None: any number) is not chosen.
    Plans whose decisions may leave the domain (`DP-FTRL, smooth losses`) are listed there, and not chosen here.

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
    for name in ("smoothness", "exp_concavity", "strong_convexity", "max_operations"):
        if getattr(goal, name) is not None:
            positive(name, getattr(goal, name), zero=name in ("smoothness", "strong_convexity"))
    if goal.smoothness is not None and (goal.strong_convexity or 0.0) > goal.smoothness:
        raise ValueError(
            f"strong_convexity must be at most the smoothness, the largest second derivative, got strong_convexity="
            f"{goal.strong_convexity!r} and smoothness={goal.smoothness!r}; lower the one or raise the other"
        )
    return goal


def _no_less(value: float, digits: int) -> str:
    """Return a number to so many digits, never less than it is: advice that must do when it is followed.

    >>> _no_less(1.000001, 6), _no_less(1.41e13, 2), _no_less(2.5, 2)
    ('1.00001', '1.5e+13', '2.5')
    """
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value)):.{digits}g}"


def _wanted(goal: Goal) -> str:
    parts = []
    if goal.epsilon is not None:
        parts.append(f"epsilon {goal.epsilon:g} and delta {goal.delta:g} for {goal.adversary} losses")
    if goal.max_switches is not None:
        parts.append(f"at most {goal.max_switches:,} switches")
    return " and ".join(parts) if parts else "neither private nor lazy"
