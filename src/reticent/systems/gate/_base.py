"""What plans behind the gate share: each round enters one release, so one account holds for any number of rounds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent._core._check import integer
from reticent.privacy._account import Statement, SystemAccount, gaussian
from reticent.privacy._events import gaussian_events
from reticent.systems._checks import check_body
from reticent.systems._plan import SystemPlan

MOST = 8192
"""Dimensions up to which numpy adds up a row in one way, however many rows there are (a test looks)."""


@dataclass(frozen=True, kw_only=True)
class GatePlan(SystemPlan):
    """A plan, with or without a horizon, of a learner that sees data through the gate only.

    `batch` is the length of the first block. A run is `level`-GDP from its end on, for ever.
    """

    adversary: ClassVar[str] = "oblivious"

    horizon: int | None = field(kw_only=False)  # type: ignore[assignment]
    batch: int

    @property
    @abstractmethod
    def level(self) -> float:
        """The mu for which all releases together are mu-GDP, however many there are."""

    def _check(self) -> None:
        check_body(self.domain)
        if self.domain.chart_dim > MOST:
            raise ValueError(
                f"the domain must have at most {MOST} dimensions, got {self.domain.chart_dim}: beyond, the rounding of "
                "a row's sums depends on the rows beside it, and one round could move the gradients of others"
            )
        self._set(batch=integer("batch", self.batch, least=1))

    def _check_horizon(self) -> int | None:
        return None if self.horizon is None else super()._check_horizon()

    @property
    def expected_switches(self) -> float | None:  # type: ignore[override]
        """A bound on the number of changes over the horizon; None without one."""
        return None if self.max_switches is None else float(self.max_switches)

    def mu(self, rounds: int | None = None) -> float:
        """Return the mu for which the first `rounds` rounds (any number, unless given) are mu-GDP.

        It is the same from the end of the first block on (docs/theory, R8 and R10).
        """
        some = rounds is None and self.horizon is None
        last = self.horizon if rounds is None else rounds
        return self.level if some or (last is not None and last >= self.batch) else 0.0

    def statements(self, rounds: int | None) -> tuple[Statement, ...]:
        """Return that all releases together are mu-GDP; rounding is in it, or exact."""
        return (gaussian(self.mu(rounds)),)

    @property
    def on_grid(self) -> bool:
        """Decisions are computed from what is released, integers with exact noise: no bit of them needs to go."""
        return False

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements as they are: sums are integers."""
        return self.statements(rounds)

    def account(self, rounds: int | None = None, method: str = "pld") -> SystemAccount:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them."""
        if self.horizon is not None:
            return super().account(rounds, method)
        count = None if rounds is None else integer("rounds", rounds, least=0)
        return SystemAccount(count, self.neighbors, self.statements(count))

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is, of noise 1/mu.

        What neighbours are is in the event already: compose it under dp_accounting's ADD_OR_REMOVE_ONE (its default) or
        REPLACE_SPECIAL. REPLACE_ONE doubles the sensitivity itself, and would show twice the mu.
        """
        return gaussian_events([(self.mu(), 1)])

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return "none: any number of rounds" if self.horizon is None else super().horizon_in_words()

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        if self.horizon is None:
            return f"At most once in {self.batch:,} rounds, at the end of a block."
        return super().changes_in_words()

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        return (
            f"losses are of the kind that the method is for: {self.assumes}; the released sums are integers with noise "
            "of exactly the stated law, so no rounding can tell on a round;"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        return (
            "Blocks are counted in rounds: a round that is left out or put in moves all later ones to other places, "
            "and no claim covers that. Rounds are replaced or zeroed, one by one.",
        )
