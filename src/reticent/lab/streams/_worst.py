"""Synthetic streams that the theorems are tight on: for regret, for laziness and for privacy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reticent.domains import Ball
from reticent.lab.streams._adversaries import COMMON, Named
from reticent.lab.streams._seeded import Rounds, held, pieces
from reticent.lab.streams._settings import Setting
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Linear

_STEEPEST = 1.0 - 1e-12  # as in `reticent.privacy.worst_case`: a rounding error may not make it steeper than 1


def _signs(t: Rounds, rng: np.random.Generator, dim: int, seed: int, period: int) -> Block:
    chance = held(t // period, 2, seed)
    gradients = np.zeros((t.size, dim))
    gradients[np.arange(t.size), (dim * chance[:, 0]).astype(np.int64)] = np.where(chance[:, 1] < 0.5, -1.0, 1.0)
    return (gradients,)


def _telling(t: Rounds, rng: np.random.Generator, dim: int, batch: int, swing: float, world: int) -> Block:
    sizes = swing * _STEEPEST * np.where(t // batch % 2 == 1, 1.0, -1.0)
    sizes[t < batch] = 0.0
    sizes[t == 0] = _STEEPEST * (1 - 2 * world)
    gradients = np.zeros((t.size, dim))
    gradients[:, 0] = sizes
    return (gradients,)


def _held_signs(dim: int, seed: int, period: int) -> Iterator[Block]:
    return pieces(partial(_signs, dim=dim, seed=seed, period=period), seed, dim)


def _two_worlds(dim: int, batch: int, swing: float, world: int) -> Iterator[Block]:
    return pieces(partial(_telling, dim=dim, batch=batch, swing=swing, world=world), 0, dim)


def _signs_stream(title: str, why: str, *, name: str, rounds: int, dim: int, seed: int, period: int = 1) -> Stream:
    return Stream(
        name=name,
        title=title,
        why=why,
        source=f"synthetic, seed {seed}",
        domain=Ball(dim),
        loss=Linear(),
        lipschitz=1.0,
        rounds=rounds,
        decision=tuple(f"coordinate {i}" for i in range(1, dim + 1)),
        scaling="gradients of length 1",
        best_for="lazy" if period > 1 else "private",
        pieces=partial(_held_signs, dim, seed, period),
    )


def _telling_stream(*, name: str, rounds: int, dim: int, batch: int, swing: float, world: int) -> Stream:
    return Stream(
        name=name,
        title=f"two streams that differ in the first round only, told apart best: number {world}",
        why="an adversary: the audit of a private learner runs on both (see reticent.privacy.worst_case)",
        source="synthetic, without chance",
        domain=Ball(dim),
        loss=Linear(),
        lipschitz=1.0,
        rounds=rounds,
        decision=tuple(f"coordinate {i}" for i in range(1, dim + 1)),
        scaling="gradients of length 1 at most",
        best_for="private",
        pieces=partial(_two_worlds, dim, batch, swing, world),
    )


WORST: tuple[Named, ...] = (
    (
        "worst-regret",
        partial(
            _signs_stream,
            "a random sign along a random coordinate",
            "an adversary: whatever is played, the regret against the best of a ball of radius 1 is about sqrt(rounds)",
        ),
        COMMON,
    ),
    (
        "worst-laziness",
        partial(
            _signs_stream,
            "a random sign along a random coordinate, held for a period",
            "an adversary: whoever changes less than once a period follows too late, and who follows learns nothing",
        ),
        COMMON | {"period": Setting(100, least=1)},
    ),
    (
        "worst-privacy",
        _telling_stream,
        {
            "rounds": Setting(1_000, least=1),
            "dim": Setting(1, least=1, most=10_000),
            "batch": Setting(1, least=1),
            "swing": Setting(1.0, most=1.0),
            "world": Setting(0, most=1),
        },
    ),
)
