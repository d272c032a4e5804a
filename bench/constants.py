"""The protocol by which the constants of the filtered gate were chosen: on synthetic models, and what was looked at.

python bench/constants.py [--seeds 4] [--out bench/results/constants.md]

The models are of four kinds: logistic regressions, kinked losses (absolute regressions and quantiles), drifts, and
forecasts from earlier values. Features are scaled by public bounds that are too wide for some, as in practice. For each
setting of the constants the report has the mean share of the way from never moving to the best fixed decision, each
capped at 120, by kind and epsilon.

The rule: one constant after the other, the highest mean. Many values lie within 0.5 of each other, which four seeds
hardly tell apart; among these, fewer changes, a higher share at `bananas` and `imagesegments` (two streams that are not
reported elsewhere; the last column), or fewer hypotheses decided.

How this was kept apart from the streams that bench/ordinary.py reports. Constants were never compared there one by one,
but whole choices were looked at five times, as means over the six streams at epsilon 0.5, 1 and 3. A first on the first
three kinds (72 hypotheses, blocks that do not grow): 85.8, 92.5, 95.8. A second (12 hypotheses, one spread, blocks that
grow by half, no crosstalk): 81.6, 88.2, 92.3, and bad at `temperatures`. That correlated features are different was
learned there; so the fourth kind and the two development streams were added. A third (30 hypotheses) had 85.3, 90.9,
95.4, a fourth with curvatures that reach farther down 84.8, 90.4, 94.9. The fifth is the one that is reported.
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.signal import lfilter

import reticent as rt
from _ordinary import Problem, correlated
from _report import facts, facts_markdown, say, table, write
from reticent.lab import streams
from reticent.privacy._losses import largest_mu
from reticent.systems.filtered import _filter, _plan

EPSILONS, DELTA = (0.5, 1.0, 3.0), 1e-6
KINDS = ("logistic", "kinked", "drift", "forecast")
DEVELOPMENT = ("bananas", "imagesegments")
PLACES = {name: _filter for name in ("CURVATURES", "DRIFTS", "SPREADS", "SCATTER", "CROSSTALK", "SHARED")}
PLACES |= {"BLOCK": _plan, "LONGER": _plan, "SMOOTH_CLIP": _plan}
OTHERS: dict[str, tuple[Any, ...]] = {
    "CURVATURES": ((4.0, 1.0, 0.25, 0.0625), (16.0, 4.0, 1.0, 0.25, 0.0625, 0.015625)),
    "DRIFTS": ((0.0,), (0.0, 1e-4), (0.0, 1e-5, 3e-4)),
    "SPREADS": ((0.5,), (0.3, 1.0), (0.25, 0.5, 1.0)),
    "SCATTER": (0.0, 1.0),
    "CROSSTALK": (0.0, 0.3, 1.0),
    "SHARED": (0.0, 0.3),
    "BLOCK": (1.5, 3.0, 4.0),
    "LONGER": (1.0, 1.2, 1.6, 2.0),
    "SMOOTH_CLIP": (0.35, 0.75, 1.0),
}


def features(rng: np.random.Generator, rounds: int, dim: int) -> np.ndarray:
    """Return rows of length at most 1: columns scaled to [-1, 1] by public bounds, and an intercept."""
    columns = []
    for _ in range(dim - 1):
        kind = rng.integers(4)
        if kind == 0:
            column = rng.uniform(-1, 1, rounds)
        elif kind == 1:
            column = np.where(rng.random(rounds) < rng.uniform(0.1, 0.9), 1.0, -1.0)
        elif kind == 2:  # skewed, with bounds that are too wide
            column = 2 * np.minimum(rng.lognormal(0, 1, rounds) / rng.uniform(8, 30), 1) - 1
        else:
            column = np.clip(rng.normal(rng.uniform(-0.4, 0.4), rng.uniform(0.1, 0.4), rounds), -1, 1)
        columns.append(column)
    return np.stack([*columns, np.ones(rounds)], axis=1) / np.sqrt(dim)


def labels(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    return np.where(rng.random(logits.size) < 1 / (1 + np.exp(-logits)), 1.0, -1.0)


def logistic(seed: int) -> Problem:
    rng = np.random.default_rng([1, seed])
    dim, rounds = int(rng.choice([3, 5, 8, 10, 15])), int(rng.choice([1000, 2500, 6000, 20000, 50000]))
    X, w = features(rng, rounds, dim), rng.normal(size=dim) * rng.choice([1.5, 3.0, 6.0])
    y = labels(rng, X @ w + rng.normal() * X[:, -1])
    return Problem(f"logistic {seed}", rt.Ball(dim, radius=8.0), rt.Logistic(), 1.0, (X, y))


def regression(seed: int) -> Problem:
    rng = np.random.default_rng([2, seed])
    dim, rounds = int(rng.choice([1, 2, 4, 6])), int(rng.choice([1000, 3000, 9000, 20000]))
    X, w, scale = features(rng, rounds, dim), rng.normal(size=dim) * 0.5, rng.choice([0.1, 0.3])
    errors = rng.standard_t(3, rounds) if rng.random() < 0.5 else rng.normal(size=rounds)
    domain = rt.Ball(dim, radius=2.0) if dim > 1 else rt.Interval(-1.0, 1.0)
    return Problem(f"absolute {seed}", domain, rt.Absolute(), 1.0, (X, np.clip(X @ w + scale * errors, -1, 1)))


def quantile(seed: int) -> Problem:
    rng = np.random.default_rng([3, seed])
    rounds, tau = int(rng.choice([2000, 8000, 20000])), (0.5, 0.9, 0.95, 0.9, 0.5, 0.95, 0.99, 0.9)[seed % 8]
    y = np.minimum(rng.gamma(rng.uniform(0.5, 3), 1, rounds) * rng.choice([1.0, 2.0, 4.0]), 20.0)
    data = np.ones((rounds, 1)), y
    return Problem(f"pinball {seed}", rt.Interval(0.0, 20.0), rt.Pinball(tau), max(tau, 1 - tau), data)


def drifting(seed: int) -> Problem:
    rng = np.random.default_rng([4, seed])
    rounds, name = int(rng.choice([4000, 9000, 20000])), f"drift {seed}"
    t = np.arange(rounds) / rounds
    if seed % 3 == 0:  # a seasonal level
        level = 0.4 * np.sin(2 * np.pi * t * rng.uniform(1, 4) + rng.uniform(0, 6))
        y = np.clip(level + 0.15 * rng.normal(size=rounds), -1, 1)
        return Problem(name, rt.Interval(-1.0, 1.0), rt.Absolute(), 1.0, (np.ones((rounds, 1)), y))
    if seed % 3 == 1:  # jumps of a quantile
        level = np.repeat(rng.uniform(0.5, 3, 5), -(-rounds // 5))[:rounds]
        y = np.minimum(rng.gamma(1.5, 1, rounds) * level, 20.0)
        return Problem(name, rt.Interval(0.0, 20.0), rt.Pinball(0.9), 0.9, (np.ones((rounds, 1)), y))
    X, w, v = features(rng, rounds, 5), rng.normal(size=5) * 3, rng.normal(size=5) * 2
    y = labels(rng, X @ w + (X @ v) * np.sin(2 * np.pi * t * rng.uniform(0.5, 2)))
    return Problem(name, rt.Ball(5, radius=8.0), rt.Logistic(), 1.0, (X, y))


def forecast(seed: int) -> Problem:
    """Return an autoregression with seasons: features are earlier values, so they are correlated, and they drift."""
    rng = np.random.default_rng([5, seed])
    rounds, dim = int(rng.choice([4000, 9000, 20000])), int(rng.choice([3, 5]))
    t = np.arange(rounds)
    season = 0.5 * np.sin(2 * np.pi * t / rounds * rng.uniform(1, 3) + rng.uniform(0, 6))
    daily = 0.2 * np.sin(2 * np.pi * t / 24)
    keep, scale = rng.uniform(0.7, 0.97), rng.choice([0.03, 0.08])
    error = lfilter([1.0], [1.0, -keep], rng.normal(size=rounds) * scale)
    y = np.clip(season + daily + error, -1, 1)
    lags = [np.concatenate([np.zeros(k), y[:-k]]) for k in ((1, 24) if dim == 3 else (1, 2, 24))]
    rest = [np.ones(rounds)] if dim == 3 else [np.sin(2 * np.pi * t / 24), np.ones(rounds)]
    X, domain = np.stack([*lags, *rest], axis=1) / np.sqrt(dim), rt.Ball(dim, radius=float(rng.choice([4.0, 8.0])))
    return Problem(f"forecast {seed}", domain, rt.Absolute(), 1.0, (X, y))


def suite() -> dict[str, list[Problem]]:
    """Return the models by kind."""
    kinked = [*map(regression, range(10)), *map(quantile, range(16))]
    return {
        "logistic": [*map(logistic, range(16))],
        "kinked": kinked,
        "drift": [*map(drifting, range(12))],
        "forecast": [*map(forecast, range(6))],
    }


@contextmanager
def constants(values: dict[str, Any]) -> Iterator[None]:
    """Run with other constants."""
    patches = [patch.object(PLACES[name], name, value) for name, value in values.items()]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def ours(problem: Problem, epsilon: float, seed: int) -> tuple[float, int]:
    goal = {"epsilon": epsilon, "delta": DELTA, "lipschitz": problem.lipschitz, "seed": seed}
    return problem.run(rt.private_learner(problem.loss, problem.domain, **goal))


def peer(problem: Problem, epsilon: float, seed: int) -> tuple[float, int]:
    return correlated(problem, largest_mu(epsilon, DELTA), np.random.default_rng(seed))


def development() -> list[Problem]:
    """Return real streams that are not reported."""
    found = map(streams.get, DEVELOPMENT)
    return [Problem(one.name, one.domain, one.loss, one.lipschitz, one.block()) for one in found]


def scored(models: dict[str, list[Problem]], seeds: int, play: Any) -> tuple[list[float], float]:
    """Return the mean share by kind and epsilon, and the changes at epsilon 1 in a thousand rounds."""
    shares, rates = [], []
    for kind in models:
        for epsilon in EPSILONS:
            found = []
            for problem in models[kind]:
                runs = [play(problem, epsilon, seed) for seed in range(seeds)]
                found.append(min(120.0, problem.share(float(np.mean([total for total, _ in runs])))))
                if epsilon == 1.0:
                    rates.append(1000 * runs[0][1] / problem.rounds)
            shares.append(float(np.mean(found)))
    return shares, float(np.mean(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "constants.md")
    args = parser.parse_args()
    models, real, rows = suite(), {"development": development()}, []
    settings: list[tuple[str, dict[str, Any]]] = [("as chosen", {})]
    settings += [(f"{name} = {value}", {name: value}) for name, values in OTHERS.items() for value in values]
    for label, values in [*settings, ("G7, fixed constants", None)]:
        with constants(values or {}):
            shares, rate = scored(models, args.seeds, peer if values is None else ours)
            others, _ = scored(real, args.seeds, peer if values is None else ours)
        rows.append([label, *shares, float(np.mean(shares)), rate, float(np.mean(others))])
        say(label, [round(x, 1) for x in rows[-1][1:]])
    chosen = {name: getattr(place, name) for name, place in PLACES.items()}
    heads = ["setting", *(f"{kind}, {epsilon:g}" for kind in KINDS for epsilon in EPSILONS), "mean", "changes per 1000"]
    heads.append("development streams")
    about = "\n".join((__doc__ or "").splitlines()[4:])
    text = [
        "# How the constants were chosen",
        about,
        f"As chosen: {chosen}. Seeds: {args.seeds}.",
        facts_markdown(facts("numpy")),
    ]
    lines = [[row[0], *(f"{x:.1f}" for x in row[1:])] for row in rows]
    data = {"facts": facts("numpy"), "chosen": {k: str(v) for k, v in chosen.items()}, "heads": heads, "rows": rows}
    write(args.out, "\n\n".join([*text, table(heads, lines, text=1)]), data)


if __name__ == "__main__":
    main()
