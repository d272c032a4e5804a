"""The shrinking dartboard, private or not: the law of Hedge with few switches, and the search for the best plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from reticent._core import _names
from reticent._core._check import Array, integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain, Experts
from reticent.privacy._account import Statement, SystemAccount
from reticent.privacy._coins import NO_LOSS, Coin
from reticent.privacy._compose import Bound, Term
from reticent.privacy._events import gaussian_events, gdp
from reticent.privacy._losses import gdp_of_bounded_range
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_target
from reticent.systems._goal import Goal, System
from reticent.systems._grid import COIN, Rounding
from reticent.systems.experts._hedge import ExpertsPlan, best_beta, check_experts, largest, weights_regret


@saved("plan of the dartboard")
@dataclass(frozen=True, kw_only=True)
class DartboardPlan(ExpertsPlan):
    """The expert is kept with probability exp(-beta * its loss), else drawn from the weights exp(-beta * sums).

    Every round has the law of Hedge, and so its regret bound. With a `budget` the expert stays for good after so many
    draws, which costs G times the expected number of rounds after one draw too many is wanted (docs/theory, R4).

    >>> from reticent.domains import Experts
    >>> plan = plan_dartboard(Experts(10), 10_000, 1.0, max_switches=100)
    >>> round(plan.expected_switches, 6), round(plan.regret_bound)
    (100.0, 218)
    >>> capped = plan_dartboard(Experts(10), 10_000, 1.0, max_switches=100, hard=True)
    >>> capped.max_switches, round(capped.regret_bound)
    (100, 298)
    """

    system: ClassVar[str] = _names.DARTBOARD
    reference: ClassVar[str] = "Geulen, Voecking and Winkler 2010"

    beta: float
    budget: int | None = None

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta))
        if self.budget is not None:
            self._set(budget=integer("budget", self.budget, least=0))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4."""
        regret = weights_regret(self.n, self.beta, self.lipschitz, self.horizon)
        if self.budget is None:
            return regret
        q = -math.expm1(-self.beta * self.lipschitz)
        return regret + self.lipschitz * overrun(self.horizon - 1, q, self.budget)

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R4, for losses that do not react to decisions."""
        most = self.horizon * switch_chance(self.n, self.beta * self.lipschitz)
        return most if self.budget is None else min(most, self.budget)

    @property
    def max_switches(self) -> int | None:
        """The budget."""
        return self.budget


def switch_chance(n: int, size: float) -> float:
    """Return a bound on the chance that one round changes the expert, `size` = beta G (docs/theory, R4).

    >>> round(switch_chance(2, 0.1), 6), round(switch_chance(10, 0.1), 6)
    (0.024995, 0.085595)
    """
    if n == 2:
        return math.tanh(size / 4)
    return -math.expm1(-size) * (1 - math.exp(-size) / (n - 1))


def overrun(coins: int, q: float, budget: int) -> float:
    """Return the sum over k = 0, ..., `coins` of P(Binomial(k, q) > budget).

    Binomials count the successes by time k. If the success one beyond the budget comes at time t, coins + 1 - t of the
    sums are above it, and E t 1(t <= coins) = ((budget + 1)/q) P(Binomial(coins + 1, q) >= budget + 2).

    >>> round(overrun(3, 0.5, 0), 9)
    2.125
    """
    if budget >= coins or q <= 0:
        return 0.0
    late = float(scipy.special.betainc(budget + 1, coins - budget, q))
    weighted = (budget + 1) / q * float(scipy.special.betainc(budget + 2, coins - budget, q))
    # The difference loses digits: an allowance upwards.
    return min((coins + 1) * late, max((coins + 1) * late - weighted, 0.0) + 1e-11 * (coins + 1) * late)


def plan_dartboard(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None, *, hard: bool = False
) -> DartboardPlan:
    """Return the shrinking dartboard with the best beta that keeps expected switches at `max_switches` or less.

    With `hard` they are never more than that, by a budget.
    """
    check_experts(domain)
    n, T, G = domain.dim, integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    beta = best_beta(n, G, T)
    if max_switches is None:
        if hard:
            raise ValueError("max_switches must be given with hard=True, got None; it is the cap that is never broken")
        return DartboardPlan(domain, T, G, beta=beta)
    S = integer("max_switches", max_switches, least=1)
    if not hard:
        beta = min(beta, largest(lambda size: switch_chance(n, size), S / T) / G)
        return DartboardPlan(domain, T, G, beta=beta)

    def cost(x: float) -> float:
        size = math.exp(x)
        return weights_regret(n, size, 1.0, T) + overrun(T - 1, -math.expm1(-size), S)

    high = math.log(beta * G)
    low = min(high, math.log(S / T)) - 5  # with far fewer draws than allowed nothing is gained
    found = scipy.optimize.minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    return DartboardPlan(domain, T, G, beta=math.exp(float(found.x)) / G, budget=S)


def _dartboard(goal: Goal) -> DartboardPlan:
    goal.need_a_switch()
    return plan_dartboard(*goal.size, goal.max_switches)


DARTBOARD = System(DartboardPlan.system, _dartboard, lazy=True, experts=True)


# The private shrinking dartboard: coins and draws whose whole transcript is differentially private.


@saved("plan of the private dartboard")
@dataclass(frozen=True, kw_only=True)
class PrivateDartboardPlan(ExpertsPlan):
    """After each batch the expert is kept with probability (1-p) exp(-beta * its loss in the batch), else drawn.

    Draws are from the weights exp(-beta * sums), at most `budget` of them (None: one after every batch), and each
    counts even if it brings the same expert again; then the expert stays. Given the expert, only the coin of a changed
    batch tells of the change; each draw tells of it with range `beta * change` (docs/theory, R4). Regret is that of
    Hedge in batches until the budget is spent.

    >>> from reticent.domains import Experts
    >>> plan = PrivateDartboardPlan(Experts(10), 10_000, 1.0, beta=0.004, p=0.01, batch=1, budget=200)
    >>> 0.5 < plan.account().epsilon(1e-6) < 1, plan.max_switches
    (True, 200)
    """

    system: ClassVar[str] = _names.PRIVATE_DARTBOARD
    reference: ClassVar[str] = "Asi, Feldman, Koren and Talwar 2023"

    beta: float
    p: float
    batch: int = 1
    budget: int | None = None

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta), p=real("p", self.p), batch=integer("batch", self.batch, least=1))
        if not 0 <= self.p <= 1:
            raise ValueError(f"p must be from 0 to 1, got {self.p!r}; it is the chance that a coin forces a draw")
        if self.budget is not None:
            self._set(budget=integer("budget", self.budget, least=0))

    @property
    def coins(self) -> int:
        """The number of coins: one after each full batch."""
        return self.horizon // self.batch

    @property
    def draw_chance(self) -> float:
        """What the chance of a draw after a batch does not exceed."""
        return 1 - (1 - self.p) * math.exp(-self.beta * self.batch * self.lipschitz)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4."""
        return regret(
            self.n, self.lipschitz, self.horizon, self.beta, self.batch, self.draw_chance, self._draws(self.coins)
        )

    @property
    def expected_switches(self) -> float:
        """The budget, or how many draws coins make in the mean if that is less."""
        return min(self.coins * self.draw_chance, self._draws(self.coins))

    @property
    def max_switches(self) -> int:
        """The budget."""
        return self._draws(self.coins)

    def _draws(self, coins: int) -> int:
        return coins if self.budget is None else min(self.budget, coins)

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return the two statements of docs/theory, R4: draws by Renyi divergence, and in the Gaussian family."""
        return self._revealed(rounds, self.coin)

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements as they hold for the machine; coins after the changed batch are the same numbers."""
        return self.rounding(rounds).applied(self._revealed(rounds, tossed(self.coin)))

    def _revealed(self, rounds: int, coin: Coin) -> tuple[Statement, ...]:
        return certificates(coin, self.beta * self.change, self._draws(rounds // self.batch), rounds >= self.batch)

    @property
    def coin(self) -> Coin:
        """The coin of a changed batch."""
        return Coin(self.p, self.beta * self.lipschitz)

    def dp_event(self) -> Any:
        """Return one Gaussian event that bounds what a run reveals, for dp_accounting's default relation."""
        draws = self._draws(self.coins)
        if not self.coins or not draws:
            return gaussian_events([])
        mu = math.hypot(gdp_of_bounded_range(self.beta * self.change) * math.sqrt(draws), gdp(tossed(self.coin)))
        return gaussian_events([(self.rounding(self.horizon).widened(mu), 1)])


def tossed(coin: Coin) -> Coin:
    """Return a coin as the machine tosses it (docs/theory, Q11)."""
    return Coin(coin.p, coin.eta + 2 * COIN)


def certificates(coin: Coin, rho: float, draws: int, looked_at: bool = True) -> tuple[Statement, ...]:
    """Return what is proved of one changed coin (if it is `looked_at`) and so many draws of range `rho`, two ways."""
    # Without draws the expert never changes, and a coin that cannot lead to one is not tossed.
    special = coin.directions() if looked_at and draws else (NO_LOSS,)
    none = Coin(1.0, 0.0)
    root = math.sqrt(draws)

    def bound(mu: float) -> Bound:
        return Bound(tuple((Term(mu * root, none, 0, other),) for other in special))

    return Statement("rdp", bound(rho / 2)), Statement("pld", bound(gdp_of_bounded_range(rho)))


def regret(n: int, lipschitz: float, horizon: int, beta: float, batch: int, q: float, budget: int) -> float:
    """Return the bound of docs/theory, R4: Hedge in batches, and what is lost once the budget is spent."""
    batches = -(-horizon // batch)
    late = lipschitz * batch * overrun(batches - 1, q, budget)
    return weights_regret(n, beta, lipschitz, block_squares(horizon, batch)) + late


# The search for the best private dartboard: beta by its account, the rest on a grid and downhill from its best points.

_STARTS = 2  # points of the grid that the search goes downhill from
_STEPS, _LOCAL = 80, 30  # evaluations of a search downhill: over all, and with the number of blocks fixed
_MARGIN = (-6.0, 6.0)  # standard deviations that a budget lies above the mean number of draws, or below
_FEW = 60  # blocks whose neighbours are tried one by one
_BELOW = (1.0, 3.0, 7.0, 15.0, 30.0)  # how far below the best beta without privacy its logarithm is looked for


@dataclass(frozen=True)
class _Choice:
    beta: float
    p: float
    batch: int
    budget: int
    regret: float


class _Search:
    """Choices for one goal, in units of the Lipschitz constant; a point is log blocks, log p and the margin.

    Batches are the shortest with so many blocks: few blocks, as few draws ask for, are tried one by one.
    """

    def __init__(self, n: int, horizon: int, epsilon: float, delta: float, change: float, cap: int | None) -> None:
        self.n, self.horizon, self.epsilon, self.delta, self.change = n, horizon, epsilon, delta, change
        self.domain = Experts(n)
        self.cap = horizon if cap is None else cap
        self.batch: int | None = None
        self.budget: int | None = None  # of draws, in place of the margin's

    def at(self, point: Array, exact: bool = False) -> _Choice:
        """Return the best choice at a point: to some digits or, if `exact`, surely private."""
        blocks = int(np.clip(round(math.exp(min(point[0], 40.0))), 1, self.horizon))
        batch = self.batch or -(-self.horizon // blocks)
        p, margin = math.exp(min(point[1], 0.0)), float(np.clip(point[2], *_MARGIN))
        high = math.log(best_beta(self.n, 1.0, block_squares(self.horizon, batch)))
        low = self._largest(high, p, batch, margin, exact)
        choice = self._choice(low, p, batch, margin)
        if choice.budget < (self.budget or self.cap):
            return choice
        # Where draws are capped, a smaller beta may be better, for it asks for fewer of them.
        found = scipy.optimize.minimize_scalar(
            lambda x: math.log(self._choice(x, p, batch, margin).regret),
            bounds=(low - 8.0, low),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return min(choice, self._choice(float(found.x), p, batch, margin), key=lambda one: one.regret)

    def _largest(self, high: float, p: float, batch: int, margin: float, exact: bool) -> float:
        """Return the logarithm of the largest beta that is private, up to `high`."""
        rest = (p, batch, margin)
        if self._excess(high, *rest) <= 0:
            return high
        top = high
        for low in (top - x for x in _BELOW):
            if self._excess(low, *rest) <= 0:
                break
            high = low
        else:
            return low
        if not exact:  # the account is smooth in beta, but for jumps of the budget: a few steps are enough
            return float(scipy.optimize.brentq(self._excess, low, high, args=rest, xtol=3e-4, disp=False))
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._excess(middle, *rest) <= 0 else (low, middle)
        return low

    def _choice(self, log_beta: float, p: float, batch: int, margin: float) -> _Choice:
        beta = math.exp(log_beta)
        q, budget = self._budget(beta, p, batch, margin)
        return _Choice(beta, p, batch, budget, regret(self.n, 1.0, self.horizon, beta, batch, q, budget))

    def _budget(self, beta: float, p: float, batch: int, margin: float) -> tuple[float, int]:
        coins, q = self.horizon // batch, 1 - (1 - p) * math.exp(-beta * batch)
        wanted = self.budget or math.ceil(coins * q + margin * math.sqrt(coins * q * (1 - q)))
        return q, max(1, min(wanted, coins, self.cap))

    def _excess(self, log_beta: float, p: float, batch: int, margin: float) -> float:
        """Return by how much delta is too large, in logarithms: at most 0 where the claim holds."""
        beta = math.exp(log_beta)
        _, budget = self._budget(beta, p, batch, margin)
        machine = Rounding.of(self.domain, self.horizon, budget)
        proved = machine.applied(certificates(tossed(Coin(p, beta)), beta * self.change, budget))
        found = SystemAccount(0, "", proved).delta(self.epsilon)
        return math.log(max(found, 1e-40) / (self.delta * (1 - 1e-9)))

    def _log_regret(self, point: Array) -> float:
        return math.log(self.at(point).regret)

    def _downhill(self, start: Array, steps: int, blocks: bool) -> Array:
        """Return the best point that a search finds from `start`, with other numbers of blocks or with the same."""
        # Away from the ends of their ranges, one block a round and p = 1, where many starts are.
        moves = np.diag([-0.7, -0.7, 1.0])[0 if blocks else 1 :]
        free = slice(0 if blocks else 1, None)

        def cost(part: Array) -> float:
            return self._log_regret(np.concatenate([start[: 0 if blocks else 1], part]))

        corners = (start + np.vstack([np.zeros(3), moves]))[:, free]
        options: Any = {"maxfev": steps, "initial_simplex": corners, "xatol": 1e-3, "fatol": 1e-5}
        found = scipy.optimize.minimize(cost, start[free], method="Nelder-Mead", options=options)
        return np.concatenate([start[: 0 if blocks else 1], found.x])

    def best(self, batch: int | None) -> _Choice:
        self.batch = batch
        grid = [self._start(b) for b in ([1] if batch else self._blocks())]
        points = [point for _, point in sorted(grid, key=lambda one: one[0])[:_STARTS]]
        points += [self._downhill(point, _STEPS, blocks=batch is None) for point in points]
        if batch is None:
            best = min(points, key=self._log_regret)
            count = round(math.exp(best[0]))
            near = {count - 1, count, count + 1} - {0} if count < _FEW else {count}
            points += [self._downhill(np.array([math.log(k), *best[1:]]), _LOCAL, blocks=False) for k in sorted(near)]
        points.sort(key=self._log_regret)
        choices = [self.at(point, exact=True) for point in points[:2]]
        found = choices[0].budget
        if found < _FEW:
            choices += [self._with_budget(points[0], k) for k in range(max(1, found - 1), min(found + 1, self.cap) + 1)]
        return min(choices, key=lambda choice: choice.regret)

    def _with_budget(self, point: Array, budget: int) -> _Choice:
        """Return the best choice near a point with so many draws: beta otherwise stops where their number jumps."""
        self.budget = budget
        found = scipy.optimize.minimize_scalar(
            lambda x: self._log_regret(np.array([point[0], x, point[2]])),
            bounds=(float(point[1]) - 1.0, float(point[1]) + 1.0),
            method="bounded",
            options={"xatol": 1e-3, "maxiter": _LOCAL // 2},
        )
        choice = self.at(np.array([point[0], float(found.x), point[2]]), exact=True)
        self.budget = None
        return choice

    def _blocks(self) -> list[int]:
        """Return numbers of blocks to begin with: from two to one a round, and some that go with few draws."""
        few = [times * self.cap + 1 for times in (1, 2, 4) if times * self.cap < self.horizon]
        found = {max(1, round(x)) for x in np.geomspace(min(2, self.horizon), self.horizon, 8)}
        short = {-(-self.horizon // batch) for batch in (2, 3, 4)}
        return sorted(found | short | set(few))

    def _start(self, blocks: int) -> tuple[float, Array]:
        """Return the best of some points with so many blocks, and its value."""
        points = [np.array([math.log(blocks), x, 2.0]) for x in (0.0, -1.5, -3.0, -4.5, -6.0, -8.0, -10.0)]
        values = [self._log_regret(point) for point in points]
        best = int(np.argmin(values))
        return values[best], points[best]


def plan_private_dartboard(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    max_switches: int | None = None,
    neighbors: str = "replace",
    batch: int | None = None,
) -> PrivateDartboardPlan:
    """Return the private dartboard with the least regret bound that a search finds for (epsilon, delta).

    Privacy holds for losses that react to decisions, the regret bound for those that do not. `max_switches` is a hard
    cap; `batch` fixes the rounds per coin.

    >>> from reticent.domains import Experts
    >>> plan = plan_private_dartboard(Experts(10), 100_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> plan.account().epsilon(1e-6) <= 1, plan.regret_bound < 2300
    (True, True)
    """
    check_experts(domain)
    T, G, goal, small, _ = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    cap = None if max_switches is None else integer("max_switches", max_switches, least=1)
    fixed = None if batch is None else integer("batch", batch, least=1)
    if fixed is not None and fixed > T:
        raise ValueError(f"batch must be at most the horizon of {T}, got {batch}")
    found = _Search(domain.dim, T, goal, small, 2.0 if neighbors == "replace" else 1.0, cap).best(fixed)
    return PrivateDartboardPlan(
        domain,
        T,
        G,
        beta=found.beta / G,
        p=found.p,
        batch=found.batch,
        budget=found.budget,
        epsilon=goal,
        delta=small,
        neighbors=neighbors,
    )


def _propose(goal: Goal) -> PrivateDartboardPlan:
    goal.need_a_switch()
    return plan_private_dartboard(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


PRIVATE = System(PrivateDartboardPlan.system, _propose, private=True, lazy=True, experts=True)
