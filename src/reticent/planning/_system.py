"""Plans of the prior systems: parameters of a run, with certificates that are computed from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from reticent._check import integer, positive
from reticent.domains import Domain
from reticent.losses import Loss
from reticent.planning._plan import check_rounds, check_scale
from reticent.planning._table import labelled, number, size_rows, switch_and_regret
from reticent.planning._target import check_claim, check_neighbors

if TYPE_CHECKING:
    from reticent.privacy import SystemAccount
    from reticent.privacy._ledger import Statement

_ROUNDING = 1e-9  # certificates are computed to ten digits: a goal that is met exactly must not be refused


@dataclass(frozen=True)
class SystemPlan(ABC):
    """What the plan of every prior system has; each adds parameters of its own.

    Nothing is claimed by hand: `regret_bound`, `expected_switches` and `account()` are computed from the parameters,
    and a plan whose parameters do not honour its `epsilon` and `delta` cannot be made. With `epsilon` None there is no
    privacy claim, and a learner goes on beyond the horizon.
    """

    system: ClassVar[str]
    """The name of the system in tables."""
    reference: ClassVar[str]
    """Where it was published."""
    assumes: ClassVar[str] = "convex losses"
    """What the certificates rest on, in words."""
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

    def _check(self) -> None:  # noqa: B027 (there may be nothing to check)
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
    def private(self) -> bool:
        """Whether the plan makes a privacy claim."""
        return self.epsilon is not None

    @property
    def change(self) -> float:
        """How steep the difference of two losses is that one round of neighbouring streams may have."""
        return 2 * self.lipschitz if self.neighbors == "replace" else self.lipschitz

    @property
    @abstractmethod
    def regret_bound(self) -> float:
        """The certified bound on the expected regret over the horizon."""

    @property
    def expected_switches(self) -> float:
        """A bound on the expected number of changes of decision over the horizon."""
        return float(self.horizon if self.max_switches is None else min(self.horizon, self.max_switches))

    @property
    def max_switches(self) -> int | None:
        """A number of changes that is never exceeded; None without one."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader of the certificate should know."""
        return ()

    @property
    def vacuous(self) -> bool:
        """Whether the regret bound says no more than that a round costs at most `lipschitz * diameter`."""
        return self.regret_bound >= self.lipschitz * self.domain.diameter * self.horizon

    def check_loss(self, loss: Loss) -> None:  # noqa: B027 (most methods take any)
        """Refuse a kind of loss that the method cannot take, with a message that says which methods can."""

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return what is proved of the privacy of the first `rounds` rounds; for private systems only."""
        raise ValueError(f"{self.system} is not a private system, and has no account; see rt.compare_plans for others")

    def account(self, rounds: int | None = None) -> SystemAccount:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them."""
        from reticent.privacy import SystemAccount

        count = self.horizon if rounds is None else integer("rounds", rounds, least=0)
        if count > self.horizon:
            raise ValueError(
                f"rounds must be at most the horizon of {self.horizon}, got {rounds}; plan a longer horizon"
            )
        return SystemAccount(count, self.neighbors, self.statements(count))

    def explain(self) -> str:
        """Say in plain words what is promised, to whom, and under which assumptions."""
        from reticent.planning._explain import explain

        return explain(self)

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what a run reveals, for composing with others."""
        raise ValueError(f"{self.system} is not a private system, and has no event")

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the system, as labels and texts for the table."""
        own = [f.name for f in fields(self) if f.name not in _COMMON]
        return [(name, _text(getattr(self, name))) for name in own]

    def __str__(self) -> str:
        """Lay the plan out as a table in plain text."""
        rows = [("plan", self.system), ("reference", self.reference), ("domain", repr(self.domain))]
        rows += [*size_rows(self), *self.parameters(), *switch_and_regret(self)]
        rows += [("assumes", self.assumes), *self._privacy()]
        rows += [("remark", remark) for remark in self.remarks]
        if self.vacuous:
            trivial = self.lipschitz * self.domain.diameter * self.horizon
            rows.append(("remark", f"The regret bound is vacuous: any decisions whatever satisfy {number(trivial)}."))
        return labelled(rows)

    def _privacy(self) -> list[tuple[str, str]]:
        if self.epsilon is None or self.delta is None:
            return [("privacy", "none: this plan makes no privacy claim")]
        claim = f"epsilon {number(self.epsilon)}, delta {number(self.delta)}"
        return [("privacy", f"{claim}, also for losses chosen after seeing decisions"), ("neighbors", self.neighbors)]


_COMMON = {f.name for f in fields(SystemPlan)}


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return number(value)
