"""One cell of a table: a system's certificate at one point, its regret on a panel, and curves through cells."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent import planning
from reticent._core import _names
from reticent.lab import streams
from reticent.lab._study import Best, Run, Study
from reticent.lab._walk import hindsight, plan_facts, stream_facts, walk
from reticent.learners import make

if TYPE_CHECKING:
    from reticent.planning import BasePlan


SMOOTHNESS = 0.25  # of the logistic loss: what systems that need smooth losses may count on


def plan_of(system: str, rounds: int, dim: int, value: float, delta: float) -> BasePlan:
    """Return a system's plan on the unit ball, slopes up to 1; `value` is epsilon, or the number of switches.

    >>> plan_of("P-COMW, lazy", 1000, 2, 100.0, 0.0).expected_switches <= 100
    True
    """
    import reticent as rt

    size = rt.Ball(dim), rounds, 1.0
    private: dict[str, Callable[..., BasePlan]] = {
        _names.PCOMW: rt.plan_private,
        _names.PAPER: rt.theorem_private,
        _names.FLAT: planning.plan_flat,
        _names.DP_FTRL: planning.plan_ftrl,
        _names.NOISY_DESCENT: planning.plan_noisy_descent,
    }
    if system in private:
        return private[system](*size, value, delta)
    if system == _names.PCOMW_FIXED:
        return rt.plan_private(*size, value, delta, adversary="oblivious")
    if system == _names.DP_FTRL_TREE:
        return planning.plan_ftrl(*size, value, delta, noise="tree")
    smooth: dict[str, Any] = {
        "smoothness": SMOOTHNESS,
        "general": system in (_names.OBJECTIVE_ANY, _names.SHERMAN_KOREN_ANY),
    }
    if system in (_names.OBJECTIVE, _names.OBJECTIVE_ANY):
        return planning.plan_objective(*size, value, delta, **smooth)
    switches = int(value)
    if system in (_names.SHERMAN_KOREN, _names.SHERMAN_KOREN_ANY):
        return planning.plan_sherman_koren(*size, switches, **smooth)
    if system == _names.DESCENT:
        return planning.plan_descent(*size, max_switches=switches)
    return (rt.plan_lazy if system == _names.PCOMW_LAZY else rt.theorem_lazy)(*size, switches)


def panel(rounds: int, dim: int, switches: float | None) -> dict[str, str]:
    """Return the streams that regret is measured on, by the name they have in the report.

    All are linear and fixed in advance. Turns come once in sqrt(T) rounds, the time in which a learner of regret
    sqrt(T) goes across the ball; for lazy learners signs are also held for as long as they hold a decision.

    >>> panel(10_000, 2, None)["to and fro"]
    'alternating:rounds=10000,dim=2,seed=1,noise=0.5,period=100'
    """
    size = f"rounds={rounds},dim={dim},seed=1"
    found = {
        "steady": f"iid:{size}",
        "to and fro": f"alternating:{size},noise=0.5,period={max(1, math.isqrt(rounds))}",
        "turning": f"piecewise:{size}",
        "random signs": f"worst-regret:{size}",
    }
    if switches is not None:
        found["held signs"] = f"worst-laziness:{size},period={max(1, round(rounds / switches))}"
    return found


def cell(
    system: str, rounds: int, dim: int, variable: str, value: float, delta: float, seeds: int = 0
) -> dict[str, Any]:
    """Return a system's certificate at a point and, with `seeds`, its mean regret on every stream of the panel.

    `theorem` is what the system's own theorem says, which may be above what any decisions suffer: for exponents.

    >>> found = cell("online gradient descent", 1000, 2, "S", 100.0, 0.0, seeds=1)
    >>> round(found["certificate"]), sorted(found["measured"])
    (100, ['held signs', 'random signs', 'steady', 'to and fro', 'turning'])
    """
    begin = time.process_time()
    found: dict[str, Any] = {"certificate": None, "theorem": None, "vacuous": False, "switches": None}
    found |= {"reason": "", "measured": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of vacuous certificates, which are recorded
        try:
            plan = plan_of(system, rounds, dim, value, delta)
        except ValueError as why:
            found["reason"] = str(why)
            return found | {"seconds": time.process_time() - begin}
        found |= {"certificate": plan.certified_regret, "theorem": plan.regret_bound, "vacuous": bool(plan.vacuous)}
        found["switches"] = plan.expected_switches
        if seeds:
            streams = panel(rounds, dim, value if variable == "S" else None)
            found["measured"] = {name: _measured(plan, spec, seeds) for name, spec in streams.items()}
    return found | {"seconds": time.process_time() - begin}


def _measured(plan: BasePlan, spec: str, seeds: int) -> dict[str, float]:
    """Return mean regret over the learner's randomness on one stream, its standard error and the mean of switches."""
    stream = streams.get(spec)
    learners = [make(plan, stream.loss, seed) for seed in range(seeds)]
    total, suffered = np.zeros(plan.domain.dim), np.zeros(seeds)
    for (gradients,) in stream.blocks():
        total += gradients.sum(axis=0)
        suffered += [learner.observe_many(gradients).total for learner in learners]
    best = plan.domain.support(total)  # of linear losses: the point farthest against their sum
    regrets = suffered - total @ best
    error = float(np.std(regrets, ddof=1) / math.sqrt(seeds)) if seeds > 1 else 0.0
    switches = float(np.mean([learner.switches for learner in learners]))
    return {"regret": float(regrets.mean()), "error": error, "switches": switches}


# Regret against epsilon and against switches: every system of the tables on one stream, as studies for pictures.

DELTA = 1e-6
DIM = 4
STREAM = "steady"  # of the panel: where the certificates are nearest to the truth
PRIVATE = (
    *(_names.PCOMW, _names.PCOMW_FIXED, _names.FLAT, _names.OBJECTIVE, _names.DP_FTRL, _names.DP_FTRL_TREE),
    _names.NOISY_DESCENT,
)
LAZY = (_names.PCOMW_LAZY, _names.SHERMAN_KOREN, _names.DESCENT)


def runs(system: str, rounds: int, dim: int, variable: str, value: float, seeds: int) -> dict[str, Any]:
    """Run a system on the stream; return the runs and the best fixed decision as plain data.

    >>> found = runs("online gradient descent", 500, 2, "S", 50.0, 1)
    >>> found["runs"][0]["switches"], found["best"]["at"][-1]
    (50, 500)
    """
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
    return [
        size | {"system": s, "value": v} for s in systems for v in values if not (quick and s == _names.PCOMW_FIXED)
    ]


def study(variable: str, found: Sequence[dict[str, Any]]) -> Study:
    """Return the study that a picture is drawn from."""
    first = found[0]
    made = [Run(**{one.name: run[one.name] for one in fields(Run)}) for part in found for run in part["runs"]]
    rounds = made[0].rounds
    title = f"Regret against {'epsilon' if variable == 'epsilon' else 'switches'}, {rounds:,} rounds, d = {DIM}"
    goal = {"delta": DELTA} if variable == "epsilon" else {}
    return Study(title, "comparison", first["stream"], goal, made, best=Best(**first["best"]))
