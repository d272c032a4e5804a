"""The private approximate leader (after Smith and Thakurta 2013): quadratic lower bounds, sums with tree noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._base import read_only
from reticent.losses import Custom, GeneralisedLinear, Loss
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events
from reticent.systems._bounds import finite, least_at, mean_length
from reticent.systems._checks import check_body, check_firm, check_target, least_noise, machine_mu
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import Rounding, roughness
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import NoisyWalk

_DEAR = 1e6  # times the diameter: the price of what cannot be
_DIGITS = 14  # leading binary digits of a round that are told apart in sums: rounds it upwards by 2^-13 at most


@saved("plan of the approximate leader")
@dataclass(frozen=True, kw_only=True)
class ApproximateLeaderPlan(SystemPlan):
    """The least of all quadratic lower bounds of the losses so far, with the noise of a binary tree on the gradients.

    `strong_convexity` h is what every loss has (0: nothing is assumed; more is taken on trust, and only the regret
    bound rests on it); `added`/2 |x - center|^2 is added to every loss; `noise` is the standard deviation of each node
    of the tree. At least one of `strong_convexity` and `added` is positive (docs/theory, R3).

    >>> from reticent.domains import Ball
    >>> plan = plan_approximate_leader(Ball(3), 100_000, 1.0, 1.0, 1e-6)
    >>> round(plan.account().epsilon(1e-6), 6), plan.regret_bound < 0.2 * plan.horizon
    (1.0, True)
    """

    system: ClassVar[str] = _names.APPROXIMATE_LEADER
    reference: ClassVar[str] = "Smith and Thakurta 2013"

    added: float
    noise: float
    strong_convexity: float = 0.0

    def _check(self) -> None:
        check_body(self.domain)
        for name in ("added", "noise", "strong_convexity"):
            self._set(**{name: positive(name, getattr(self, name), zero=True)})
        if self.curvature == 0:
            raise ValueError(
                "added must be greater than 0 where no strong_convexity is declared, got 0.0 for both; "
                "plan_approximate_leader finds the best"
            )
        check_firm("added (with strong_convexity)", self.curvature, self.domain, self.lipschitz)

    @property
    def curvature(self) -> float:
        """The curvature H of every lower bound: `strong_convexity` + `added`."""
        return self.strong_convexity + self.added

    def mu(self, rounds: int) -> float:
        """Return the mu of what is released in `rounds` rounds: a round is in so many nodes as that has digits."""
        if rounds == 0:
            return 0.0
        return math.inf if self.noise == 0 else self.change * math.sqrt(rounds.bit_length()) / self.noise

    @property
    def assumes(self) -> str:  # type: ignore[override]
        """What the certificates rest on, in words."""
        return f"losses of strong convexity {self.strong_convexity:g}" if self.strong_convexity else "convex losses"

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R3."""
        T, G, D, h = self.horizon, self.lipschitz, self.domain.diameter, self.strong_convexity
        t, count, digits = past_rounds(T - 1)
        curved = h + self.curvature * t  # of the lower bounds before round t + 1, and what its own loss has
        length = mean_length(self.domain.chart_dim) * self.noise * np.sqrt(digits)
        rounds = G**2 / (2 * curved) + G * np.minimum(length / curved, D)
        first = G**2 / (2 * self.curvature)
        added = self.added * T * self.domain.radius**2 / 2
        return added + first + float((count * rounds).sum()) + self.grid_regret

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that cannot be as strongly convex as the plan says."""
        if self.strong_convexity and _flat(self.domain, loss):
            raise ValueError(
                f"loss must be strongly convex for a plan with strong_convexity={self.strong_convexity:g}, got "
                f"{loss!r}, which is flat along some direction; plan without strong_convexity, or wrap a loss that has "
                "it in Custom(value, subgradient)"
            )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is taken on trust."""
        if not self.strong_convexity:
            return ()
        return (f"Regret rests on losses of strong convexity {self.strong_convexity:g}, on trust; privacy does not.",)

    def rounding(self, rounds: int) -> Rounding:
        """Return what the machine's arithmetic may add: more where noise is large, whose last bits then show.

        After t rounds a step of the grid is `curvature` * t times as long in the sums (docs/theory, Q11).
        """
        found = super().rounding(rounds)
        if rounds == 0:
            return found
        t, count, _ = past_rounds(rounds)
        largest = self.noise * math.sqrt(rounds.bit_length())
        steps = roughness(largest, self.curvature * float(self.grid.min())) / t
        return found.rougher(math.sqrt(float((count * np.maximum(1.0, steps) ** 2).sum()) / rounds))

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the run is `mu(rounds)`-GDP (docs/theory, R3)."""
        return (gaussian(finite(self.system, self.mu(rounds))),)

    def dp_event(self) -> Any:
        """Return the Gaussian event of the whole run."""
        mu = finite(self.system, self.mu(self.horizon))
        return gaussian_events([(self.rounding(self.horizon).widened(mu), 1)])


def _flat(domain: Domain, loss: Loss) -> bool:
    """Say whether losses of this kind are flat along some direction; custom ones are taken on trust."""
    if isinstance(loss, Custom):
        return False
    return domain.chart_dim > 1 or not (isinstance(loss, GeneralisedLinear) and loss.curved)


def plan_approximate_leader(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    strong_convexity: float | None = None,
    neighbors: str = "replace",
) -> ApproximateLeaderPlan:
    """Return the private approximate leader with the added curvature of least certified regret.

    With `strong_convexity` the losses are taken to have that much themselves; regret then is logarithmic in the
    horizon (times a power of the logarithm for the noise).

    >>> from reticent.domains import Ball
    >>> plan = plan_approximate_leader(Ball(3), 100_000, 1.0, 1.0, 1e-6, strong_convexity=0.5)
    >>> plan.added, plan.regret_bound < 0.04 * plan.horizon
    (0.0, True)
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    machine_mu(target, domain, T)  # refuses what rounding makes impossible
    h = 0.0 if strong_convexity is None else positive("strong_convexity", strong_convexity, zero=True)
    R = domain.radius
    shell = ApproximateLeaderPlan(domain, T, G, added=G / R, noise=1.0, strong_convexity=h, neighbors=neighbors)
    unit = shell.mu(T)

    def at(added: float) -> ApproximateLeaderPlan | None:
        """Return the plan whose noise pays for its own last bits, if there is one."""
        plan = replace(shell, added=added)
        noise = least_noise(unit, most, lambda noise: replace(plan, noise=noise).rounding(T))
        return None if math.isinf(noise) else replace(plan, noise=noise)

    def price(added: float) -> float:
        plan = at(added)
        return _DEAR * G * R * T if plan is None else plan.regret_bound

    # Below the first the regret without noise is far from the best, above the second the added curvature costs more
    # than it can save.
    found = [at(least_at(price, 1e-3 * G / (R * math.sqrt(T)), 10 * G / R))]
    # Noise so large that its last bits show wants more curvature, whatever that costs.
    found.extend(at(10.0**k * G / R) for k in range(2, 12) if found[0] is None)
    if h > 0:
        found.insert(0, at(0.0))
    plans = [plan for plan in found if plan is not None]
    if not plans:
        raise ValueError(f"no noise is known to meet epsilon={epsilon!r} at delta={delta!r}; take a larger epsilon")
    return replace(min(plans, key=lambda plan: plan.regret_bound), epsilon=epsilon, delta=delta)


@lru_cache(maxsize=8)
def past_rounds(n: int) -> tuple[Array, Array, Array]:
    """Return the numbers 1..n in groups: the least of each, how many, and a bound on the mean of their binary digits 1.

    Numbers of a group agree in their leading digits. Of the m others half are 1 in the mean (fewer if only the first
    numbers of a group are there), and the root of the mean is more than the mean of the roots.

    >>> past_rounds(3)
    (array([1., 2., 3.]), array([1., 1., 1.]), array([1., 1., 2.]))
    """
    leading = np.arange(1, 1 << _DIGITS, dtype=np.int64)
    ones = np.zeros(leading.size)
    for k in range(_DIGITS):
        ones += leading >> k & 1
    parts = [(leading, np.ones_like(leading), ones)]
    half = 1 << (_DIGITS - 1)
    for m in range(1, max(1, n.bit_length() - _DIGITS + 1)):
        start = leading[half - 1 :] << m
        parts.append((start, np.full_like(start, 1 << m), ones[half - 1 :] + m / 2))
    start, size, digits = (np.concatenate([part[i] for part in parts]) for i in range(3))
    size = np.clip(n + 1 - start, 0, size)
    kept = size > 0
    return read_only(start[kept]), read_only(size[kept]), read_only(digits[kept])


def _leader(goal: Goal) -> ApproximateLeaderPlan:
    strong = None if _flat(goal.domain, goal.loss) else goal.strong_convexity
    return plan_approximate_leader(*goal.target, strong_convexity=strong, neighbors=goal.neighbors)


SYSTEMS = (System(ApproximateLeaderPlan.system, _leader, private=True),)


# The private approximate leader, after Smith and Thakurta 2013.

_LEVELS = 64  # more rounds than 2^64 no one will see


@saved("approximate leader")
class ApproximateLeader(SystemLearner):
    """Plays the least of quadratic lower bounds of all losses so far; the sums of gradients carry tree noise.

    Algorithm: x_{t+1} = argmin over K of sum_{s<=t} [<g_s, x> + h/2 |x - x_s|^2 + a/2 |x|^2] + <N_t, x> from x_1 = 0
    (the centre), g_s a subgradient of loss s at the released x_s, h its strong convexity (0 in general), a the
    curvature added, N_t the noise of the nodes of a binary tree that the first t rounds consist of.
    Theorem: the run is mu-GDP with mu = Delta sqrt(floor(log2 T) + 1)/sigma; regret <= a T R^2/2 + G^2/(2(h+a)) + sum
    over t < T of (G^2/2 + G E|N_t|)/(h + (h+a)t), both for losses that may react to decisions (docs/theory, R3).
    Assumes convex Lipschitz losses, and those of `strong_convexity` h if the plan has it. Not lazy.
    Derived from the published idea: constants are those of the proof here.
    Reference: Smith and Thakurta 2013, (Nearly) optimal algorithms for private online learning.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_approximate_leader(rt.Ball(2), 1000, 1.0, epsilon=10.0, delta=1e-6)
    >>> learner = rt.learners.ApproximateLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> float(trace.regret()) <= plan.regret_bound, learner.spent() <= 10.0 + 1e-6
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = ApproximateLeaderPlan

    def _new_walk(self) -> Decider:
        return _Leader(self.plan, self.loss, self._rng)


@saved("walk of the approximate leader")
class _Leader(NoisyWalk):
    """Sums of gradients and noise apart are as secret as the data; only together they are released."""

    _moves = ("total", "visited", "sums")

    def __init__(self, plan: ApproximateLeaderPlan, loss: Loss, rng: np.random.Generator) -> None:
        super().__init__(plan.domain, loss)
        self.strong, self.added, self.noise, self.rng = plan.strong_convexity, plan.added, plan.noise, rng
        self.total, self.visited = np.zeros((2, self.u.size)), np.zeros((2, self.u.size))  # in twice the precision
        self.sums = np.zeros((_LEVELS, self.u.size))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if self.total.ndim == 1:
            self.total, self.visited = (np.stack([part, np.zeros_like(part)]) for part in (self.total, self.visited))

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.approximate_leader._kernel import follow  # numba loads on first use

        follow(
            self.rng,
            *self._rows(code, vectors, offsets),
            self.strong,
            self.added,
            self.noise,
            self.done,
            self.total,
            self.visited,
            self.sums,
            self.u.copy(),
            after,
        )
