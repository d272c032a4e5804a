"""Synthetic streams: truths that stay, drift, alternate or turn, what theorems are tight on, and those of a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.domains import Ball, Domain, Experts, Interval
from reticent.lab.streams._stream import (
    Block,
    Rounds,
    Setting,
    Stream,
    directions,
    held,
    pieces,
    shape,
    sphere,
    within_one,
)
from reticent.losses import Absolute, Hinge, Linear, Logistic, Loss, Pinball

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


# Synthetic streams that the theorems are tight on: for regret, for laziness and for privacy.

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


def _gradients(domain: Domain, part: str) -> dict[str, Any]:
    """Return what streams of gradients share: slopes up to 1, and a name for each coordinate of a decision."""
    names = tuple(f"{part} {i}" for i in range(1, domain.dim + 1))
    return {"domain": domain, "loss": Linear(), "lipschitz": 1.0, "decision": names}


def _signs_stream(title: str, why: str, *, name: str, rounds: int, dim: int, seed: int, period: int = 1) -> Stream:
    return Stream(
        name=name,
        title=title,
        why=why,
        source=f"synthetic, seed {seed}",
        **_gradients(Ball(dim), "coordinate"),
        rounds=rounds,
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
        **_gradients(Ball(dim), "coordinate"),
        rounds=rounds,
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


# Synthetic streams of a service: latencies with days and incidents, and experts of whom one is better.
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
        **_gradients(Experts(dim), "expert"),
        rounds=rounds,
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
