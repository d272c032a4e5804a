"""The face that all learners share: one decision in play, rounds in, a trace out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, NoReturn

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
from reticent.systems._empty import check_on_bad, emptied, tell
from reticent.systems._inbox import Inbox
from reticent.systems._persons import MOST_PERSONS, NOBODY, SECRET, Owned, Owners, Roll
from reticent.systems._plan import BasePlan, SystemPlan
from reticent.systems._words import claim_rows

NOT_GIVEN: Any = object()
"""What stands for a person that a caller has not named."""
STATE = "learner"
"""What the state of a learner is called in its file."""


class Admitted(NamedTuple):
    """A block that was let in: as it counts, in prepared parts, and how many of its rounds are empty for being bad."""

    block: tuple[Any, ...]
    parts: list[Any]
    bad: int


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
    _on_bad = "raise"
    """What is done with a round that is no row of numbers; in the state only where it is something else."""
    _by_person = False
    """Whether the walk reads whose a round is; else rounds that do not count reach it as constants."""
    _roll: Roll | None = None
    """Who has given how many rounds; in the state only if the plan is for persons."""

    def __init_subclass__(cls) -> None:
        """Tell the plans who plays them; a learner that only inherits from another stays unknown to them."""
        super().__init_subclass__()
        if "plan_type" in vars(cls):
            cls.plan_type.learner = cls

    def __init__(
        self, plan: Any, loss: Loss, seed: Seed = None, *, on_steep: str = "raise", on_bad: str = "raise"
    ) -> None:
        """Put the first decision in play.

        `seed` None is a cryptographic generator, as privacy needs; a number is for tests and experiments. Rounds
        steeper than `plan.lipschitz` are refused, or scaled down to it with `on_steep="clip"`. Rounds that are no rows
        of finite numbers are refused, or with `on_bad="empty"` counted as empty rounds, with a warning. A generator
        that is given is copied, and jumps ahead: no two learners, nor a learner and its caller, draw the same numbers.
        """
        if not isinstance(loss, Loss):
            raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
        self.plan, self.loss = plan, loss
        self._on_steep = on_steep
        if check_on_bad(on_bad, on_steep, loss) != "raise":
            self._on_bad = on_bad
        self._rng = taken_over(seed)
        if plan.cap is not None:
            self._roll = Roll(plan.cap.rows, self._rng.bytes(SECRET))
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
    def left_out(self) -> int:
        """How many rounds did not count, as their persons had given enough or nobody was named. **Not private.**"""
        return 0 if self._roll is None else self._roll.left_out

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

    def observe(self, *row: Any, person: Any = NOT_GIVEN) -> None:
        """Take one round: a gradient for `Linear`, (features, target) or one object for the others.

        `person` is whose it is, for plans with `max_rows`: a text, a whole number or bytes. A round that is refused
        leaves the learner as it was.
        """
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            if self._rounds >= self._last or self._torn():
                self._refuse(1)
            owner = self._owner(person)
            try:
                plainly = owner != NOBODY and self._inbox.push(row)
            except (FloatingPointError, RuntimeWarning):  # of numpy, if the caller has it raise: a matter of large rows
                plainly = False
            if plainly:
                if owner is not None and self._roll is not None:
                    self._roll.waiting.append(owner)
                if self._rounds + 1 < self._wake:
                    self._rounds += 1
                else:
                    self._empty()
                return
            # Not plainly good: the full check, before anything changes.
            whose = None if owner is None else np.array([owner])
            _, parts, bad = self._admit(row, whose, one=True)
            self._flush()
            self._take(parts, whose)
        finally:
            self._busy = False
        tell(bad, 1)

    def observe_many(self, *block: Any, persons: Any = NOT_GIVEN, progress: Progress = False) -> Trace:
        """Take a block of rounds, with the same result to the last bit as one at a time, and return its trace.

        `persons` are whose they are, one key each, for plans with `max_rows`. If any round is refused, none is taken.
        Arrays may be mapped from disk; the trace refers to them. With `progress=True` a bar on standard error shows how
        far a long block has come (it needs rich, of the extra lab); a function is told the rounds done and all of them
        instead, some 32,000 rounds apart.
        """
        if self._busy or self._forked:
            self._refuse_overlap()
        try:
            self._busy = True
            self._flush()
            owners = self._owners(persons)
            block, parts, bad = self._admit(block, owners)
            trace = self._play(block, parts, owners, progress)
        finally:
            self._busy = False
        tell(bad, len(trace))
        return trace

    def close_block(self) -> bool:
        """End the block: for learners of the gate with plans that have a clock; others refuse."""
        self._check_clock()
        return False

    def _check_clock(self) -> None:
        """Refuse to close a block where there is none that a caller may close."""
        if not self.plan.clock:
            raise ValueError(
                f"the blocks of this plan of {self.plan.system} are counted in rounds, and cannot be closed; plan with "
                "clock= (rt.private_learner), about how many rounds come between two strokes of a public clock"
            )

    def _close(self) -> Changes:
        """Release the open block; return the change of decision, if there is one."""
        self._check_clock()
        return Changes()

    def _check_room(self, count: int) -> None:  # noqa: B027 (most learners have room for any number)
        """Refuse rounds for which the open block has no room."""

    def _owner(self, person: Any) -> int | None:
        """Return whose a round is, as a hash; None if the plan is not about persons."""
        if self._roll is None or person is NOT_GIVEN:
            self._check_named("person", person)
            return None
        found = self._roll.owner(person)
        self._check_crowd(1)
        if found == NOBODY:
            self._refuse_nobody(f"person={person!r}")
        return found

    def _owners(self, persons: Any) -> Owners | None:
        """Return whose rounds are, as hashes; None if the plan is not about persons."""
        if self._roll is None or persons is NOT_GIVEN:
            self._check_named("persons", persons)
            return None
        owners = self._roll.owners(persons)
        self._check_crowd(owners.size)
        nobody = np.flatnonzero(owners == NOBODY)
        if nobody.size:
            self._refuse_nobody(f"no such key in row {int(nobody[0])}")
        return owners

    def _check_named(self, name: str, given: Any) -> None:
        """Refuse persons where the plan is not about any, and their absence where it is."""
        if self._roll is not None:
            raise ValueError(
                f"{name} must be given, as this plan counts the rows of each person (max_rows={self.plan.max_rows}): a "
                f"text, a whole number or bytes for every round; nothing was recorded"
            )
        if given is not NOT_GIVEN:
            raise ValueError(
                f"{name} is for plans that count the rows of each person, got a plan whose unit is one round; plan "
                "with max_rows=, the rows of one person that may count; nothing was recorded"
            )

    def _check_crowd(self, count: int) -> None:
        """Refuse more persons than the chance that two share a hash was reckoned for, where that is part of delta."""
        assert self._roll is not None
        most = MOST_PERSONS - len(self._roll) - len(self._roll.waiting)
        if count > most and self.plan.for_persons and self.plan.neighbors != "replace":
            raise ValueError(
                f"a plan for persons who are left out is for {MOST_PERSONS:,} of them at most, and {count:,} rounds "
                "more may be of too many; nothing was recorded. Take neighbors='replace'"
            )

    def _refuse_nobody(self, what: str) -> None:
        if self._on_bad == "raise":
            raise ValueError(
                f"every round must have a person, a text, a whole number or bytes, got {what}; nothing was recorded. "
                "Leave out rounds of nobody before the learner sees them, always, or make it with on_bad='empty'"
            )

    def _admit(self, block: tuple[Any, ...], owners: Owners | None = None, *, one: bool = False) -> Admitted:
        """Return a block and its prepared parts; refuse it, with nothing changed, if any round is bad or one too many.

        Where bad rounds are to be empty ones, the block has zeros in their place.
        """
        prepare = self._gate.prepare_one if one else self._gate.prepare
        bad = 0 if owners is None else int(np.count_nonzero(owners == NOBODY))
        try:
            with np.errstate(all="ignore"):  # whatever the caller has numpy do: large rows are no reason to refuse
                parts = prepare(*block)
        except ValueError:
            if self._on_bad == "raise":
                raise
            with np.errstate(all="ignore"):
                found, empty = emptied(self.plan.domain, self.loss, block, self._gate.prepare)
                if not empty or (one and len(found[0]) != 1):
                    raise
                block, parts, bad = found, self._gate.prepare(*found), max(bad, empty)
        count = sum(len(part) for part in parts)
        if owners is not None and owners.size != count:
            raise ValueError(f"persons must have one key for each of the {count} rounds, got {owners.size}")
        if count > self._last - self._rounds or self._torn():
            self._refuse(count)
        return Admitted(block, parts, bad)

    def _play(
        self, block: tuple[Any, ...], parts: list[Any], owners: Owners | None = None, progress: Progress = False
    ) -> Trace:
        """Take in a block that was admitted."""
        first, begin = self._rounds, self._u.copy()
        try:
            return self._record(block, parts, first, begin, self._take(parts, owners, progress))
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
        odd = (vars(self).keys() - {"_busy", "_on_bad", "_roll"}) ^ {*self._parts}
        if odd or self._busy:
            raise ValueError(f"its state has {sorted(odd) or ['_busy']} too many or too few")
        check_on_bad(self._on_bad, self._on_steep, self.loss)
        self._check_plans()
        self._check_roll()
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

    def _check_roll(self) -> None:
        """Refuse a roll of persons that is not the one of the plan."""
        if (self._roll is None) != (self.plan.cap is None):
            raise ValueError("it counts the rows of persons, or does not, where its plan says otherwise")
        if self._roll is not None:
            self._roll.check(self.plan.cap.rows)

    def _check_counts(self) -> None:
        for name in ("_switches", "_rounds", "_last"):
            integer(name, getattr(self, name), least=0)
        if self._torn() or self._inbox.count:
            raise ValueError(f"it counts {self._rounds} rounds, and its walk {self._walk.done}")
        if self._last != self._promised():
            raise ValueError(f"it would go on for {self._last} rounds, where its plan has {self._promised()}")
        if self._rounds > self._last or self._switches > self._most_switches():
            raise ValueError(f"it stands at round {self._rounds} of {self._last}, after {self._switches} switches")
        if type(self._wake) is not int or not self._rounds <= self._wake <= max(int(self._walk.due), self._rounds):
            raise ValueError(f"it would let rounds wait until round {self._wake!r}")

    def _most_switches(self) -> int:
        """Return how often the decision can have changed so far."""
        return self._rounds

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
        if self._roll is not None and (self._roll.torn or len(self._roll.waiting) != self._inbox.count):
            return True
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
        owners: Owners | None = None
        if self._roll is not None:
            owners, self._roll.waiting = np.array(self._roll.waiting, dtype=np.int64), []
        self._take(self._inbox.take(), owners)

    def _take(self, parts: list[Any], owners: Owners | None = None, progress: Progress = False) -> Changes:
        """Take in prepared rounds; return the changes of decision, counted from the learner's first round."""
        self._round_steps()
        if owners is None and parts:
            self._check_named("persons", NOT_GIVEN)
        changes, before = Changes(), self._walk.u.copy()
        try:
            # Whatever the caller has numpy do about underflow: an error in the middle would tell of a round.
            with np.errstate(all="ignore"):
                if owners is None:
                    for rows in watched(parts, progress):
                        self._walk.take(rows, changes)
                else:
                    self._take_owned(parts, owners, changes, progress)
        finally:
            changes = self._shown(changes, before)
            self._switches += len(changes)
            self._stand(moved=not np.array_equal(before, self._walk.u))
        return changes

    def _take_owned(self, parts: list[Any], owners: Owners, changes: Changes, progress: Progress) -> None:
        """Take in rounds of persons, window by window: of each person no more than the plan allows."""
        roll, walk = self._roll, self._walk
        assert roll is not None
        at = begin = limit = 0  # rounds that are in; where the rounds began that the roll was asked for last, and end
        first, end, kept = int(walk.done), 0, roll.admit(owners[:0])
        try:
            for rows in watched(parts, progress):
                start = at
                while at < start + len(rows):
                    if at == limit:
                        done, end = int(walk.done), self.plan.window_end(roll.opened)
                        upto = min(owners.size, at + end - done)
                        roll.torn = True
                        said = roll.admit(owners[at:upto])
                        first, begin, limit, kept = done, at, upto, said
                        roll.torn = False
                    stop = min(start + len(rows), limit)
                    found = Owned(rows[at - start : stop - start], owners[at:stop], kept[at - begin : stop - begin])
                    walk.take(found if self._by_person else found.emptied(), changes)
                    at = stop
                    if int(walk.done) >= end:
                        roll.forget(int(walk.done))
        finally:
            # Rounds that a failure has kept out were counted, and may come again.
            taken = int(walk.done) - first
            roll.put_back(owners[begin + taken : limit], kept[taken:])

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

    def __init__(
        self, plan: SystemPlan, loss: Loss, seed: Seed = None, *, on_steep: str = "raise", on_bad: str = "raise"
    ) -> None:
        """Put the first decision in play; see `Learner`."""
        if not isinstance(plan, self.plan_type):
            raise ValueError(
                f"plan must be a {self.plan_type.__name__} for {type(self).__name__}, got {type(plan).__name__}; "
                "rt.make(plan, loss) finds the learner of any plan"
            )
        plan.check_loss(loss)
        super().__init__(plan, loss, seed, on_steep=on_steep, on_bad=on_bad)

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
