"""A small made-up study, for the examples and tests of pictures and reports: no learner runs, so it is cheap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.lab._study import Best, Run, Study
from reticent.lab._walk import places

ROUNDS, DELTA = 5_000, 1e-6
# Name, whether it is private, regret at epsilon 1 in units of sqrt(T), changes per round, certificate over regret.
SYSTEMS = (
    ("P-COMW", True, 1.2, 0.02, 1.5),
    ("DP-FTRL", True, 0.9, 0.25, 2.2),
    ("online gradient descent", False, 0.4, 1.0, 2.5),
)


def small_study(epsilons: Sequence[float] = (1.0,), seeds: int = 3, title: str = "A made-up comparison") -> Study:
    """Return a study with curves of the usual shape.

    >>> study = small_study((0.5, 1.0), seeds=2)
    >>> len(study.runs), study.best.at[-1]
    (10, 5000)
    """
    at = places(ROUNDS)
    best = Best([0.25, -0.5], 0.5 * ROUNDS, 0.0, at.tolist(), (0.5 * at).tolist())
    settings = [(s, epsilon) for s in SYSTEMS for epsilon in (epsilons if s[1] else (None,))]
    runs = [_run(system, epsilon, seed) for system, epsilon in settings for seed in range(seeds)]
    stream = {
        **{"name": "made-up", "title": "Curves of the usual shape", "why": "to look at pictures", "source": "none"},
        **{"lipschitz": 1.0, "rounds": ROUNDS, "scaling": "none is needed", "dim": 2, "domain": "Ball(2, 1.0)"},
        **{"loss": "Linear()", "decision": ["first number", "second number"]},
    }
    goal = {"epsilon": list(epsilons), "delta": DELTA, "horizon": ROUNDS}
    refusals = [{"system": "online Newton step", "reason": "is for exp-concave losses"}]
    return Study(title, "comparison", stream, goal, runs, best, refusals, "reticent compare made-up --epsilon 1")


def _run(system: tuple[str, bool, float, float, float], epsilon: float | None, seed: int) -> Run:
    name, _, scale, often, ratio = system
    rng = np.random.default_rng([seed, len(name)])
    at = places(ROUNDS)
    often *= 1.0 if epsilon is None else epsilon**0.5
    scale /= 1.0 if epsilon is None else epsilon**0.5
    regret = scale * np.sqrt(at) * (1 + 0.1 * rng.standard_normal()) + 0.3 * np.sin(at / 300 + seed)
    starts = np.flatnonzero(np.append(True, rng.random(ROUNDS - 1) < often))
    points = np.array([0.25, -0.5]) + 0.3 * rng.standard_normal((starts.size, 2)) / np.sqrt(1 + starts / 50)[:, None]
    losses = 0.5 * at + regret
    return Run(
        system=name,
        seed=seed,
        plan=_plan(name, epsilon, scale * ratio * math.sqrt(ROUNDS), often),
        rounds=ROUNDS,
        switches=starts.size - 1,
        total=float(losses[-1]),
        correct=None,
        seconds=0.01 * len(name),
        at=at.tolist(),
        losses=losses.tolist(),
        switched=(np.searchsorted(starts, at, "right") - 1).tolist(),
        starts=starts.tolist(),
        points=points.tolist(),
        whole=True,
        regret=float(regret[-1]),
    )


def _plan(name: str, epsilon: float | None, bound: float, often: float) -> dict[str, Any]:
    at = np.linspace(1, ROUNDS, 8).astype(int).tolist()
    spent = None if epsilon is None else [epsilon * math.sqrt(t / ROUNDS) for t in at]
    return {
        **{"system": name, "horizon": ROUNDS, "lipschitz": 1.0, "regret_bound": bound, "vacuous": False},
        **{"expected_switches": often * ROUNDS, "max_switches": None if epsilon is None else int(1.1 * often * ROUNDS)},
        **{"epsilon": epsilon, "delta": None if epsilon is None else DELTA, "neighbors": "replace"},
        **{"adversary": "adaptive", "domain": "Ball(2, 1.0)", "text": f"plan  {name}"},
        **{"explain": f"This is {name}, made up.\n\nNothing of it was computed.", "spent": spent},
        "spent_at": None if spent is None else at,
    }
