"""What a plan is: the parameters of a run of one system, what is certified of it, and who plays it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

from reticent._core._check import Array, integer, positive
from reticent._core._html import card
from reticent.domains import Domain
from reticent.losses import Linear, Loss
from reticent.privacy._account import Certificate, Statement
from reticent.privacy._group import group_account
from reticent.systems._checks import check_claim, check_neighbors, check_rounds, check_scale
from reticent.systems._cost import Cost, cost_of
from reticent.systems._decider import NEVER
from reticent.systems._grid import NOISE, Rounding, largest_step, on_grid
from reticent.systems._persons import Cap, check_cap, unit_of
from reticent.systems._units import LEFT_OUT, UNBOUND, changed, ordinary, sentences
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
    from matplotlib.figure import Figure

    from reticent.systems._learner import Learner

_REAL_NUMBERS = ContextVar("real numbers", default=False)  # whether claims are checked without what rounding adds
_ANY = 50.0  # the largest epsilon that a plan may claim
_ROUNDING = 1e-9  # certificates are computed to ten digits: a goal that is met exactly must not be refused


class WithoutEnd(NamedTuple):
    """What is said of a plan without a horizon, in the places where others give numbers."""

    switches: str = "depends on the epoch: see plan.epoch(k)"
    regret: str = "depends on the epoch: see plan.epoch(k)"
    privacy: str = "The run is made of epochs that share nothing, and the promise holds for all of it."
    quality: str = "Each epoch has its own bound on regret: see plan.epoch(k).regret_bound."


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
    work: ClassVar[str] = "steps"
    """What a run spends its time with: "steps", "matrices", "solves" or "draws" (see `cost`)."""

    farthest: ClassVar[str] = "diameter"
    """How far any decision may be from one that regret is against, in words."""

    cut: ClassVar[bool] = True
    """Whether decisions lie in the domain before they are put on a grid, whose cells its boundary cuts then."""

    domain: Domain
    horizon: int | None
    lipschitz: float
    epsilon: float | None
    delta: float | None
    neighbors: str
    for_persons: ClassVar[bool] = False
    """Whether the account has a bound of its own for persons with several rows."""
    max_rows: int | None = None
    """How many rows of one person count, where the unit of privacy is a person; None where it is one round."""
    window: int | None = None
    """Over how many rounds they are counted; None for all."""
    clock: bool = False
    """Whether blocks end when the caller says so (`learner.close_block()`), not after so many rounds."""

    @property
    def cap(self) -> Cap | None:
        """The cap on the rows of one person; None without one."""
        return check_cap(self.max_rows, self.window)

    @property
    def at_stake(self) -> int:
        """How many rounds of what is protected count at most: 1, or those of a person."""
        return 1 if self.cap is None else self.cap.at_stake

    @property
    def unit(self) -> str:
        """Who is protected, in a word, as a ledger asks for it: a row, a person, or what one does in a window."""
        return unit_of(self.max_rows, self.window)

    def window_end(self, opened: int) -> int:
        """Return at which round the window ends that began after `opened` rounds."""
        return NEVER if self.window is None else opened + self.window

    @property
    def private(self) -> bool:
        """Whether the plan makes a privacy claim."""
        return self.epsilon is not None

    @property
    def change(self) -> float:
        """How steep the difference of two losses is that one round of neighbouring streams may have."""
        return 2 * self.lipschitz if self.neighbors == "replace" else self.lipschitz

    @property
    def comparators(self) -> Domain:
        """Whom the regret bound is against: the fixed decisions of the domain, unless a plan says otherwise."""
        return self.domain

    @property
    def on_grid(self) -> bool:
        """Whether decisions are put on a public grid before they are released: those of private plans (Q11)."""
        return self.private and not self.domain.finite

    @property
    def grid(self) -> Array:
        """The steps of that grid, in the chart: those of the body that regret is against."""
        return self.comparators.grid

    def released(self, points: Array) -> Array:
        """Return points of the chart as they are released."""
        return on_grid(self.domain, points, self.grid) if self.on_grid else points

    @property
    def grid_regret(self) -> float:
        """What that may cost over the horizon, which regret bounds include."""
        if not self.on_grid or self.horizon is None:
            return 0.0
        return self.lipschitz * self.horizon * largest_step(self.comparators, self.cut)

    @property
    def certifies(self) -> bool:
        """Whether what is proved of decisions holds: blocks of known lengths, and every round is learned from."""
        return ordinary(self)

    @property
    def max_switches(self) -> int | None:
        """A number of changes that is never exceeded; None without one."""
        return None

    @property
    @abstractmethod
    def regret_bound(self) -> float | None:
        """The certified bound on the expected regret over the horizon; None where none is stated.

        None is stated for persons, whose rows beyond the cap are not learned from.
        """

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
    def idle_regret(self) -> float | None:
        """What the regret of staying at the centre is below, or of n experts that of one drawn uniformly and kept.

        That is lipschitz * horizon times the radius of the comparators, or times 1 - 1/n (docs/theory, R4a).
        """
        if self.horizon is None:
            return None
        far = 1 - 1 / self.domain.dim if self.domain.finite else self.comparators.radius
        return self.lipschitz * far * self.horizon

    @property
    def certified_regret(self) -> float | None:
        """The lower of `regret_bound`, by the system's own theorem, and of `trivial_regret`: both are true."""
        bound, trivial = self.regret_bound, self.trivial_regret
        return bound if bound is None or trivial is None else min(bound, trivial)

    @property
    def vacuous(self) -> bool:
        """Whether the regret bound says no more than what any decisions satisfy, or what staying at the centre does."""
        bound, trivial, idle = self.regret_bound, self.trivial_regret, self.idle_regret
        if bound is None or trivial is None or idle is None:
            return False
        return bound >= min(trivial, idle) * (1 - _ROUNDING)

    def vacuous_in_words(self) -> str:
        """Say what a vacuous bound is compared with; nothing of others."""
        if not self.vacuous or self.trivial_regret is None or self.idle_regret is None:
            return ""
        idle, trivial = number(self.idle_regret), number(self.trivial_regret)
        still = (
            "an expert drawn uniformly and kept satisfies lipschitz * (1 - 1/n) * horizon"
            if self.domain.finite
            else "staying at the centre satisfies lipschitz * radius * horizon"
        )
        return (
            f"The regret bound is vacuous: {still} = {idle}, and any decisions whatever lipschitz * {self.farthest} * "
            f"horizon = {trivial}."
        )

    def cost(self, loss: Loss | None = None) -> Cost:
        """Return what a run costs: operations over the horizon, numbers kept, and both in words; an estimate.

        `loss` is the kind of loss that it will be run with (linear unless given); only some systems depend on it.
        """
        return cost_of(self, Linear() if loss is None else loss)

    def check_as_written(self) -> None:
        """Refuse a plan, from a file, that could not have been made: every value is checked again.

        Plans of version 1 claim what holds for real numbers: their accounts now say a little more.
        """
        told = _REAL_NUMBERS.set(True)
        try:
            again: Any = replace(cast(Any, self))
        finally:
            _REAL_NUMBERS.reset(told)
        if again != self or getattr(again, "seal", None) != getattr(self, "seal", None):
            raise ValueError("its plan is not as the planner wrote it")

    def __getstate__(self) -> dict[str, Any]:
        """Save what the plan says, not what was computed from it."""
        return self._said(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; what follows from it is computed again, whatever the file has."""
        vars(self).update(self._said(state))

    def _said(self, state: dict[str, Any]) -> dict[str, Any]:
        kind = type(self)
        return {name: value for name, value in state.items() if type(getattr(kind, name, None)) is not cached_property}

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

    @property
    def counts_rounding(self) -> bool:
        """Whether what is claimed of privacy counts what the machine adds (docs/theory, Q11)."""
        return True

    def horizon_in_words(self) -> str:
        """Say how many rounds the plan is for."""
        return f"{self.horizon:,} rounds"

    def without_end(self) -> WithoutEnd:
        """Say what holds without a horizon; asked only of plans that have none. Unless overridden, they have epochs."""
        return WithoutEnd() if self.certifies else WithoutEnd(regret=UNBOUND, quality=self.without_bound())

    def without_bound(self) -> str:
        """Say what is known of decisions where no bound on regret is stated."""
        return f"No bound on regret is stated{'' if self.max_rows is None else f': {LEFT_OUT}'}."

    def check_certifies(self) -> None:
        """Refuse to say what is certified of decisions where nothing is."""
        if not self.certifies:
            raise ValueError(
                "nothing is certified of decisions where blocks end by a clock, or rows of persons are left out or "
                f"clipped together, got clock={self.clock!r} and max_rows={self.max_rows!r}; plan without these"
            )

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

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same table."""
        rows = [row for row in self.rows() if row != ("plan", self.system)]
        return card(self.system, rows, system=self.system)

    def plot(self) -> Figure:
        """Draw what is promised, a panel for each question: what is revealed, how often decisions change, their cost.

        Nothing in it depends on data. Needs matplotlib (`pip install 'reticent[lab]'`); the figure belongs to no
        window: write it with `figure.savefig("plan.png")`, or let a notebook show it.

        >>> import reticent as rt
        >>> figure = rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6).plot()
        >>> [axis.get_title(loc="left") for axis in figure.axes][0]
        'What do all decisions together reveal?'
        """
        from reticent.systems._picture import picture

        return picture(self, self.system)


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
    near: ClassVar[float] = NOISE
    """How near to exact the machine's decisions are taken to be (docs/theory, Q11)."""
    cut: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """See to it that no event or bound of plans for single rounds stands for persons with several."""
        super().__init_subclass__()
        if "regret_bound" in vars(cls):
            cls.regret_bound = _of_every_round(vars(cls)["regret_bound"])  # type: ignore[method-assign,assignment]
        if "dp_event" in vars(cls):
            cls.dp_event = _of_one_round(vars(cls)["dp_event"])  # type: ignore[method-assign,assignment]

    domain: Domain
    horizon: int
    lipschitz: float
    _: KW_ONLY
    epsilon: float | None = None
    delta: float | None = None
    neighbors: str = "replace"
    max_rows: int | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        """Check every value, and that the parameters honour the claim."""
        cap = check_cap(self.max_rows, self.window)
        if cap is not None:
            self._set(max_rows=cap.rows, window=cap.window)
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a domain such as Ball(dim=2), got {self.domain!r}")
        self._set(horizon=self._check_horizon())
        self._set(lipschitz=positive("lipschitz", self.lipschitz))
        check_scale(self.domain, self.lipschitz)
        check_neighbors(self.neighbors)
        self._check()
        check_rounds("batch", getattr(self, "batch", 1))
        self._check_claim()

    def _check_horizon(self) -> int | None:
        """Return the horizon; a system whose plans may do without one returns None for that."""
        return check_rounds("horizon", self.horizon)

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
        exact = _REAL_NUMBERS.get()
        account = self._account(self.horizon, self.statements(self.horizon)) if exact else self.account()
        # One delta says as much as the epsilon, which takes many of them.
        if account.delta(epsilon * (1 + _ROUNDING)) > delta:
            raise ValueError(
                f"epsilon must be at least {account.epsilon(delta):.6g} at delta={delta:g} for these parameters, got "
                f"{self.epsilon!r}; add noise, or use the planner of this system"
            )

    def for_group(self, epsilon: float, delta: float, cap: Cap) -> Self | None:
        """Return the plan with a claim for persons, by the bound for groups; None if its account does not show it."""
        if self.for_persons:
            raise ValueError(
                f"the planner of {self.system} takes max_rows= itself, for a sharper account; give it that"
            )
        shown = replace(self, max_rows=cap.rows, window=cap.window, epsilon=_ANY, delta=delta).account().epsilon(delta)
        if shown > epsilon * (1 + _ROUNDING):
            return None
        return replace(self, epsilon=epsilon, delta=delta, max_rows=cap.rows, window=cap.window)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

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

    def account(self, rounds: int | None = None, method: str = "pld") -> Certificate:
        """Return what the first `rounds` rounds (all, unless given) can reveal about any one of them.

        For a plan with `max_rows` it is about a person, with all rows that count. Each of the statements behind it is
        composed as it was proved, whatever `method` says.
        """
        count = self.horizon if rounds is None else integer("rounds", rounds, least=0)
        if count > self.horizon:
            raise ValueError(
                f"rounds must be at most the horizon of {self.horizon}, got {rounds}; plan a longer horizon"
            )
        return self._account(count, self.in_floating_point(count))

    def _account(self, rounds: int | None, statements: tuple[Statement, ...]) -> Certificate:
        """Return the account of statements: for persons by the bound for groups, unless they are about persons."""
        return group_account(rounds, self.neighbors, statements, 1 if self.for_persons else self.at_stake)

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements of `rounds` rounds as they hold for the machine (docs/theory, Q11, Q12)."""
        return self.rounding(rounds).applied(self.statements(rounds))

    def rounding(self, rounds: int) -> Rounding:
        """Return what the machine's arithmetic may add in `rounds` rounds."""
        return Rounding.of(self.domain, rounds, self.draws_after(rounds), near=self.near, cut=self.cut)

    def draws_after(self, rounds: int) -> int:
        """Return how many decisions of `rounds` rounds a changed one may show in.

        One comes after every batch at most, or as often as changes are allowed.
        """
        batches = rounds // int(getattr(self, "batch", 1))
        return batches if self.max_switches is None else min(batches, self.max_switches)

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
        rows += [] if ordinary(self) else [("unit", f"{changed(self)}. {sentences(self)}".strip())]
        rows += [("remark", remark) for remark in self.remarks]
        return rows + ([("remark", self.vacuous_in_words())] if self.vacuous else [])


def _of_one_round(event: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the event of a plan; refuse it where it is that of a round, and the plan is for groups of them."""

    @wraps(event)
    def found(plan: Any) -> Any:
        if plan.at_stake > 1 and not plan.for_persons:
            raise ValueError(
                f"a plan for persons by the bound for groups has no event, got max_rows={plan.max_rows!r}: no stock "
                "event stands for one; use plan.account(), or a learner of the gate (rt.private_learner)"
            )
        return event(plan)

    return found


def _of_every_round(bound: property | cached_property[Any]) -> property | cached_property[Any]:
    """Return the bound of a plan, which is None where what is proved of decisions does not hold."""
    computed = bound.func if isinstance(bound, cached_property) else bound.fget
    assert computed is not None

    @wraps(computed)
    def found(plan: Any) -> Any:
        return computed(plan) if plan.certifies else None

    if not isinstance(bound, cached_property):
        return property(found)
    kept = cached_property(found)
    kept.__set_name__(SystemPlan, bound.func.__name__)
    return kept


_COMMON = {f.name for f in fields(SystemPlan)}
