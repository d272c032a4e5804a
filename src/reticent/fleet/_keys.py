"""Keys: whole numbers or texts, kept exactly; grouped in batches, written in a store, each with a seed of its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent._core._random import Seed

Key = int | str
Places = NDArray[np.int64]

_LONGEST = 1000  # letters of a key as it is written: databases index it
_DENSE = 4  # whole numbers are looked up in a table if that is so many times as long as the batch at most


def text_of(key: Key) -> str:
    """Return a key as a text from which `key_of` makes it again: 7 and "7" are two keys.

    >>> text_of(7), text_of("7"), key_of(text_of("7")), key_of(text_of(7))
    ('7', '"7"', '7', 7)
    """
    if isinstance(key, bool) or not isinstance(key, int | str | np.integer):
        raise ValueError(f"a key must be a whole number or a text, got a {type(key).__name__}")
    text = json.dumps(key if isinstance(key, str) else int(key))
    if len(text) > _LONGEST:
        raise ValueError(f"a key must have at most {_LONGEST} letters as it is written, got {len(text)}")
    return text


def key_of(text: str) -> Key:
    """Return the key that a text was written for."""
    found = json.loads(text)
    assert isinstance(found, int | str)
    return found


class Groups(NamedTuple):
    """Rows by key: the keys, and the rows of key i as `order[bounds[i] : bounds[i + 1]]`, as they came."""

    keys: list[Key]
    order: Places
    bounds: Places

    @property
    def counts(self) -> Places:
        """How many rows each key has."""
        return np.diff(self.bounds)

    @property
    def firsts(self) -> Places:
        """Which row is the first of each key."""
        return self.order[self.bounds[:-1]]


def grouped(keys: Any) -> Groups:
    """Return the rows of a batch by key.

    >>> groups = grouped(["b", "a", "b"])
    >>> groups.keys, groups.order.tolist(), groups.bounds.tolist()
    (['b', 'a'], [0, 2, 1], [0, 2, 3])
    """
    names, codes = _coded(keys)
    # Few keys fit into 16 bits, which numpy sorts by counting.
    small = codes.astype(np.uint16) if len(names) <= 1 << 16 else codes
    order = np.argsort(small, kind="stable")
    bounds = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=len(names)), out=bounds[1:])
    return Groups(names, order, bounds)


def _coded(keys: Any) -> tuple[list[Key], Places]:
    """Return the different keys, and which of them each row has."""
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        if keys.ndim != 1:
            raise ValueError(f"keys must be a list of keys (one-dimensional), got shape {keys.shape}")
        return _coded_numbers(keys)
    listed = listed_keys(keys)
    try:
        index = {key: i for i, key in enumerate(dict.fromkeys(listed))}
    except TypeError:
        raise ValueError("keys must be whole numbers or texts, got something that cannot be one") from None
    if all(type(key) in (int, str) for key in index) and not (True in index or False in index):
        return list(index), np.fromiter(map(index.__getitem__, listed), dtype=np.int64, count=len(listed))
    # numpy's numbers and subclasses become plain; what is equal to a key of another kind (True, 1.0) is refused.
    plain = [key if isinstance(key, str) else json.loads(text_of(key)) for key in listed]
    plain = [str(key) if isinstance(key, str) else key for key in plain]
    index = {key: i for i, key in enumerate(dict.fromkeys(plain))}
    return list(index), np.fromiter(map(index.__getitem__, plain), dtype=np.int64, count=len(plain))


def _coded_numbers(keys: NDArray[Any]) -> tuple[list[Key], Places]:
    if not keys.size:
        return [], np.zeros(0, dtype=np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < _DENSE * keys.size:
        offsets = (keys - keys.dtype.type(low)).astype(np.int64)
        there = np.zeros(high - low + 1, dtype=np.bool_)
        there[offsets] = True
        codes = np.cumsum(there) - 1
        return [*(np.flatnonzero(there) + low).tolist()], codes[offsets]
    different, inverse = np.unique(keys, return_inverse=True)
    return different.tolist(), inverse.astype(np.int64, copy=False)


def listed_keys(keys: Any) -> list[Any]:
    """Return keys as a list; refuse a bare text, whose letters are no keys."""
    if isinstance(keys, str | bytes):
        raise ValueError("keys must be a list of keys, got one text; put it into a list")
    if isinstance(keys, np.ndarray):
        if keys.ndim != 1 or keys.dtype.kind not in "iuUO":
            raise ValueError(
                f"keys must be whole numbers or texts (one-dimensional), got {keys.dtype} of shape {keys.shape}"
            )
        return keys.tolist()  # type: ignore[no-any-return]
    if hasattr(keys, "to_numpy"):
        return listed_keys(keys.to_numpy())
    return list(keys)


def checked_keys(keys: Any) -> list[Key]:
    """Return keys one by one, as they came, each a plain text or whole number.

    >>> checked_keys(np.array([3, 1, 3]))
    [3, 1, 3]
    """
    found = listed_keys(keys)
    return [key if type(key) is str or type(key) is int else key_of(text_of(key)) for key in found]


class Root:
    """What all seeds of a fleet come from: a number, for tests, or 256 secret bits.

    The seed of a key is a keyed hash (BLAKE2b) of its text, so that keys have independent generators in any order.

    >>> root = Root.new(7)
    >>> root.seed_of("a") == Root.new(7).seed_of("a") != root.seed_of("b")
    True
    >>> isinstance(Root.new(None).seed_of("a"), np.random.Generator)
    True
    """

    def __init__(self, secret: bytes, *, open_seed: bool) -> None:
        """Take the key of the hash, and whether it comes from a seed that is known."""
        self.secret, self.open_seed = secret, open_seed

    @classmethod
    def new(cls, seed: int | None) -> Root:
        """Return the root of a new fleet."""
        if seed is None:
            return cls(secrets.token_bytes(32), open_seed=False)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"seed must be None (secret) or a whole number of at least 0, got {seed!r}")
        return cls(blake2b(str(int(seed)).encode(), digest_size=32, person=b"fleet seed").digest(), open_seed=True)

    def number_of(self, key: Key) -> int:
        """Return the number that keys the generator of a key."""
        size = 16 if self.open_seed else 32
        found = blake2b(text_of(key).encode(), digest_size=size, key=self.secret, person=b"fleet key").digest()
        return int.from_bytes(found, "little")

    def seed_of(self, key: Key) -> Seed:
        """Return the seed of the learner of a key: a number where the root is one, else a generator keyed in secret."""
        number = self.number_of(key)
        if self.open_seed:
            return number
        from randomgen import ChaCha

        return np.random.Generator(ChaCha(key=number))

    def mark(self, person: Any) -> bytes:
        """Return what stands for a person in the store: a keyed hash, which tells nothing to who has no root."""
        said = f"{type(person).__name__}:{person}".encode()
        return blake2b(said, digest_size=16, key=self.secret, person=b"fleet person").digest()

    def written(self) -> str:
        """Return the root as a text; as secret as the data."""
        return f"{'seed' if self.open_seed else 'secret'}:{self.secret.hex()}"

    @classmethod
    def read(cls, text: str) -> Root:
        """Return the root that was written."""
        kind, _, secret = text.partition(":")
        return cls(bytes.fromhex(secret), open_seed=kind == "seed")


def in_pieces(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Return a sequence in pieces of so many at most."""
    return [items[i : i + size] for i in range(0, len(items), size)]
