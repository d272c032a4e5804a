"""The private shrinking dartboard: coins and draws whose whole transcript is differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from reticent._check import integer, positive, real
from reticent.planning._descent import block_squares
from reticent.planning._experts import ExpertsPlan, weights_regret
from reticent.planning._experts_dartboard import overrun

if TYPE_CHECKING:
    from reticent.privacy._coin import Coin
    from reticent.privacy._ledger import Statement


@dataclass(frozen=True, kw_only=True)
class PrivateDartboardPlan(ExpertsPlan):
    """After each batch the expert is kept with probability (1-p) exp(-beta * its loss in the batch), else drawn.

    Draws are from the weights exp(-beta * sums), at most `budget` of them (None: one after every batch), and each
    counts even if it brings the same expert again; then the expert stays. Given the expert, only the coin of a changed
    batch tells of the change; each draw tells of it with range `beta * change` (docs/theory.md, R4). Regret is that of
    Hedge in batches until the budget is spent.

    >>> from reticent.domains import Experts
    >>> plan = PrivateDartboardPlan(Experts(10), 10_000, 1.0, beta=0.004, p=0.01, batch=1, budget=200)
    >>> 0.5 < plan.account().epsilon(1e-6) < 1, plan.max_switches
    (True, 200)
    """

    system: ClassVar[str] = "private shrinking dartboard"
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
        """The bound of docs/theory.md, R4."""
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
        """Return the two statements of docs/theory.md, R4: draws by Renyi divergence, and in the Gaussian family."""
        return certificates(self.coin, self.beta * self.change, self._draws(rounds // self.batch), rounds >= self.batch)

    @property
    def coin(self) -> Coin:
        """The coin of a changed batch."""
        from reticent.privacy._coin import Coin

        return Coin(self.p, self.beta * self.lipschitz)

    def dp_event(self) -> Any:
        """Return one Gaussian event that bounds what a run reveals, for dp_accounting's default relation."""
        from dp_accounting import dp_event as events

        from reticent.privacy._bounded_range import gdp_of_bounded_range
        from reticent.privacy._events import gdp

        draws = self._draws(self.coins)
        if not self.coins or not draws:
            return events.NoOpDpEvent()
        mu = math.hypot(gdp_of_bounded_range(self.beta * self.change) * math.sqrt(draws), gdp(self.coin))
        return events.NonPrivateDpEvent() if math.isinf(mu) else events.GaussianDpEvent(1 / mu)


def certificates(coin: Coin, rho: float, draws: int, tossed: bool = True) -> tuple[Statement, ...]:
    """Return what is proved of one changed coin (if it is `tossed`) and so many draws of range `rho`, two ways."""
    from reticent.privacy._bounded_range import gdp_of_bounded_range
    from reticent.privacy._coin import NO_LOSS
    from reticent.privacy._coin import Coin as Toss
    from reticent.privacy._ledger import Statement
    from reticent.privacy._terms import Bound, Term

    # Without draws the expert never changes, and a coin that cannot lead to one is not tossed.
    special = coin.directions() if tossed and draws else (NO_LOSS,)
    none = Toss(1.0, 0.0)
    root = math.sqrt(draws)

    def bound(mu: float) -> Bound:
        return Bound(tuple((Term(mu * root, none, 0, other),) for other in special))

    return Statement("rdp", bound(rho / 2)), Statement("pld", bound(gdp_of_bounded_range(rho)))


def regret(n: int, lipschitz: float, horizon: int, beta: float, batch: int, q: float, budget: int) -> float:
    """Return the bound of docs/theory.md, R4: Hedge in batches, and what is lost once the budget is spent."""
    batches = -(-horizon // batch)
    late = lipschitz * batch * overrun(batches - 1, q, budget)
    return weights_regret(n, beta, lipschitz, block_squares(horizon, batch)) + late
