"""Plans over a finite set of experts: what they share, and Hedge, round by round or in blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from reticent._core import _names
from reticent._core._check import integer, positive, real
from reticent._core._tags import saved
from reticent.domains import Domain, Experts
from reticent.losses import Linear, Loss
from reticent.systems._bounds import block_squares
from reticent.systems._checks import least_batch
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan


@dataclass(frozen=True, kw_only=True)
class ExpertsPlan(SystemPlan):
    """A plan over `Experts`: rounds are `Linear` losses, each with entries of range `lipschitz` at most."""

    assumes: ClassVar[str] = "linear losses over experts"
    adversary: ClassVar[str] = "oblivious"

    def _check(self) -> None:
        check_experts(self.domain)

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not linear."""
        if not isinstance(loss, Linear):
            raise ValueError(
                f"loss must be Linear() for {self.system}, got {loss!r}; hand over what each expert loses as a gradient"
            )

    @property
    def n(self) -> int:
        """The number of experts."""
        return self.domain.dim


@saved("plan of Hedge")
@dataclass(frozen=True, kw_only=True)
class HedgePlan(ExpertsPlan):
    """An expert drawn afresh from the weights exp(-beta * sum of losses) after every round.

    Expected regret is at most log(n)/beta + beta G^2 T/8 (docs/theory, R4).

    >>> from reticent.domains import Experts
    >>> round(plan_hedge(Experts(10), 10_000, 1.0).regret_bound, 3)
    107.298
    """

    system: ClassVar[str] = _names.HEDGE
    reference: ClassVar[str] = "Littlestone and Warmuth 1994; Freund and Schapire 1997"

    beta: float

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4."""
        return weights_regret(self.n, self.beta, self.lipschitz, self.horizon)

    @property
    def remarks(self) -> tuple[str, ...]:
        """For whom else the bound holds."""
        return ("The regret bound also holds for losses that react to decisions of earlier rounds.",)


@saved("plan of limited switching")
@dataclass(frozen=True, kw_only=True)
class LimitedSwitchingPlan(ExpertsPlan):
    """Hedge in blocks of `batch` rounds: never more than T // batch switches, and low regret with high probability.

    With probability 1 - `failure` at least, regret is at most `high_probability_bound` = log(n)/beta + beta G^2 B/8 + G
    sqrt(B log(1/failure)/2), B the sum of the squared block lengths; in expectation the last term is missing, and one
    block alone costs (1 - 1/n) G T at most (docs/theory, R4). `DartboardPlan` with a budget has a lower expectation,
    but no such tail.

    >>> from reticent.domains import Experts
    >>> plan = plan_limited_switching(Experts(10), 10_000, 1.0, max_switches=100)
    >>> plan.batch, plan.max_switches, round(plan.regret_bound), round(plan.high_probability_bound)
    (100, 100, 1073, 2590)
    """

    system: ClassVar[str] = _names.LIMITED
    reference: ClassVar[str] = "Altschuler and Talwar 2021 (the problem); Merhav et al. 2002 (blocks)"

    beta: float
    batch: int
    failure: float = 0.01

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta), batch=integer("batch", self.batch, least=1))
        self._set(failure=real("failure", self.failure))
        if not 0 < self.failure < 1:
            raise ValueError(f"failure must be greater than 0 and less than 1, got {self.failure!r}; 0.01 is usual")

    @property
    def _squares(self) -> int:
        return block_squares(self.horizon, self.batch)

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4a; of one block, an expert drawn uniformly, no more than what that costs."""
        found = weights_regret(self.n, self.beta, self.lipschitz, self._squares)
        return min(found, (1 - 1 / self.n) * self.lipschitz * self.horizon) if self.batch >= self.horizon else found

    @property
    def high_probability_bound(self) -> float:
        """What regret does not exceed but with probability `failure`."""
        return self.regret_bound + self.lipschitz * math.sqrt(self._squares * math.log(1 / self.failure) / 2)

    @property
    def max_switches(self) -> int:
        """One change after each full block."""
        return self.horizon // self.batch

    @property
    def remarks(self) -> tuple[str, ...]:
        """The other certificate."""
        return (
            f"Regret is at most {self.high_probability_bound:.6g} with probability {1 - self.failure:g}.",
            "Both bounds also hold for losses that react to decisions of earlier blocks.",
        )


def check_experts(domain: Domain) -> None:
    """Refuse what is not a finite set of experts."""
    if not isinstance(domain, Experts):
        raise ValueError(
            f"domain must be a finite set such as Experts(10), got {domain!r}; for a convex body see rt.compare_plans"
        )


def weights_regret(n: int, beta: float, lipschitz: float, squares: int) -> float:
    """Return log(n)/beta + beta G^2/8 times the sum of squared block lengths (docs/theory, R4a)."""
    return math.log(n) / beta + beta * lipschitz**2 * squares / 8


def best_beta(n: int, lipschitz: float, squares: int) -> float:
    """Return the beta for which that is least."""
    return math.sqrt(8 * math.log(n) / squares) / lipschitz


def plan_hedge(domain: Domain, horizon: int, lipschitz: float) -> HedgePlan:
    """Return Hedge with the best beta: regret at most G sqrt(T log(n)/2)."""
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    return HedgePlan(domain, T, G, beta=best_beta(domain.dim, G, T))


def plan_limited_switching(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int, failure: float = 0.01
) -> LimitedSwitchingPlan:
    """Return Hedge in the shortest blocks that never change the expert more than `max_switches` times.

    `failure` is the probability with which regret may exceed `high_probability_bound`.
    """
    check_experts(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    batch = least_batch(T, integer("max_switches", max_switches, least=0))
    beta = best_beta(domain.dim, G, block_squares(T, batch))
    return LimitedSwitchingPlan(domain, T, G, beta=beta, batch=batch, failure=failure)


def _hedge(goal: Goal) -> HedgePlan:
    return plan_hedge(*goal.size)


def largest(chance: Callable[[float], float], share: float) -> float:
    """Return the largest size, up to 700, at which a rising chance of a switch per round is at most `share`.

    A part in 1e12 is left, so that a horizon times that chance never shows more switches than were allowed.

    >>> round(largest(lambda size: size / 2, 0.25), 9)
    0.5
    """
    if chance(700.0) <= share:
        return 700.0
    low, high, share = math.log(1e-18), math.log(700.0), share * (1 - 1e-12)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(math.exp(middle)) <= share else (low, middle)
    return math.exp(low)


def _limited(goal: Goal) -> LimitedSwitchingPlan:
    if goal.max_switches is None:
        raise NotApplicable("needs a max_switches")
    return plan_limited_switching(*goal.size, goal.max_switches)


HEDGES = (
    System(HedgePlan.system, _hedge, experts=True),
    System(LimitedSwitchingPlan.system, _limited, lazy=True, experts=True),
)
