"""Random generators of many keys in arrays of numbers: one generator object is put where each of them stands.

To make a generator takes some ten microseconds and a kilobyte; to set its state takes one, and 48 or 80 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.fleet._keys import Key, Root

States = NDArray[np.uint64]

_LOW = (1 << 64) - 1


class Draws:
    """Takes generators of keys out of rows of numbers, and puts them back; a row of zeros is one not used yet.

    The numbers of a key's generator are those of `root.seed_of(key)`.

    >>> root = Root.new(5)
    >>> draws, rows = Draws(root), np.zeros((1, Draws(root).width), dtype=np.uint64)
    >>> first = draws.put(rows[0], "a").random(3)
    >>> draws.noted(rows[0])
    >>> again = np.random.Generator(np.random.PCG64(root.seed_of("a")))
    >>> bool((again.random(3) == first).all()), bool(again.random() == draws.put(rows[0], "a").random())
    (True, True)
    """

    def __init__(self, root: Root) -> None:
        """Take the root of all seeds: it says which kind of generator there is."""
        self._root = root
        self._bits: Any
        if root.open_seed:
            self._bits, self.width = np.random.PCG64(0), 6
        else:
            from randomgen import ChaCha

            self._bits, self.width = ChaCha(key=0), 11
        self._rng, self._state = np.random.Generator(self._bits), self._bits.state

    def put(self, row: States, key: Key) -> np.random.Generator:
        """Return the generator where a row says it stands."""
        if self._root.open_seed:
            self._put_number(row, key)
        else:
            self._put_secret(row, key)
        return self._rng

    def noted(self, row: States) -> None:
        """Write into a row where the generator stands now."""
        state = self._bits.state
        if self._root.open_seed:
            at, step = state["state"]["state"], state["state"]["inc"]
            row[:] = at >> 64, at & _LOW, step >> 64, step & _LOW, state["has_uint32"], state["uinteger"]
        else:
            inner = state["state"]
            row[:8] = inner["block"].view(np.uint64)
            row[8:10] = inner["ctr"]
            row[10] = 1

    def _put_number(self, row: States, key: Key) -> None:
        if not row[3]:  # a step is odd
            self._bits.state = np.random.PCG64(self._root.number_of(key)).state
            return
        high, low, up, down, there, left = row.tolist()
        inner = {"state": (high << 64) | low, "inc": (up << 64) | down}
        self._bits.state = {"bit_generator": "PCG64", "state": inner, "has_uint32": there, "uinteger": left}

    def _put_secret(self, row: States, key: Key) -> None:
        inner = self._state["state"]
        secret = self._root.number_of(key).to_bytes(32, "little")
        inner["keysetup"] = np.frombuffer(secret, dtype=np.uint32)
        inner["block"], inner["ctr"] = row[:8].view(np.uint32), row[8:10].copy()
        self._bits.state = self._state
