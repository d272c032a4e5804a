"""Windows: values are gathered, each window is released once with pure privacy, and the run never ends.

A value enters one release, so one epsilon holds for any number of rounds (docs/theory, R11b). What is published is
computed from releases alone.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from reticent._core._check import Array, integer, positive, real
from reticent._core._forks import refuse_fork, watch
from reticent._core._html import card
from reticent._core._random import Seed, taken_over
from reticent._core._tags import saved
from reticent.domains import Interval
from reticent.privacy._meaning import beliefs_in_words, groups_in_words, guessed, meaning
from reticent.privacy._pure import PureAccount, pure_event
from reticent.saving import check_twin
from reticent.systems._checks import check_neighbors, check_scale
from reticent.systems._persons import SECRET, Owners, Roll, check_cap, unit_of
from reticent.systems._words import labelled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREATEST = 50.0  # beyond it a promise of exp(epsilon) is none
_LEAST = 1e-6
_LONGEST = 1 << 40  # values of a window: ranks stay within 64 bits
_MANY, _FEW = 100, 4  # releases in `traffic` values, at most and at least


def check_pure(epsilon: float, delta: float) -> tuple[float, float]:
    """Return a privacy goal; delta may be 0, and is not spent."""
    goal = positive("epsilon", epsilon)
    if not _LEAST <= goal <= _GREATEST:
        raise ValueError(
            f"epsilon must be from {_LEAST:g} to {_GREATEST:g}, got {epsilon!r}; a number of values to come, which "
            "need not be known, is given as horizon="
        )
    if not 0 <= real("delta", delta) < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {delta!r}; 0 asks for pure privacy")
    return goal, float(delta)


def window_of(enough: float | Fraction, window: int | None, traffic: float | None) -> int:
    """Return how many values a window has: as given, or enough for small noise, adjusted to the traffic.

    In `traffic` values, those of a day, say, there are at most 100 releases, and at least 4.

    >>> [window_of(350.2, None, traffic) for traffic in (None, 86_400, 1_000)], window_of(350.2, 7, None)
    ([351, 864, 250], 7)
    """
    if window is not None:
        found = integer("window", window, least=1)
    else:
        found = math.ceil(enough)
        if traffic is not None:
            day = positive("traffic", traffic)
            found = max(1, min(max(found, math.ceil(day / _MANY)), math.ceil(day / _FEW)))
    if found > _LONGEST:
        raise ValueError(f"window must be at most 2**40 values, got {found!r}; take a larger epsilon")
    return found


@saved("plan of windows")
@dataclass(frozen=True, kw_only=True)
class WindowPlan:
    """What is promised of a tracker of windows: pure epsilon for any number of values, each used in one release.

    With `max_rows` that is about persons, of whom the first so many values count (docs/theory, R14e).

    >>> plan = WindowPlan(what="0.9-quantile", low=0.0, high=60.0, window=250, epsilon=1.0)
    >>> plan.account().epsilon(0.0), plan.account(249).epsilon(0.0), plan.horizon
    (1.0, 0.0, None)
    """

    what: str
    low: float
    high: float
    window: int
    epsilon: float
    delta: float = 0.0
    neighbors: str = "replace"
    max_rows: int | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        check_cap(self.max_rows, None)
        check_neighbors(self.neighbors)
        check_scale(Interval(self.low, self.high), 1.0)
        check_pure(self.epsilon, self.delta)
        window_of(1, self.window, None)

    @property
    def horizon(self) -> None:
        """None: a run never ends."""

    @property
    def private(self) -> bool:
        """Whether the plan makes a privacy claim: always."""
        return True

    @property
    def unit(self) -> str:
        """Who is protected, in a word, as a ledger asks for it."""
        return unit_of(self.max_rows)

    @property
    def at_stake(self) -> int:
        """How many values of what is protected count at most: 1, or those of a person."""
        return 1 if self.max_rows is None else self.max_rows

    def account(self, rounds: int | None = None, method: str = "pld") -> PureAccount:
        """Return what the first `rounds` rounds (any number, unless given) can reveal about any one of them."""
        count = None if rounds is None else integer("rounds", rounds, least=0)
        over = count is None or count >= self.window
        return PureAccount.of(count, self.neighbors, self.epsilon if over else 0.0)

    def dp_event(self) -> Any:
        """Return a Gaussian event that bounds what a run reveals, for dp_accounting's default relation."""
        return pure_event(self.epsilon)

    def rows(self) -> list[tuple[str, str]]:
        """Return the plan as labels and texts, for a table."""
        changed = "is replaced by another" if self.neighbors == "replace" else "is left out (its round stays)"
        one = "one value" if self.max_rows is None else "every value of one person"
        return [
            ("plan", f"{self.what} of windows"),
            ("bounds", f"{self.low:g} to {self.high:g}"),
            ("window", f"{self.window:,} values, each in one release"),
            ("horizon", "none: any number of rounds"),
            ("privacy", f"epsilon {self.epsilon:g}, delta 0, for streams in which {one} {changed}"),
            ("attacker", guessed((self.epsilon, 0.0), self.unit)),
            ("exact", "what is released is a whole number with exactly the stated law (docs/theory, R11)"),
            ("quality", "no certificate: what is published follows the releases by a heuristic"),
            ("remark", "windows are counted in rounds: a round put in or left out moves all later ones, uncovered"),
            *([] if self.max_rows is None else [("persons", f"the first {self.max_rows:,} values of each count")]),
        ]

    def explain(self) -> str:
        """Say in plain words what is promised."""
        found = meaning((self.epsilon, 0.0), 0.0)
        who, others = "any one value", "all other values believes of one"
        more = f"A person with k values is protected k times less: {groups_in_words(found, 'values')}."
        if self.max_rows is not None:
            who, others = "any one person", "all other persons' values believes of one person"
            more = (
                f"Of a person the first {self.max_rows:,} values count, and others are rounds without one; each round "
                "is the same person's in the two streams that are compared."
            )
        return (
            f"Whoever sees everything that is published learns little about {who}: pure epsilon "
            f"{self.epsilon:g} (delta 0), for any number of values. The values of {self.window:,} rounds are released "
            f"together, once; all else is computed from releases. What somebody who knows {others} may rise, "
            f"{beliefs_in_words(found)}. {more} Values that are put in or left out, so that later ones move, errors, "
            "timing and the saved state are not covered."
        )

    def __str__(self) -> str:
        """Lay the plan out as a table in plain text."""
        return labelled(self.rows())

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same table."""
        (_, name), *rows = self.rows()
        return card(name, rows)

    def plot(self) -> Figure:
        """Draw what is promised, as `BasePlan.plot` does: the curve of epsilon and delta."""
        from reticent.systems._picture import picture

        return picture(self, f"{self.what} of windows")


def window_plan(
    what: str,
    low: float,
    high: float,
    epsilon: float,
    delta: float,
    needed: Fraction,
    window: int | None,
    traffic: float | None,
    neighbors: str,
    max_rows: int | None = None,
) -> WindowPlan:
    """Return a plan for a goal; `needed`/epsilon values in a window make its noise small, of one value's epsilon."""
    goal, rest = check_pure(epsilon, delta)
    cap = check_cap(max_rows, None)
    rows = 1 if cap is None else cap.rows
    size = window_of(needed * rows / Fraction(goal), window, traffic)
    claim = {"epsilon": goal, "delta": rest, "neighbors": neighbors, "max_rows": None if cap is None else rows}
    return WindowPlan(what=what, low=float(low), high=float(high), window=size, **claim)  # type: ignore[arg-type]


def refuse_persons(max_rows: int) -> NoReturn:
    """Refuse to count persons where values are not taken in windows."""
    raise ValueError(
        f"max_rows is for a tracker without horizon and system, got max_rows={max_rows!r}; leave one or the other out, "
        "or plan a learner with rt.planning.for_persons"
    )


class Windows(ABC):
    """Gathers clipped values; releases each full window, and publishes a number between releases.

    The state is as secret as the data: it holds the values of the open window, and the random generator.
    """

    _moves: ClassVar[tuple[str, ...]] = ("switches", "torn", "_waiting", "_done", "roll")
    _busy = False
    """Whether a call is at work; no thread comes between looking at it and setting it (as in `Learner`)."""
    _forked = False
    """Whether this is a copy in a fork of its process, where it can do nothing (as in `Learner`)."""
    roll: Roll | None = None
    """Who has given how many values, if the plan is about persons."""

    def __init__(self, plan: WindowPlan, seed: Seed) -> None:
        """Publish a number that knows of no value."""
        self.plan = plan
        self.switches = 0
        self.torn = False
        self._rng = taken_over(seed)
        if plan.max_rows is not None:
            self.roll = Roll(plan.max_rows, self._rng.bytes(SECRET))
        self._waiting: list[float] = []  # the open window: secret
        self._done = 0  # values of windows that are over
        watch(self)

    @property
    @abstractmethod
    def shown(self) -> Any:
        """What is published now."""

    @abstractmethod
    def _release(self, values: Array) -> bool:
        """Release a full window, and say whether what is published has changed."""

    @property
    def rounds(self) -> int:
        """The number of values taken in."""
        return self._done + len(self._waiting)

    @property
    def budget(self) -> Fraction:
        """Epsilon of one value, as the exact number that it is."""
        return Fraction(self.plan.epsilon) / self.plan.at_stake

    def take(self, value: float, owner: int | None = None) -> None:
        """Take in one clipped value, and whose it is; one that does not count is a round without a value."""
        if self._busy or self.torn or self._forked:
            self._refuse()
        try:
            self._busy = True
            if self.roll is not None and not self.roll.admit(np.array([owner], dtype=np.int64))[0]:
                value = math.nan
            self._waiting.append(value)
            if len(self._waiting) >= self.plan.window:
                # A window is released once: an interrupt from here on leaves the tracker torn, and it goes on no more.
                self.torn = True
                self._close(np.array(self._waiting))
                self.torn = False
        finally:
            self._busy = False

    def take_many(self, values: Array, owners: Owners | None = None) -> None:
        """Take in clipped values; an interrupt leaves the tracker torn, so that none is given to it again."""
        if self._busy or self.torn or self._forked:
            self._refuse()
        try:
            self._busy = self.torn = True
            if self.roll is not None and owners is not None:
                values = np.where(self.roll.admit(owners), values, math.nan)
            window, start = self.plan.window, 0
            while start < values.size:
                stop = start + window - len(self._waiting)
                part = values[start:stop]
                if self._waiting or part.size < window:
                    self._waiting.extend(part.tolist())
                    part = np.array(self._waiting)
                if part.size == window:
                    self._close(part)
                start = stop
            self.torn = False
        finally:
            self._busy = False

    def _close(self, values: Array) -> None:
        self.switches += self._release(values)
        self._waiting.clear()
        self._done += values.size

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon that the values so far may have cost one of them: all of it after the first window."""
        rounds = None if self.torn else self.rounds  # torn: nobody knows how many
        return self.plan.account(rounds).epsilon(self.plan.delta if delta is None else delta)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle and save a copy, made while no other thread changes it."""
        if self._busy or self.torn or self._forked:
            self._refuse()
        try:
            self._busy = True
            return {name: copy.deepcopy(part) for name, part in vars(self).items() if name != "_busy"}
        finally:
            self._busy = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state: the tracker belongs to the process that it is loaded in."""
        vars(self).update(state)
        watch(self)

    def _twin(self) -> Windows:
        """Return a new one of the same plan."""
        return type(self)(self.plan, 0)

    def check_standing(self) -> None:
        """Refuse a loaded state in which no tracker can stand: a new one says what must be equal."""
        if replace(self.plan) != self.plan or self.torn or not isinstance(self._rng, np.random.Generator):
            raise ValueError("its plan, or its standing, is not as it was written")
        if (self.roll is None) != (self.plan.max_rows is None):
            raise ValueError("it counts the values of persons, or does not, where its plan says otherwise")
        twin = self._twin()
        check_twin(self, twin, (self._rng, twin._rng), "it")
        low, high = self.plan.low, self.plan.high
        plain = all(type(v) is float and (low <= v <= high or v != v) for v in self._waiting)
        if len(self._waiting) >= self.plan.window or not plain:
            raise ValueError("its open window has values that it could not have taken in")
        if integer("done", self._done, least=0) % self.plan.window or integer("switches", self.switches, least=0) < 0:
            raise ValueError(f"it counts {self._done} rounds in windows of {self.plan.window}")
        if any(not low <= one <= high for one in np.atleast_1d(self.shown).tolist()):
            raise ValueError(f"it publishes {self.shown}, which lies beyond its bounds")

    def _refuse(self) -> NoReturn:
        if self._forked:
            refuse_fork("tracker")
        raise RuntimeError(
            "this tracker is at work in another thread, or was interrupted while it took in a block or released a "
            "window, and nothing more was recorded: let threads take turns with a lock; after an interrupt go on with "
            "a saved one, or make a new one"
        )
