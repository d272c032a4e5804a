"""Synthetic streams of a service: latencies with days and incidents, and experts of whom one is better."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reticent._check import Array
from reticent.domains import Experts, Interval
from reticent.lab.streams._adversaries import COMMON, Named
from reticent.lab.streams._seeded import Rounds, held, pieces
from reticent.lab.streams._settings import Setting
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Linear, Pinball

_DAY = 86_400  # rounds of a day: a request a second
_MEDIAN, _SPREAD = 100.0, 0.5  # milliseconds, and the standard deviation of the logarithm
_TIMEOUT = 10_000.0
_SHORTEST, _LONGEST = 600, 3_600  # seconds of an incident, one a day
_MILDEST, _WORST = 2.0, 5.0  # times as slow
_AHEAD, _SEASON, _SEASONAL = 0.05, 10_000, 0.2


def _slower(t: Rounds, seed: int) -> Array:
    """Return how many times slower the service is in each round: the incident of the day, if it goes on."""
    when, length, factor = held(t // _DAY, 3, seed).T
    lasts = _SHORTEST + length * (_LONGEST - _SHORTEST)
    start = when * (_DAY - lasts)
    second = t % _DAY
    inside = (second >= start) & (second < start + lasts)
    return np.where(inside, _MILDEST + factor * (_WORST - _MILDEST), 1.0)


def _latencies(t: Rounds, rng: np.random.Generator, seed: int) -> Block:
    rhythm = 1.0 + 0.3 * np.sin(2.0 * np.pi * (t % _DAY) / _DAY)
    taken = _MEDIAN * rhythm * _slower(t, seed) * np.exp(_SPREAD * rng.standard_normal(t.size))
    return np.ones(t.size), np.minimum(taken, _TIMEOUT)


def _advice(t: Rounds, rng: np.random.Generator, dim: int) -> Block:
    chance = np.full((t.size, dim), 0.5)
    chance[np.arange(t.size), t // _SEASON % dim] -= _SEASONAL
    chance[:, 0] -= _AHEAD
    return ((rng.random((t.size, dim)) < chance).astype(np.float64),)


def _latency_pieces(seed: int) -> Iterator[Block]:
    return pieces(partial(_latencies, seed=seed), seed)


def _expert_pieces(dim: int, seed: int) -> Iterator[Block]:
    return pieces(partial(_advice, dim=dim), seed, dim)


def _latency(*, name: str, rounds: int, seed: int, level: float) -> Stream:
    return Stream(
        name=name,
        title=f"the latency that {level:.4g} of all requests stay below",
        why="every request is somebody's: the published threshold should not tell how fast one person was served",
        source=f"synthetic, seed {seed}: lognormal around a daily rhythm, with an incident a day",
        domain=Interval(0.0, 1000.0),
        loss=Pinball(level),
        lipschitz=max(level, 1.0 - level),
        rounds=rounds,
        decision=("milliseconds",),
        scaling="requests are given up after 10 seconds; the threshold is looked for in [0, 1000] milliseconds",
        best_for="private",
        pieces=partial(_latency_pieces, seed),
    )


def _experts(*, name: str, rounds: int, dim: int, seed: int) -> Stream:
    return Stream(
        name=name,
        title="whose advice to follow",
        why="what the experts lose comes from people who followed them; a change of expert has its price, too",
        source=f"synthetic, seed {seed}: coins, the first expert a little better, another one in every season",
        domain=Experts(dim),
        loss=Linear(),
        lipschitz=1.0,
        rounds=rounds,
        decision=tuple(f"expert {i}" for i in range(1, dim + 1)),
        scaling="losses are 0 or 1",
        best_for="private",
        pieces=partial(_expert_pieces, dim, seed),
    )


SERVICES: tuple[Named, ...] = (
    (
        "latency",
        _latency,
        {
            "rounds": Setting(1_000_000, least=1),
            "seed": Setting(0),
            "level": Setting(0.95, least=0.001, most=0.999),
        },
    ),
    ("experts", _experts, COMMON | {"dim": Setting(10, least=2, most=10_000)}),
)
