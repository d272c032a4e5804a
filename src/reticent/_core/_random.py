"""Where randomness comes from: a cryptographic generator unless a seed is given."""

from __future__ import annotations

import copy
import secrets
from typing import Any

import numpy as np

Seed = int | np.random.Generator | None


def generator(seed: Seed = None) -> np.random.Generator:
    """Return a generator: ChaCha20 keyed by the operating system for None, a reproducible one for an integer.

    A seed is for tests and experiments: whoever knows it can undo every random choice, and with it all privacy.

    >>> bool(generator(7).random() == generator(7).random())
    True
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        from randomgen import ChaCha

        # The key is set directly: seeding through a SeedSequence may fall back on the clock without saying so.
        return np.random.Generator(ChaCha(key=secrets.randbits(256)))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(
            "seed must be None (a cryptographic generator), a whole number of at least 0 or a numpy Generator, "
            f"got {seed!r}"
        )
    return np.random.Generator(np.random.PCG64(int(seed)))


def taken_over(seed: Seed = None) -> np.random.Generator:
    """Return a generator that nobody else has: one that is given goes on with other numbers than the copy of it.

    The copy starts where the one given stands. That one jumps far ahead, so that whoever is given it next draws nothing
    that was drawn from the copy.

    >>> given, same = np.random.default_rng(1), np.random.default_rng(1)
    >>> own = taken_over(given)
    >>> bool(own.random() == same.random()), bool(given.random() == own.random())
    (True, False)
    """
    if not isinstance(seed, np.random.Generator):
        return generator(seed)
    own = copy.deepcopy(seed)
    bits = seed.bit_generator
    # As after 2^64 draws at least; a kind that cannot jump starts anew, keyed by what it draws next.
    bits.state = bits.jumped().state if hasattr(bits, "jumped") else _keyed(type(bits), seed).state
    return own


def apart(rng: np.random.Generator) -> np.random.Generator:
    """Return a second generator of the same kind, keyed by the first: for draws whose order among others is open.

    >>> one, two = np.random.default_rng(1), np.random.default_rng(1)
    >>> bool(apart(one).random() == apart(two).random())
    True
    """
    kind = type(rng.bit_generator)
    return np.random.Generator(_keyed(kind if kind.__name__ == "ChaCha" else np.random.PCG64, rng))


def _keyed(kind: Any, rng: np.random.Generator) -> Any:
    """Return a new source of random bits, keyed by a generator."""
    key = int.from_bytes(rng.bytes(32), "little")
    return kind(key=key) if kind.__name__ == "ChaCha" else kind(key)
