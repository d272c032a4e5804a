"""A stream: rounds that come in blocks, the problem they are rounds of, its settings in words, and its randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array, integer, real
from reticent.domains import Domain
from reticent.losses import Loss

Value = int | float | str


@dataclass(frozen=True)
class Setting:
    """What may be set: a default, the least and the most allowed for a number, or the words to choose from."""

    default: Value
    least: float = 0.0
    most: float = 1e15
    words: tuple[str, ...] = ()

    def read(self, name: str, text: str) -> Value:
        """Return the value that a text stands for; refuse one that is none.

        >>> Setting(10, least=1).read("dim", "1e2")
        100
        """
        if isinstance(self.default, str):
            if text not in self.words:
                raise ValueError(f"{name} must be one of {', '.join(self.words)}, got {text!r}")
            return text
        whole = isinstance(self.default, int)
        wanted = f"{name} must be a {'whole number' if whole else 'number'} from {self.least:g} to {self.most:g}"
        try:
            number = real(name, float(text))
        except ValueError:
            raise ValueError(f"{wanted}, got {text!r}") from None
        if not self.least <= number <= self.most or (whole and number != int(number)):
            raise ValueError(f"{wanted}, got {text!r}")
        return int(number) if whole else number


def taken_apart(spec: str) -> tuple[str, dict[str, str]]:
    """Return the name and the settings of a spec.

    >>> taken_apart("iid:rounds=1e3,dim=2")
    ('iid', {'rounds': '1e3', 'dim': '2'})
    """
    if not isinstance(spec, str):
        raise ValueError(f"a stream is named by text such as 'iid:rounds=1000,dim=2', got {spec!r}")
    name, _, rest = spec.partition(":")
    found: dict[str, str] = {}
    for one in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = (word.strip() for word in one.partition("="))
        if not equals or not key or not value:
            raise ValueError(f"settings of a stream must be given as name=value, got {one!r} in {spec!r}")
        if key in found:
            raise ValueError(f"a setting must be given once, got {key} twice in {spec!r}")
        found[key] = value
    return name.strip(), found


def put_together(name: str, values: Mapping[str, Value], settings: Mapping[str, Setting]) -> str:
    """Return the spec that names these settings, those at their default left out.

    >>> put_together("iid", {"rounds": 1000, "dim": 2}, {"rounds": Setting(1000), "dim": Setting(5)})
    'iid:dim=2'
    """
    changed = [f"{key}={values[key]}" for key, setting in settings.items() if values[key] != setting.default]
    return f"{name}:{','.join(changed)}" if changed else name


def read_all(name: str, given: Mapping[str, str], settings: Mapping[str, Setting]) -> dict[str, Value]:
    """Return the value of every setting of a stream; refuse settings that it does not have."""
    for key in given:
        if key not in settings:
            raise ValueError(f"the stream {name} has no setting {key!r}{nearest(key, settings)}")
    return {
        key: setting.read(key, given[key]) if key in given else setting.default for key, setting in settings.items()
    }


def nearest(word: str, known: Mapping[str, object]) -> str:
    """Return the end of a sentence about an unknown word: the one that may be meant, and all there are.

    >>> nearest("shutle", {"shuttle": 1, "fair": 2})
    '; did you mean shuttle? there are shuttle, fair'
    """
    close = get_close_matches(word, known, n=1)
    return (f"; did you mean {close[0]}? there are " if close else "; there are ") + ", ".join(known)


# A stream: rounds that come in blocks, with the problem that they are rounds of.

Block = tuple[Any, ...]
"""Rounds as `observe_many` takes them: one array of gradients, or features and targets."""

BLOCK = 65536


@dataclass(frozen=True)
class Stream:
    """Rounds of one loss over one domain, the same ones every time, and what they are about.

    `pieces` returns the rounds from the first on, fresh at every call, in pieces of any length, at least `rounds` of
    them. `name` is what `get` takes to make the stream again. `decision` says what each coordinate of a decision means,
    `scaling` by which public bounds the rows were scaled, and `why` what somebody may want of decisions here, which
    `best_for` sums up.

    >>> from reticent.lab import streams
    >>> stream = streams.get("iid:rounds=10,dim=2")
    >>> [len(gradients) for (gradients,) in stream.blocks(size=4)]
    [4, 4, 2]
    >>> stream.head(3).block()[0].shape
    (3, 2)
    """

    name: str
    title: str
    why: str
    source: str
    domain: Domain
    loss: Loss
    lipschitz: float
    rounds: int
    decision: tuple[str, ...]
    scaling: str
    best_for: Literal["private", "lazy"]
    pieces: Callable[[], Iterable[Block]] = field(repr=False, compare=False)

    def blocks(self, size: int = BLOCK) -> Iterator[Block]:
        """Yield all rounds in blocks of `size`, the last perhaps shorter; which rounds come does not depend on it."""
        wanted = integer("size", size, least=1)
        held: list[Block] = []
        count, left = 0, self.rounds
        for piece in self.pieces():
            held.append(piece)
            count += len(piece[0])
            while left and count >= min(wanted, left):
                whole = _joined(held)
                now = min(wanted, left)
                # Copies: what a caller does to a block must not reach the next pass over the data.
                yield tuple(np.array(part[:now]) for part in whole)
                held, count, left = [tuple(part[now:] for part in whole)], count - now, left - now
            if not left:
                return
        raise ValueError(
            f"the stream {self.name} must have {self.rounds:,} rounds, got {self.rounds - left + count:,}; "
            "its source is not the one it was described from"
        )

    def block(self) -> Block:
        """Return all rounds at once."""
        return next(self.blocks(self.rounds))

    def head(self, rounds: int) -> Stream:
        """Return the stream that stops after so many rounds."""
        count = integer("rounds", rounds, least=1)
        if count > self.rounds:
            raise ValueError(f"rounds must be at most {self.rounds:,}, all that {self.name} has, got {rounds:,}")
        return self if count == self.rounds else replace(self, name=_renamed(self.name, count), rounds=count)


def _joined(held: list[Block]) -> Block:
    return held[0] if len(held) == 1 else tuple(np.concatenate(parts) for parts in zip(*held, strict=True))


def _renamed(name: str, rounds: int) -> str:
    """Return a name with another number of rounds, which stands first among the settings."""
    base, _, settings = name.partition(":")
    others = [one for one in settings.split(",") if one and not one.startswith("rounds=")]
    return f"{base}:{','.join([f'rounds={rounds}', *others])}"


# Randomness of streams without an end: the same rounds wherever one starts to cut them into blocks.

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
