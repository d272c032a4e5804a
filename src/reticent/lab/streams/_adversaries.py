"""Synthetic streams around a truth that stays, drifts, alternates or turns, for several losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from reticent._check import Array
from reticent.domains import Ball
from reticent.lab.streams._seeded import Rounds, directions, pieces, shape, sphere, within_one
from reticent.lab.streams._settings import Setting
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Absolute, Hinge, Linear, Logistic, Loss

LOSSES: dict[str, Loss] = {"linear": Linear(), "logistic": Logistic(), "hinge": Hinge(), "absolute": Absolute()}
COMMON = {"rounds": Setting(100_000, least=1), "dim": Setting(5, least=1, most=10_000), "seed": Setting(0)}
KNOWN_LOSS = Setting("linear", words=tuple(LOSSES))

_FIRST_TURN, _GROWTH = 100, 1.25  # turns at the same fractions of every horizon: each can undo what came before
_TAIL = 1.5  # degrees of freedom of Student's law: a mean, but no variance


def _truth(path: str, t: Rounds, dim: int, seed: int, period: int) -> Array:
    """Return where the truth points in each round, as unit vectors (shorter on a drift in one dimension)."""
    one, two = directions(2, dim, seed)
    if path == "iid":
        return np.broadcast_to(one, (t.size, dim))
    if path == "alternating":
        return np.outer(1.0 - 2.0 * (t // period % 2), one)
    if path == "drifting":
        angle = 2.0 * np.pi * (t % period) / period
        return np.outer(np.cos(angle), one) + np.outer(np.sin(angle), two)
    return _turning(t, dim, seed)


def _turning(t: Rounds, dim: int, seed: int) -> Array:
    rng = shape(seed)
    found = np.empty((t.size, dim))
    total, start, k = np.zeros(dim), 0, 0
    while start <= t[-1]:
        stop = int(np.ceil(_FIRST_TURN * _GROWTH**k))
        towards = -total if k % 2 else rng.standard_normal(dim)
        towards = towards / np.linalg.norm(towards)
        found[(t >= start) & (t < stop)] = towards
        total, start, k = total + (stop - start) * towards, stop, k + 1
    return found


def _rounds(
    t: Rounds,
    rng: np.random.Generator,
    path: str,
    dim: int,
    seed: int,
    loss: str,
    noise: float,
    period: int,
    heavy: bool,
) -> Block:
    truth = _truth(path, t, dim, seed, period)
    if loss == "linear":
        return (within_one(noise / np.sqrt(dim) * rng.standard_normal((t.size, dim)) - 0.5 * truth),)
    features = sphere(t.size, dim, rng)
    signal = np.sum(features * truth, axis=1)
    # A coordinate of a random direction is about 1 / sqrt(dim): so is the noise.
    error = noise / np.sqrt(dim) * (rng.standard_t(_TAIL, t.size) if heavy else rng.standard_normal(t.size))
    if loss == "absolute":
        return features, 0.5 * signal + error
    return features, np.where(signal + error > 0, 1.0, -1.0)


def _source(path: str, dim: int, seed: int, loss: str, noise: float, period: int, heavy: bool) -> Iterator[Block]:
    law = partial(_rounds, path=path, dim=dim, seed=seed, loss=loss, noise=noise, period=period, heavy=heavy)
    return pieces(law, seed, dim)


def around(
    path: str, title: str, why: str, heavy: bool, *, name: str, rounds: int, dim: int, seed: int, loss: str,
    noise: float, period: int = 1,
) -> Stream:  # fmt: skip
    """Return the stream around a truth that goes along a path."""
    return Stream(
        name=name,
        title=title,
        why=why,
        source=f"synthetic, seed {seed}",
        domain=Ball(dim),
        loss=LOSSES[loss],
        lipschitz=1.0,
        rounds=rounds,
        decision=tuple(f"coordinate {i}" for i in range(1, dim + 1)),
        scaling="gradients cut to length 1" if loss == "linear" else "features of length 1",
        best_for="lazy" if path == "alternating" else "private",
        pieces=partial(_source, path, dim, seed, loss, noise, period, heavy),
    )


_WHY = "an adversary: it shows what a learner does when the truth "


def _entry(path: str, title: str, fate: str, heavy: bool = False) -> Callable[..., Stream]:
    return partial(around, path, title, _WHY + fate, heavy)


Named = tuple[str, Callable[..., Stream], dict[str, Setting]]

_NOISE, _LOSS = {"noise": Setting(0.5, most=100.0)}, {"loss": KNOWN_LOSS}

AROUND: tuple[Named, ...] = (
    ("iid", _entry("iid", "independent rounds around one truth", "stays"), COMMON | _LOSS | _NOISE),
    (
        "logistic",
        _entry("iid", "features on the sphere, noisy labels", "stays"),
        COMMON | {"dim": Setting(10, least=1, most=10_000), "loss": Setting("logistic", words=tuple(LOSSES))} | _NOISE,
    ),
    (
        "heavy",
        _entry("iid", "targets with tails too heavy for a variance", "stays and targets go astray", heavy=True),
        COMMON | {"loss": Setting("absolute", words=("absolute",))} | _NOISE,
    ),
    (
        "drifting",
        _entry("drifting", "a truth that goes round", "moves a little every round"),
        COMMON | _LOSS | _NOISE | {"period": Setting(20_000, least=1)},
    ),
    (
        "alternating",
        _entry("alternating", "a truth that goes to and fro", "is turned round after every period"),
        COMMON | _LOSS | {"noise": Setting(0.0, most=100.0), "period": Setting(1, least=1)},
    ),
    (
        "piecewise",
        _entry("piecewise", "a truth that turns against the sum so far", "turns against all that was learnt"),
        COMMON | _LOSS | _NOISE,
    ),
)
