"""Plans of private objective perturbation (Agarwal, Kale, Singh and Thakurta 2023), and the search for the best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from reticent._core import _names
from reticent._core._check import Array, integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.privacy._account import Statement
from reticent.privacy._coins import NO_LOSS, Coin
from reticent.privacy._compose import Bound, Term
from reticent.privacy._events import gaussian_events, gdp
from reticent.privacy._losses import delta_with_failure, largest_mu
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_body, check_target, least_batch, within_failures
from reticent.systems._goal import Goal, System
from reticent.systems._grid import COIN, DRAW, NOISE, SOLVED, Rounding, roughness
from reticent.systems._plan import SystemPlan
from reticent.systems.pcomw._search import adaptive, coins_variance
from reticent.systems.pcomw._switching import expected_switches, rate, weighted_overrun, weighted_variation
from reticent.systems.perturbed._law import (
    bend_change,
    best_lam,
    check_face,
    check_smooth,
    draw_gdp,
    drift,
    goal_smoothness,
    leader_regret,
    swelling,
)

_LARGEST_PHI = 1e300
# Noise is up to some 4 deviations where decisions are inside, in a number rounded once or twice; sums of slopes are
# rounded to 2^-53 of their size, but for what groups of them lose.
_CANCELLED = 16


@saved("plan of objective perturbation")
@dataclass(frozen=True, kw_only=True)
class ObjectivePlan(SystemPlan):
    """Parameters of objective perturbation: noise `sigma`, regulariser `lam`, and the coin that limits switching.

    The decision is the minimiser of past losses plus lam/2 |x|^2 plus Z.x, Z ~ N(0, sigma^2 I). After every `batch`
    rounds a coin keeps it (`p` is the chance of a forced switch, `phi` the scale of the coin), or Z is drawn afresh,
    `budget` times at most. `smoothness` bounds the second derivatives of every round's loss; 0 is for linear losses.
    `general` is for losses that bend in any direction, custom ones; else they are generalised linear (docs/theory, R5).

    >>> from reticent.domains import Ball
    >>> plan = ObjectivePlan(Ball(3), 1000, 1.0, sigma=2000.0, lam=200.0, p=0.1, phi=1.004, budget=200)
    >>> plan.max_switches, plan.account().epsilon(1e-6) < 1.0
    (200, True)
    """

    system: ClassVar[str] = _names.OBJECTIVE
    work: ClassVar[str] = "solves"
    reference: ClassVar[str] = "Agarwal, Kale, Singh and Thakurta 2023 (derived from the published idea)"
    assumes: ClassVar[str] = "linear losses, or smooth ones (balls, boxes)"
    adversary: ClassVar[str] = "oblivious"
    cut: ClassVar[bool] = True

    sigma: float
    lam: float
    p: float
    phi: float
    budget: int
    smoothness: float = 0.0
    batch: int = 1
    general: bool = False

    def _check(self) -> None:
        check_body(self.domain)
        self._set(batch=integer("batch", self.batch, least=1), general=bool(self.general))
        for name in ("sigma", "lam"):
            self._set(**{name: positive(name, getattr(self, name))})
        self._set(smoothness=positive("smoothness", self.smoothness, zero=True))
        check_face(self.domain, self.smoothness)
        self._set(p=real("p", self.p), phi=real("phi", self.phi), budget=integer("budget", self.budget, least=0))
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be a probability from 0 to 1, got {self.p!r}")
        if not 1 <= self.phi <= _LARGEST_PHI:
            raise ValueError(f"phi must be from 1 to {_LARGEST_PHI:g}, got {self.phi!r}; p = 1 switches at every coin")

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not smooth."""
        check_smooth(type(self).__name__, loss, self.smoothness, self.rank, self.domain.chart_dim)

    @property
    def log_phi(self) -> float:
        """The logarithm of `phi`."""
        return math.log(self.phi)

    @property
    def coins(self) -> int:
        """The number of full batches, each of which ends with a coin."""
        return self.horizon // self.batch

    @property
    def rank(self) -> int:
        """In how many fixed directions the gradient of one round's loss lies."""
        return self.domain.chart_dim if self.general else 1

    @property
    def noise(self) -> float:
        """K = G/sigma: the deviation of the logarithm of a coin's ratio, for one round."""
        return self.lipschitz / self.sigma

    @property
    def near(self) -> float:  # type: ignore[override]
        """How near to exact the machine's decisions are taken to be (docs/theory, Q11)."""
        return SOLVED if self.smoothness else DRAW

    def rounding(self, rounds: int) -> Rounding:
        """Return what the machine's arithmetic may add: more where noise is large, whose last bits then show."""
        return super().rounding(rounds).rougher(max(1.0, self.firm / self.lam))

    @property
    def firm(self) -> float:
        """The least lam at which the last bits of noise and sums are within half of what is allowed for (Q11)."""
        return _size(self.sigma, self.horizon, self.lipschitz, self.smoothness) * _firm(self.domain, self.near)

    @property
    def bend(self) -> float:
        """How much of the curvature one round's loss can be at most: smoothness/lam."""
        return self.smoothness / self.lam

    @cached_property
    def clip(self) -> float:
        """The mass that clipping moves per coin at most."""
        d = self.domain.chart_dim
        swell = swelling(self.bend, self.rank, self.batch, d)
        return drift(self.log_phi, self.batch * self.noise, swell, min(d, self.batch * self.rank))

    @cached_property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5d."""
        T, W = self.horizon, self.batch
        astray = weighted_variation(T, W, self.p, self.clip)
        astray += weighted_overrun(T, W, self.budget, self.p, self.log_phi, self.clip)
        trivial = self.lipschitz * self.domain.diameter
        played = leader_regret(self.domain, block_squares(T, W), self.lipschitz, self.lam, self.sigma)
        return played + trivial * min(astray, T) + self.grid_regret

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, P4g, and the budget."""
        return min(float(expected_switches(self.coins, self.p, self.log_phi, self.clip)), float(self.budget))

    @property
    def max_switches(self) -> int:
        """The budget, which the learner keeps, and one a batch."""
        return min(self.budget, self.coins)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        cost = (
            "Every switch solves a regularised problem over all past rounds (only sums are kept for Linear and "
            "Squared): long runs of curved losses with many switches are slow."
        )
        if not self.smoothness:
            return ()
        return (cost, "The certificate pays for smoothness in every draw; PCOMW needs none.")

    @cached_property
    def draw(self) -> float:
        """The mu for which one draw is mu-GDP (docs/theory, R5e)."""
        if not self.smoothness:
            return self.change / self.sigma
        times = 2 if self.neighbors == "replace" else 1
        return times * draw_gdp(self.noise, self.bend, self.rank)

    @property
    def later_coin(self) -> Coin:
        """The coin after the changed round's batch (docs/theory, R5f)."""
        eta = self.batch * self.lipschitz * self.change / self.sigma**2
        return Coin(self.p, min(eta + bend_change(self.bend, self.rank, self.batch), 2 * self.log_phi))

    @property
    def special_coin(self) -> Coin:
        """The coin of the changed round's batch: whatever Z is, the clip confines it."""
        return Coin(self.p, 2 * self.log_phi)

    @property
    def slack(self) -> float:
        """What the machine adds to a coin between two worlds (docs/theory, Q11); it may be sure to keep."""
        return 2 * COIN if self.phi > 1 else 0.0

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return the composition of draws and coins (docs/theory, R5g), in real numbers."""
        return self._revealed(rounds, 0.0)

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements as they hold for the machine."""
        rounding = self.rounding(rounds)
        # What a coin compares is a product of two slopes, or of a curvature and a change of it.
        return rounding.applied(self._revealed(rounds, self.slack, rounding.stretch**2))

    def _revealed(self, rounds: int, slack: float, more: float = 1.0) -> tuple[Statement, ...]:
        coins = rounds // self.batch
        coin, last = (
            Coin(self.p, min(one.eta * more, 2 * self.log_phi) + slack) for one in (self.later_coin, self.special_coin)
        )
        count = max(coins - 1, 0)
        draws = min(self.budget, coins)
        mu = self.draw * math.sqrt(draws) if draws else 0.0
        # Without a switch ever there is no coin either.
        tossed = coins > 0 and self.budget > 0
        special = last.directions() if tossed else (NO_LOSS,)
        terms = tuple((Term(mu, coin, count if tossed else 0, other),) for other in special)
        return (Statement("pld", Bound(terms)),)

    def dp_event(self) -> Any:
        """Return Gaussian events for draws and coins: an upper bound, in real numbers (docs/theory, Q10)."""
        draws = min(self.budget, self.coins)
        if not draws:
            return gaussian_events([])
        coins = [(gdp(self.later_coin), self.coins - 1), (gdp(self.special_coin), 1)]
        mu = self.rounding(self.horizon).widened(self.draw * math.sqrt(draws))
        return gaussian_events([(mu / math.sqrt(draws), draws), *coins])


def _size(sigma: float, horizon: int, lipschitz: float, smoothness: float) -> float:
    """Return the deviation of noise whose last bits are as coarse as those of all that is added up for a minimiser.

    Sums of linear losses are outside of it, or as large as the noise where they balance it; slopes of curved ones
    cancel one another, whatever their size.
    """
    return max(sigma, horizon * lipschitz / _CANCELLED) if smoothness else sigma


def _firm(domain: Domain, near: float) -> float:
    """Return lam over the deviation of the noise from which on its last bits are within half of `near`."""
    return 2 * NOISE / near * roughness(1.0, float(domain.grid.min()))


def plan_objective(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    smoothness: float,
    general: bool = False,
    batch: int | None = None,
    neighbors: str = "replace",
    max_switches: int | None = None,
) -> ObjectivePlan:
    """Return the objective perturbation with the least certified regret that is (epsilon, delta)-private.

    `smoothness` bounds the second derivatives of every round's loss, 0 for `Linear`; `general=True` is for losses that
    are not generalised linear, custom ones with a `hessian`, and costs more in many dimensions. `batch` rounds come
    before each coin; without one, coins after every round compete with fresh draws after batches of the best length.
    `max_switches` is a hard cap.

    >>> from reticent.domains import Ball
    >>> plan = plan_objective(Ball(3), 10_000, 1.0, 1.0, 1e-6, smoothness=0.0)
    >>> plan.account().epsilon(1e-6) <= 1.0, plan.vacuous
    (True, False)
    """

    # A plan without a claim checks the arguments, with its messages.
    ObjectivePlan(
        domain, horizon, lipschitz, sigma=1.0, lam=1.0, p=1.0, phi=1.0, budget=0, smoothness=smoothness,
        general=general, batch=1 if batch is None else batch, neighbors=neighbors,
    )  # fmt: skip
    T, G, eps, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    cap = T if max_switches is None else integer("max_switches", max_switches, least=1)
    machine = Rounding.of(domain, T, 1, cut=True)
    most, left = within_failures(machine, T, eps, small, cap)
    if left == 0:
        raise ValueError(
            f"delta must be at least {2 * machine.failure:.6g}, which is what one draw from {domain!r} may fail by, "
            f"got {delta!r}"
        )
    goal = _Goal(domain, T, G, most, small, float(smoothness), bool(general), neighbors, left or cap, 1)
    if batch is not None:
        goal = replace(goal, batch=min(integer("batch", batch, least=1), T))
    return replace(min(_offers(goal, batch is None), key=lambda plan: plan.regret_bound), epsilon=eps)


def _objective(goal: Goal) -> ObjectivePlan:
    goal.need_a_switch()
    return plan_objective(
        *goal.target,
        smoothness=goal_smoothness(goal),
        general=isinstance(goal.loss, Custom),
        neighbors=goal.neighbors,
        max_switches=goal.max_switches,
    )


PRIVATE = (System(ObjectivePlan.system, _objective, private=True, lazy=True),)


# The search for the best private objective perturbation: a quick account for candidates, the real one at the end.

# The least chance of a forced switch that is looked at, and how many values up to 1.
_LEAST_P, _VALUES = 1e-4, 9
# Candidates of log phi, in deviations of a coin's ratio, and of budgets, in deviations above the mean.
_WIDTHS, _MARGINS = (2.5, 3.5), (0.0, 1.5)
# Candidates of log lam over what would be best without curvature: the coins' determinants ask for more.
_FIRMER = (0.0, 1.5, 3.0, 4.5, 6.0)
# The noise grows by this much at most to make up for the quick account, in so many steps.
_GROWTH, _STEPS = 1.5, 24
_STEEP = 300.0  # log phi beyond which the coin is as good as none
_SPARE = 0.05  # the share of mu that may be spent on the last bits of large noise, where lam is not larger
_BETTER = 2e-3  # a second descent that gains less than this is not worth another plan
# With a cap on switches: parts of it that forced switches may take, margins to start from and the least one (it may pay
# to run out of switches), and how far beyond the noise that brings the coins within the cap the search goes.
_ROUGH = 9  # halvings of the noise's range in the first look at candidates
_GUESSES = 8  # turns of a search for the noise in which places are guessed
_BATCHES = 20  # lengths of batches that are tried, and again around the best of them
_SHARES, _CAPPED, _LEAST_MARGIN, _BEYOND = (0.001, 0.03, 0.15, 0.4, 0.7, 0.9), (0.0, 1.5, 3.0), -6.0, 3.0


@dataclass(frozen=True)
class _Goal:
    domain: Domain
    horizon: int
    lipschitz: float
    epsilon: float
    delta: float
    smoothness: float
    general: bool
    neighbors: str
    cap: int
    batch: int

    @property
    def coins(self) -> int:
        return self.horizon // self.batch

    @property
    def change(self) -> float:
        return (2 if self.neighbors == "replace" else 1) * self.lipschitz

    @property
    def capped(self) -> bool:
        return self.cap < self.coins

    @cached_property
    def spare(self) -> float:
        """What releases may be off by, as a GDP number, for the last bits of large noise."""
        return _SPARE * largest_mu(self.epsilon, self.delta) / 2

    def firm(self, lam: float, sigma: float, budget: int) -> float:
        """Return lam, or what it has to be at least for the last bits of noise to cost no more than may be spared."""
        near = SOLVED if self.smoothness else DRAW
        allowed = self.spare / (near * math.sqrt(self.domain.chart_dim * budget))
        size = _size(sigma, self.horizon, self.lipschitz, self.smoothness)
        return max(lam, size * _firm(self.domain, near) / max(allowed, 1.0))


def _offers(goal: _Goal, any_batch: bool) -> list[ObjectivePlan]:
    """Return plans with coins, and the one without: a fresh draw after every batch."""
    found, why = [], None
    for offer in (_search, lambda goal: _fresh(goal, any_batch)):
        try:
            found.append(offer(goal))
        except ValueError as error:  # the other way may still do
            why = error
    if not found:
        assert why is not None
        raise why
    return found


def _fresh(goal: _Goal, any_batch: bool) -> ObjectivePlan:
    """Return the plan of least certified regret that forces every switch, after batches of the best length."""
    firmer: tuple[float, ...] = _FIRMER if goal.smoothness else (0.0,)

    def best(batch: int, halvings: int | None = None) -> tuple[float, float]:
        """Return the least cost at a batch, and at which regulariser."""
        at = replace(goal, batch=batch)
        return min((_cost(at, np.array([0.0, 0.0, 0.0, firm]), halvings), firm) for firm in firmer)

    def shortest(draws: Iterable[float]) -> list[int]:
        """Return the shortest batches with so many draws, or as many as the cap allows."""
        return sorted({least_batch(goal.horizon, min(round(n), goal.cap)) for n in draws})

    batches = [goal.batch]
    if any_batch:
        # The same numbers of draws whatever the cap is: what a smaller cap has found must be found with a larger one.
        batches = shortest(np.geomspace(1.0, goal.horizon, _BATCHES))
        k = int(np.argmin([best(batch, _ROUGH)[0] for batch in batches]))
        ends = batches[max(k - 1, 0)], batches[min(k + 1, len(batches) - 1)]
        again = shortest(np.geomspace(goal.horizon // ends[1], goal.horizon // ends[0], _BATCHES // 2))
        batches = sorted({batches[k], *again})
    (_, firm), batch = min((best(batch), batch) for batch in batches)
    at = replace(goal, batch=batch)
    if goal.smoothness:
        found = scipy.optimize.minimize_scalar(
            lambda firm: _cost(at, np.array([0.0, 0.0, 0.0, firm])),
            bounds=(max(firm - 1.5, 0.0), firm + 1.5),
            method="bounded",
            options={"xatol": 1e-2},
        )
        firm = float(found.x)
    return _certified(at, np.array([0.0, 0.0, 0.0, firm]))


def _search(goal: _Goal) -> ObjectivePlan:
    """Return the plan of least certified regret, with coins.

    The noise of a candidate is the least that privacy and the cap on switches allow: a goal that asks for less allows
    less of it, hence never has a worse answer.
    """
    rates: Array = np.geomspace(_LEAST_P, 1.0, _VALUES)
    margins: tuple[float, ...] = _MARGINS
    if goal.capped:
        rates, margins = np.array(_SHARES) * goal.cap / goal.coins, _CAPPED
    start = [
        (math.log(p), width, margin, firmer)
        for p in rates
        for width in _WIDTHS
        for margin in margins
        for firmer in (_FIRMER if goal.smoothness else (0.0,))
    ]
    halvings = _ROUGH if goal.capped or goal.general else None
    first = np.array(min(start, key=lambda point: _cost(goal, np.array(point), halvings)))
    point, cost = _downhill(goal, first, np.array([-0.3, 0.4, 0.7, 0.2]), 160)
    # A simplex may shrink to nothing before it has arrived: once more, with a fresh one.
    again, less = _downhill(goal, point, np.array([0.9, 0.4, 0.5, 0.2]), 90)
    better = less < cost * (1 - (0.0 if goal.capped else _BETTER))
    return _certified(goal, again if better else point)


def _downhill(goal: _Goal, start: Array, steps: Array, turns: int) -> tuple[Array, float]:
    """Return where a simplex around a point comes to rest, and the cost there."""
    options: Any = {
        "maxfev": turns,
        "xatol": 1e-2,
        "fatol": 1e-4,
        "initial_simplex": np.array([start, *(start + np.diag(steps))]),
    }
    noise: float | None = None

    def cost(at: Array) -> float:
        nonlocal noise
        noise = _noise(goal, at, near=noise)
        return _cost_with(goal, at, noise)

    minimize: Any = scipy.optimize.minimize
    found = minimize(cost, start, method="Nelder-Mead", options=options)
    return found.x, float(found.fun)


def _candidate(goal: _Goal, point: Array, sigma: float) -> tuple[ObjectivePlan, bool]:
    """Return the plan of a point (log p, width, margin, log of lam over the best without curvature) at a noise.

    And whether the budget that the point asks for is within the cap.
    """
    p = math.exp(min(float(point[0]), 0.0))
    squares = block_squares(goal.horizon, goal.batch)
    lam = best_lam(goal.domain, squares, goal.lipschitz, sigma) * math.exp(float(point[3]))
    d, noise, bend = goal.domain.chart_dim, goal.batch * goal.lipschitz / sigma, goal.smoothness / lam
    rank = d if goal.general else 1
    swell, directions = swelling(bend, rank, goal.batch, d), min(d, goal.batch * rank)
    # The length of several normal numbers is about the root of their number, give or take one.
    width = max(float(point[1]), 0.1) + math.sqrt(directions - 1)
    log_phi = min(width * noise + noise**2 / 2 + swell, _STEEP)
    if p == 1:
        log_phi = 0.0
    n, q = goal.coins, float(rate(p, log_phi))
    clip = (1 - p) * drift(log_phi, noise, swell, directions)
    q = min(1.0, (q + clip) / (1 + clip))
    margin = max(float(point[2]), _LEAST_MARGIN if goal.capped else -2.0)
    wanted = n * q + margin * math.sqrt(n * q * (1 - q)) + math.sqrt(2 * n * n * q * clip)
    budget = int(min(max(math.ceil(wanted), 1), n, goal.cap))
    lam = goal.firm(lam, sigma, budget)  # that of more curvature leaves coins and budget as good as they are
    plan = ObjectivePlan(
        goal.domain,
        goal.horizon,
        goal.lipschitz,
        sigma=sigma,
        lam=lam,
        p=p,
        phi=math.exp(log_phi),
        budget=budget,
        smoothness=goal.smoothness,
        batch=goal.batch,
        general=goal.general,
        neighbors=goal.neighbors,
    )
    return plan, not goal.capped or wanted <= goal.cap


def _quick(goal: _Goal, plan: ObjectivePlan) -> float:
    """Return about the delta of a plan at the epsilon of the goal."""
    machine = plan.rounding(goal.horizon)
    mu = machine.widened(plan.draw * math.sqrt(min(plan.budget, plan.coins)))
    p, eta = np.array(plan.p), np.array(plan.later_coin.eta + plan.slack)
    variance = float(coins_variance(np.array(max(plan.coins - 1.0, 0.0)), p, eta))
    at = np.array(math.hypot(mu, math.sqrt(variance))), p, np.array(2 * plan.log_phi + plan.slack)
    failure = np.array(machine.failure)
    return float(delta_with_failure(adaptive, at, goal.epsilon, failure, goal.delta))


def _noise(goal: _Goal, point: Array, halvings: int | None = None, near: float | None = None) -> float:
    """Return the least noise at which the quick account of a point, and the budget it asks for, are within the goal.

    `near` is that of a point not far away, if it is known.
    """
    least = goal.change / largest_mu(goal.epsilon, goal.delta)
    low, high, turns = math.log(least), math.log(least) + 0.5 * math.log(goal.horizon) + 4.0, 14
    if goal.general:
        high += 0.5 * math.log(goal.domain.chart_dim)
    if goal.capped:
        enough = _WIDTHS[-1] * goal.lipschitz * goal.horizon / goal.cap
        high, turns = max(high, math.log(enough) + _BEYOND), 17
    # The first of 2^turns places that is within: as halving finds it, but guessed from how delta falls with the noise.
    good = 1 << (halvings or turns)
    bad, cell, slope, turn, last = 0, (high - low) / good, 1.0, 0, (math.nan, math.nan)
    place, reach = (good // 2, good) if near is None else (round((math.log(near) - low) / cell), 16)
    place = min(max(place, 1), good - 1)
    while good - bad > 1:
        plan, fits = _candidate(goal, point, math.exp(low + place * cell))
        leak = _quick(goal, plan) if fits else 1.0
        within = fits and leak <= goal.delta
        bad, good = (bad, place) if within else (place, good)
        turn, guess = turn + 1, place + reach
        if fits:
            x, y = place * cell, _level(goal.delta) - _level(leak)
            if x != last[0] and y != last[1] and not math.isnan(last[0]):
                slope = min(max((y - last[1]) / (x - last[0]), 0.1), 8.0)
            last = x, y
            guess = place - min(max(math.floor(y / (slope * cell)), -reach), reach)
        if guess == good:
            guess -= 1
        # Where delta jumps, as it does where draws may fail, guesses go astray: after a few turns halving is quicker.
        place = guess if bad < guess < good and turn % 4 and turn < _GUESSES else (bad + good) // 2
        reach *= 4
    return math.exp(low + good * cell)


def _level(delta: float) -> float:
    """Return what is nearly linear in the logarithm of the noise."""
    return -0.5 * math.log(-math.log(min(max(delta, 1e-300), 1 - 1e-9)))


def _cost(goal: _Goal, point: Array, halvings: int | None = None) -> float:
    """Return the regret of a point with the least noise."""
    return _cost_with(goal, point, _noise(goal, point, halvings))


def _cost_with(goal: _Goal, point: Array, sigma: float) -> float:
    """Return the regret of a point at a noise, or more than any regret where that does not make it private."""
    plan, fits = _candidate(goal, point, sigma)
    over = _quick(goal, plan) / goal.delta
    if over <= 1 and fits:
        return plan.regret_bound
    return 1e3 * goal.horizon * goal.lipschitz * goal.domain.diameter * (2 + math.log(max(over, 1.0)))


def _certified(goal: _Goal, point: Array) -> ObjectivePlan:
    """Return the plan of a point with the least noise at which it is within the goal by the real account."""

    def within(sigma: float) -> bool:
        plan, fits = _candidate(goal, point, sigma)
        return fits and plan.account().delta(goal.epsilon) <= goal.delta * (1 - 1e-9)

    high = _noise(goal, point)
    low = high / _GROWTH
    for _ in range(_STEPS):
        if within(high):
            break
        low, high = high, high * _GROWTH
    else:
        raise ValueError(
            f"no objective perturbation was found for epsilon={goal.epsilon:g} at delta={goal.delta:g}, "
            f"smoothness={goal.smoothness:g} and batches of {goal.batch}; allow a larger epsilon, or less smoothness"
        )
    for _ in range(10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    plan, _ = _candidate(goal, point, high)
    return replace(plan, epsilon=goal.epsilon, delta=goal.delta)
