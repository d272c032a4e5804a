"""The tuned lazy plan: least certified regret for a given number of switches."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np
import scipy

from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.systems._checks import check_body, check_horizon, check_scale
from reticent.systems.pcomw._plan import Plan, doubling, per_epoch
from reticent.systems.pcomw._regret import first_term, regret_bound
from reticent.systems.pcomw._switching import (
    Switching,
    clipping,
    expected_switches,
    looked_at,
    near_exact,
    overrun,
    variation_sum,
)

_PER_DECADE = 2.5
# What a fresh draw after every block may lose against a measure that is a point, and at most where it would be hard to
# draw from: of kinked losses, if a single round weighs much at the scale of a draw. Its step says how much: at 0.1
# draws take hardly longer than at less, from 1 on some are given up (absolute losses on a disc, hinge ones on a box).
_NEARLY, _MOST, _EASY = 1e-3, 0.05, 0.1
_FINE = 33


class MeasureCosts:
    """First term and stability at the best `lam`, as a function of the step `lipschitz * sqrt(beta / lam)`.

    The coin's law depends on the measure through the step alone, so the two choices separate. Losses come in batches;
    `around` are the steps to make tables for, all that may be wanted unless given.

    >>> from reticent.domains import Ball
    >>> costs = MeasureCosts(Ball(2), 1.0, 10_000)
    >>> lam, beta = costs.measure(0.01)
    >>> round(math.sqrt(beta / lam), 12)
    0.01
    """

    def __init__(
        self,
        domain: Domain,
        lipschitz: float,
        horizon: int,
        batch: int = 1,
        around: tuple[float, float] | None = None,
    ) -> None:
        """Take what the measure is about."""
        self._domain, self._G, self._T, self._batch, self._around = domain, lipschitz, horizon, batch, around
        # Dimensionless: lam in units of G / R, costs in units of G R.
        self._unit = lipschitz / domain.radius

    def measure(self, step: float) -> tuple[float, float]:
        """Return the best `lam` and the `beta` that goes with it."""
        lam = self._best(step)[0]
        return lam, lam * (step / self._G) ** 2

    def still(self) -> tuple[float, float]:
        """Return `lam` and `beta` of a measure so narrow and slow that its first draw can be kept for good."""
        # The draw is within a part in a thousand of the centre (root mean square), and beta is so small that the
        # measure moves by less than that over the whole run: (T^2 step) is what clipping could cost.
        k = 1e6 * self._domain.chart_dim / self._domain.radius**2
        step = 1e-6 / self._T**2
        return math.sqrt(k) * self._G / step, math.sqrt(k) * step / self._G

    def enough(self, loss: float) -> float:
        """Return the least step at which the cost is within a part `loss` of that at any step."""
        steps, costs = self._table
        most = (1 + loss) * costs.min()
        k = int(np.flatnonzero(costs <= most)[0])
        fine = np.geomspace(steps[max(k - 1, 0)], steps[k], _FINE)
        return float(fine[np.flatnonzero(self.cost(fine) <= most * (1 + 1e-12))[0]])

    def cost(self, step: Array) -> Array:
        """Return the cost at each step, by interpolation: for searches."""
        steps, _ = self._table
        return np.exp(self._curve(np.log(np.clip(step, steps[0], steps[-1]))))

    @cached_property
    def _curve(self) -> scipy.interpolate.PchipInterpolator:
        steps, costs = self._table
        return scipy.interpolate.PchipInterpolator(np.log(steps), np.log(costs))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        # Below 1/T not even one switch is expected; above sqrt(d) the measure is a point at every round.
        low, high = self._around or (1e-3 / self._T, 10 * math.sqrt(self._domain.chart_dim))
        steps = np.geomspace(low, high, math.ceil(_PER_DECADE * math.log10(high / low)))
        return steps, np.array([self._best(float(step), rough=True)[1] for step in steps])

    def _best(self, step: float, rough: bool = False) -> tuple[float, float]:
        T, d = self._T, self._domain.chart_dim
        squares = T * self._batch  # of the lengths of batches, their sum

        def cost(log_lam: float) -> float:
            lam = math.exp(log_lam) * self._unit
            first = first_term(self._domain, lam * (step / self._G) ** 2, lam, self._G * T, quick=True)
            return first + squares * self._G**2 / (2 * lam)

        # lam between that of no noise at all and that at which the measure is a point in the centre.
        low = math.log(0.03 * math.sqrt(squares))
        high = math.log(max(100 * math.sqrt(squares), 1e4 * math.sqrt(d) / step))
        grid = np.linspace(low, high, 14)
        values = [cost(x) for x in grid]
        i = int(np.argmin(values))
        found = scipy.optimize.minimize_scalar(
            cost,
            bounds=(grid[max(i - 1, 0)], grid[min(i + 1, 13)]),
            method="bounded",
            options={"xatol": 0.02 if rough else 1e-4},
        )
        best, value = (float(found.x), float(found.fun)) if found.fun < values[i] else (float(grid[i]), values[i])
        return math.exp(best) * self._unit, value


# The other half of lazy planning: the forced switching rate and the scale of the coin.

# Steps of the sum over rounds in the search; the certificate takes more.
_STEPS = 32
_ROUNDS = 6


@dataclass(frozen=True)
class CoinSetting:
    """A forced rate, a scale, and the largest step that the allowed number of switches leaves room for."""

    p: float
    log_phi: float
    step: float


def best_coin(shell: Plan, costs: MeasureCosts, allowed: float) -> CoinSetting:
    """Return the coin of least certified regret whose expected switches, without a budget, are at most `allowed`.

    A search from coarse to fine over c (log phi is c sigma), over u (the forced switches are the share u of those
    aimed at), and with a budget over m (those aimed at are m times the allowed ones). For each, the step is solved for.
    """
    n = shell.coins
    c, u = (
        np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0]),
        np.append(np.linspace(0.0, 0.9, 10), [0.97, 0.999]),
    )
    m = np.array([1.0]) if shell.budget is None else np.array([0.02, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.96, 1.0])
    best: tuple[float, CoinSetting] = (math.inf, CoinSetting(0.0, 0.0, 0.0))
    for _ in range(_ROUNDS):
        grid = np.meshgrid(c, u, m, indexing="ij")
        C, U, A = grid[0].ravel(), grid[1].ravel(), grid[2].ravel() * allowed
        p = U * A / n
        step = _solve(shell, C, p, A)
        total = _objective(shell, costs, C, p, step)
        i = int(total.argmin())
        if total[i] < best[0]:
            best = float(total[i]), CoinSetting(float(p[i]), float(C[i] * _width(shell, step[i])), float(step[i]))
        j = np.unravel_index(i, grid[0].shape)
        c, u, m = (_closer(axis, int(place)) for axis, place in zip((c, u, m), j, strict=True))
    return best[1]


def _closer(axis: Array, i: int) -> Array:
    """Return points between the neighbours of `axis[i]`, that one among them."""
    if axis.size == 1:
        return axis
    low, high = axis[max(i - 1, 0)], axis[min(i + 1, axis.size - 1)]
    return np.unique(np.concatenate([np.linspace(low, axis[i], 4), np.linspace(axis[i], high, 4)]))


def _width(shell: Plan, step: Array) -> Array:
    return math.sqrt(1 + 1 / shell.draws) * step


def _number(shell: Plan, c: Array, p: Array, step: Array) -> Array:
    """Return the bound on expected switches, inexact draws included."""
    n, log_phi = shell.coins, c * _width(shell, step)
    switches = expected_switches(n, p, log_phi, clipping(log_phi, step, shell.draws))
    number = 1 + n * (p + looked_at(p, log_phi) * (shell.draws + 1))
    total: Array = switches + n * np.minimum(1.0, math.erf(shell.distance / math.sqrt(8)) * number)
    return total


def _solve(shell: Plan, c: Array, p: Array, allowed: Array) -> Array:
    """Return the largest steps at which the expected switches are at most `allowed`: they grow with the step."""
    low, high = np.full(c.shape, math.log(1e-30)), np.full(c.shape, math.log(20 * math.sqrt(shell.domain.chart_dim)))
    for _ in range(60):
        middle = (low + high) / 2
        fits = _number(shell, c, p, np.exp(middle)) <= allowed
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    solved: Array = np.exp(low)
    return solved


def _objective(shell: Plan, costs: MeasureCosts, c: Array, p: Array, step: Array) -> Array:
    n, log_phi = shell.coins, c * _width(shell, step)
    clip = clipping(log_phi, step, shell.draws)
    rounds = variation_sum(n, p, clip)
    if shell.budget is not None:
        rounds = rounds + overrun(shell.budget, n - 1, p, log_phi, clip, _STEPS)
    total: Array = costs.cost(step) + shell.lipschitz * shell.domain.diameter * rounds
    return total


# The tuned lazy plan: least certified regret for a given number of switches.


@saved("plan_lazy")
def plan_lazy(
    domain: Domain, horizon: int | None, lipschitz: float, max_switches: int, *, hard: bool = False, draws: int = 8
) -> Plan:
    """Return the plan of least certified regret whose expected number of switches is at most `max_switches`.

    The number is an expectation over the run; `hard=True` makes it a cap that never breaks, at a small price in
    regret. `draws` auxiliary draws are averaged per coin that needs one: more of them cost time and save switches.
    Where switches are so few that hiding them costs more than it saves, the plan takes blocks of rounds, with a fresh
    decision after each (then `draws` is 1, and the number is a cap in any case). With `horizon=None` the run has
    doubling epochs and `max_switches` is a bound for each of them, not for the run.
    The certificate is for losses that do not depend on the decisions (docs/theory, P4 and P6).

    >>> from reticent.domains import Ball
    >>> plan = plan_lazy(Ball(2), 10_000, 1.0, max_switches=500)
    >>> plan.expected_switches <= 500, plan.regret_bound < 3_000
    (True, True)
    """
    check_body(domain)
    G, S = positive("lipschitz", lipschitz), integer("max_switches", max_switches, least=0)
    M = integer("draws", draws, least=1)
    check_scale(domain, G)
    if horizon is None:
        recipe = partial(plan_lazy, domain, lipschitz=G, max_switches=S, hard=hard, draws=M)
        kind = "at most" if hard else "in expectation at most"
        return doubling(recipe, 1, per_epoch(kind, S))
    return _planned(domain, check_horizon(horizon), G, S, bool(hard), M)


@lru_cache(maxsize=128)  # a goal has one answer, and learners without a horizon ask for those of their epochs again
def _planned(domain: Domain, T: int, G: float, S: int, hard: bool, M: int) -> Plan:
    costs = MeasureCosts(domain, G, T)
    shell = Plan(
        domain,
        T,
        G,
        beta=1.0,
        lam=1.0,
        p=0.0,
        phi=1.0,
        budget=S if hard else None,
        draws=M,
        adversary="oblivious",
        distance=near_exact(T, S, M),
        source=f"plan_lazy, {'never more than' if hard else 'in expectation at most'} {S:,} switches",
    )
    candidates = [_never(shell, costs)]
    if S >= T - 1:
        # The decision after the last round need not be drawn.
        candidates.append(replace(_always(shell, costs), budget=shell.budget if S >= T else S))
    if min(S, T - 1) > 0:
        candidates.append(_tuned(shell, costs, min(S, T - 1)))
    if 0 < S < T - 1:
        candidates.append(_blocks(shell, S))
    plan = min((_certified(plan) for plan in candidates), key=lambda plan: plan.regret_bound or 0.0)
    if plan.expected_switches is None or plan.expected_switches > S:
        raise AssertionError(f"a plan for {S} switches came out with {plan.expected_switches}; please report this")
    return plan.sealed()


def _certified(plan: Plan) -> Plan:
    """Return the plan with its certificate written into it."""
    law, remarks = Switching(plan), plan.remarks
    if plan.budget is None and plan.phi > 1:
        adaptive = plan.coins * (plan.p + float(looked_at(plan.p, law.log_phi)))
        remarks += (
            "The number of switches is for losses that do not depend on the decisions; for losses chosen after seeing "
            f"them it is at most {adaptive:,.6g} in expectation. hard=True makes it a cap for all losses.",
        )
    return replace(plan, expected_switches=law.expected, regret_bound=regret_bound(plan).total, remarks=remarks)


def _never(shell: Plan, costs: MeasureCosts) -> Plan:
    """Return the plan that draws one decision, almost at the centre, and keeps it."""
    lam, beta = costs.still()
    remark = (
        "This plan never switches: one decision near the centre is kept for the whole run, and the regret bound "
        "is what any such decision satisfies (lipschitz * radius * horizon)."
    )
    return replace(shell, beta=beta, lam=lam, phi=1.0, remarks=(remark,))


def _always(shell: Plan, costs: MeasureCosts) -> Plan:
    """Return the plan that draws a fresh decision every round: nothing to ration."""
    step = costs.enough(_MOST)
    lam, beta = costs.measure(step)
    return replace(shell, beta=beta, lam=lam, p=1.0, draws=1)


def _blocks(shell: Plan, S: int) -> Plan:
    """Return the plan that draws a fresh decision after every block of rounds, S + 1 blocks in all.

    Coins after longer batches switch as often, for the same step, and stability suffers: in every setting that was
    tried the least certificate was at coins after single rounds or at blocks without coins, never between. That is not
    proved, and nothing rests on it: a batch in between could only promise less regret than this plan does.
    """
    domain, T, G = shell.domain, shell.horizon, shell.lipschitz
    assert T is not None
    batch = math.ceil(T / (S + 1))
    # About where the entropy of the measure, some d log/beta with lam near sqrt(T batch), is the part that may be lost.
    step = math.sqrt(10 * domain.chart_dim / (_NEARLY * T * batch))
    costs = MeasureCosts(domain, G, T, batch, (step / 10, step * 30))
    lam, beta = costs.measure(min(costs.enough(_NEARLY), max(costs.enough(_MOST), _EASY)))
    # The last block needs no switch after it: hence the budget, in expectation too.
    return replace(shell, beta=beta, lam=lam, p=1.0, draws=1, batch=batch, budget=S)


def _tuned(shell: Plan, costs: MeasureCosts, S: int) -> Plan:
    """Return the plan of the best coin and measure, with a last look at the number of switches."""
    # A little below S, for rounding: of sums, and of phi, whose last digit moves the switches of every round.
    margin = 1e-9 * S + 1e-15 * shell.coins
    while True:
        coin = best_coin(shell, costs, S - margin)
        lam, beta = costs.measure(coin.step)
        plan = replace(shell, beta=beta, lam=lam, p=coin.p, phi=math.exp(coin.log_phi))
        if Switching(plan).expected <= S:
            return plan
        margin *= 4
