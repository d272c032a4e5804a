"""Where randomness comes from: a cryptographic generator unless a seed is given."""

from __future__ import annotations

import secrets

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


def apart(rng: np.random.Generator) -> np.random.Generator:
    """Return a second generator of the same kind, keyed by the first: for draws whose order among others is open.

    >>> one, two = np.random.default_rng(1), np.random.default_rng(1)
    >>> bool(apart(one).random() == apart(two).random())
    True
    """
    key = int.from_bytes(rng.bytes(32), "little")
    if type(rng.bit_generator).__name__ == "ChaCha":
        from randomgen import ChaCha

        return np.random.Generator(ChaCha(key=key))
    return np.random.Generator(np.random.PCG64(key))
