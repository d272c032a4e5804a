"""Fleets on Ray: keys divided among actors, each the one writer of its shard, started again when they are killed.

Ray itself repeats nothing (a call that it repeats may run twice) and restarts nothing (what it restarts is empty). When
an actor is gone, another opens the shard from the store, which bars the old one from writing, and the call is made
again with the same batch id: whether it had been carried out or not, its rows count once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from threading import RLock
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._random import Seed
from reticent._core._ray import ray_at
from reticent.fleet._batches import Batch, Receipt, batch_name
from reticent.fleet._fleet import Fleet, _check_name, _one
from reticent.fleet._keys import Key, Places, Root, checked_keys
from reticent.fleet._shards import begin_shards, divided, place_of, shard_of, together
from reticent.fleet._spec import Spec
from reticent.fleet._store import LEASE
from reticent.systems._decider import NEVER

_MEMORY = 200_000_000  # bytes that a Ray that is started here has for batches on their way
_TRIES = 5  # actors of a shard that may be lost one after the other before a call is given up
# Actors claim no processor: more of them than there are would wait for ever.
_OPTIONS = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": "SPREAD"}


def on_ray(
    spec: Spec,
    store: Any,
    *,
    shards: int,
    name: str = "fleet",
    seed: int | None = None,
    ledger: Any = None,
    population: str | None = None,
    max_keys: int | None = None,
    factor: int | None = None,
    resident: int = 100_000,
    lease: float = LEASE,
    take_over: bool = False,
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> ShardedFleet:
    """Begin a fleet whose keys are divided among so many actors of Ray, or go on with it; see `ShardedFleet`.

    Most arguments are those of `rt.Fleet`; `resident` is for each shard. All machines must reach the store: PostgreSQL,
    or on one machine a file. Writers of one SQLite file wait for one another: with "{shard}" in its name each shard
    has a file of its own. How many shards there are is settled when a fleet begins.

    A Ray that this process is connected to is used; else that at `address` or in RAY_ADDRESS; else one is started here,
    which ends with the process. `options` are those of Ray for its actors, such as `resources`.
    """
    if store is None:
        raise ValueError("store must be given: without one, what an actor knows would be lost with it")
    if (ledger is None) != (population is None):
        raise ValueError(f"ledger and population go together, got ledger={ledger!r}, population={population!r}")
    count = integer("shards", shards, least=1)
    _check_name(f"{name}/{count}")
    most = None if max_keys is None else integer("max_keys", max_keys, least=1)
    front = Fleet(spec, seed=0)
    ray, _ = ray_at(address, None, "ray", _MEMORY)
    entered: dict[str, Any] = {"ledger": ledger, "population": population, "max_keys": most, "factor": factor}
    root = begin_shards(spec, store, name, count, seed=seed, **entered)
    places = [place_of(store, shard) for shard in range(count)]
    how = {"resident": integer("resident", resident, least=1), "lease": lease}
    return ShardedFleet(ray, front, root, name, places, how, dict(options or {}), take_over)


class Shard:
    """What runs in an actor: the fleet of one shard, opened from the store before anything is asked of it."""

    def __init__(self, store: str, name: str, how: Mapping[str, Any]) -> None:
        self._store, self._name, self._how = store, name, how
        self._fleet: Fleet | None = None

    def call(self, what: str, *args: Any) -> tuple[Any, Exception | None]:
        """Return what a method returns, or the error that it raises, as it is."""
        try:
            if self._fleet is None:
                self._fleet = Fleet.open(self._store, self._name, **self._how)
            mine = getattr(self, f"_{what}", None)
            return (getattr(self._fleet, what)(*args) if mine is None else mine(self._fleet, *args)), None
        except Exception as error:
            return None, error

    def _observe(self, fleet: Fleet, keys: Any, columns: Any, batch: Any) -> tuple[Receipt, int]:
        return fleet.observe(keys, *columns, batch=batch), fleet.sequence

    def _check(self, fleet: Fleet, keys: list[Key], counts: Places, batch: Any) -> None:
        """Refuse more rounds than the plan has, before any shard takes in a row."""
        name, place = batch_name(batch)
        assert name is not None
        if fleet._repeated(name, place) is None:
            fleet._check_limit(keys, fleet.rounds(keys), counts)

    def _sequence(self, fleet: Fleet) -> int:
        return fleet.sequence

    def _size(self, fleet: Fleet) -> int:
        return len(fleet)

    def _process(self, fleet: Fleet) -> int:
        return os.getpid()


class ShardedFleet:
    """A fleet in shards, each with one writer: an actor of Ray. Made by `on_ray`; the calls are those of `rt.Fleet`.

    The learner of a key is that of one fleet with the same seed, bit for bit, in whichever shard it is; receipts are
    the same too. One process makes the calls; a second one is refused by the leases of the shards.

    A batch is all or nothing in every shard. Rows are checked before any is sent; but if the store or this process
    fails in between, some shards may have their part and others not. **Give the batch again with the same id**: each
    shard takes in what it has not. Of a batch without an id the error says which was used. The same id must always
    have the same rows. An actor that is lost is replaced, and its call repeated, without being told to. (Who opens the
    fleet elsewhere with `take_over=True` must end this process: it would take a shard back whose actor it loses.
    Nothing would be drawn twice, but the two would take turns.)
    """

    def __init__(
        self,
        ray: Any,
        front: Fleet,
        root: Root,
        name: str,
        places: list[str],
        how: dict[str, Any],
        options: dict[str, Any],
        take_over: bool,
    ) -> None:
        """Start the actors; use `on_ray`."""
        self.spec, self.name, self.shards = front.spec, name, len(places)
        self._ray, self._front, self._root, self._places, self._how = ray, front, root, places, how
        self._options = [options] * self.shards
        self._turn, self._why = RLock(), ""
        self._actors: list[Any] = []
        self._known: dict[int, int] = {}  # batches that each shard has taken in, where its last answer was heard
        for shard in range(self.shards):
            self._actors.append(self._started(shard, take_over))
        try:
            self._known = self._ask({shard: ("sequence",) for shard in range(self.shards)})
        except BaseException:
            self.close()
            raise

    # Actors.

    def _started(self, shard: int, take_over: bool) -> Any:
        maker = self._ray.remote(Shard).options(**_OPTIONS | self._options[shard])
        return maker.remote(self._places[shard], f"{self.name}/{shard}", self._how | {"take_over": take_over})

    def _ask(self, calls: Mapping[int, tuple[Any, ...]], retried: set[int] | None = None) -> dict[int, Any]:
        """Return the answers of shards, asked at once; those whose actor was lost are told by `retried`."""
        if self._why:
            raise RuntimeError(f"this fleet cannot go on: {self._why}")
        sent = {shard: self._actors[shard].call.remote(*call) for shard, call in calls.items()}
        found, errors = dict[int, Any](), dict[int, Exception]()
        for shard, reference in sent.items():
            value, error = self._heard(shard, reference, calls[shard], set() if retried is None else retried)
            if error is None:
                found[shard] = value
            else:
                errors[shard] = error
        for shard, error in errors.items():
            error.add_note(f"in shard {shard} of {self.shards} of the fleet {self.name!r}")
            raise error
        return found

    def _heard(
        self, shard: int, reference: Any, call: tuple[Any, ...], retried: set[int]
    ) -> tuple[Any, Exception | None]:
        lost = self._ray.exceptions.RayActorError
        for _ in range(_TRIES):
            try:
                answer: tuple[Any, Exception | None] = self._ray.get(reference)
                return answer
            except lost:
                # It may live where nobody hears it: the next one takes the shard over, and it can write no more.
                self._ray.kill(self._actors[shard])
                self._actors[shard] = self._started(shard, take_over=True)
                retried.add(shard)
                reference = self._actors[shard].call.remote(*call)
        return None, OSError(f"{_TRIES} actors were lost one after the other; nobody knows whether the call was heard")

    def processes(self) -> list[int]:
        """Return the process of every shard, on its machine."""
        return self._all("process")

    def move(self, shard: int, **options: Any) -> None:
        """Stop the actor of a shard and start one with other options of Ray, such as `resources` of another machine.

        The lease is given back, and taken there; what was asked in the meantime waits.
        """
        at = integer("shard", shard, least=0)
        if at >= self.shards:
            raise ValueError(f"shard must be below {self.shards}, got {shard}")
        with self._turn:
            self._ask({at: ("close",)})
            self._ray.kill(self._actors[at])
            self._options[at] = options
            self._actors[at] = self._started(at, take_over=False)
            self._known |= self._ask({at: ("sequence",)})

    def close(self) -> None:
        """Let others write, and end the actors; Ray goes on."""
        with self._turn:
            self._why = self._why or "it was closed; open it again"
            actors, self._actors = self._actors, []
            heard = [actor.call.remote("close") for actor in actors]
            for actor, reference in zip(actors, heard, strict=True):
                with suppress(self._ray.exceptions.RayError):  # one that is lost holds nothing that lasts
                    self._ray.get(reference)
                self._ray.kill(actor)

    # What goes in.

    def observe(self, keys: Any, *columns: Any, batch: Batch = None, persons: None = None) -> Receipt:
        """Take in rows, each a round of its key, as `rt.Fleet.observe` does; see the class about `batch`."""
        if persons is not None:
            raise ValueError(
                "persons cannot be given here: no shard sees under how many keys of others a person appears; max_keys "
                "is your statement"
            )
        with self._turn:
            if isinstance(keys, str | int | np.integer):
                keys, columns = [keys], tuple(_one(column) for column in columns)
            batch_name(batch)
            groups, _ = self._front._admitted(keys, columns)
            parts = divided(groups, keys, columns, self.shards) if groups.order.size else {}
            # Every shard hears of every offset, so that the least of them is where to go on.
            nothing = tuple(np.zeros(0) for _ in columns)
            here = range(self.shards) if isinstance(batch, tuple | list) else sorted(parts)
            named = f"once {uuid4().hex}" if batch is None else batch
            calls = {}
            for shard in here:
                mine, *rest = parts.get(shard, (np.zeros(0, dtype=np.int64), *nothing))
                calls[shard] = ("observe", mine, rest, named)
            try:
                if self._front._holder.limit < NEVER:
                    counts = dict(zip(groups.keys, groups.counts.tolist(), strict=True))
                    self._check_limits(counts, calls, named)
                receipts = self._observed(calls)
            except Exception as error:
                if batch is None:
                    error.add_note(f"shards that have taken in their part know it: repeat it with batch={named!r}")
                raise
            return together(groups, receipts)

    def _check_limits(self, counts: dict[Key, int], calls: Mapping[int, Any], batch: Any) -> None:
        mine: dict[int, list[Key]] = {shard: [] for shard in calls}
        for key in counts:
            mine[shard_of(key, self.shards)].append(key)
        self._ask(
            {
                shard: ("check", keys, np.array([counts[key] for key in keys], dtype=np.int64), batch)
                for shard, keys in mine.items()
            }
        )

    def _observed(self, calls: Mapping[int, tuple[Any, ...]]) -> list[Receipt]:
        """Return the receipts of all shards; one that was asked twice is not repeated if the first time it counted."""
        before = {shard: self._known.pop(shard, None) for shard in calls}
        retried = set[int]()
        answers, receipts = self._ask(calls, retried), []
        for shard, (receipt, sequence) in answers.items():
            self._known[shard], had = sequence, before[shard]
            if receipt.repeated and shard in retried and had is not None and sequence == had + 1:
                receipt = Receipt(receipt.rounds, receipt.changed)
            receipts.append(receipt)
        return receipts

    # What comes out.

    def decision(self, key: Key) -> Any:
        """Return the decision in play of one key: a point of the domain, or what a tracker publishes."""
        found = self.decisions([key])[0]
        return found if self._front._holder.shape else float(found)

    def decisions(self, keys: Any) -> Array:
        """Return the decisions in play: `(n, dim)`, or `(n,)` for trackers of one number."""
        found: Array = self._looked_up("decisions", keys, self._front._holder.shape, np.float64)
        return found

    def versions(self, keys: Any) -> Places:
        """Return how often the decision of each key has changed: the same number, the same decision."""
        found: Places = self._looked_up("versions", keys, (), np.int64)
        return found

    def rounds(self, keys: Any) -> Places:
        """Return how many rounds each key has taken in; 0 for one that is not known."""
        found: Places = self._looked_up("rounds", keys, (), np.int64)
        return found

    def _looked_up(self, what: str, keys: Any, shape: tuple[int, ...], kind: Any) -> Any:
        names = checked_keys(keys)
        at: dict[int, list[int]] = {}
        for i, key in enumerate(names):
            at.setdefault(shard_of(key, self.shards), []).append(i)
        found = np.empty((len(names), *shape), dtype=kind)
        with self._turn:
            for shard, part in self._ask({s: (what, [names[i] for i in mine]) for s, mine in at.items()}).items():
                found[at[shard]] = part
        return found

    def history(self, key: Key) -> tuple[Places, Array]:
        """Return after how many rounds the decision of a key changed, and the decisions from then on, in order."""
        found: tuple[Places, Array] = self._of(key, "history")
        return found

    def spent(self, key: Key, delta: float | None = None) -> float:
        """Return the epsilon, at `delta`, that the rounds of a key may have cost one of them."""
        return float(self._of(key, "spent", delta))

    def _of(self, key: Key, what: str, *args: Any) -> Any:
        (name,) = checked_keys([key])
        shard = shard_of(name, self.shards)
        with self._turn:
            return self._ask({shard: (what, name, *args)})[shard]

    def _all(self, what: str, *args: Any) -> list[Any]:
        with self._turn:
            return [*self._ask({shard: (what, *args) for shard in range(self.shards)}).values()]

    @property
    def plan(self) -> Any:
        """What is promised of every key."""
        return self.spec.plan

    def keys(self) -> list[Key]:
        """Return all keys, shard by shard, in each in the order in which they came."""
        return [key for part in self._all("keys") for key in part]

    def offset(self, source: str) -> int | None:
        """Return the last offset of a source that all shards have taken in: after a crash, go on after it."""
        found = self._all("offset", source)
        return None if None in found else min(found)

    def begun(self, source: str) -> int | None:
        """Return the last offset of a source that some shard has taken in: above `offset`, a batch is half in.

        The next batch must be that one again, with the same rows.
        """
        return max((one for one in self._all("offset", source) if one is not None), default=None)

    def seed_of(self, key: Key) -> Seed:
        """Return the seed of a key, as `rt.Fleet.seed_of` does, for tests."""
        (name,) = checked_keys([key])
        return self._root.seed_of(name)

    @property
    def sequences(self) -> tuple[int, ...]:
        """How many batches each shard has taken in; kept outside the store, they tell an old copy from the last."""
        return tuple(self._all("sequence"))

    def __len__(self) -> int:
        """Return how many keys there are."""
        return sum(self._all("size"))

    def __contains__(self, key: object) -> bool:
        """Say whether a key has had a row."""
        if isinstance(key, bool) or not isinstance(key, int | str | np.integer):
            return False
        return bool(self.rounds([key])[0])

    def __enter__(self) -> ShardedFleet:
        """Return the fleet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: its calls come from one process."""
        raise TypeError("a fleet cannot be copied or pickled; close it, and open it elsewhere")

    def __repr__(self) -> str:
        """Say how it is divided."""
        return f"<ShardedFleet {self.name!r} on Ray: {self.shards} shards, {self.spec.learner}>"
