"""What plans behind the gate share: each round enters one release, so one account holds for any number of rounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NoReturn

from reticent._core._check import integer
from reticent.privacy._account import Certificate, Statement, SystemAccount, gaussian
from reticent.privacy._events import gaussian_events
from reticent.privacy._group import PersonAccount
from reticent.systems._checks import Target, check_body
from reticent.systems._decider import NEVER
from reticent.systems._persons import SHARED
from reticent.systems._plan import SystemPlan

MOST_ROWS = 1 << 16
"""Rounds that a block on a clock holds at most, unless more are planned for."""
MOST = 8192
"""Dimensions up to which numpy adds up a row in one way, however many rows there are (a test looks)."""


@dataclass(frozen=True, kw_only=True)
class GatePlan(SystemPlan):
    """A plan, with or without a horizon, of a learner that sees data through the gate only.

    `batch` is the length of the first block. A run is `level`-GDP from its end on, for ever. With `max_rows` that is
    about persons, of whom so many rows count, in all or in each `window` of so many rounds; each person's rows in a
    block are clipped together (docs/theory, R14 and R16). With `clock` blocks end when the caller closes them: `batch`
    is about how many rounds they have, `most_rows` how many at most, and a window is that many blocks
    (docs/theory, R15).
    """

    adversary: ClassVar[str] = "oblivious"
    for_persons: ClassVar[bool] = True

    horizon: int | None = field(kw_only=False)  # type: ignore[assignment]
    batch: int
    clock: bool = False
    most_rows: int = MOST_ROWS

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
        self._set(most_rows=integer("most_rows", self.most_rows, least=1))
        if not isinstance(self.clock, bool):
            raise ValueError(f"clock must be True or False, got {self.clock!r}")
        if self.clock and self.horizon is not None:
            raise ValueError(
                f"horizon must be None for a plan with a clock, got {self.horizon!r}: rounds put in or left out may "
                "not decide when a run ends"
            )
        if self.window is not None and self.neighbors != "replace":
            raise ValueError(
                f"neighbors must be 'replace' for a plan with a window, got {self.neighbors!r}: where a person's rows "
                "of some rounds are left out, later rows of the same window count in their place, so both sides have "
                "to be paid for; neighbors='replace' does, and covers persons who are left out"
            )

    @property
    def grid_rows(self) -> int:
        """How many rounds a block may have at most, as far as the grid of the first is concerned."""
        return self.most_rows if self.clock else self.batch

    @abstractmethod
    def block_end(self, rounds: int) -> int:
        """Return the first end of a block at which at least so many rounds are over; not for a clock."""

    @abstractmethod
    def block_start(self, rounds: int) -> int:
        """Return after how many rounds the block began that is open when so many are over; not for a clock."""

    def window_end(self, opened: int) -> int:
        """Return at which round the window ends: with a block, so that no block is in two. A clock says so itself."""
        if self.window is None or self.clock:
            return NEVER
        return self.block_end(opened + self.window)

    def _check_horizon(self) -> int | None:
        return None if self.horizon is None else super()._check_horizon()

    @property
    def expected_switches(self) -> float | None:  # type: ignore[override]
        """A bound on the number of changes over the horizon; None without one."""
        return None if self.max_switches is None else float(self.max_switches)

    def mu(self, rounds: int | None = None) -> float:
        """Return the mu for which the first `rounds` rounds (any number, unless given) are mu-GDP.

        It is the same from the end of the first block on, which a clock may bring at any time (docs/theory, R8, R10).
        """
        # On a clock a block may be over before any round has come: in another stream it has one.
        some = self.clock or (rounds is None and self.horizon is None)
        last = self.horizon if rounds is None else rounds
        return self.level if some or (last is not None and last >= self.batch) else 0.0

    def statements(self, rounds: int | None) -> tuple[Statement, ...]:
        """Return that all releases together are mu-GDP; rounding is in it, or exact.

        A person who is left out, and shares a hash with another, may change what counts of the other's: where that
        would matter it is a failure of the chance `SHARED` (docs/theory, R14d).
        """
        method, bound = gaussian(self.mu(rounds))
        return (Statement(method, replace(bound, failure=_shared(self.neighbors, self.max_rows))),)

    @property
    def on_grid(self) -> bool:
        """Decisions are computed from what is released, integers with exact noise: no bit of them needs to go."""
        return False

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements as they are: sums are integers."""
        return self.statements(rounds)

    def account(self, rounds: int | None = None, method: str = "pld") -> Certificate:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them, or a person."""
        if self.horizon is not None:
            return super().account(rounds, method)
        count = None if rounds is None else integer("rounds", rounds, least=0)
        return self._account(count, self.statements(count))

    def _account(self, rounds: int | None, statements: tuple[Statement, ...]) -> SystemAccount:
        kind = SystemAccount if self.max_rows is None else PersonAccount
        return kind(rounds, self.neighbors, statements)

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is, of noise 1/mu.

        What neighbours are is in the event already: compose it under dp_accounting's ADD_OR_REMOVE_ONE (its default) or
        REPLACE_SPECIAL. REPLACE_ONE doubles the sensitivity itself, and would show twice the mu. The chance that two
        persons share a hash, for those who are left out, is in `account().failure` and in no event.
        """
        return gaussian_events([(self.mu(), 1)])

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return "none: any number of rounds" if self.horizon is None else super().horizon_in_words()

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        if self.clock:
            return "At most once for every call of close_block()."
        if self.horizon is None:
            return f"At most once in {self.batch:,} rounds, at the end of a block."
        return super().changes_in_words()

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        return (
            f"losses are of the kind that the method is for: {self.assumes}; the released sums are integers with noise "
            "of exactly the stated law, so no rounding can tell on a round;"
        )

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the system; those of a clock only if there is one."""
        return [(name, text) for name, text in super().parameters() if self.clock or name not in ("clock", "most_rows")]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        if self.clock:
            return (
                "Blocks end when close_block() is called, by a public clock: rounds put in or left out are covered. A "
                f"block holds at most {self.most_rows:,} rounds, and no claim covers a stream that needs more.",
            )
        return (
            "Blocks are counted in rounds: a round that is left out or put in moves all later ones to other places, "
            "and no claim covers that (plan with clock= for that). Rounds are replaced or zeroed.",
        )


def _shared(neighbors: str, max_rows: int | None) -> float:
    return 0.0 if max_rows is None or neighbors == "replace" else SHARED


def level_for(target: Target, max_rows: int | None) -> float:
    """Return the mu of the least noise for a goal, with room for hashes that persons may share."""
    failure = (1 + math.exp(target.epsilon)) * _shared(target.neighbors, max_rows)
    if failure >= target.delta / 2:
        raise ValueError(
            f"delta must be at least {2 * failure:.2g} for persons who are left out, got {target.delta:g}: two persons "
            "may share a hash; take neighbors='replace', which needs none of it"
        )
    return target._replace(delta=target.delta - failure).largest_mu()


def refuse_clock(clock: int, horizon: int) -> NoReturn:
    """Refuse a clock together with a horizon."""
    raise ValueError(
        f"clock must be None for a plan with a horizon, got clock={clock!r} and horizon={horizon!r}: on a clock any "
        "number of rounds may come"
    )


def blocks_of(clock: int | None, batch: int) -> dict[str, Any]:
    """Return what a plan says of blocks: so many rounds each, or about `clock` of them, until the caller closes one.

    >>> blocks_of(None, 50), blocks_of(1000, 50)
    ({'batch': 50}, {'batch': 1000, 'clock': True, 'most_rows': 65536})
    """
    if clock is None:
        return {"batch": batch}
    rounds = integer("clock", clock, least=1)
    return {"batch": rounds, "clock": True, "most_rows": max(MOST_ROWS, 16 * rounds)}
