"""Private implicit descent (after Jain, Kothari and Thakurta 2012): each decision is a hidden iterate plus noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy

from reticent._core import _names
from reticent._core._check import Array, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events
from reticent.systems._bounds import finite, least_at, mean_length
from reticent.systems._checks import check_body, check_firm, check_target, least_noise, machine_mu
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._grid import Rounding, roughness
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import NoisyWalk

_DEAR = 1e6  # times the diameter: the price of what cannot be
# What is assumed of a step, in units of sqrt(d) R: it is that of a loss whose margin is off by so much times |a|, up to
# so much; on polytopes nearest points are found to 1e-14 R only (docs/theory, Q11).
_MARGIN, _OFF = 2.0**-51, 2.0**-50
_MARGIN_POLYTOPE, _OFF_POLYTOPE = 2.0**-46, 2.0**-46
_TABLE = 1024  # terms added one by one; beyond, four terms of Euler and Maclaurin leave less than 1e-13


@saved("plan of implicit descent")
@dataclass(frozen=True, kw_only=True)
class ImplicitPlan(SystemPlan):
    """Implicit gradient descent on losses with `alpha`/2 |x - center|^2 added, noise on what is released only.

    The hidden iterates of neighbouring streams are no more than Delta/(alpha t) apart before round t. Decision t has
    noise of deviation `deviation(t)`, which falls as t^(-2/3): of all with the same privacy the least in sum
    (docs/theory, R3). `noise` is that of t = 1.

    >>> from reticent.domains import Ball
    >>> plan = plan_implicit(Ball(3), 10_000, 1.0, 3.0, 1e-6)
    >>> round(plan.account().epsilon(1e-6), 6), plan.vacuous
    (3.0, False)
    """

    system: ClassVar[str] = _names.IMPLICIT
    reference: ClassVar[str] = "Jain, Kothari and Thakurta 2012"

    alpha: float
    noise: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(
            alpha=check_firm("alpha", self.alpha, self.domain, self.lipschitz),
            noise=positive("noise", self.noise, zero=True),
        )

    @property
    def first_change(self) -> float:
        """The largest distance of neighbouring iterates that the bound Delta/(alpha t) leaves at t = 1."""
        return min(self.change / self.alpha, self.domain.diameter)

    @property
    def knee(self) -> float:
        """The round up to which neighbouring iterates may be as far apart as the domain is wide; 1 if none."""
        return max(1.0, self.change / (self.alpha * self.domain.diameter))

    def deviation(self, t: int) -> float:
        """Return the standard deviation of the noise, in each coordinate of the chart, on the decision of round t.

        The first decision is the centre, without noise.
        """
        return 0.0 if t <= 1 else self.noise * math.pow(min(1.0, self.knee / t), 2 / 3)

    def mu(self, rounds: int) -> float:
        """Return the mu of the decisions that `rounds` rounds lead to: those of rounds 2 to `rounds` + 1."""
        if rounds == 0:
            return 0.0
        total = math.sqrt(self._shares(rounds + 1))
        return math.inf if self.noise == 0 else self.first_change / self.noise * total

    def _shares(self, last: int) -> float:
        """Return the sum over t = 2..last of min(1, knee/t)^(2/3)."""
        flat = min(int(self.knee), last)
        return flat - 1 + math.pow(self.knee, 2 / 3) * power_sum(flat + 1, last)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R3."""
        T, G, R = self.horizon, self.lipschitz, self.domain.radius
        hidden = self.alpha * (T + 1) * R**2 / 2 + G**2 * harmonic(T) / (2 * self.alpha)
        return hidden + G * self._distances() + self.grid_regret

    def _distances(self) -> float:
        """Return a bound on the sum over rounds of the expected distance of decision and iterate."""
        T, D, first = self.horizon, self.domain.diameter, mean_length(self.domain.chart_dim) * self.noise
        # Up to round `wide` the noise may be larger than the domain, and the distance is at most the diameter.
        wide = min(T, int(min(float(T), self.knee * math.pow(first / D, 1.5)))) if first > D else 1
        flat = min(max(int(self.knee), wide), T)
        rest = (flat - wide) * first + first * math.pow(self.knee, 2 / 3) * power_sum(flat + 1, T)
        return (wide - 1) * D + rest

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses whose proximal step is not known."""
        if isinstance(loss, Custom):
            raise ValueError(
                f"loss must be Linear or one of the generalised linear losses for {self.system}, whose implicit steps "
                f"minimise each loss, got {loss!r}; PCOMW and DPFTRL take any convex loss"
            )

    def rounding(self, rounds: int) -> Rounding:
        """Return what the machine's arithmetic may add: more where noise is large, whose last bits then show (Q11).

        And by how much rounding may set hidden iterates farther apart, which are no sums in twice the precision.
        """
        found = super().rounding(rounds)
        if rounds == 0:
            return found
        last = rounds + 1
        rough = math.sqrt(self._roughness(last) / rounds)
        return found.rougher(rough)._replace(stretch=found.stretch + self._apart(last))

    def _apart(self, last: int) -> float:
        """Return what rounding of hidden iterates may add to the mu of decisions up to round `last`, as a share of it.

        Iterates of neighbouring streams are `each` * (t + 1) farther apart before round t, at most (docs/theory, Q11).
        """
        body = self.domain.body
        margin, off = (_MARGIN, _OFF) if body.box or body.ball else (_MARGIN_POLYTOPE, _OFF_POLYTOPE)
        each = (2 * margin + off) * math.sqrt(self.domain.chart_dim) * body.radius
        # The sum over t of ((t + 1)/deviation(t))^2 in units of the noise, or more: max(1, x) is at most 1 + x.
        squares = (last + 2.0) ** 3 / 3 + math.pow(self.knee, -4 / 3) * (last + 2.0) ** (13 / 3) * 3 / 13
        return each * math.sqrt(squares / self._shares(last)) / self.first_change

    def _roughness(self, last: int) -> float:
        """Return the sum over t = 2..last of max(1, noise beside the largest that rounding allows for)^2, or more."""
        first = roughness(self.noise, float(self.grid.min()))
        if first <= 1:
            return last - 1.0
        # Noise is too large up to round `end`, and falls as t^(-2/3) from the knee on.
        flat = min(int(self.knee), last)
        end = max(flat, int(min(float(last), self.knee * math.pow(first, 1.5))))
        falling = 3 * math.pow(self.knee, 4 / 3) * (math.pow(flat, -1 / 3) - math.pow(end, -1 / 3))
        return last - end + first**2 * (flat + falling)

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the decisions are `mu(rounds)`-GDP (docs/theory, R3)."""
        return (gaussian(finite(self.system, self.mu(rounds))),)

    def dp_event(self) -> Any:
        """Return the Gaussian event of the whole run."""
        mu = finite(self.system, self.mu(self.horizon))
        return gaussian_events([(self.rounding(self.horizon).widened(mu), 1)])


def plan_implicit(
    domain: Domain, horizon: int, lipschitz: float, epsilon: float, delta: float, *, neighbors: str = "replace"
) -> ImplicitPlan:
    """Return private implicit descent with the regulariser and the noise of least certified regret.

    >>> from reticent.domains import Interval
    >>> plan = plan_implicit(Interval(-1.0, 1.0), 100_000, 1.0, 1.0, 1e-6, neighbors="zero-out")
    >>> plan.regret_bound < 0.4 * plan.horizon
    True
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    machine_mu(target, domain, T)  # refuses what rounding makes impossible
    R = domain.radius

    def at(alpha: float) -> ImplicitPlan | None:
        """Return the plan whose noise pays for its own last bits, if there is one."""
        shell = ImplicitPlan(domain, T, G, alpha=alpha, noise=1.0, neighbors=neighbors)
        noise = least_noise(shell.mu(T), most, lambda noise: replace(shell, noise=noise).rounding(T))
        return None if math.isinf(noise) else replace(shell, noise=noise)

    def price(alpha: float) -> float:
        plan = at(alpha)
        return _DEAR * G * R * T if plan is None else plan.regret_bound

    # Below the first the hidden iterate alone is far from the best, above the second the regulariser is.
    found = at(least_at(price, 1e-3 * G / (R * math.sqrt(T)), 10 * G / R))
    # Noise so large that its last bits show wants a larger alpha, whatever that costs.
    found = found or next(filter(None, (at(10.0**k * G / R) for k in range(2, 12))), None)
    if found is None:
        raise ValueError(f"no noise is known to meet epsilon={epsilon!r} at delta={delta!r}; take a larger epsilon")
    return replace(found, epsilon=epsilon, delta=delta)


def power_sum(first: int, last: int) -> float:
    """Return the sum of t^(-2/3) over t = first..last.

    >>> power_sum(8, 8), power_sum(3, 2)
    (0.25, 0.0)
    """
    few: Array = np.arange(first, min(last, _TABLE) + 1, dtype=np.float64)
    total = float((few ** (-2 / 3)).sum())
    a, b = float(max(first, _TABLE + 1)), float(last)
    if b >= a:
        total += 3 * (b ** (1 / 3) - a ** (1 / 3)) + (a ** (-2 / 3) + b ** (-2 / 3)) / 2
        total += (a ** (-5 / 3) - b ** (-5 / 3)) / 18
    return total


def harmonic(n: int) -> float:
    """Return 1 + 1/2 + ... + 1/n.

    >>> round(harmonic(4), 9)
    2.083333333
    """
    return float(scipy.special.digamma(n + 1.0)) + float(np.euler_gamma)


def _implicit(goal: Goal) -> ImplicitPlan:
    if isinstance(goal.loss, Custom):
        raise NotApplicable("needs the proximal step of the loss, which a custom loss does not tell")
    return plan_implicit(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (System(ImplicitPlan.system, _implicit, private=True),)


# Private implicit gradient descent, after Jain, Kothari and Thakurta 2012.


@saved("implicit descent")
class PrivateImplicitDescent(SystemLearner):
    """Moves a hidden iterate by implicit gradient steps; each decision is that iterate with fresh Gaussian noise.

    Algorithm: w_{t+1} = argmin over K of |w - w_t|^2/2 + (l_t(w) + alpha/2 |w|^2)/(alpha t) from w_1 = 0 (the centre),
    and x_t = nearest(w_t + sigma_t z_t) with z_t standard normal; the noise is not fed back.
    Theorem: iterates of neighbouring streams are at most Delta/(alpha t) apart, so that the run is mu-GDP with mu^2 the
    sum of (Delta/(alpha t sigma_t))^2; regret <= alpha (T+1) R^2/2 + G^2 (1 + ... + 1/T)/(2 alpha) + G E|z| (sum of the
    sigma_t), both for losses that may react to decisions (docs/theory, R3). Assumes convex Lipschitz losses, linear
    or generalised linear (the step minimises the loss, not its gradient); smoothness is not needed. Not lazy.
    Derived from the published idea: steps, noise and constants are those of the proof here.
    Reference: Jain, Kothari and Thakurta 2012, Differentially private online learning.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_implicit(rt.Ball(2), 1000, 1.0, epsilon=10.0, delta=1e-6)
    >>> learner = rt.learners.PrivateImplicitDescent(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)), np.full(1000, 0.5))
    >>> float(trace.regret()) <= plan.regret_bound, learner.spent() <= 10.0 + 1e-6
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ImplicitPlan

    def _new_walk(self) -> Decider:
        return _Implicit(self.plan, self.loss, self._rng)


@saved("walk of implicit descent")
class _Implicit(NoisyWalk):
    """The iterate `w` is as secret as the data."""

    _moves = ("w",)

    def __init__(self, plan: ImplicitPlan, loss: Loss, rng: np.random.Generator) -> None:
        super().__init__(plan.domain, loss)
        self.alpha, self.noise, self.knee, self.rng = plan.alpha, plan.noise, plan.knee, rng
        self.w = np.zeros_like(self.u)

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.implicit._kernel import step_implicitly  # numba loads on first use

        step_implicitly(
            self.rng,
            *self._rows(code, vectors, offsets),
            self.alpha,
            self.noise,
            self.knee,
            self.done,
            self.w,
            after,
        )
