"""Lazy-to-private (Asi et al. 2024): coins compare the decision with a point that has nothing to hide."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.gibbs import Gibbs
from reticent.losses import Loss
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events, gdp
from reticent.saving import refuse_unless
from reticent.systems._checks import LESS, chance, check_body, check_target, within_failures
from reticent.systems._decider import NEVER, Changes, Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import coin_error
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._walk import KeepingCoin, Walk
from reticent.systems.l2p._coin_plan import CoinPlan
from reticent.systems.l2p._search import Costs, Found, Law, Trials, one_draw, search
from reticent.systems.pcomw._lazy import MeasureCosts
from reticent.systems.pcomw._regret import first_term
from reticent.systems.pcomw._search import FirstTerms

ANCHORS = ("drawn", "centre")


@saved("plan of lazy-to-private")
@dataclass(frozen=True, kw_only=True)
class LazyToPrivatePlan(CoinPlan):
    """Draws from exp(-beta (sum of losses + lam/2 |x|^2)), kept by coins that compare them with a point y.

    With `anchor` "drawn" y is a draw of the first measure, renewed from the present one with probability `refresh`
    after every batch, `refreshes` times at most, as published; with "centre" y is the centre for good. Both are exact:
    decisions follow the measure whatever y is. Since the certified number of switches is for the worst y, renewals buy
    none of it, and every one costs privacy like a switch; and the centre is never farther than the radius from a
    decision, a drawn y up to the diameter.

    >>> from reticent.domains import Ball
    >>> plan = LazyToPrivatePlan(Ball(2), 1000, 1.0, beta=0.01, lam=100.0, p=0.1, budget=150, anchor="centre")
    >>> round(plan.log_phi, 12), round(plan.most_switching, 4), plan.max_switches
    (0.01, 0.1178, 150)
    """

    system: ClassVar[str] = _names.L2P
    reference: ClassVar[str] = "Asi, Koren, Liu and Talwar 2024"

    lam: float
    anchor: str = "drawn"
    refresh: float = 0.0
    refreshes: int = 0

    def _check(self) -> None:
        super()._check()
        self._set(lam=positive("lam", self.lam), refresh=chance("refresh", self.refresh))
        self._set(refreshes=integer("refreshes", self.refreshes, least=0))
        if self.anchor not in ANCHORS:
            raise ValueError(f"anchor must be {' or '.join(map(repr, ANCHORS))}, got {self.anchor!r}")
        if self.anchor == "centre" and (self.refresh or self.refreshes):
            raise ValueError(
                f"refresh and refreshes must be 0 with anchor='centre', got {self.refresh!r} and {self.refreshes!r}; "
                "take anchor='drawn' for a point that is renewed"
            )

    @property
    def reach(self) -> float:
        """How far the point y can be from a decision."""
        return self.domain.radius if self.anchor == "centre" else self.domain.diameter

    @property
    def log_phi(self) -> float:
        """The logarithm of the scale of the coin: exp(beta (L(y) - L(x))) / phi is at most 1, and at least phi^-2."""
        return self.beta * self.batch * self.lipschitz * self.reach

    @property
    def floor(self) -> float:
        """Twice `log_phi`."""
        return 2 * self.log_phi

    @property
    def special(self) -> float:
        """The changed round moves L(y) - L(x) by `change` times the distance at most (docs/theory, R6)."""
        return min(self.floor, self.beta * self.change * self.reach)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R6: that of P6 without drift."""
        G = self.lipschitz
        first = first_term(self.domain, self.beta, self.lam, G * self.horizon)
        stability = self.squares * G**2 / (2 * self.lam)
        return first + stability + G * self.domain.diameter * self.exhausted + self.grid_regret

    @property
    def shift(self) -> float:
        """The privacy of one draw, as the number of a Gaussian release."""
        return self.change * math.sqrt(self.beta / self.lam)

    def draws_after(self, rounds: int) -> int:
        """Return how many draws a changed round may show in: those of y, which coins read, count as those of x do."""
        changes = self._changes(rounds)
        renewed = min(self.refreshes, rounds // self.batch) if self.refresh else 0
        return changes + renewed if changes else 0

    @property
    def coin_error(self) -> float:
        """To what factor, as a logarithm, the machine's coins keep as often as they should (docs/theory, Q11)."""
        return coin_error(self.domain, self._pull, self.batch * self.lipschitz * math.sqrt(self.beta / self.lam))

    def revealed(self, rounds: int, slack: float) -> tuple[Statement, ...]:
        """Return the certificate of docs/theory, R6: draws of x and y, and the coin of the changed batch."""
        if not self._changes(rounds):
            return (gaussian(0.0),)
        return (Statement("pld", self._terms(rounds, self.shift * math.sqrt(self.draws_after(rounds)), slack)),)

    def dp_event(self) -> Any:
        """Return Gaussian events of dp_accounting for the draws and for the coin of the changed batch."""
        if not self._changes(self.horizon):
            return gaussian_events([])
        draws = self.draws_after(self.horizon)
        mu = self.rounding(self.horizon).widened(self.shift * math.sqrt(draws))
        return gaussian_events([(mu / math.sqrt(draws), draws), (gdp(self._coin(self._slack)), 1)])


def plan_l2p(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "replace",
    max_switches: int | None = None,
    refresh: str = "published",
) -> LazyToPrivatePlan:
    """Return the lazy-to-private plan of least certified regret that is (epsilon, delta)-private.

    `refresh="published"` renews the point y with the probability p of a forced switch, as the paper does (unless p is
    1: then no coin ever reads it);
    `refresh="never"` compares with the centre of the domain instead, which is as exact, costs no draw, and has the
    lower certificate: renewing y can only lower the number of switches on easy streams, which no certificate sees.
    `max_switches` is a hard cap. The regret bound is for losses that do not depend on the decisions, privacy holds for
    all (docs/theory, R6).

    >>> from reticent.domains import Ball
    >>> plan = plan_l2p(Ball(2), 100_000, 1.0, 1.0, 1e-6, refresh="never")
    >>> 0.999 < plan.account().epsilon(1e-6) <= 1.0, plan.regret_bound < 2_500
    (True, True)
    """
    if refresh not in ("published", "never"):
        raise ValueError(f"refresh must be 'published' or 'never', got {refresh!r}")
    check_body(domain)
    T, G, eps, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    S = None if max_switches is None else integer("max_switches", max_switches, least=0)
    anchor = "drawn" if refresh == "published" else "centre"
    claim: dict[str, Any] = {"epsilon": eps, "delta": small, "neighbors": neighbors, "anchor": anchor}
    lam, beta = MeasureCosts(domain, G, T).still()
    plans = [LazyToPrivatePlan(domain, T, G, beta=beta, lam=lam, p=0.0, budget=0, **claim)]
    most, S = within_failures(one_draw(domain, T), T, eps, small, S)
    if T > 1 and S != 0:
        change = 2.0 if neighbors == "replace" else 1.0
        costs = _Costs(domain, T, most, small, change, S, drawn=refresh == "published")
        made = [_plan(costs, found, G, claim) for found in search(costs)]
        plans += [plan for plan in made if plan is not None]
    return min(plans, key=lambda plan: plan.regret_bound)


class _Costs(Costs):
    """The strength of a measure is the step G sqrt(beta/lam), its shape the precision beta lam R^2 / d."""

    def __init__(self, *goal: Any, drawn: bool) -> None:
        super().__init__(*goal)
        self.reach = self.wide if drawn else 1.0
        self.refreshing = drawn
        # Batches as long as few switches ask for have a large lam, hence large precisions.
        few = max(1.0, min(self.cap, self.T, self.machine.most(self.most, self.delta)))
        longest = (self.most * self.T / few) ** 2 / self.domain.chart_dim
        shapes = 0.02, max(1e5, 100 * longest)
        rows = math.ceil(math.log10(shapes[1] / shapes[0])) + 1
        columns = 12 + round(4 * math.log10(self.weaker))
        self._first = FirstTerms(self.domain, self.T, self.strengths, shapes, (columns, rows))
        self.shapes = tuple(np.geomspace(1.0, shapes[1] / 10, max(6, rows)))

    @property
    def strengths(self) -> tuple[float, float]:
        step = self.most / self.change
        return step / (20 * math.sqrt(self.T)) / self.weaker, step * 1.01

    def _beta(self, at: Trials, strength: Array) -> Array:
        beta: Array = np.sqrt(at.shape * self.domain.chart_dim) * strength
        return beta

    def law(self, at: Trials, strength: Array) -> Law:
        beta = self._beta(at, strength)
        special = np.minimum(2 * at.batch, self.change) * beta * self.reach
        return Law(2 * beta * at.batch * self.reach, special, self.change * strength)

    def measure(self, at: Trials, strength: Array) -> Array:
        lam = np.sqrt(at.shape * self.domain.chart_dim) / strength
        return self._first(strength, at.shape) + self.T * at.batch / (2 * lam)


def _plan(costs: _Costs, found: Found, G: float, claim: dict[str, Any]) -> LazyToPrivatePlan | None:
    """Return the plan of a candidate: its budget a whole number, and the step that this budget leaves room for."""
    at = Trials.of(found.point[None])
    at = at._replace(batch=np.round(at.batch))  # a logarithm may have lost its last digit
    batch, p = int(at.batch[0]), float(at.p[0])
    n = math.ceil(costs.T / batch) - 1
    law = costs.law(at, np.array([found.strength]))
    budget = min(max(1, math.ceil(float(costs.budget(at, law)[0][0]) - 1e-6)), max(n, 1))
    whole = np.array([float(budget)])
    step = float(costs.solve(at, 60, whole)[0])
    if costs.leak(at, np.array([step]), whole)[0] > costs.delta:
        return None  # not even the weakest measure: the horizon is too short for coins
    R = costs.domain.radius
    root = math.sqrt(float(at.shape[0]) * costs.domain.chart_dim)
    extra = {"refresh": p, "refreshes": int(costs.refreshes(batch, p))} if costs.refreshing and p < 1 else {}
    kind = {name: claim[name] for name in ("neighbors", "anchor")}
    values: dict[str, Any] = {"p": p, "budget": budget, "batch": batch, **extra, **kind}
    # The search adds up a little less carefully than the account.
    for less in LESS:
        lam = root / ((1 - less) * step) * G / R
        beta = lam * ((1 - less) * step / G) ** 2
        plan = LazyToPrivatePlan(costs.domain, costs.T, G, beta=beta, lam=lam, **values)
        if plan.account().delta(costs.epsilon) <= costs.delta:
            return replace(plan, epsilon=claim["epsilon"], delta=claim["delta"])
    return None


def _propose(goal: Goal) -> LazyToPrivatePlan:
    # Whatever is planned with a drawn point promises no less with the centre in its place: it is nearer, and costs no
    # draw. The published version need not be asked.
    return plan_l2p(*goal.target, neighbors=goal.neighbors, max_switches=goal.max_switches, refresh="never")


LAZY_TO_PRIVATE = System(LazyToPrivatePlan.system, _propose, private=True, lazy=True)


# The lazy-to-private transformation (Asi et al. 2024).


@saved("lazy-to-private")
class LazyToPrivate(SystemLearner):
    """Plays draws of the Gibbs measure of the past, each kept as long as coins allow that compare it with a point y.

    Algorithm: nu_k has density proportional to exp(-beta (L_1 + ... + L_{k-1} + lam/2 |x|^2)), L_j the sum of the
    losses of batch j; x_1 is drawn from nu_1. After batch k the switch is forced with probability p; else x is kept
    with probability exp(beta (L_k(y) - L_k(x))) / phi, phi = exp(beta b G reach), which is
    nu_{k+1}(x) nu_k(y) / (phi nu_k(x) nu_{k+1}(y)): the integrals of the measures cancel. On a switch x is a fresh
    draw of nu_{k+1}. The point y is another draw, renewed with probability `plan.refresh`, or the centre
    (`plan.anchor`). After `plan.budget` switches the decision stays. A coin is looked at only where it may say
    "switch": a run costs O(switches + renewals) draws, all exact; one that is too hard raises `WorkLimitError`.

    Theorem (docs/theory, R6): for losses that do not depend on the decisions x_k ~ nu_k exactly, whatever y is, and
    regret is at most that of P6 without drift. A coin switches with probability 1 - (1-p) phi^-2 at most. Privacy holds
    for losses that react to decisions: draws of x and y are s-GDP each, s = Delta sqrt(beta/lam), coins after the
    changed batch cost nothing, and that of the changed batch once. Assumes convex Lipschitz losses; neither smooth nor
    linear ones are needed. Reference: Asi, Koren, Liu and Talwar 2024 (there y is always drawn; the centre is ours).

    What a private plan protects is the sequence of decisions; state, traces and running time are as secret as the data.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_l2p(rt.Ball(2), 2000, 1.0, epsilon=3.0, delta=1e-5, refresh="never")
    >>> learner = rt.learners.LazyToPrivate(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (2000, 1)))
    >>> trace.switches <= plan.budget, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 3.0
    (True, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LazyToPrivatePlan

    def _new_walk(self) -> Decider:
        return _Compared(self.plan, exact_measure(self.plan, self.plan.lam, self.loss, self._on_steep), self._rng)


def exact_measure(plan: CoinPlan, lam: float, loss: Loss, on_steep: str) -> Gibbs:
    """Return the measure of a plan before any round, with exact draws only."""
    return Gibbs(plan.domain, loss, plan.beta, lam, lipschitz=plan.lipschitz, on_steep=on_steep, distance=0.0)


@saved("compared coin")
class ComparedCoin(KeepingCoin):
    """Keeps x with probability exp(beta (L(y) - L(x))) / phi, y a point that is the same in both worlds."""

    _moves: ClassVar[tuple[str, ...]] = ("y",)

    def __init__(self, plan: LazyToPrivatePlan) -> None:
        super().__init__(plan.p, plan.floor)
        self.beta, self.log_phi = plan.beta, plan.log_phi
        self.y: Array = np.zeros(plan.domain.chart_dim)

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep; it reads nothing of the past but the two points."""
        losses = measure.loss.total(measure.domain, rows, np.stack([self.y, u]))
        return math.exp(self.beta * float(losses[0] - losses[1]) - self.log_phi)


@saved("walk of lazy-to-private")
class _Compared(Walk):
    """The walk of lazy-to-private: y moves at times of its own."""

    _moves = ("left", "_renewal")

    def __init__(self, plan: LazyToPrivatePlan, measure: Gibbs, rng: np.random.Generator) -> None:
        self.refresh, self.left = plan.refresh, plan.refreshes
        self._renewal = NEVER
        coin = ComparedCoin(plan)
        super().__init__(plan, measure, rng, coin)
        self.compared = coin
        if plan.anchor == "drawn":
            self._renew()
        self._schedule_renewal()

    @property
    def due(self) -> int:
        """How many rounds will have been taken in when a coin is looked at, or y renewed, next."""
        return min(self._coin_due, self._renewal)

    def _check_moved(self) -> None:
        super()._check_moved()
        due = self._renewal
        on = self.done < due <= NEVER and (due == NEVER or due % self.batch == 0)
        refuse_unless(on and self.left >= 0, f"its point is renewed at round {due}, {self.left} times more")

    def _renew(self) -> None:
        self.compared.y = self.measure.draw_in_chart(self.rng)[0]

    def _schedule_renewal(self) -> None:
        """Find the next renewal: a geometric number of batches ahead, whatever the data are."""
        self._renewal = NEVER
        if self.left > 0 and self.refresh > 0.0 and not self.frozen:
            after = int(self.rng.geometric(self.refresh))
            self._renewal = min((self.done // self.batch + after) * self.batch, NEVER)

    def _settle(self, changes: Changes) -> None:
        super()._settle(changes)  # first, with the old y (docs/theory, R6)
        if self.frozen:
            self._renewal = NEVER
        if self.done == self._renewal:
            self._renew()
            self.left -= 1
            self._schedule_renewal()
