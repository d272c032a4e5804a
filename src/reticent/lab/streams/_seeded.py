"""Randomness of streams without an end: the same rounds wherever one starts to cut them into blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array
from reticent.lab.streams._stream import Block

Rounds = NDArray[np.int64]

_PIECE = 1 << 14  # rounds made at once, fewer where one has many numbers
_NUMBERS = 1 << 20  # made at once: some megabytes
_ROUNDS, _HELD, _SHAPE = range(3)  # what a generator is for; no two share numbers


def pieces(law: Callable[[Rounds, np.random.Generator], Block], seed: int, dim: int = 1) -> Iterator[Block]:
    """Yield rounds without end: `law` makes those with the given numbers, each piece with a generator of its own.

    So the first rounds of a long stream are those of a short one, and none depends on the size of blocks.

    >>> first = next(pieces(lambda t, rng: (rng.random(t.size),), seed=1))
    >>> first[0].shape
    (16384,)
    """
    size = max(1, min(_PIECE, _NUMBERS // dim))
    number = 0
    while True:
        rounds = np.arange(number * size, (number + 1) * size, dtype=np.int64)
        yield law(rounds, _generator(seed, _ROUNDS, number))
        number += 1


def shape(seed: int) -> np.random.Generator:
    """Return the generator of what holds for the whole of a stream: directions, for example."""
    return _generator(seed, _SHAPE, 0)


def held(index: Rounds, width: int, seed: int) -> Array:
    """Return `width` uniform numbers for each index, always the same ones for an index; indices must not fall."""
    group = index // _PIECE
    made = {int(k): _generator(seed, _HELD, int(k)).random((_PIECE, width)) for k in np.unique(group)}
    return np.concatenate([made[k][index[group == k] % _PIECE] for k in made])


def directions(count: int, dim: int, seed: int) -> Array:
    """Return orthonormal directions, as many as there are, as rows; zeros in place of those that there is no room for.

    >>> directions(2, 1, seed=0).shape
    (2, 1)
    """
    found = np.zeros((count, dim))
    basis, _ = np.linalg.qr(shape(seed).standard_normal((dim, min(count, dim))))
    found[: basis.shape[1]] = basis.T
    return found


def sphere(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Return random rows of length 1."""
    rows = rng.standard_normal((count, dim))
    found: Array = rows / np.linalg.norm(rows, axis=1)[:, None]
    return found


def within_one(rows: Array) -> Array:
    """Return rows with those of a length above 1 cut to it."""
    found: Array = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    return found


def _generator(seed: int, purpose: int, number: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose, number)))
