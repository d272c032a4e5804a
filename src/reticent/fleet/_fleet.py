"""The fleet: one learner for each key, rounds in by batches, decisions out; all of a batch is on disk, or nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import compress
from threading import RLock
from typing import Any, NoReturn

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._random import Seed
from reticent.fleet._batches import Batch, Book, Receipt, batch_name
from reticent.fleet._each import Holder, Moves, OneEach
from reticent.fleet._filtered import FilteredHolder
from reticent.fleet._gate import DescentHolder
from reticent.fleet._keys import Groups, Key, Places, Root, checked_keys, grouped, key_of, text_of
from reticent.fleet._ledger import FleetPlan
from reticent.fleet._persons import Persons
from reticent.fleet._slots import Slots
from reticent.fleet._spec import Spec
from reticent.fleet._store import LEASE, Kept, Lease, Stale, Store, Writer
from reticent.fleet._windows import WindowHolder
from reticent.systems.filtered import FilteredPlan
from reticent.systems.gate import NoisyDescentPlan
from reticent.trackers._windows import WindowPlan

_LONGEST = 200  # letters of a name
Also = Callable[[Any, int, list[tuple[Key, int]]], None]
"""What is written in the transaction of a batch: takes the connection, the number of the batch, and the changes."""
_WRITTEN = 4096  # states that are written together: as bytes they take more memory than in arrays


class Fleet:
    """Learners of one specification, one for each key: made when their first row comes, fed in batches.

    `observe(keys, *columns)` takes rows of any keys in any order, as `spec.columns` names them: each is a round of its
    key's learner, in the order of the rows. If any is refused, none is taken in. `decisions(keys)` are those in play; a
    key that is not known yet has the first one of all. The learner of a key is `spec.new(fleet.seed_of(key))`, bit for
    bit. Keys are texts or whole numbers; 7 and "7" are two.

    With a `store` (a path, a URL of SQLAlchemy, or `rt.fleet.Store`) a batch is on disk when `observe` returns, with
    the random generators, in one transaction, and only then can its decisions be seen: after a crash nothing that was
    acknowledged is lost, and no noise is drawn a second time for other data. A `batch` id makes repeating harmless: a
    text, or (source, offset) with offsets that grow. The last 10,000 batches are remembered, the last offset of a
    source for good. A fleet has one writer: a second one is refused, and one that was taken over (`take_over=True`)
    cannot commit. At most `resident` learners are in memory; others wait in the store.

    Privacy: rows of one key are rounds of one learner, whose plan says what is promised of a round; other keys do not
    see it. A person whose rows stand under k keys is in k learners: `max_keys` says how many that are at most, and with
    `ledger` and `population` the fleet is entered once, for `max_keys` learners together (and `factor` rows of a
    person under one key, 1 unless given). If `persons` are given with the rows, more than `max_keys` keys of a person
    are refused; without them it is your statement, and without `max_keys` it is that nobody has two keys. Which keys
    there are, and how many rows each has, is taken as public.

    >>> import numpy as np
    >>> import reticent as rt
    >>> spec = rt.fleet.Spec(rt.private_learner, rt.Pinball(0.9), rt.Interval(0.0, 60.0), epsilon=1.0, delta=1e-6)
    >>> fleet = rt.Fleet(spec, seed=1)
    >>> rng = np.random.default_rng(0)
    >>> shops = np.repeat(["north", "south"], 20_000)
    >>> receipt = fleet.observe(shops, np.ones(40_000), rng.exponential(np.repeat([5.0, 10.0], 20_000)))
    >>> receipt.rounds, receipt.changed
    (40000, ('north', 'south'))
    >>> fleet.decisions(["north", "south"]).ravel().round()
    array([12., 23.])
    """

    def __init__(
        self,
        spec: Spec,
        store: str | os.PathLike[str] | Store | None = None,
        *,
        name: str = "fleet",
        seed: int | None = None,
        ledger: Any = None,
        population: str | None = None,
        max_keys: int | None = None,
        factor: int | None = None,
        resident: int = 100_000,
        lease: float = LEASE,
        take_over: bool = False,
    ) -> None:
        """Begin a fleet, or go on with the one of that name in the store, which must have the same specification."""
        if not isinstance(spec, Spec):
            raise ValueError(f"spec must be an rt.fleet.Spec, got {spec!r}")
        most = None if max_keys is None else integer("max_keys", max_keys, least=1)
        if (ledger is None) != (population is None):
            raise ValueError(f"ledger and population go together, got ledger={ledger!r}, population={population!r}")
        _check_name(name)
        self._store = store if store is None or isinstance(store, Store) else Store(store)
        self._own_store = not isinstance(store, Store)
        with _closing(self._store if self._own_store else None):
            found = None if self._store is None else self._store.find(name)
            root = Root.new(seed) if found is None else Root.read(found.root)
            if found is not None:
                _check_same(found, spec, most, root if seed is None else Root.new(seed))
            elif ledger is not None:
                # Entered before anything can be released; a crash in between has entered too much, never too little.
                ledger.spend(population, FleetPlan(spec.plan, most or 1), note=f"fleet {name}", factor=factor)
            if self._store is not None and found is None:
                about = json.dumps({"max_keys": most, "population": population})
                found = self._store.begin(name, json.dumps(spec.to_json()), root.written(), about)
            self._lease: Lease | None = None
            self._set_up(spec, name, root, most, integer("resident", resident, least=1), lease)
            if self._store is not None:
                self._lease = self._store.take(name, seconds=lease, force=take_over)
                self._refresh()

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | Store,
        name: str = "fleet",
        *,
        resident: int = 100_000,
        lease: float = LEASE,
        take_over: bool = False,
    ) -> Fleet:
        """Go on with a fleet of a store, whose specification is there."""
        opened = store if isinstance(store, Store) else Store(store, create=False)
        with _closing(None if opened is store else opened):
            found = opened.find(name)
            if found is None:
                known = ", ".join(map(repr, opened.names())) or "none"
                raise ValueError(f"there is no fleet {name!r} in {opened.shown!r}; there are {known}")
            spec = Spec.from_json(json.loads(found.spec))
            rest: dict[str, Any] = {"resident": resident, "lease": lease, "take_over": take_over}
            fleet = cls(spec, opened, name=name, max_keys=json.loads(found.about)["max_keys"], **rest)
        fleet._own_store = not isinstance(store, Store)
        return fleet

    def _set_up(self, spec: Spec, name: str, root: Root, most: int | None, resident: int, lease: float) -> None:
        self.spec, self.name, self.max_keys = spec, name, most
        self._root, self._resident, self._seconds = root, resident, lease
        self._turn, self._inside, self._process = RLock(), False, os.getpid()
        self._why = ""  # it cannot go on
        self._book = Book()
        self._persons = Persons(root, most)
        self._known = 0  # keys that there are
        self._sequence = 0
        self._histories: list[Moves] = []
        self._forget()

    def _forget(self) -> None:
        """Have nothing in memory; what is in the store is read again."""
        self._holder: Holder = holder_of(self.spec, self._root)
        self._slots = Slots(None if self._store is None else self._resident)

    # What goes in.

    def observe(
        self, keys: Any, *columns: Any, batch: Batch = None, persons: Any = None, also: Also | None = None
    ) -> Receipt:
        """Take in rows, each a round of its key: `keys` and each column have one entry for every row.

        One key alone may be given with one row. See the class about `batch` and `persons`. With a store, `also` is
        called at the end of the transaction, with its connection, the number of the batch, and the changes of decision
        as (key, rounds of that key until then): what it writes is on disk with the batch, or neither is.
        """
        with self._alone():
            if isinstance(keys, str | int | np.integer):
                keys, columns = [keys], tuple(_one(column) for column in columns)
                persons = None if persons is None else [persons]
            name, place = batch_name(batch)
            again = None if name is None else self._repeated(name, place)
            if again is not None:
                return again
            groups, rows = self._admitted(keys, columns)
            marks = self._persons.marks(groups, persons)
            return self._enter(groups, rows, marks, (name, place), also)

    def _admitted(self, keys: Any, columns: tuple[Any, ...]) -> tuple[Groups, Any]:
        names = self.spec.columns
        if len(columns) != len(names):
            raise ValueError(f"rows must be given as (keys, {', '.join(names)}), got {len(columns)} columns")
        groups = grouped(keys)
        for key in groups.keys:
            if not isinstance(key, int) and len(key) > 100:
                text_of(key)  # refuses those that are too long
        if not groups.order.size:
            return groups, None
        sizes = [np.shape(column)[:1] for column in columns]
        if any(size != (groups.order.size,) for size in sizes):
            told = ", ".join(f"{size[0] if size else 'one'} {name}" for name, size in zip(names, sizes, strict=True))
            raise ValueError(f"every row needs a key: got {groups.order.size} keys and {told}")
        return groups, self._holder.prepare(columns)

    def _repeated(self, name: str, place: int) -> Receipt | None:
        if self._store is None:
            found = self._book.find(name, place)
            changed = () if found is None else tuple(self._slots.keys[n] for n in found[1].tolist())
        else:
            with self._store.reading() as reader:
                found = reader.batch(self._fleet, name, place)
                changed = () if found is None else tuple(map(key_of, reader.texts(self._fleet, found[1])))
        return None if found is None else Receipt(found[0], changed, repeated=True)

    def _enter(
        self, groups: Groups, rows: Any, marks: dict[str, set[int]], batch: tuple[str | None, int], also: Also | None
    ) -> Receipt:
        """Take in rows that were admitted, key by key in pieces that fit into memory, and commit all of it."""
        (name, place), changing = batch, False
        try:
            with self._writing() as writer:
                size = len(groups.keys) if writer is None else self._resident
                moved, pairs, count = [], [], len(groups.keys)
                numbers = self._numbered(groups.keys, writer) if marks else np.zeros(count, dtype=np.int64)
                for start in range(0, count, size) if count else ():
                    part = slice(start, min(start + size, count))
                    slots = self._brought(groups.keys[part], groups.counts[part], writer)
                    numbers[part] = np.where(
                        slots >= 0, self._slots.numbers[slots] if len(self._slots.numbers) else -1, -1
                    )
                    fresh = np.flatnonzero(slots < 0)
                    numbers[part][fresh] = self._known + np.arange(len(fresh))
                    if not changing:
                        pairs = self._persons.admitted(groups, marks, numbers, self._known_persons(writer, marks))
                    changing = True
                    self._started(slots, fresh, groups.keys[part], numbers[part])
                    moves = self._holder.take(slots, rows, groups.order, groups.bounds[start : part.stop + 1])
                    if writer is not None:
                        self._write(writer, slots, fresh, moves)
                    moved.append(Moves(self._slots.numbers[moves.slots], moves.rounds, moves.points))
                moves = Moves.joined(moved, self._holder.shape)
                changed = _in_order(groups, numbers, moves.slots)
                if writer is not None:
                    writer.appeared(pairs)
                    writer.finish(name, place, int(groups.order.size), numbers[changed])
                    if also is not None:
                        named = dict(zip(numbers.tolist(), groups.keys, strict=True))
                        told = zip(moves.slots.tolist(), moves.rounds.tolist(), strict=True)
                        also(writer.connection, writer.sequence, [(named[n], after) for n, after in told])
        except Stale as error:
            self._why = str(error)
            raise
        except BaseException:
            if self._store is not None and changing:
                self._forget()
                self._refresh()
            elif changing:
                self._why = "a batch was interrupted, and nobody knows which of its rounds are in"
            raise
        self._sequence += 1
        if self._store is None:
            self._persons.appeared(pairs)
            if len(moves.slots):
                self._histories.append(moves)
            if name is not None:
                self._book.enter(name, place, int(groups.order.size), numbers[changed])
        return Receipt(int(groups.order.size), tuple(groups.keys[i] for i in changed.tolist()))

    def _numbered(self, keys: list[Key], writer: Writer | None) -> Places:
        """Return the numbers of keys; those that are new get theirs in their order, as they will when they begin."""
        slots = self._slots.find(keys)
        numbers = np.full(len(keys), -1, dtype=np.int64)
        numbers[slots >= 0] = self._slots.numbers[slots[slots >= 0]]
        if writer is not None and self._known > len(self._slots):
            missing = np.flatnonzero(slots < 0).tolist()
            kept = writer.shown(self._fleet, [text_of(keys[i]) for i in missing])
            for i in missing:
                found = kept.get(text_of(keys[i]))
                numbers[i] = -1 if found is None else found.number
        fresh = numbers < 0
        numbers[fresh] = self._known + np.arange(int(fresh.sum()))
        return numbers

    def _known_persons(self, writer: Writer | None, marks: dict[str, set[int]]) -> dict[str, set[int]] | None:
        return None if writer is None or not marks else writer.persons(self._fleet, list(marks))

    @contextmanager
    def _writing(self) -> Iterator[Writer | None]:
        if self._store is None:
            yield None
            return
        assert self._lease is not None
        with self._store.writing(self._lease, self._seconds) as writer:
            yield writer

    def _refresh(self) -> None:
        """Know again how many keys there are, if the store can be asked; else nothing goes on before it can."""
        assert self._store is not None
        try:
            found = self._store.find(self.name)
        except OSError:
            self._known = -1
            return
        self._known, self._sequence = (-1, 0) if found is None else (found.size, found.sequence)

    def _brought(self, keys: list[Key], counts: Places | None, reader: Any) -> Places:
        """Return the slots of keys, read from the store where they are not in memory; -1 for keys that are new.

        With `counts`, refuse more rounds than the plan has, before anything is made.
        """
        slots = self._slots.find(keys)
        missing = np.flatnonzero(slots < 0)
        if reader is not None and len(missing) and self._known > len(self._slots):
            texts = [text_of(keys[i]) for i in missing.tolist()]
            kept = reader.kept(self._fleet, texts)
            there = [i for i, text in zip(missing.tolist(), texts, strict=True) if text in kept]
            if there:
                slots[there] = self._loaded([keys[i] for i in there], [kept[text_of(keys[i])] for i in there], slots)
        if counts is not None:
            rounds, old = np.zeros(len(slots), dtype=np.int64), slots >= 0
            rounds[old] = self._holder.rounds(slots[old])
            self._check_limit(keys, rounds, counts)
            self._slots.touch(slots[slots >= 0])
        return slots

    def _check_limit(self, keys: list[Key], rounds: Places, counts: Places) -> None:
        over = np.flatnonzero(counts > self._holder.limit - rounds)
        if over.size:
            i = int(over[0])
            raise ValueError(
                f"{counts[i]} more rounds were given for the key {keys[i]!r}, but its plan has "
                f"{self._holder.limit - rounds[i]} of its horizon={self.plan.horizon} left; nothing was recorded. Plan "
                "a longer horizon before a fleet begins, or none"
            )

    def _loaded(self, keys: list[Key], kept: list[Kept], busy: Places) -> Places:
        slots = self._given(keys, np.array([one.number for one in kept], dtype=np.int64), busy)
        self._holder.unpack(slots, keys, [one.state for one in kept])
        return slots

    def _started(self, slots: Places, fresh: Places, keys: list[Key], numbers: Places) -> None:
        """Put new learners into slots, for the keys that have none."""
        if not len(fresh):
            return
        names = [keys[i] for i in fresh.tolist()]
        slots[fresh] = self._given(names, numbers[fresh], slots)
        self._holder.start(slots[fresh], names)
        self._known += len(names)

    def _given(self, keys: list[Key], numbers: Places, busy: Places) -> Places:
        """Return slots for keys, with room for their states; those that others had are in the store as they are."""
        slots = self._slots.give(keys, numbers, busy)
        self._holder.room(len(self._slots.keys))
        return slots

    def _write(self, writer: Writer, slots: Places, fresh: Places, moves: Moves) -> None:
        """Write the states of slots, some at a time, and the changes."""
        holder, new = self._holder, np.zeros(len(slots), dtype=np.bool_)
        new[fresh] = True
        for start in range(0, len(slots), _WRITTEN):
            some, added = slots[start : start + _WRITTEN], new[start : start + _WRITTEN]
            columns = (
                self._slots.numbers[some].tolist(),
                holder.versions(some).tolist(),
                holder.rounds(some).tolist(),
                _as_bytes(holder.decisions(some)),
                holder.pack(some),
            )
            kept = list(map(Kept, *columns))
            writer.add([text_of(self._slots.keys[slot]) for slot in some[added].tolist()], list(compress(kept, added)))
            writer.update(list(compress(kept, ~added)))
        writer.change(self._slots.numbers[moves.slots].tolist(), moves.rounds.tolist(), _as_bytes(moves.points))

    # What comes out.

    def decision(self, key: Key) -> Any:
        """Return the decision in play of one key: a point of the domain, or what a tracker publishes."""
        found = self.decisions([key])[0]
        return found if self._holder.shape else float(found)

    def decisions(self, keys: Any) -> Array:
        """Return the decisions in play: `(n, dim)`, or `(n,)` for trackers of one number."""
        return self._looked_up(keys)[0]

    def versions(self, keys: Any) -> Places:
        """Return how often the decision of each key has changed: the same number, the same decision."""
        return self._looked_up(keys)[1]

    def rounds(self, keys: Any) -> Places:
        """Return how many rounds each key has taken in; 0 for one that is not known."""
        return self._looked_up(keys)[2]

    def _looked_up(self, keys: Any) -> tuple[Array, Places, Places]:
        """Return decisions, versions and rounds: from memory, and from the store what is not there."""
        with self._alone():
            names = checked_keys(keys)
            holder, slots = self._holder, self._slots.find(names)
            there = np.flatnonzero(slots >= 0)
            points = np.broadcast_to(holder.beginning, (len(names), *holder.shape)).copy()
            versions, rounds = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
            points[there] = holder.decisions(slots[there])
            versions[there], rounds[there] = holder.versions(slots[there]), holder.rounds(slots[there])
            missing = np.flatnonzero(slots < 0).tolist()
            if missing and self._store is not None and self._known > len(self._slots):
                texts = {i: text_of(names[i]) for i in missing}
                with self._store.reading() as reader:
                    kept = reader.shown(self._fleet, list(dict.fromkeys(texts.values())))
                for i in missing:
                    found = kept.get(texts[i])
                    if found is not None:
                        points[i] = np.frombuffer(found.decision, dtype=np.float64).reshape(holder.shape)
                        versions[i], rounds[i] = found.version, found.rounds
            return points, versions, rounds

    def history(self, key: Key) -> tuple[Places, Array]:
        """Return after how many rounds the decision of a key changed, and the decisions from then on, in order.

        All of it has been in play: to look at it is post-processing, and costs nothing.
        """
        with self._alone():
            (name,) = checked_keys([key])
            shape = self._holder.shape
            if self._store is None:
                number = int(self._slots.find([name])[0])
                moves = Moves.joined([part.of(number) for part in self._histories], shape)
                return moves.rounds, moves.points
            with self._store.reading() as reader:
                kept = reader.shown(self._fleet, [text_of(name)]).get(text_of(name))
                rounds, points = ([], []) if kept is None else reader.history(self._fleet, kept.number)
            stacked = np.array([np.frombuffer(point, dtype=np.float64) for point in points], dtype=np.float64)
            return np.array(rounds, dtype=np.int64), stacked.reshape(-1, *shape)

    def spent(self, key: Key, delta: float | None = None) -> float:
        """Return the epsilon, at `delta`, that the rounds of a key may have cost one of them."""
        with self._alone():
            names = checked_keys([key])
            if self._store is None:
                slots = self._brought(names, None, None)
            else:
                with self._store.reading() as reader:
                    slots = self._brought(names, None, reader)
            slot = int(slots[0])
            return self._holder.spent(None if slot < 0 else slot, delta)

    @property
    def plan(self) -> Any:
        """What is promised of every key."""
        return self.spec.plan

    def keys(self) -> list[Key]:
        """Return all keys, in the order in which they came."""
        with self._alone():
            if self._store is None:
                return list(self._slots.keys)
            with self._store.reading() as reader:
                return [key_of(text) for text in reader.texts(self._fleet)]

    def offset(self, source: str) -> int | None:
        """Return the last offset of a source that was taken in: after a crash, go on after it."""
        name, _ = batch_name((source, 0))
        assert name is not None
        with self._alone():
            if self._store is None:
                return self._book.offset(name)
            with self._store.reading() as reader:
                return reader.offset(self._fleet, name)

    def seed_of(self, key: Key) -> Seed:
        """Return the seed of a key: `spec.new(fleet.seed_of(key))` is a learner like the key's, before its first round.

        For tests: with `seed=None` it is the secret generator itself, and who has it can undo all noise.
        """
        (name,) = checked_keys([key])
        return self._root.seed_of(name)

    def __len__(self) -> int:
        """Return how many keys there are."""
        with self._alone():
            return self._known

    def __contains__(self, key: object) -> bool:
        """Say whether a key has had a row."""
        if isinstance(key, bool) or not isinstance(key, int | str | np.integer):
            return False
        return bool(self.rounds([key])[0])

    @property
    def sequence(self) -> int:
        """How many batches were taken in; kept outside the store too, it tells an old copy of that from the last."""
        return self._sequence

    @property
    def resident(self) -> int:
        """How many learners are in memory."""
        return len(self._slots)

    # One call at a time, in one process.

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._process != os.getpid():
            raise RuntimeError(
                f"this fleet was opened in process {self._process}, and a fork of it cannot use it; open it in the "
                "process that uses it"
            )
        with self._turn:
            if self._inside:
                raise RuntimeError("a call of this fleet was interrupted by this one, which was refused")
            if self._why:
                self._refuse()
            try:
                self._inside = True
                if self._known < 0:
                    self._refresh()
                    if self._known < 0:
                        raise OSError("the store cannot be read, so nobody knows what is in play; try again")
                yield
            finally:
                self._inside = False

    def _refuse(self) -> NoReturn:
        raise RuntimeError(f"this fleet cannot go on: {self._why}")

    @property
    def _fleet(self) -> int:
        assert self._lease is not None
        return self._lease.fleet

    def renew(self) -> None:
        """Let the lease run from now on, as every batch does; raise `Stale` if another has taken the fleet over."""
        with self._alone():
            if self._store is not None and self._lease is not None:
                try:
                    self._store.renew(self._lease, self._seconds)
                except Stale as error:
                    self._why = str(error)
                    raise

    def close(self) -> None:
        """Let others write; nothing more can be done with this object."""
        with self._turn:
            lease, self._lease = self._lease, None
            self._why = self._why or "it was closed; open it again"
            if lease is None or self._store is None or self._process != os.getpid():
                return
            try:
                self._store.give_back(lease)
            finally:
                if self._own_store:
                    self._store.close()

    def __enter__(self) -> Fleet:
        """Return the fleet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: a fleet has one writer."""
        raise TypeError("a fleet cannot be copied or pickled; close it, and open its store elsewhere")

    def __repr__(self) -> str:
        """Say how many keys there are."""
        where = "" if self._store is None else f" in {self._store.shown}"
        return f"<Fleet {self.name!r}{where}: {max(self._known, 0)} keys, {self.spec.learner}>"


@contextmanager
def _closing(store: Store | None) -> Iterator[None]:
    """Let go of a store that was opened here, if what follows fails."""
    try:
        yield
    except BaseException:
        if store is not None:
            store.close()
        raise


def holder_of(spec: Spec, root: Root) -> Holder:
    """Return what holds the learners: all keys at once where there is a way, one object each else."""
    if type(spec.plan) is FilteredPlan:
        return FilteredHolder(spec, root)
    if type(spec.plan) is NoisyDescentPlan:
        return DescentHolder(spec, root)
    return WindowHolder(spec, root) if type(spec.plan) is WindowPlan else OneEach(spec, root)


def _one(column: Any) -> Any:
    return [column] if np.ndim(column) == 0 else np.asarray(column)[None]


def _as_bytes(points: Array) -> list[bytes]:
    return [point.tobytes() for point in np.ascontiguousarray(points)]


def _in_order(groups: Groups, numbers: Places, moved: Places) -> Places:
    """Return which keys have changed, in the order of their first rows."""
    there = np.flatnonzero(np.isin(numbers, moved))
    found: Places = there[np.argsort(groups.firsts[there], kind="stable")]
    return found


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise ValueError(f"name must be a word or a few, of at most {_LONGEST} letters, got {name!r}")


def _check_same(found: Any, spec: Spec, most: int | None, root: Root) -> None:
    if json.loads(found.spec) != json.loads(json.dumps(spec.to_json())):
        raise ValueError(
            f"the fleet {found.name!r} was begun with another specification; open it with Fleet.open(store, name), or "
            "give another name"
        )
    if json.loads(found.about)["max_keys"] != most:
        raise ValueError(f"the fleet {found.name!r} was begun with {found.about}, got max_keys={most!r}")
    if root.written() != found.root:
        raise ValueError(f"the fleet {found.name!r} was begun with another seed; leave it out")
