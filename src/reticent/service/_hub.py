"""What one server holds: the store, the ledger, API keys, and the learners and fleets that it writes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from reticent.fleet import Fleet, Spec, Store
from reticent.fleet._keys import Key
from reticent.fleet._ledger import FleetPlan
from reticent.ledger import Ledger
from reticent.service import _answers as answers
from reticent.service._bodies import LARGEST, NewFleet, NewLearner
from reticent.service._guard import Guard
from reticent.service._held import AGAIN, Held, Taken
from reticent.service._keys import FRESH, Keys
from reticent.service._metrics import Metrics
from reticent.service._migrate import migrate
from reticent.service._problems import Problem
from reticent.service._promise import described
from reticent.service._settings import Settings
from reticent.service._shelf import ALONE, FLEET, LEARNER, LIVE, NEW, RETIRED, Resource, Shelf, Shown

_PATIENCE = 0.5  # seconds before a learner that another server holds is tried again
_POLL = 0.5  # seconds between two looks at a decision that another server writes
_QUEUE = 256  # events that a slow listener may be behind


class Hub:
    """Everything that lives as long as the server."""

    def __init__(self, settings: Settings) -> None:
        """Open the store, and bring its tables up to date."""
        self.settings = settings
        self.store = Store(settings.store, create="://" not in settings.store)
        try:
            migrate(self.store.engine)
        except SQLAlchemyError as error:
            what = getattr(error, "orig", None) or type(error).__name__
            raise OSError(f"the store {self.store.shown!r} cannot be used: {what}") from error
        self.shelf = Shelf(self.store)
        self.ledger = None if settings.ledger is None else Ledger(settings.ledger)
        self.guard = Guard(settings.guard_folder())
        self.keys = Keys(self.shelf)
        self.keys.refresh()
        self.metrics = Metrics(settings.public_clock)
        self.stopping = asyncio.Event()
        self.waiting = 0
        self._held: dict[str, Held] = {}
        self._resources: dict[str, Resource] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._elsewhere: dict[str, float] = {}
        self._listeners: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._work: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin what goes on in the background."""
        self._work = [asyncio.create_task(self._refresh()), asyncio.create_task(self._renew())]

    def wake(self) -> None:
        """Let those go who wait for changes, since the server stops."""
        self.stopping.set()
        for listener in self._listeners:
            _offer(listener, None)

    async def stop(self) -> None:
        """Finish what is under way, and let other servers write."""
        self.wake()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.gather(*(held.close() for held in self._held.values()))
        self._held.clear()
        self.guard.close()
        self.store.close()

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(FRESH)
            with suppress(OSError):  # told by the keys themselves, when they are too old
                await asyncio.to_thread(self.keys.refresh)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.settings.lease_seconds / 4)
            for held in list(self._held.values()):
                await held.renew()
                if held.lost:
                    await self._drop(held)

    # Finding and making.

    async def resource(self, kind: str, name: str) -> Resource:
        """Return a learner or fleet; refuse one that is not there."""
        found = self._resources.get(name)
        if found is None:
            found = await asyncio.to_thread(self.shelf.find, name)
            if found is not None and found.state != NEW:
                await asyncio.to_thread(lambda: (found.shape, found.beginning))  # makes the plan, once
                self._resources[name] = found
        if found is None or found.kind != kind or found.state == NEW:
            raise Problem("not-found", f"there is no {kind} of this id")
        return found

    async def listed(self, kind: str, only: frozenset[str] | None) -> list[answers.Resource]:
        """Return all learners or fleets that may be seen."""

        def look() -> list[answers.Resource]:
            found = self.shelf.listed(kind)
            for one in found:
                self._resources.setdefault(one.id, one)
            return [described(self._resources[one.id], one.state) for one in found if only is None or one.id in only]

        return await asyncio.to_thread(look)

    async def make(self, kind: str, body: NewLearner | NewFleet, again: str) -> tuple[Resource, bool]:
        """Return a learner or fleet that was asked for, and whether it is new; the ledger is charged first."""
        name = body.id or f"{kind[0]}-{hashlib.sha256(again.encode()).hexdigest()[:16]}"
        lock = self._opening.setdefault(name, asyncio.Lock())
        async with lock:
            return await asyncio.to_thread(self._make, kind, name, body)

    def _make(self, kind: str, name: str, body: NewLearner | NewFleet) -> tuple[Resource, bool]:
        spec = self._spec(body)
        options: dict[str, Any] = {
            "population": body.population,
            "seed": body.seed,
            "feedback_lag": body.feedback_lag if isinstance(body, NewLearner) else None,
            "max_keys": body.max_keys if isinstance(body, NewFleet) else None,
        }
        if body.population is not None and self.ledger is None:
            raise Problem(
                "refused", "there is no ledger here to charge a population in; start the server with --ledger"
            )
        written = json.dumps(spec.to_json(), sort_keys=True)
        found, fresh = self.shelf.find(name), False
        if found is None:
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            nonce = secrets.token_hex(8)
            found = Resource(name, kind, body.name or name, NEW, now, written, {**options, "nonce": nonce})
            if options["feedback_lag"] is not None:
                found.shape.open_features([0.0] * found.shape.widths[0])  # refuses what has no targets
            try:
                self.shelf.enter(found)
                fresh = True
            except OSError as error:
                if not isinstance(error.__cause__, IntegrityError):
                    raise
                found = self.shelf.find(name)  # another server was faster
                assert found is not None
        same = {key: found.options.get(key) for key in options} == options and found.written == written
        if found.kind != kind or not same or found.name != (body.name or name):
            raise Problem("exists", f"there is a {found.kind} of this id already, made otherwise; take another id")
        if found.state != NEW:
            return found, fresh
        self._charge(found)
        Fleet(found.spec, self.store, name=name, seed=body.seed, max_keys=options["max_keys"], resident=1).close()
        self.shelf.move(name, LIVE)
        return Resource(**{**_fields(found), "state": LIVE}), True

    def _spec(self, body: NewLearner | NewFleet) -> Spec:
        if body.seed is not None and not self.settings.seeds:
            raise Problem(
                "refused", "a known seed is no privacy: leave it out, or start a server for tests with --seeds"
            )
        try:
            spec = Spec.from_json(body.spec)
        except (ValueError, OverflowError, MemoryError) as error:
            raise Problem("refused", f"the specification cannot be kept: {error}") from None
        if getattr(getattr(spec.plan, "domain", None), "dim", 1) > LARGEST:
            raise Problem("refused", f"a decision may have {LARGEST:,} coordinates here")
        return spec

    def _charge(self, resource: Resource) -> None:
        """Enter the whole run into the ledger, once: an entry that a crash has left behind is the one of this run."""
        population = resource.options["population"]
        if population is None:
            return
        assert self.ledger is not None
        note = f"service: {resource.kind} {resource.id} ({resource.options['nonce']})"
        try:
            if any(entry.note == note for entry in self.ledger.entries(population)):
                return
            keys = resource.options["max_keys"] or 1
            self.ledger.spend(population, FleetPlan(resource.spec.plan, keys), note=note)
        except ValueError as error:
            raise Problem("over-budget", str(error)) from None

    async def retire(self, kind: str, name: str) -> Resource:
        """Let a learner or fleet take no more rounds, for good; its decision stays in play."""
        found = await self.resource(kind, name)
        await asyncio.to_thread(self.shelf.move, name, RETIRED)
        held = self._held.get(name)
        if held is not None:
            await self._drop(held)
        self._resources.pop(name, None)
        return Resource(**{**_fields(found), "state": RETIRED})

    def books(self) -> answers.Books:
        """Return the ledger."""
        if self.ledger is None:
            return answers.Books(False, [], [])
        found = []
        for people in self.ledger.populations():
            one = self.ledger.standing(people.name)
            left = one.left_epsilon, one.left_mu
            found.append(
                answers.Standing(
                    people.name,
                    people.epsilon,
                    people.delta,
                    people.neighbors,
                    people.unit,
                    people.window,
                    one.entries,
                    one.spent,
                    *left,
                    one.total.epsilon,
                )
            )
        last = self.ledger.entries()[-100:]
        entries = [answers.Entry(e.number, e.time.isoformat(), e.population, e.what, e.note) for e in reversed(last)]
        return answers.Books(True, found, entries)

    # Holding.

    async def held(self, kind: str, name: str) -> Held:
        """Return a learner or fleet that this server writes; become its writer if nobody is."""
        held = self._held.get(name)
        if held is not None and not held.lost and held.resource.kind == kind:
            return held
        resource = await self.resource(kind, name)
        if self.stopping.is_set():
            raise Problem("stopping", "this server is stopping; ask again", headers=AGAIN)
        async with self._opening.setdefault(name, asyncio.Lock()):
            held = self._held.get(name)
            if held is not None and not held.lost:
                return held
            if held is not None:
                await self._drop(held)
            if time.monotonic() < self._elsewhere.get(name, 0.0):
                raise _elsewhere()
            held = await asyncio.to_thread(self._open, resource)
            self._held[name] = held
            self.metrics.holds(len(self._held))
            return held

    def _open(self, resource: Resource) -> Held:
        found = self.shelf.find(resource.id)
        if found is None or found.state == RETIRED:
            raise Problem("retired", "it takes no more rounds; its last decision stays in play")
        at, seen = self.shelf.sequence(resource.id), self.guard.seen(resource.tag)
        if at < seen:
            raise Problem(
                "old-copy",
                f"the store has commit {at} of it, but commit {seen} was shown already: the store is an old copy, and "
                "to go on would draw the same noise again for other data. Restore a later copy, or retire it and make "
                "a new one",
            )
        settings = self.settings
        try:
            fleet = Fleet.open(self.store, resource.id, resident=settings.resident, lease=settings.lease_seconds)
        except RuntimeError:
            self._elsewhere[resource.id] = time.monotonic() + _PATIENCE
            raise _elsewhere() from None
        try:
            return Held(
                resource,
                fleet,
                self.shelf,
                self.guard,
                remember=settings.remember_seconds,
                waiting=settings.waiting,
                told=self._tell,
            )
        except BaseException:
            fleet.close()
            raise

    async def _drop(self, held: Held) -> None:
        if self._held.get(held.resource.id) is held:
            del self._held[held.resource.id]
        self.metrics.holds(len(self._held))
        await held.close()

    # Decisions.

    async def decision(self, resource: Resource, key: Key) -> Shown:
        """Return the decision in play: that of memory if this server writes it, else that of the store."""
        held = self._held.get(resource.id)
        if held is not None and held.shown is not None and not held.lost:
            return held.shown
        return await asyncio.to_thread(self.shelf.shown, resource, key)

    async def another(self, resource: Resource, key: Key, etag: str, seconds: float) -> Shown:
        """Return a decision as soon as it has not this ETag, or after so many seconds as it is."""
        until = time.monotonic() + seconds
        async with self.listening() as events:
            while True:
                found = await self.decision(resource, key)
                left = until - time.monotonic()
                if found.etag != etag or left <= 0 or self.stopping.is_set():
                    return found
                # What this server writes is told; what another does has to be looked at.
                mine = resource.id in self._held
                await _heard(
                    events, resource.id, None if resource.kind == LEARNER else key, left if mine else min(left, _POLL)
                )

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Queue[dict[str, Any] | None]]:
        """Hear of changes: learners or fleets by id, with the key; None when the server stops."""
        if self.waiting >= self.settings.waiting:
            raise Problem("too-many", "too many wait for changes already; ask without waiting", headers=AGAIN)
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(_QUEUE)
        self._listeners.add(queue)
        self.waiting += 1
        try:
            yield queue
        finally:
            self._listeners.discard(queue)
            self.waiting -= 1

    def _tell(self, held: Held, taken: Taken) -> None:
        rounds, changes, changed = taken
        self.metrics.took(rounds, changes)
        if not changed or not self._listeners:
            return
        resource = held.resource
        if resource.kind == LEARNER:
            events = [{"id": resource.id, "kind": LEARNER}]
        else:
            events = [{"id": resource.id, "kind": FLEET, "key": key} for key in changed]
        for listener in self._listeners:
            for event in events:
                _offer(listener, event)

    def key_of(self, resource: Resource, key: str | None) -> Key:
        """Return the key of a fleet, or the one of a learner."""
        return ALONE if resource.kind == LEARNER or key is None else key


def _fields(resource: Resource) -> dict[str, Any]:
    names = ("id", "kind", "name", "state", "created", "written", "options")
    return {name: getattr(resource, name) for name in names}


def _elsewhere() -> Problem:
    return Problem(
        "held-elsewhere",
        "another server writes it, or did until a moment ago; ask again, or ask that one",
        headers=AGAIN,
    )


def _offer(queue: asyncio.Queue[Any], event: Any) -> None:
    """Give a listener an event; one that is too far behind loses the oldest, since the latest is what counts."""
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(event)


async def _heard(events: asyncio.Queue[dict[str, Any] | None], name: str, key: Key | None, seconds: float) -> None:
    """Wait until something is said of this one, or nothing is for so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                event = await events.get()
                if event is None or (event["id"] == name and (key is None or event.get("key") == key)):
                    return
