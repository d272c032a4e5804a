"""A hard budget of switches with low regret with high probability: a perturbed leader that starts anew now and then."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy

from reticent._core import _names
from reticent._core._check import Array, integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.saving import refuse_unless
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan
from reticent.systems.experts._hedge import ExpertsPlan, check_experts
from reticent.systems.experts._learner import Experts, ExpertsLearner, ExpertsWalk

# Epochs that are searched: the best numbers grow with log(1/failure), and are 7 and 8 at 0.01, 40 and 44 at 1e-12.
_LENGTHS, _RESTARTS = 60, 80
# The largest chance of a change in one round that is planned with: beyond, regret is of the order of T.
_MOST_CHANCE = 0.5


@saved("plan of the restarting leader")
@dataclass(frozen=True, kw_only=True)
class RestartingLeaderPlan(ExpertsPlan):
    """Follow the leader of sums less exponential noise, drawn once per epoch; an epoch ends after `changes` changes.

    It also ends after `epoch` rounds; then sums start from 0 with fresh noise of that `rate`. After `budget` switches
    the expert stays. With probability 1 - `failure` at least, regret is at most `high_probability_bound`, about
    T log(n/failure) log(1/failure)/budget up to a constant (docs/theory, R4k). For fewer switches than some 30,000, or
    T below some 1e8, that of `LimitedSwitchingPlan` is lower; in expectation its bound was wherever tried.

    >>> from reticent.domains import Experts
    >>> plan = plan_restarting_leader(Experts(10), 10**10, 1.0, max_switches=10**5)
    >>> plan.changes, plan.max_switches, round(plan.high_probability_bound / 1e6, 1)
    (12499, 99998, 43.4)
    >>> from reticent.systems.experts._hedge import plan_limited_switching
    >>> round(plan_limited_switching(Experts(10), 10**10, 1.0, 10**5).high_probability_bound / 1e6, 1)
    81.9
    """

    system: ClassVar[str] = _names.RESTARTING
    reference: ClassVar[str] = "after Altschuler and Talwar 2021; Kalai and Vempala 2005"

    rate: float
    epoch: int
    changes: int
    restarts: int
    failure: float = 0.01

    def _check(self) -> None:
        super()._check()
        self._set(rate=positive("rate", self.rate), epoch=integer("epoch", self.epoch, least=1))
        self._set(changes=integer("changes", self.changes, least=1), failure=_check_failure(self.failure))
        self._set(restarts=integer("restarts", self.restarts, least=1))
        found = self.overrun
        if found > self.failure / 2 * (1 + 1e-9):
            raise ValueError(
                f"rate = {self.rate!r} lets the switches exceed the budget with probability up to {found:.3g}, more "
                f"than half of failure = {self.failure:g}; take a lower rate, more restarts, or plan_restarting_leader"
            )

    @property
    def full_epochs(self) -> int:
        """How many epochs end, or would end, by their length: T/epoch, rounded up."""
        return -(-self.horizon // self.epoch)

    @property
    def share(self) -> float:
        """The expected changes of an epoch, at most, as a part of `changes`."""
        return min(1.0, self.epoch * -math.expm1(-self.rate * self.lipschitz) / self.changes)

    @property
    def overrun(self) -> float:
        """The probability that more than `restarts` times `changes` changes are asked for, at most."""
        return float(_overrun(self.full_epochs, self.restarts, self.share))

    @property
    def max_switches(self) -> int:
        """The budget: all changes of epochs that end early, and one at the end of each that does not.

        An epoch that ends with the last round counts too: the decision that stands after it may be another.
        """
        return self.restarts * self.changes + self.horizon // self.epoch

    @property
    def high_probability_bound(self) -> float:
        """What regret does not exceed but with probability `failure`."""
        noise = maxima(self.n, self.full_epochs + self.restarts, self.failure / 2) / self.rate
        bound = noise + self.lipschitz * self.restarts * self.changes
        return min(bound, self.lipschitz * self.horizon)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4k, in expectation."""
        if self.share == 1:
            return self.lipschitz * self.horizon
        epochs = self.full_epochs / (1 - self.share)
        mean = float(scipy.special.digamma(self.n + 1)) + float(np.euler_gamma)
        whole = epochs * (mean / self.rate + self.lipschitz * self.share * self.changes)
        return min(whole + self.lipschitz * self.horizon * self.overrun, self.lipschitz * self.horizon)

    @property
    def expected_switches(self) -> float:
        """The bound of docs/theory, R4k, or the budget."""
        if self.share == 1:
            return float(self.max_switches)
        asked = self.full_epochs * self.share * self.changes / (1 - self.share)
        return min(asked + self.horizon // self.epoch, self.max_switches)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The other certificate."""
        return (f"Regret is at most {self.high_probability_bound:.6g} with probability {1 - self.failure:g}.",)


def _check_failure(failure: float) -> float:
    number = real("failure", failure)
    if not 0 < number < 1:
        raise ValueError(f"failure must be greater than 0 and less than 1, got {failure!r}; 0.01 is usual")
    return number


def _overrun(full: int | Experts, restarts: int | Experts, share: float | Array) -> Array:
    """Return Chernoff's bound for the chance that variables in [0, 1] of mean `share` add up to `restarts` or more.

    There are `full + restarts` of them. It is 1 where the mean is not below.
    """
    count = np.asarray(full + restarts, dtype=np.float64)
    part, mean = restarts / count, np.asarray(share, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = part * np.log(part / mean) + (1 - part) * (np.log1p(-part) - np.log1p(-mean))
        return np.asarray(np.where(mean < part, np.exp(-count * exponent), 1.0))


@lru_cache(maxsize=4096)
def maxima(n: int, epochs: int, failure: float) -> float:
    """Return what `epochs` times the largest of n standard exponential variables exceed with chance `failure` at most.

    By Chernoff's bound: the largest has the moments of a sum of exponentials of rates 1 to n.

    >>> 10 * 2.93 < maxima(10, 10, 0.01) < 10 * 2.93 + 3 * 10**0.5 * 1.25 + 5
    True
    """
    t = np.linspace(0.002, 0.998, 499)  # any t in (0, 1) gives a bound
    moment = scipy.special.gammaln(n + 1.0) + scipy.special.gammaln(1 - t) - scipy.special.gammaln(n + 1.0 - t)
    return float(((epochs * moment - math.log(failure)) / t).min())


def plan_restarting_leader(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int, failure: float = 0.01
) -> RestartingLeaderPlan:
    """Return the restarting leader with the least `high_probability_bound` that never switches more often than that.

    `failure` is the probability with which regret may exceed the bound.
    """
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    S, fail = integer("max_switches", max_switches, least=1), _check_failure(failure)
    full, restarts = (grid.ravel() for grid in np.meshgrid(np.arange(1, _LENGTHS + 1), np.arange(1, _RESTARTS + 1)))
    epoch = T // full + 1  # so many epochs, or fewer, of which the last does not end with the run where that can be
    most = (S - T // epoch) // restarts
    fits = most >= 1
    full, restarts, epoch, most = -(-T // epoch[fits]), restarts[fits], epoch[fits], most[fits]
    share = _largest_share(full, restarts, fail / 2) / epoch
    noise = np.array([maxima(domain.dim, int(a + b), fail / 2) for a, b in zip(full, restarts, strict=True)])
    low = _fewest_changes(noise, restarts, share)
    # The bound is convex in the number of changes: the best is next to the root, or the most that the budget allows.
    changes = np.clip(np.concatenate([low, low + 1]), 1, np.tile(most, 2)).astype(np.int64)
    size = -np.log1p(-np.minimum(np.tile(share, 2) * changes, _MOST_CHANCE))
    best = int(np.argmin(np.tile(noise, 2) / size + np.tile(restarts, 2) * changes))
    which = best % len(full)
    return RestartingLeaderPlan(
        domain,
        T,
        G,
        rate=float(size[best]) / G,
        epoch=int(epoch[which]),
        changes=int(changes[best]),
        restarts=int(restarts[which]),
        failure=fail,
    )


def _fewest_changes(noise: Array, restarts: Experts, share: Array) -> Array:
    """Return the changes per epoch at which noise/rate + changes * restarts is least, rounded down; losses of range 1.

    The rate is -log(1 - share * changes), and the derivative rises up to a chance of 1/2 of a change.
    """
    low, high = np.full(share.shape, -60.0), np.log(_MOST_CHANCE / share)
    for _ in range(80):
        middle = (low + high) / 2
        chance = share * np.exp(middle)
        falls = noise * share / ((1 - chance) * np.log1p(-chance) ** 2) > restarts
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return np.asarray(np.floor(np.exp(low)))


def _largest_share(full: Experts, restarts: Experts, failure: float) -> Array:
    """Return the largest mean at which an overrun has probability `failure` at most, by bisection in the logarithm."""
    low, high = np.full(full.shape, math.log(1e-300)), np.log(restarts / (full + restarts))
    for _ in range(80):
        middle = (low + high) / 2
        good = _overrun(full, restarts, np.exp(middle)) <= failure
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.asarray(np.exp(low))


def _restarting(goal: Goal) -> RestartingLeaderPlan:
    if goal.max_switches is None:
        raise NotApplicable("needs a max_switches")
    goal.need_a_switch()
    return plan_restarting_leader(*goal.size, goal.max_switches)


RESTARTING = System(RestartingLeaderPlan.system, _restarting, lazy=True, experts=True)


@saved("restarting leader")
class RestartingLeader(ExpertsLearner):
    """Follows the leader of sums less noise drawn once, and starts anew when it has changed too often.

    Algorithm: noise Z, exponential of `plan.rate` for each expert; the leader has the least sum of losses of the epoch
    less Z. After `plan.changes` changes, or `plan.epoch` rounds, a new epoch begins with sums of 0 and fresh noise.
    After `plan.max_switches` switches the expert stays.
    Theorem: with probability 1 - failure, the budget is not reached and regret <= q/rate + G changes restarts, q what
    the largest noises of all epochs add up to (docs/theory, R4k): about T log(n/failure) log(1/failure)/S for S
    switches. For losses that do not react to decisions; linear, over experts. Not private.
    Reference: Altschuler and Talwar 2021; derived from the published idea (restarts give what one noise has not,
    concentration of the number of switches), with constants of our own.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_restarting_leader(rt.Experts(3), 1000, 1.0, max_switches=50)
    >>> learner = rt.learners.RestartingLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> trace.switches <= 50, float(trace.regret()) <= plan.high_probability_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = RestartingLeaderPlan

    def _new_walk(self) -> Decider:
        return _Restarting(self.plan, self._rng)


@saved("walk of the restarting leader")
class _Restarting(ExpertsWalk):
    _moves = ("state",)

    def __init__(self, plan: RestartingLeaderPlan, rng: np.random.Generator) -> None:
        super().__init__(plan.n, rng)
        self.rate, self.epoch, self.changes, self.budget = plan.rate, plan.epoch, plan.changes, plan.max_switches
        # `sums` hold losses of the epoch less the noise.
        self.sums = -rng.standard_exponential(plan.n) / plan.rate
        self._start(int(np.argmin(self.sums)))
        self.state = np.array([self.expert, 0, 0, 0])

    def _check_moved(self) -> None:
        super()._check_moved()
        _, rounds, changes, switches = self.state.tolist()
        right = rounds < self.epoch and changes < self.changes and switches <= self.budget
        refuse_unless(right, f"its epoch has {rounds} rounds and {changes} changes, and its run {switches} switches")

    @property
    def frozen(self) -> bool:
        """Whether the budget of switches is spent."""
        return int(self.state[3]) >= self.budget

    def _play(self, vectors: Array, after: Experts) -> None:
        from reticent.systems.experts._kernel import restarting  # numba loads on first use

        restarting(self.rng, self.rate, self.epoch, self.changes, self.budget, vectors, self.sums, self.state, after)
