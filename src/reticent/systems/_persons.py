"""Persons: whose a round is, kept as a keyed hash, and which of a person's rounds count (docs/theory, R14)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import integer
from reticent._core._tags import saved
from reticent.losses import Objects, Rows

Owners = NDArray[np.int64]
Mask = NDArray[np.bool_]

SECRET = 32
"""Bytes of the secret that keys are hashed with."""
NOBODY = np.int64(0)
"""Whose the rounds are that no person is named for; no key has this hash."""


MOST_PERSONS = 1 << 24
"""How many persons may have one hash in common with another, as far as `SHARED` is concerned; a learner takes no more
where that matters."""
SHARED = 2.0**-39
"""The chance that somebody's hash is that of one of so many others, or twice as many (docs/theory, R14d)."""


_KEYS = (str, int, bytes, np.integer)
_NONE = bytes(8)


def _bytes_of(key: Any) -> bytes:
    """Return a key as bytes, told apart by their first for texts, whole numbers and bytes; nothing for what is none."""
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return b"i%x" % int(key)  # of any length, where decimal digits have a limit
    return b"b" + key if isinstance(key, bytes) else b""


def _told_apart(persons: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the keys that there are, and for every round which is its.

    A key that is missing makes its own round nobody's, and leaves the keys of all others as they are.
    """
    if isinstance(persons, str | bytes | Mapping | Set) or getattr(persons, "ndim", 1) != 1:
        raise ValueError(
            "persons must be a list or a column (one-dimensional) of one key for every round, got "
            f"{type(persons).__name__}{getattr(persons, 'shape', '')}; nothing was recorded"
        )
    dtype = getattr(persons, "dtype", None)
    if getattr(dtype, "kind", "") == "f":
        raise ValueError(
            f"persons must be texts, whole numbers or bytes, got a column of {dtype}: one missing key turns a column "
            "of whole numbers into one, with other keys for everybody; make it texts, or a column that has room for "
            "missing ones (pandas: dtype='Int64'), always; nothing was recorded"
        )
    if getattr(dtype, "kind", "") in ("i", "u") and isinstance(dtype, np.dtype) and not np.ma.isMaskedArray(persons):
        keys, places = np.unique(np.asarray(persons), return_inverse=True)
        return keys.tolist(), places
    if hasattr(persons, "factorize"):  # a column of pandas: many texts are told apart there in a third of the time
        codes, values = persons.factorize()
        listed = list(values)
        if all(type(key) is str for key in listed):
            return [*listed, None], np.asarray(codes, dtype=np.int64)  # the last, number -1, is of who is missing
    given = persons.tolist() if hasattr(persons, "tolist") else list(persons)
    kinds, names = {*map(type, given)}, given
    if len(kinds) > 1 or not kinds <= {str, int, bytes}:
        # 1, True and 1.0 are one key of a dictionary, and not one person; what is no key at all is one of its kind.
        names = [(type(key), key if isinstance(key, _KEYS) else None) for key in given]
    known: defaultdict[Any, int] = defaultdict()
    known.default_factory = known.__len__
    places = np.fromiter(map(known.__getitem__, names), np.int64, len(given))
    return list(known) if names is given else [None if kind is bool else key for kind, key in known], places


@dataclass(frozen=True, slots=True, eq=False)
class Owned:
    """Prepared rounds, whose each is, and whether it counts."""

    rows: Any
    owners: Owners
    kept: Mask

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.rows)

    def __getitem__(self, part: slice) -> Owned:
        """Return some of the rounds."""
        return Owned(self.rows[part], self.owners[part], self.kept[part])

    def counted(self) -> tuple[Owners, Any]:
        """Return the rounds that count, and whose they are."""
        if self.kept.all():
            return self.owners, self.rows
        if isinstance(self.rows, Objects):
            items = tuple(item for item, kept in zip(self.rows.items, self.kept, strict=True) if kept)
            return self.owners[self.kept], Objects(items, self.rows.scales[self.kept], self.rows.bounds[self.kept])
        return self.owners[self.kept], Rows(self.rows.vectors[self.kept], self.rows.offsets[self.kept])

    def emptied(self) -> Any:
        """Return all rounds, with constants in the place of those that do not count."""
        if self.kept.all():
            return self.rows
        if isinstance(self.rows, Objects):
            return Objects(self.rows.items, self.rows.scales * self.kept, self.rows.bounds * self.kept)
        return Rows(np.where(self.kept[:, None], self.rows.vectors, 0.0), np.where(self.kept, self.rows.offsets, 0.0))


class Cap(NamedTuple):
    """At most `rows` rounds of a person count, in all or in each window of `window` rounds (or blocks of a clock)."""

    rows: int
    window: int | None

    @property
    def at_stake(self) -> int:
        """How many rounds that count may differ: those of two windows, as any `window` rounds in a row touch two."""
        return self.rows if self.window is None else 2 * self.rows


def check_cap(max_rows: int | None, window: int | None) -> Cap | None:
    """Return the cap on a person's rounds; None without one.

    >>> check_cap(3, None).at_stake, check_cap(3, 1000).at_stake
    (3, 6)
    """
    if max_rows is None:
        if window is not None:
            raise ValueError(
                f"window must be None without max_rows, got {window!r}; give max_rows=, the rows of one person that "
                "count in each window"
            )
        return None
    return Cap(integer("max_rows", max_rows, least=1), None if window is None else integer("window", window, least=1))


def unit_of(max_rows: int | None, window: int | None = None) -> str:
    """Return who is protected, in a word.

    >>> unit_of(None), unit_of(3), unit_of(3, 1000)
    ('row', 'person', 'person-window')
    """
    if max_rows is None:
        return "row"
    return "person" if window is None else "person-window"


@saved("roll of persons")
class Roll:
    """Counts the rounds of each person, by keyed hashes of 64 bits, and says which still count.

    Persons whose hashes agree are taken for one: that keeps every promise, and costs them rounds (docs/theory, R14d).
    What it holds is as secret as the data. A person takes about 110 bytes here (32 of them the hash), 12 in a saved
    state; `forget` empties it.

    >>> roll = Roll(2, b"x" * 32)
    >>> roll.admit(roll.owners(["ann", "bob", "ann", "ann"])), roll.left_out, len(roll)
    (array([ True,  True,  True, False]), 1, 2)
    """

    def __init__(self, cap: int, secret: bytes) -> None:
        """Take how many rounds of a person count, and the secret."""
        self.cap, self.secret = cap, secret
        self.counts: dict[int, int] = {}
        self.left_out = 0  # rounds that did not count so far: secret
        self.opened = 0  # the round, or block of a clock, that the present window began with
        self.waiting: list[int] = []  # whose the rounds are that wait in the learner's inbox
        self.torn = False

    def __len__(self) -> int:
        """Return the number of persons that are known."""
        return len(self.counts)

    def owner(self, person: Any) -> int:
        """Return the hash of a key: a text, a whole number or bytes; 0 for a person who is not named."""
        name = _bytes_of(person)
        if not name:
            return 0
        # A key whose hash is 0 has 1: no key is nobody's.
        return int.from_bytes(blake2b(name, digest_size=8, key=self.secret).digest(), "little", signed=True) or 1

    def owners(self, persons: Any) -> Owners:
        """Return the hashes of many keys; each key is hashed once."""
        keys, places = _told_apart(persons)
        found: Owners = self._hashes(keys)[places]
        return found

    def _hashes(self, keys: Sequence[Any]) -> Owners:
        """Return the hashes of keys; 0 for what is none."""
        secret, named = self.secret, [_bytes_of(key) for key in keys]
        parts = [blake2b(name, digest_size=8, key=secret).digest() if name else _NONE for name in named]
        found: Owners = np.frombuffer(b"".join(parts), dtype="<i8").astype(np.int64)
        for place in np.flatnonzero(found == NOBODY):
            found[place] = bool(named[place])  # as in `owner`
        return found

    def admit(self, owners: Owners) -> Mask:
        """Say which rounds count, in order, and count them: the first so many of each person, none of nobody."""
        order = np.argsort(owners, kind="stable")
        sorted_owners = owners[order]
        starts = np.flatnonzero(np.append(True, sorted_owners[1:] != sorted_owners[:-1]))[: owners.size]
        sizes = np.diff(np.append(starts, owners.size))
        persons, counts = sorted_owners[starts].tolist(), self.counts
        before = np.fromiter((counts.get(person, 0) for person in persons), np.int64, len(persons))
        before[sorted_owners[starts] == NOBODY] = self.cap
        kept = np.empty(owners.size, dtype=bool)
        kept[order] = np.arange(owners.size) - np.repeat(starts - before, sizes) < self.cap
        now = np.minimum(before + sizes, self.cap)
        counts.update(zip(persons, now.tolist(), strict=True))
        counts.pop(int(NOBODY), None)
        self.left_out += int(kept.size - np.count_nonzero(kept))
        return kept

    def put_back(self, owners: Owners, kept: Mask) -> None:
        """Take back what was said of the last rounds: they have not been taken in."""
        for person in owners[kept].tolist():
            if self.counts[person] == 1:
                del self.counts[person]
            else:
                self.counts[person] -= 1
        self.left_out -= int(kept.size - np.count_nonzero(kept))

    def forget(self, at: int) -> None:
        """Begin a new window: every person is new."""
        self.counts = {}
        self.opened = at

    def __getstate__(self) -> dict[str, Any]:
        """Return the state in one form, whatever order persons came in: hashes in order, and their counts."""
        hashes = np.array(sorted(self.counts), dtype=np.int64)
        counts = np.array([self.counts[person] for person in hashes.tolist()], dtype=np.int32)
        return vars(self) | {"counts": (hashes, counts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Know the persons of a state again."""
        hashes, counts = state["counts"]
        vars(self).update(state | {"counts": dict(zip(hashes.tolist(), counts.tolist(), strict=True))})

    def _catch_up(self, found: Roll) -> None:
        """Stand where a loaded one does, which `check` knows how to check."""
        vars(self).update({name: part for name, part in vars(found).items() if name != "cap"})

    def _check_moved(self) -> None:
        self.check(self.cap)

    def check(self, cap: int) -> None:
        """Refuse a state, from a file, in which no roll can stand."""
        if self.cap != cap or type(self.secret) is not bytes or len(self.secret) != SECRET:
            raise ValueError("its roll of persons is not the one of its plan")
        if self.torn or self.waiting:
            raise ValueError("its roll of persons stands between two rounds")
        if any(not 1 <= count <= cap for count in self.counts.values()) or int(NOBODY) in self.counts:
            raise ValueError("its roll of persons has counted more, or less, than it can have")
        integer("left_out", self.left_out, least=0)
        integer("opened", self.opened, least=0)
