"""The journal: opening, starting and resuming a learner on disk."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Any, NoReturn

from reticent._core._check import integer
from reticent._core._random import Seed
from reticent.journal._learner import JournaledLearner
from reticent.journal._lock import Lock
from reticent.journal._replay import START, check_states, first_facts, recovered, with_seal
from reticent.journal._store import Record, Store, damaged
from reticent.learners import Learner, make
from reticent.losses import Loss
from reticent.saving._key import Key, key_bytes
from reticent.saving._parts import is_callers
from reticent.systems._saved import pack_learner

_EVERY = 50_000  # rounds: taken in again within seconds by most learners
_given: weakref.WeakSet[Learner] = weakref.WeakSet()  # learners that are in a journal


class Journal:
    """A file that makes a learner durable: a crash at any point loses no acknowledged round.

    Every round is on disk before its effect can be seen and every decision before it is released, so that no round
    ever has two decisions, and nothing is drawn twice (which would spend privacy twice). The file is an SQLite
    database in WAL mode, synced at every commit, with a chain of hashes over its records; one process at a time can
    have it open, and in it one `Journal`. `start` a learner, or `resume` the one that is there; `open_or_start`
    does what fits.

    With `batch=1` a round is on disk when `observe` returns. With a larger one rounds wait in memory
    (`learner.waiting` of them), and the decision in play stays, until the batch is full, or `flush` or `observe_many`
    is called: then they are on disk, acknowledged and counted by `acknowledged`, and the decision that follows from
    them is shown. With `prompt=True` a batch also ends where the decision may change, so that in every round the
    decision shown is that of a learner without a journal. The state of the learner is written every `checkpoint`
    rounds (a large one less often), so that resuming does not take in everything again.

    **The file is as sensitive as the data**: it holds every round, and the random generator. It is for its owner only
    (mode 0600), as are the files PATH-wal, PATH-shm and PATH-lock beside it, which belong to it. Never resume two
    copies. With a `key` (16 bytes or more) states end with, and the chain is made of, HMAC-SHA256 codes: who does not
    have it cannot change a record and go unnoticed. To put back an older copy of all files needs no key.

    >>> import os, tempfile
    >>> import reticent as rt
    >>> path = os.path.join(tempfile.mkdtemp(), "run.journal")
    >>> plan = rt.plan_lazy(rt.Ball(dim=2), horizon=100, lipschitz=1.0, max_switches=20)
    >>> with rt.Journal(path) as journal:
    ...     learner = journal.start(plan, rt.Linear(), seed=1)
    ...     learner.observe([0.6, 0.8])
    >>> with rt.Journal(path) as journal:
    ...     journal.resume().rounds
    1
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        batch: int = 1,
        prompt: bool = False,
        checkpoint: int = _EVERY,
        key: Key = None,
    ) -> None:
        """Open the file, or make it; raise `BlockingIOError` if it is open already."""
        self._batch = integer("batch", batch, least=1)
        self._prompt = bool(prompt)
        self._every = integer("checkpoint", checkpoint, least=1)
        secret = key_bytes(key)
        self.path = os.path.realpath(os.fsdecode(path))
        self._process = os.getpid()
        self._learner: JournaledLearner | None = None
        self._store: Store | None = None
        if not os.path.isdir(os.path.dirname(self.path)) or os.path.isdir(self.path):
            raise ValueError(f"path must be that of a file in a folder that is there, got {os.fsdecode(path)!r}")
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise ValueError(f"path must be that of a plain file, not of a pipe or device, got {os.fsdecode(path)!r}")
        _refuse_links(self.path)
        try:
            self._lock = Lock(self.path)
        except BlockingIOError:
            raise
        except OSError as error:
            told = f"the journal cannot be opened for writing: {error.strerror}"
            raise type(error)(error.errno, told, self.path) from error
        try:
            self._store = Store(self.path, write=True, key=secret)
            self._check_whole(self._store)
            if self._store.head.records:
                check_states(self._store)
        except BaseException:
            if self._store is None:
                self._lock.discard()
            self._shut()
            raise

    def _check_whole(self, store: Store) -> None:
        try:
            known = self._lock.read()
        except ValueError:
            if store.head.records:
                raise
            known = None  # the first thing that is ever written there, by half
        if known is None:
            self._lock.write(store.head)
        if known is None or known.records == 0:
            return
        if not store.head.records:
            lost = f"its {known.rounds} acknowledged rounds are gone"
            told = f"{lost}; to start anew on purpose, delete {self._lock.path} too"
            raise ValueError(damaged(self.path, told))
        if store.head.records < known.records:
            raise ValueError(
                damaged(
                    self.path,
                    f"{known.rounds - store.head.rounds} acknowledged rounds ({known.records - store.head.records} "
                    "records) are missing, so it was cut, or the file with -wal at its end is gone or damaged",
                )
            )
        if store.link(known.records) != known.digest:
            told = "it is not the journal that the file with -lock at its end belongs to, or it was changed"
            raise ValueError(damaged(self.path, told))

    @property
    def started(self) -> bool:
        """Whether there is a learner in the file."""
        return self._opened().head.records > 0

    @property
    def acknowledged(self) -> int:
        """The number of rounds on disk."""
        return self._opened().head.rounds

    def start(self, what: Any, loss: Loss | None = None, seed: Seed = None, **options: Any) -> JournaledLearner:
        """Put a learner in a new journal: of a plan and a loss, as `rt.make` would, or one that is there already.

        A learner that is given belongs to the journal from then on: give rounds to what this returns only.
        """
        store = self._opened()
        if store.head.records:
            raise ValueError(
                f"a journal holds one learner, and {self.path} has one after {store.head.rounds} rounds; resume it, or "
                "take another path"
            )
        learner = _learner_of(what, loss, seed, options)
        if learner in _given:
            raise ValueError(
                f"this learner after {learner.rounds} rounds is in a journal already, and in two the same randomness "
                "would be used twice; resume it there, or start with a new one"
            )
        state = pack_learner(learner, store.key)
        _given.add(learner)
        store.append([Record(START, learner.rounds, with_seal(first_facts(learner), state))], state)
        self._lock.write(store.head)
        return self._taken(learner)

    def resume(self, loss: Loss | None = None) -> JournaledLearner:
        """Return the learner in the journal, with all that was acknowledged, and with what was drawn as it was drawn.

        A `Custom` loss holds functions, which are not in the file: give it again.
        """
        return self._taken(self._found(loss))

    def _found(self, loss: Loss | None) -> Learner:
        store = self._opened()
        if not store.head.records:
            raise ValueError(f"there is nothing to resume in {self.path}, where no learner was started; start one")
        self._refuse_second()
        return recovered(store, loss)

    def open_or_start(self, plan: Any, loss: Loss, seed: Seed = None, **options: Any) -> JournaledLearner:
        """Resume the learner in the journal, or start one of this plan and loss if there is none.

        One that is there must have the same plan and loss; `seed` and `options` are for starting only.
        """
        if not self.started:
            return self.start(plan, loss, seed, **options)
        learner = self._found(loss if is_callers(loss) else None)
        for name, wanted, found in (("plan", plan, learner.plan), ("loss", loss, learner.loss)):
            if wanted != found:
                raise ValueError(
                    f"{name} must be that of the learner in {self.path}, got another; resume() takes what is there, "
                    "and a new learner needs a new path"
                )
        return self._taken(learner)

    def _refuse_second(self) -> None:
        if self._learner is not None:
            raise ValueError(f"the learner of {self.path} was taken already, from this journal; go on with that one")

    def _taken(self, learner: Learner) -> JournaledLearner:
        self._refuse_second()
        store = self._opened()
        self._learner = JournaledLearner(learner, store, self._lock, self._batch, self._every, self._prompt)
        return self._learner

    def _opened(self) -> Store:
        if self._process != os.getpid():
            raise RuntimeError(
                f"the journal {self.path} was opened in process {self._process}, and a fork of it cannot use it; open "
                "journals in the process that uses them"
            )
        if self._store is None:
            raise ValueError(f"the journal {self.path} is closed; open it again with rt.Journal(path)")
        return self._store

    def close(self) -> None:
        """Bring to the disk what waits, write the state, and let others open the journal; nothing, in a fork."""
        if self._store is None or self._process != os.getpid():
            return
        if self._learner is None:
            self._shut()
        else:
            self._learner._end("it is closed", self._shut)

    def _shut(self) -> None:
        store, self._store = self._store, None
        try:
            if store is not None:
                store.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Journal:
        """Return the journal, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the journal."""
        self.close()

    def __repr__(self) -> str:
        """Say which file, and how far it has come."""
        if self._store is None:
            return f"<Journal {self.path}: closed>"
        return f"<Journal {self.path}: {self._store.head.rounds} rounds>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be copied or pickled: a journal has one writer."""
        raise TypeError("a journal cannot be copied or pickled; close it, and open its path there")


def _refuse_links(path: str) -> None:
    """Refuse a file of several names: each has a lock and a log of its own, so that two could write at once."""
    if os.path.exists(path) and os.stat(path).st_nlink > 1:
        raise ValueError(
            f"a journal must have one name, and {path} is one of {os.stat(path).st_nlink} hard links to the same file; "
            "delete the other names, or make copies with `cp` while it is closed, and never resume two"
        )


def _learner_of(what: Any, loss: Loss | None, seed: Seed, options: dict[str, Any]) -> Learner:
    if not isinstance(what, Learner):
        return make(what, loss, seed, **options)  # type: ignore[arg-type]
    if loss is not None or seed is not None or options:
        raise ValueError("a learner has its loss and its randomness already; give start the learner alone, or a plan")
    return what
