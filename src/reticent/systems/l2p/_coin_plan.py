"""Plans whose coins read the decision alone, so that only that of the changed batch costs (docs/theory, R6)."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from reticent._core._check import integer, positive
from reticent.privacy._account import Statement
from reticent.privacy._coins import Coin
from reticent.privacy._compose import Bound, Term
from reticent.systems._checks import chance, check_body
from reticent.systems._grid import DRAW, STEEP
from reticent.systems._plan import SystemPlan
from reticent.systems.pcomw._switching import log_tail, overrun


@dataclass(frozen=True, kw_only=True)
class CoinPlan(SystemPlan):
    """What lazy-to-private plans and flat ones share: coins that keep with a chance no less than (1-p) exp(-`floor`).

    `beta` is the strength of the measure, `p` the rate of forced switches, `batch` the rounds per coin and `budget` the
    cap on switches.
    """

    adversary: ClassVar[str] = "oblivious"
    work: ClassVar[str] = "draws"
    near: ClassVar[float] = DRAW
    cut: ClassVar[bool] = True

    beta: float
    p: float
    budget: int
    batch: int = 1

    def _check(self) -> None:
        check_body(self.domain)
        self._set(beta=positive("beta", self.beta), p=chance("p", self.p))
        self._set(budget=integer("budget", self.budget, least=0), batch=integer("batch", self.batch, least=1))

    @property
    def coins(self) -> int:
        """The number of full batches, each of which ends with a coin."""
        return self.horizon // self.batch

    @property
    @abstractmethod
    def floor(self) -> float:
        """Minus the logarithm of the least chance with which a coin that is not forced keeps."""

    @property
    @abstractmethod
    def special(self) -> float:
        """By how much the logarithm of the chance to keep can differ in the changed batch."""

    @property
    def most_switching(self) -> float:
        """A bound on the chance of a switch per coin, for losses of every kind."""
        return 1.0 if self.p == 1 else -math.expm1(math.log1p(-self.p) - self.floor)

    @property
    def max_switches(self) -> int:
        """The budget, or the number of coins."""
        return min(self.budget, self.coins)

    @property
    def expected_switches(self) -> float:
        """A bound on the expected number of switches, for losses of every kind (docs/theory, R6)."""
        return min(self.coins * self.most_switching, float(self.max_switches))

    @property
    def exhausted(self) -> float:
        """The sum over the batches of their rounds times a bound on the chance that the budget is spent before."""
        n, rate = self.coins, self.most_switching
        if n == 0:
            return 0.0
        # As for P-COMW (docs/theory, P6): the decision of the last full batch has n - 1 coins behind it.
        full = self.batch * float(overrun(self.budget, n - 1, rate, 0.0, 0.0))
        last = math.exp(float(log_tail(self.budget + 1, n, rate, 0.0, 0.0)))
        return full + (self.horizon - n * self.batch) * last

    @property
    def squares(self) -> int:
        """The sum of the squared lengths of the batches."""
        return self.coins * self.batch**2 + (self.horizon - self.coins * self.batch) ** 2

    def _changes(self, rounds: int) -> int:
        """Return how many switches the first `rounds` rounds may have."""
        return min(self.budget, rounds // self.batch)

    @property
    def _pull(self) -> float:
        """The most by which the logarithm of the chance to keep changes along a unit of the domain."""
        return self.beta * self.batch * self.lipschitz

    @property
    @abstractmethod
    def coin_error(self) -> float:
        """To what factor, as a logarithm, the machine's coins keep as often as they should (docs/theory, Q11)."""

    @property
    def _slack(self) -> float:
        """What the machine adds to a coin between two worlds; one that is not forced may be sure to keep."""
        return 2 * self.coin_error if self.floor > 0 else 0.0

    def _coin(self, slack: float = 0.0) -> Coin:
        """Return the coin of the changed batch."""
        return Coin(self.p, self.special * (1 + STEEP) + slack if slack else self.special)

    @abstractmethod
    def revealed(self, rounds: int, slack: float) -> tuple[Statement, ...]:
        """Return the certificate of docs/theory, R6, where coins may be off by `slack` between two worlds."""

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return the certificate of docs/theory, R6, in real numbers."""
        return self.revealed(rounds, 0.0)

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements as they hold for the machine, whose later coins tell something too (Q11)."""
        return self.rounding(rounds).applied(self.revealed(rounds, self._slack))

    def _terms(self, rounds: int, mu: float, slack: float) -> Bound:
        """Return mu-GDP draws together with the coin of the changed batch, and what slack makes of later ones."""
        later = max(rounds // self.batch - 1, 0) if slack else 0
        ways = self._coin(slack).directions()
        return Bound(tuple((Term(mu, Coin(self.p, slack), later, way),) for way in ways))
