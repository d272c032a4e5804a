"""What a plan is: the parameters of a run of one system, what is certified of it, and who plays it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from reticent._core._check import integer, positive
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.privacy._account import Certificate, Statement, SystemAccount
from reticent.systems._checks import check_claim, check_neighbors, check_rounds, check_scale
from reticent.systems._words import (
    ACCOUNTANT,
    claim_rows,
    explain,
    labelled,
    number,
    size_rows,
    switch_and_regret,
    texts_of,
)

if TYPE_CHECKING:
    from reticent.systems._learner import Learner

_ROUNDING = 1e-9  # certificates are computed to ten digits: a goal that is met exactly must not be refused


class BasePlan(ABC):
    """What the plan of every system has.

    `system` and `reference` name the method, `learner` is the class that plays it (a learner says which plan it is for,
    and is put here when it is defined). `domain`, `horizon` (None: without an end), `lipschitz`, `epsilon` and `delta`
    (None: no privacy claim) and `neighbors` say what the plan is for; `regret_bound`, `expected_switches` and
    `account()` what is certified; `print(plan)` lays it out, and `explain()` says it in plain words.
    """

    system: ClassVar[str]
    """The name of the system in tables."""
    reference: ClassVar[str]
    """Where it was published."""
    assumes: ClassVar[str] = "convex losses"
    """What the certificates rest on, in words."""
    learner: ClassVar[type[Learner]]
    """Who plays it."""

    domain: Domain
    horizon: int | None
    lipschitz: float
    epsilon: float | None
    delta: float | None
    neighbors: str

    @property
    def private(self) -> bool:
        """Whether the plan makes a privacy claim."""
        return self.epsilon is not None

    @property
    def change(self) -> float:
        """How steep the difference of two losses is that one round of neighbouring streams may have."""
        return 2 * self.lipschitz if self.neighbors == "replace" else self.lipschitz

    @property
    def max_switches(self) -> int | None:
        """A number of changes that is never exceeded; None without one."""
        return None

    @property
    @abstractmethod
    def regret_bound(self) -> float | None:
        """The certified bound on the expected regret over the horizon; None where none is stated."""

    @property
    @abstractmethod
    def expected_switches(self) -> float | None:
        """A bound on the expected number of changes of decision over the horizon; None where none is stated."""

    @property
    @abstractmethod
    def adaptive_privacy(self) -> bool:
        """Whether what is claimed of privacy holds for losses that react to decisions."""

    @property
    @abstractmethod
    def adaptive_regret(self) -> bool:
        """Whether the regret bound holds for losses that react to decisions."""

    @property
    def trivial_regret(self) -> float | None:
        """What the regret of any decisions whatever is below: lipschitz * diameter * horizon."""
        return None if self.horizon is None else self.lipschitz * self.domain.diameter * self.horizon

    @property
    def vacuous(self) -> bool:
        """Whether the regret bound says no more than that a round costs at most `lipschitz * diameter`."""
        bound, trivial = self.regret_bound, self.trivial_regret
        return bound is not None and trivial is not None and bound >= trivial

    def check_as_written(self) -> None:
        """Refuse a plan, from a file, that could not have been made: every value is checked again."""
        again: Any = replace(cast(Any, self))
        if again != self or getattr(again, "seal", None) != getattr(self, "seal", None):
            raise ValueError("its plan is not as the planner wrote it")

    def check_loss(self, loss: Loss) -> None:  # noqa: B027 (most methods take any)
        """Refuse a kind of loss that the method cannot take, with a message that says which methods can."""

    @abstractmethod
    def account(self, rounds: int | None = None, method: str = "pld") -> Certificate:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them."""

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what a run reveals, for composing with others."""
        raise ValueError(f"{self.system} is not a private system, and has no event")

    def distribution(self, interval: float = 1e-4) -> Any:
        """Return a privacy loss distribution of dp_accounting for a whole run, where there is one."""
        raise ValueError(
            f"{self.system} has no privacy loss distribution; compose plan.dp_event(), or use account(plan)"
        )

    @property
    def certified_by(self) -> str:
        """Who says that the privacy claim holds."""
        return ACCOUNTANT

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return f"{self.horizon:,} rounds"

    @abstractmethod
    def changes_in_words(self) -> str:
        """Say how often the decision changes."""

    @abstractmethod
    def losses_in_words(self) -> str:
        """Say for which losses the regret bound holds."""

    @abstractmethod
    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""

    def explain(self) -> str:
        """Say in plain words what is promised, to whom, and under which assumptions."""
        return explain(self)

    @abstractmethod
    def rows(self) -> list[tuple[str, str]]:
        """Return the plan as labels and texts, for a table."""

    def __str__(self) -> str:
        """Lay the plan out as a table in plain text."""
        return labelled(self.rows())


@dataclass(frozen=True)
class SystemPlan(BasePlan):
    """A plan with a horizon whose certificates are computed from its parameters; each system adds its own.

    Nothing is claimed by hand: `regret_bound`, `expected_switches` and `account()` are computed from the parameters,
    and a plan whose parameters do not honour its `epsilon` and `delta` cannot be made. With `epsilon` None there is no
    privacy claim, and a learner goes on beyond the horizon.
    """

    adversary: ClassVar[str] = "adaptive"
    """For whom the regret bound holds: losses that react to decisions ("adaptive"), or not ("oblivious").

    What privacy is claimed holds for adaptive losses always.
    """

    domain: Domain
    horizon: int
    lipschitz: float
    _: KW_ONLY
    epsilon: float | None = None
    delta: float | None = None
    neighbors: str = "replace"

    def __post_init__(self) -> None:
        """Check every value, and that the parameters honour the claim."""
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a domain such as Ball(dim=2), got {self.domain!r}")
        self._set(horizon=check_rounds("horizon", self.horizon))
        self._set(lipschitz=positive("lipschitz", self.lipschitz))
        check_scale(self.domain, self.lipschitz)
        check_neighbors(self.neighbors)
        self._check()
        check_rounds("batch", getattr(self, "batch", 1))
        self._check_claim()

    def _check(self) -> None:
        """Check the parameters of the system; raise ValueError for a bad one."""

    def _check_claim(self) -> None:
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError(
                f"epsilon and delta go together, got epsilon={self.epsilon!r} and delta={self.delta!r}; give both, or "
                "neither for a plan without a privacy claim"
            )
        if self.epsilon is None or self.delta is None:
            return
        epsilon, delta = check_claim(self.epsilon, self.delta)
        self._set(epsilon=epsilon, delta=delta)
        found = self.account().epsilon(delta)
        if found > epsilon * (1 + _ROUNDING):
            raise ValueError(
                f"epsilon must be at least {found:.6g} at delta={delta:g} for these parameters, got "
                f"{self.epsilon!r}; add noise, or use the planner of this system"
            )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    @abstractmethod
    def regret_bound(self) -> float:
        """The certified bound on the expected regret over the horizon."""

    @property
    def expected_switches(self) -> float:
        """A bound on the expected number of changes of decision over the horizon."""
        return float(self.horizon if self.max_switches is None else min(self.horizon, self.max_switches))

    @property
    def adaptive_privacy(self) -> bool:
        """Whether what is claimed of privacy holds for losses that react to decisions: always."""
        return True

    @property
    def adaptive_regret(self) -> bool:
        """Whether the regret bound holds for losses that react to decisions."""
        return self.adversary == "adaptive"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        return ()

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return what is proved of the privacy of the first `rounds` rounds; for private systems only."""
        raise ValueError(f"{self.system} is not a private system, and has no account; see rt.compare_plans for others")

    def account(self, rounds: int | None = None, method: str = "pld") -> SystemAccount:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them.

        Each of the statements behind it is composed as it was proved, whatever `method` says.
        """
        count = self.horizon if rounds is None else integer("rounds", rounds, least=0)
        if count > self.horizon:
            raise ValueError(
                f"rounds must be at most the horizon of {self.horizon}, got {rounds}; plan a longer horizon"
            )
        return SystemAccount(count, self.neighbors, self.statements(count))

    def changes_in_words(self) -> str:
        """Say how often the decision changes."""
        cap = "" if self.max_switches is None else f"Never more than {self.max_switches:,} times; in"
        return f"{cap or 'In'} expectation at most {self.expected_switches:,.6g} times in {self.horizon:,} rounds."

    def losses_in_words(self) -> str:
        """Say for which losses the regret bound holds."""
        whatever = "also ones that react to decisions" if self.adaptive_regret else "that do not react to decisions"
        return f"This holds for {self.assumes}, {whatever} ({self.system}: {self.reference})."

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        return f"losses are of the kind that the method is for: {self.assumes};"

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the system, as labels and texts for the table."""
        return texts_of(self, [f.name for f in fields(self) if f.name not in _COMMON])

    def rows(self) -> list[tuple[str, str]]:
        """Return the plan as labels and texts, for a table."""
        rows = [("plan", self.system), ("reference", self.reference), ("domain", repr(self.domain))]
        rows += [*size_rows(self), *self.parameters(), *switch_and_regret(self)]
        rows += [("assumes", self.assumes), *claim_rows(self, ", also for losses chosen after seeing decisions")]
        rows += [("neighbors", self.neighbors)] if self.private else []
        rows += [("remark", remark) for remark in self.remarks]
        if self.vacuous and self.trivial_regret is not None:
            told = f"The regret bound is vacuous: any decisions whatever satisfy {number(self.trivial_regret)}."
            rows.append(("remark", told))
        return rows


_COMMON = {f.name for f in fields(SystemPlan)}
