"""The face that all learners share: one decision in play, rounds in, a trace out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NoReturn

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._forks import refuse_fork, watch
from reticent._core._html import card, numbers
from reticent._core._progress import Progress, watched
from reticent._core._random import Seed, taken_over
from reticent.domains._base import unchangeable
from reticent.hindsight import Trace
from reticent.losses import Loss
from reticent.losses._gate import Gate
from reticent.saving import Key, check_twin, key_bytes, pack, write_file
from reticent.systems._decider import NEVER, Changes, Decider
from reticent.systems._inbox import Inbox
from reticent.systems._plan import BasePlan, SystemPlan
from reticent.systems._words import claim_rows

STATE = "learner"
"""What the state of a learner is called in its file."""


class Learner(ABC):
    """Plays decisions, observes losses, and keeps the promises of its plan.

    `decision` is in play; `observe` takes one round, `observe_many` a block with the same result to the last bit; a
    round that is refused leaves no mark. `rounds` and `switches` count, `plan` says what is promised, `spent(delta)`
    what a private run may have cost so far. A learner can be saved (`save`, `rt.load`) or pickled, and resumed once.

    One thread at a time: a call that comes while another is at work is refused and leaves no mark. `rt.Journal` lets
    threads take turns.
    """

    plan_type: ClassVar[type[BasePlan]]
    """The plans that this learner plays; `rt.make` asks a plan for its learner."""
    _or_else = ""
    """What else can be done where the horizon of a plan ends, for the message that says so."""
    _busy = False
    """Whether a call is at work. No other thread can come between looking at it and setting it (and no lock is there
    to be left locked by an interrupt): the interpreter changes threads at calls and loops only."""
    _forked = False
    """Whether this is the copy of a private learner in a fork of its process, where it can do nothing."""

    _parts: ClassVar[tuple[str, ...]] = (
        *("plan", "loss", "_on_steep", "_rng", "_switches", "_rounds", "_gate", "_inbox", "_walk", "_last"),
        *("_x", "_wake"),
    )
    """What the state of every learner is made of: a saved one has these, no more and no fewer."""

    def __init_subclass__(cls) -> None:
        """Tell the plans who plays them; a learner that only inherits from another stays unknown to them."""
        super().__init_subclass__()
        if "plan_type" in vars(cls):
            cls.plan_type.learner = cls

    def __init__(self, plan: Any, loss: Loss, seed: Seed = None, *, on_steep: str = "raise") -> None:
        """Put the first decision in play.

        `seed` None is a cryptographic generator, as privacy needs; a number is for tests and experiments. Rounds
        steeper than `plan.lipschitz` are refused, or scaled down to it with `on_steep="clip"`. A generator that is
        given is copied, and jumps ahead: no two learners, nor a learner and its caller, draw the same numbers.
        """
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
        self.plan, self.loss = plan, loss
        self._on_steep = on_steep
        self._rng = taken_over(seed)
        self._switches = 0
        self._rounds = 0  # taken from the caller: those in the inbox included
        self._gate = self._new_gate()
        self._inbox = Inbox(plan.domain, loss, plan.lipschitz)
        self._last = self._promised()
        with np.errstate(all="ignore"):
            self._walk: Decider = self._new_walk()
        self._round_steps()
        self._stand()
        self._settle_down()

    def _settle_down(self) -> None:
        """Belong to this process."""
        if self.plan.private:
            watch(self)

    def _promised(self) -> int:
        """Return how many rounds the promises of the plan last for: rounds beyond are refused."""
        return NEVER if not self.plan.private or self.plan.horizon is None else int(self.plan.horizon)

    @abstractmethod
    def _new_walk(self) -> Decider:
        """Return the walk at its first decision."""

    def _round_steps(self) -> None:
        """Tell a walk of noisy steps the grid that it is to round them to; walks in old files have none."""
        walk: Any = self._walk
        if self.plan.on_grid and hasattr(walk, "steps") and not walk.steps.size:
            walk.steps = self.plan.grid

    @property
    def _u(self) -> Array:
        """The decision in play, in the chart, as it is released."""
        shown: Array = self._released(self._walk.u[None])[0]
        return shown

    def _released(self, points: Array) -> Array:
        """Return points of the walk, in the chart, as they are released: on the grid if the plan is private.

        A walk of draws goes on with them as they were drawn: that is what its proofs are about, and to round what is
        shown of them is post-processing (docs/theory, Q11). One of noisy steps has rounded them itself.
        """
        return points if hasattr(self._walk, "steps") else self.plan.released(points)

    def _shown(self, changes: Changes, before: Array) -> Changes:
        """Return changes of the walk as those of what is released: a point of the grid that comes again is none."""
        if not self.plan.on_grid or not len(changes):
            return changes
        points = self._released(np.concatenate([before[None], changes.points(before.size)]))
        moved = (points[1:] != points[:-1]).any(axis=1)
        shown = Changes()
        if moved.any():
            shown.add_many(changes.places()[moved], points[1:][moved])
        return shown

    def _new_gate(self) -> Gate:
        return Gate(self.plan.domain, self.loss, self.plan.lipschitz, self._on_steep)

    @property
    def decision(self) -> Array:
        """The decision in play: a point of the domain (read-only)."""
        return self._x

    @property
    def rounds(self) -> int:
        """The number of rounds observed."""
        return self._rounds

    @property
    def switches(self) -> int:
        """How often the decision has changed, the fresh starts of epochs included."""
        return self._switches

    @property
    def frozen(self) -> bool:
        """Whether the budget of switches is spent, so that the decision stays: for good, or until the next epoch."""
        return bool(self._walk.frozen)

    @abstractmethod
    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It holds at a time that is fixed in advance (docs/theory, Q7).
        """

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what the whole run reveals, for composing with others."""
        return self.plan.dp_event()

    def _level(self, delta: float | None) -> float:
        level = self.plan.delta if delta is None else delta
        if level is None:
            raise ValueError("delta must be given for a plan that makes no privacy claim, got None")
        return float(level)

    def observe(self, *row: Any) -> None:
        """Take one round: a gradient for `Linear`, (features, target) or one object for the others.

        A round that is refused leaves the learner as it was.
        """
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            if self._rounds >= self._last or self._torn():
                self._refuse(1)
            if self._inbox.push(row):
                if self._rounds + 1 < self._wake:
                    self._rounds += 1
                else:
                    self._empty()
                return
            # Not plainly good: the full check, before anything changes.
            parts = self._gate.prepare_one(*row)
            self._flush()
            self._take(parts)
        finally:
            self._busy = False

    def observe_many(self, *block: Any, progress: Progress = False) -> Trace:
        """Take a block of rounds, with the same result to the last bit as one at a time, and return its trace.

        If any round is refused, none is taken. Arrays may be mapped from disk; the trace refers to them. With
        `progress=True` a bar on standard error shows how far a long block has come (it needs rich, of the extra lab);
        a function is told the rounds done and all of them instead, some 32,000 rounds apart.
        """
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            self._flush()
            return self._play(block, self._admit(block), progress)
        finally:
            self._busy = False

    def _admit(self, block: tuple[Any, ...]) -> list[Any]:
        """Return a block in prepared parts; refuse it, with nothing changed, if any round is bad or one too many."""
        parts = self._gate.prepare(*block)
        count = sum(len(part) for part in parts)
        if count > self._last - self._rounds or self._torn():
            self._refuse(count)
        return parts

    def _play(self, block: tuple[Any, ...], parts: list[Any], progress: Progress = False) -> Trace:
        """Take in a block that was admitted."""
        first, begin = self._rounds, self._u.copy()
        try:
            return self._record(block, parts, first, begin, self._take(parts, progress))
        except BaseException as error:
            count = sum(len(part) for part in parts)
            error.add_note(f"{self._rounds - first} of the {count} rounds of this block had been taken in.")
            raise

    def save(self, path: str | os.PathLike[str], *, key: Key = None) -> None:
        """Write the state to a file, from which `rt.load(path)` makes a learner that goes on bit for bit.

        The file appears whole or not at all, with a checksum, and only its owner can read it (mode 0600): **it is as
        sensitive as the data**, because it holds past rounds and the random generator. Resume it once, and destroy it:
        two learners with the same randomness break privacy. The learner itself must not go on either, once the
        file is resumed. `rt.Journal` keeps a learner on disk all the time.

        With a `key` (16 bytes or more; `secrets.token_bytes(32)`) the file ends with an HMAC-SHA256 code: `rt.load`
        with the same key refuses what anybody else has written or changed. It hides nothing.
        """
        write_file(path, pack(STATE, self.whole(), key_bytes(key)))

    def whole(self) -> Learner:
        """Return the learner itself; refuse one that an interrupt has left between two rounds."""
        if self._torn():
            raise ValueError(
                "a learner that was interrupted while it took in rounds cannot be saved, as nobody knows how many are "
                "in; resume an earlier state"
            )
        return self

    def check_standing(self) -> None:
        """Refuse a loaded state in which no learner of this plan can stand.

        The checksum of a file finds accidents; this finds a state that something else than `save` has put together:
        what has checks of its own is made again, so that they speak, and what says the same thing twice must say it
        alike. A new learner of the plan says what must be equal, and of which kind the rest is, before compiled code
        sees it.
        """
        odd = (vars(self).keys() - {"_busy"}) ^ {*self._parts}
        if odd or self._busy:
            raise ValueError(f"its state has {sorted(odd) or ['_busy']} too many or too few")
        self._check_plans()
        self._check_counts()
        self._round_steps()
        twin = type(self)(self.plan, self.loss, 0, on_steep=self._on_steep)
        self._check_doors(twin)
        check_twin(self._walk, twin._walk, (self._rng, twin._rng), "its walk")
        self._check_decision()
        repr(self)  # reads what else there is of the walk

    def _plans(self) -> list[Any]:
        """Return the plans that the run has followed so far, the present one last."""
        return [self.plan]

    def _check_plans(self) -> None:
        """Refuse plans that are not as a planner wrote them."""
        for plan in {id(plan): plan for plan in (self.plan, *self._plans())}.values():
            plan.check_as_written()

    def _check_counts(self) -> None:
        for name in ("_switches", "_rounds", "_last"):
            integer(name, getattr(self, name), least=0)
        if self._torn() or self._inbox.count:
            raise ValueError(f"it counts {self._rounds} rounds, and its walk {self._walk.done}")
        if self._last != self._promised():
            raise ValueError(f"it would go on for {self._last} rounds, where its plan has {self._promised()}")
        if self._rounds > self._last or self._switches > self._rounds:
            raise ValueError(f"it stands at round {self._rounds} of {self._last}, after {self._switches} switches")
        if type(self._wake) is not int or not self._rounds <= self._wake <= max(int(self._walk.due), self._rounds):
            raise ValueError(f"it would let rounds wait until round {self._wake!r}")

    def _check_doors(self, new: Learner) -> None:
        """What lets rounds in must do so as for a new learner, or it holds some back for the full check."""
        kinds = type(self._gate) is type(new._gate) and type(self._inbox) is type(new._inbox)
        inbox, other = self._inbox.__getstate__(), new._inbox.__getstate__()
        easier = not 0 <= inbox.pop("capacity") <= other.pop("capacity") or not inbox.pop("most") <= other.pop("most")
        if not kinds or easier or inbox != other or vars(self._gate) != vars(new._gate):
            raise ValueError("it would let in rounds that its plan does not allow")

    def _check_decision(self) -> None:
        domain, x = self.plan.domain, self._x
        # In files of version 1 no decision is on a grid: the next one will be.
        known = any(np.array_equal(x, domain.from_chart(u)) for u in (self._u, self._walk.u))
        if not known or not domain.contains(x):
            raise ValueError(f"its decision {x} is not the one of its walk, or lies outside {domain!r}")

    def _record(self, block: tuple[Any, ...], parts: list[Any], first: int, begin: Array, changes: Changes) -> Trace:
        u = np.concatenate([begin[None], changes.points(begin.size)])
        return Trace.record(
            self.plan.domain,
            self.loss,
            lipschitz=self.plan.lipschitz,
            on_steep=self._on_steep,
            first=first,
            starts=np.concatenate([[0], changes.places() - first]),
            chart_points=u,
            points=self.plan.domain.from_chart(u),
            final=self._x,
            parts=parts,
            data=block,
            comparators=self.plan.comparators,
        )

    def _refuse_overlap(self) -> NoReturn:
        if self._forked:
            refuse_fork("learner")
        raise RuntimeError(
            "this learner is at work in another call, of another thread or of a loss function, and this one was "
            "refused; nothing of it was recorded: let threads take turns with a lock, or use rt.Journal"
        )

    def _refuse(self, count: int) -> None:
        self._refuse_torn()
        raise ValueError(
            f"{count} more rounds were given, but this private plan has {self._last - self._rounds} of its "
            f"horizon={self.plan.horizon} left; nothing was recorded. What it certifies ends there: plan a longer "
            f"horizon before a run starts{self._or_else}; a new learner on new data has a privacy budget of its own"
        )

    def _torn(self) -> bool:
        """Say whether an interrupt has left rounds half taken in, or taken in and not counted, or counted and lost."""
        return bool(self._walk.torn) or self._rounds != int(self._walk.done) + self._inbox.count

    def _refuse_torn(self) -> None:
        if self._torn():
            raise RuntimeError(
                "this learner was interrupted while it took in rounds, and nobody knows how many are in: resume a "
                "saved one, or make a new one"
            )

    def _flush(self) -> None:
        """Take in the rounds that wait."""
        self._refuse_torn()
        self._empty()

    def _empty(self) -> None:
        self._take(self._inbox.take())

    def _take(self, parts: list[Any], progress: Progress = False) -> Changes:
        """Take in prepared rounds; return the changes of decision, counted from the learner's first round."""
        self._round_steps()
        changes, before = Changes(), self._walk.u.copy()
        try:
            # Whatever the caller has numpy do about underflow: an error in the middle would tell of a round.
            with np.errstate(all="ignore"):
                for rows in watched(parts, progress):
                    self._walk.take(rows, changes)
        finally:
            changes = self._shown(changes, before)
            self._switches += len(changes)
            self._stand(moved=not np.array_equal(before, self._walk.u))
        return changes

    def _stand(self, moved: bool = True) -> None:
        """Bring what the caller sees up to date with the walk; the count, which tells of an interrupt, comes last."""
        done = int(self._walk.done)
        if moved:
            self._x = unchangeable(self.plan.domain._from_chart(self._u))
        # Rounds can wait in the inbox until the decision may change, or it is full.
        self._wake = min(int(self._walk.due), done + self._inbox.capacity)
        self._rounds = max(done, self._rounds)  # fewer than were acknowledged: some were lost on the way

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the decision, where the learner stands, and what is promised."""
        plan = self.plan
        of = "" if plan.horizon is None else f" of {plan.horizon:,}"
        rows = [
            ("decision", numbers(self._x)),
            ("rounds", f"{self._rounds:,}{of}"),
            ("switches", f"{self._switches:,}" + (" (frozen: the decision stays)" if self.frozen else "")),
            ("domain", repr(plan.domain)),
            *claim_rows(plan, ", of the sequence of decisions"),
        ]
        return card(f"{type(self).__name__} of {self.loss!r}", rows, system=plan.system)

    def __copy__(self) -> NoReturn:
        """Refuse: two learners would share one walk, and neither would know of the other's rounds."""
        raise TypeError("a learner cannot be copied, only moved: pickle it, and resume one of the two")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle with nothing in the inbox; the state is as secret as the data."""
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            self._flush()
        finally:
            self._busy = False
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state: the learner belongs to the process that it is loaded in."""
        vars(self).update(state)
        if isinstance(state.get("_x"), np.ndarray):
            self._x = unchangeable(state["_x"])
        if isinstance(state.get("plan"), BasePlan):
            self._settle_down()


class SystemLearner(Learner):
    """A learner that follows a `SystemPlan`; each system says which kind, and how it walks.

    A private plan is honoured up to its horizon, and rounds beyond it are refused; other plans go on, without a
    certificate.
    """

    plan_type: ClassVar[type[BasePlan]]

    def __init__(self, plan: SystemPlan, loss: Loss, seed: Seed = None, *, on_steep: str = "raise") -> None:
        """Put the first decision in play; see `Learner`."""
        if not isinstance(plan, self.plan_type):
            raise ValueError(
                f"plan must be a {self.plan_type.__name__} for {type(self).__name__}, got {type(plan).__name__}; "
                "rt.make(plan, loss) finds the learner of any plan"
            )
        plan.check_loss(loss)
        super().__init__(plan, loss, seed, on_steep=on_steep)

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon, at `delta` (that of the plan unless given), that the run so far may have cost one round.

        It holds at a time that is fixed in advance (docs/theory, Q7).
        """
        level = self._level(delta)
        if self._rounds > self.plan.horizon:
            raise ValueError(
                f"a plan has an account up to its horizon of {self.plan.horizon}, got {self._rounds} rounds: this one "
                "claims no privacy, so it was not stopped there; plan a longer horizon to know what a run costs"
            )
        return float(self.plan.account(self._rounds).epsilon(level))

    def __repr__(self) -> str:
        """Say where the learner stands."""
        name, frozen = type(self).__name__, ", frozen: the decision stays" if self.frozen else ""
        at = f"{self._rounds} rounds of {self.plan.horizon}, {self._switches} switches"
        return f"<{name} {self.loss!r}: {at}{frozen}>"


def make(plan: BasePlan, loss: Loss, seed: Seed = None, **options: Any) -> Learner:
    """Return the learner that a plan is for, at its first decision.

    `seed` and `options` (`on_steep`, say) are those of the learner.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_descent(rt.Ball(2), 100, 1.0)
    >>> make(plan, rt.Linear())
    <OnlineGradientDescent Linear(): 0 rounds of 100, 0 switches>
    """
    if not isinstance(plan, BasePlan) or not hasattr(plan, "learner"):
        raise ValueError(f"plan must be a plan of one of the systems (rt.compare_plans lists them), got {plan!r}")
    return plan.learner(plan, loss, seed, **options)
