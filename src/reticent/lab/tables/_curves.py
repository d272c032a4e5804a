"""Regret against epsilon and against switches: every system of the tables on one stream, as studies for pictures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from reticent.lab._study import Best, Run, Study
from reticent.lab.tables import _regimes as names
from reticent.lab.tables._cell import panel, plan_of

DELTA = 1e-6
DIM = 4
STREAM = "steady"  # of the panel: where the certificates are nearest to the truth
PRIVATE = (names.PRIVATE, names.FIXED, names.FLAT, names.OBJECTIVE, names.FTRL, names.TREE)
LAZY = (names.LAZY, names.LEADER, names.BLOCKS)


def runs(system: str, rounds: int, dim: int, variable: str, value: float, seeds: int) -> dict[str, Any]:
    """Run a system on the stream; return the runs and the best fixed decision as plain data.

    >>> found = runs("online gradient descent", 500, 2, "S", 50.0, 1)
    >>> found["runs"][0]["switches"], found["best"]["at"][-1]
    (50, 500)
    """
    from reticent.lab import streams
    from reticent.lab._walk import hindsight, plan_facts, stream_facts, walk

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of vacuous certificates, which the picture leaves out
        stream = streams.get(panel(rounds, dim, None)[STREAM])
        best = hindsight(stream)
        plan = plan_of(system, rounds, dim, value, DELTA)
        described = plan_facts(plan)
        done = [walk(plan, stream, seed, system=system, best=best, described=described) for seed in range(seeds)]
    # Paths of decisions are most of a run's size, and no curve needs them.
    brief = [replace(run, starts=run.starts[:1], points=run.points[:1], whole=False) for run in done]
    return {"runs": [asdict(run) for run in brief], "best": asdict(best), "stream": stream_facts(stream)}


def tasks(variable: str, quick: bool) -> list[dict[str, Any]]:
    """Return the runs of one picture."""
    rounds, seeds = (20_000, 2) if quick else (200_000, 3)
    if variable == "epsilon":
        values: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0) if quick else (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    else:
        values = tuple(float(rounds // part) for part in ((1000, 100, 10) if quick else (5000, 1000, 200, 40, 8)))
    size = {"rounds": rounds, "dim": DIM, "variable": variable, "seeds": seeds}
    systems = PRIVATE if variable == "epsilon" else LAZY
    return [size | {"system": s, "value": v} for s in systems for v in values if not (quick and s == names.FIXED)]


def study(variable: str, found: Sequence[dict[str, Any]]) -> Study:
    """Return the study that a picture is drawn from."""
    first = found[0]
    made = [Run(**{one.name: run[one.name] for one in fields(Run)}) for part in found for run in part["runs"]]
    rounds = made[0].rounds
    title = f"Regret against {'epsilon' if variable == 'epsilon' else 'switches'}, {rounds:,} rounds, d = {DIM}"
    goal = {"delta": DELTA} if variable == "epsilon" else {}
    return Study(title, "comparison", first["stream"], goal, made, best=Best(**first["best"]))
