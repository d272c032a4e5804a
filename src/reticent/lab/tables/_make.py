"""The tables: all cells in parallel, kept as they finish, then who wins, exponents, and who is best where."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from reticent._core._names import PAPER, PAPER_LAZY, PCOMW_FIXED
from reticent.lab._environment import facts
from reticent.lab._kept import PLANNING, SOURCES
from reticent.lab._work import run_all
from reticent.lab.tables import _cell
from reticent.lab.tables._cell import cell
from reticent.lab.tables._levels import levels_of, worst
from reticent.lab.tables._regimes import REGIMES, TABLES, Regime, in_words, least_gap

ALONG = "along"  # the exponent of T along a regime, among those that have power
CONFUSED = 30.0  # condition number from which on exponents are not told apart
LEVEL = 0.95


@dataclass(frozen=True)
class Exponent:
    """A fitted exponent with its 95 percent interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """A power law fitted to points: its exponents, how far the points are from it, and what could not be fitted.

    `condition` is that of the logarithms, centred and of equal length: above 30 the variables move together and their
    exponents trade against each other. `residual` is the root mean square of the logarithm that is left.
    """

    exponents: dict[str, Exponent]
    points: int
    condition: float
    residual: float

    @property
    def identifiable(self) -> bool:
        """Whether the points tell the exponents apart."""
        return self.condition < CONFUSED

    def facts(self) -> dict[str, Any]:
        """Return it all as plain data."""
        return asdict(self) | {"identifiable": self.identifiable}


def fit(rows: Sequence[Mapping[str, float]], variables: Sequence[str], target: str = "regret") -> Fit | None:
    """Fit target = constant * product of powers; None with too few points. Variables that do not vary are left out.

    >>> rows = [{"T": T, "d": d, "regret": 3 * T**0.5 * d} for T in (10, 100, 1000) for d in (2, 4)]
    >>> {name: round(one.value, 6) for name, one in fit(rows, ("T", "d")).exponents.items()}
    {'T': 0.5, 'd': 1.0}
    """
    moving = [name for name in variables if len({row[name] for row in rows}) > 1]
    if not moving or len(rows) < len(moving) + 2:
        return None
    X = np.log([[float(row[name]) for name in moving] for row in rows])
    y = np.log([float(row[target]) for row in rows])
    X, middle = X - X.mean(axis=0), y - y.mean()
    sizes = np.linalg.norm(X, axis=0)
    lengths = np.linalg.svd(X / sizes, compute_uv=False)
    condition = float(lengths[0] / lengths[-1]) if lengths[-1] > 1e-12 else math.inf
    if not math.isfinite(condition):
        return Fit({}, len(rows), condition, math.nan)
    values = np.linalg.lstsq(X, middle, rcond=None)[0]
    left = middle - X @ values
    free = len(rows) - len(moving) - 1
    spread = np.sqrt(np.sum(left**2) / free * np.diag(np.linalg.inv(X.T @ X)))
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, free)) * spread
    found = {
        name: Exponent(float(v), float(v - r), float(v + r)) for name, v, r in zip(moving, values, reach, strict=True)
    }
    return Fit(found, len(rows), condition, float(np.sqrt(np.mean(left**2))))


# The points at which the tables are computed: inside every regime, for certificates and for runs.

PARTS = (0.1, 0.9)  # of the way through a regime, in logarithms
# A delta of 1e-6 is not small beside the epsilons of the last regimes at large T, and would soften them.
DELTAS = {"runnable": 1e-6, "large": 1e-9}
RUNNABLE, LARGE = "runnable", "large"

_ROUNDS = {
    (RUNNABLE, False): (10**4, 6 * 10**4, 4 * 10**5),
    (RUNNABLE, True): (4 * 10**3, 3 * 10**4),  # with fewer, the largest epsilon would be above 50, and refused
    (LARGE, False): (10**8, 10**10, 10**12),  # P-COMW is planned for up to 1e12 rounds
    (LARGE, True): (10**8, 10**12),
}
_LAZY_LARGE = {False: (2**30, 2**36, 2**42), True: (2**30, 2**42)}  # at 2^53 a plan of the lazy leader is not the best
_FORMULA = {False: (10**12, 10**14, 9 * 10**15), True: (10**12, 9 * 10**15)}  # closed forms cost nothing
_DIMS = {RUNNABLE: (2, 16), LARGE: (4, 64)}
# Rows 5 and 6 are apart from row 4 for T >= d^9 only, and row 7 for T >= d^6; row 3 is narrow, a factor of d^(1/6),
# unless d is large.
_DIMS_OF = {
    ("1.3", RUNNABLE): (4, 32),
    ("1.3", LARGE): (16, 256),
    ("1.5", RUNNABLE): (2, 3),
    ("1.5", LARGE): (2, 7),
    ("1.6", RUNNABLE): (2, 3),
    ("1.6", LARGE): (2, 7),
    ("1.7", RUNNABLE): (2, 4),
    ("1.7", LARGE): (4, 16),
}
_LATER = {False: (2 * 10**4, 10**5, 4 * 10**5), True: (2 * 10**4, 10**5)}  # 2e4 is 3^9


def seeds_of(rounds: int) -> int:
    """Return how many runs a mean is over: short ones cost little, and some learners draw their noise only once."""
    return 8 if rounds <= 10**4 else 4 if rounds <= 10**5 else 3


def tasks_of(regime: Regime, system: str, scale: str, quick: bool) -> list[dict[str, Any]]:
    """Return the cells of one system in one regime, at runnable or at large T."""
    rounds_here = _ROUNDS[scale, quick]
    if scale == LARGE and system in (PAPER, PAPER_LAZY):
        rounds_here = _FORMULA[quick]
    elif scale == LARGE and regime.table == 2:
        rounds_here = _LAZY_LARGE[quick]
    elif scale == RUNNABLE and regime.name in ("1.5", "1.6"):
        rounds_here = _LATER[quick]
    measured = scale == RUNNABLE and system not in (PAPER, PAPER_LAZY)
    tasks = []
    for rounds in rounds_here:
        for dim in _DIMS_OF.get((regime.name, scale), _DIMS[scale]):
            for part in PARTS:
                value = regime.at(rounds, dim, part)
                if value is None:
                    continue
                size = {"system": system, "rounds": rounds, "dim": dim, "variable": regime.variable, "value": value}
                seeds = seeds_of(rounds) if measured else 0
                tasks.append(size | {"delta": DELTAS[scale] if regime.table == 1 else 0.0, "seeds": seeds})
    return tasks


def all_tasks(table: str, quick: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (regime, scale, task) of every cell of a table."""
    return [
        (regime.name, scale, task)
        for regime in TABLES[table]
        for system in regime.rates
        if not (quick and system == PCOMW_FIXED)  # the slower of two plans of P-COMW
        for scale in (RUNNABLE, LARGE)
        for task in tasks_of(regime, system, scale, quick)
    ]


# Rows of the tables: for a regime and a system the paper's exponents, the certificate's and the measured ones.

Cell = Mapping[str, Any]


def rows_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the rows of a table from its cells (`regime`, `scale`, the task's words and what `cell` returned)."""
    keys = list(dict.fromkeys((cell["regime"], cell["system"]) for cell in cells))
    rows = [_row(*key, [cell for cell in cells if (cell["regime"], cell["system"]) == key]) for key in keys]
    for row in rows:
        beside = [one["along"]["paper"] for one in rows if one["regime"] == row["regime"]]
        row["power"] = _power(row, least_gap(one["value"] for one in beside if one is not None))
    return rows


def _power(row: Mapping[str, Any], gap: float) -> dict[str, list[str]]:
    """Return the exponents whose intervals are short enough to tell the rates stated in the regime apart.

    That is shorter than the least gap between them. `gap` is that of the exponents of T along the regime.
    """
    regime = REGIMES[row["regime"]]
    found = {}
    for name in ("runnable", "large", "measured"):
        fitted = row[name]["exponents"] if row[name] is not None and row[name]["identifiable"] else {}
        found[name] = [key for key, one in fitted.items() if one["high"] - one["low"] < regime.gap(key)]
        along = row["along"][name]
        if along is not None and along["high"] - along["low"] < gap:
            found[name].append(ALONG)
    return found


def _row(name: str, system: str, cells: Sequence[Cell]) -> dict[str, Any]:
    regime = REGIMES[name]
    runnable, large = ([cell for cell in cells if cell["scale"] == scale] for scale in (RUNNABLE, LARGE))
    worsts = [(cell, *worst(cell)) for cell in runnable if cell["measured"]]
    measured = [_point(cell, regret) for cell, _, regret in worsts if regret > 0]
    variables = ("T", "d", regime.variable)
    formula = system in (PAPER, PAPER_LAZY)  # its exponents mean something even where it says nothing
    return {
        "table": regime.table,
        "regime": name,
        "text": regime.text,
        "variable": regime.variable,
        "system": system,
        "rate": in_words(regime.rates[system]),
        "paper": {key: float(value) for key, value in regime.rates[system].items()},
        "runnable": _facts(_certificates(runnable, formula), variables),
        "large": _facts(_certificates(large, formula), variables),
        "measured": _facts(measured, variables),
        "along": {
            "paper": _along(regime, [_point(cell, _stated(regime, cell)) for cell in large or runnable]),
            "runnable": _along(regime, _certificates(runnable, formula)),
            "large": _along(regime, _certificates(large, formula)),
            "measured": _along(regime, measured),
        },
        "worst": dict(Counter(stream for _, stream, _ in worsts).most_common()),
        "above": _above(worsts),
        "vacuous": {
            scale: sum(cell["vacuous"] for cell in part)
            for scale, part in zip((RUNNABLE, LARGE), (runnable, large), strict=True)
        },
        "refused": sorted({cell["reason"].partition(", got")[0] for cell in cells if cell["reason"]}),
        "last": _last(large),
        "last_run": _last(runnable),
    }


def _above(worsts: Sequence[tuple[Cell, str, float]]) -> dict[str, float]:
    """Return how many means are above their certificates, and the most standard errors that one is above."""
    over = [
        (regret - cell["certificate"]) / max(cell["measured"][stream]["error"], 1e-12)
        for cell, stream, regret in worsts
        if cell["certificate"] is not None and regret > cell["certificate"]
    ]
    return {"count": len(over), "errors": max(over, default=0.0)}


def _stated(regime: Regime, cell: Cell) -> float:
    """Return the paper's rate at a cell, without a constant."""
    at = {"T": cell["rounds"], "d": cell["dim"], cell["variable"]: cell["value"]}
    powers = regime.rates[cell["system"]]
    return math.exp(sum(float(power) * math.log(at[name]) for name, power in powers.items()))


def _along(regime: Regime, points: Sequence[Mapping[str, float]]) -> dict[str, Any] | None:
    """Fit the exponent of T along the regime: epsilon (or S) moves with T, d and the place in the regime stay."""
    placed = []
    for point in points:
        low, high = regime.ends(int(point["T"]), int(point["d"]))
        part = math.log(point[regime.variable] / low) / math.log(high / low)
        placed.append(dict(point) | {"place": math.exp(part)})
    found = fit(placed, ("T", "d", "place")) if placed else None
    return None if found is None or "T" not in found.exponents else asdict(found.exponents["T"])


def _point(cell: Cell, regret: float) -> dict[str, float]:
    return {"T": cell["rounds"], "d": cell["dim"], cell["variable"]: cell["value"], "regret": regret}


def _certificates(cells: Sequence[Cell], formula: bool) -> list[dict[str, float]]:
    sound = [cell for cell in cells if cell["theorem"] is not None and (formula or not cell["vacuous"])]
    return [_point(cell, cell["theorem"]) for cell in sound]


def _facts(points: Sequence[Mapping[str, float]], variables: Sequence[str]) -> dict[str, Any] | None:
    found: Fit | None = fit(points, variables) if points else None
    if found is None:
        return None
    return found.facts() | {"rounds": [min(p["T"] for p in points), max(p["T"] for p in points)]}


def _last(cells: Sequence[Cell]) -> dict[str, Any] | None:
    """Return the certificate (and the worst regret) at the largest T and d, as multiples of sqrt(T)."""
    sound = [cell for cell in cells if cell["certificate"] is not None]
    if not sound:
        return None
    cell = max(sound, key=lambda one: (one["rounds"], one["dim"], one["value"]))
    root = math.sqrt(cell["rounds"])
    found = {"T": cell["rounds"], "d": cell["dim"], cell["variable"]: cell["value"]}
    measured = worst(cell)[1] / root if cell["measured"] else None
    return found | {"certificate": cell["certificate"] / root, "measured": measured}


# Which system has the lowest certificate, over rounds, dimension and epsilon.

DELTA = 1e-6


def offers(rounds: int, dim: int, epsilon: float | None = None, switches: int | None = None) -> dict[str, Any]:
    """Return the certificates of all systems for logistic losses of slope 1 on the unit ball.

    `bounds` are divided by T, `smooth` names the systems whose certificates rest on smooth losses.
    Of those whose decisions stay in the ball: the others answer another question.
    """
    import reticent as rt

    goal: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA} if epsilon is not None else {"max_switches": switches}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of vacuous certificates, which are not chosen
        found = rt.compare_plans(rt.Ball(dim), rounds, 1.0, rt.Logistic(), **goal)
    whole = [offer for offer in found if not offer.fewer]
    stays = [offer for offer in whole if offer.plan is not None and offer.plan.domain == found.goal.domain]
    return {
        "bounds": {offer.system: offer.regret_bound / rounds for offer in stays},
        "smooth": [offer.system for offer in stays if "smooth" in offer.assumes],
    }


def landscape_tasks(quick: bool) -> list[dict[str, Any]]:
    """Return the places of the map."""
    rounds, dims = ((10**4, 10**6), (1, 10)) if quick else ((10**4, 10**6, 10**8, 10**10), (1, 10, 100))
    epsilons = (0.1, 1.0) if quick else (0.1, 1.0, 10.0)
    return [{"rounds": T, "dim": d, "epsilon": epsilon} for T in rounds for d in dims for epsilon in epsilons]


def library_tasks(quick: bool, sections: Sequence[str]) -> list[dict[str, Any]]:
    """Return the points of the tables that are shown, at which all systems of the library are asked: one a regime."""
    made = []
    for table in TABLES:
        tasks = all_tasks(table, quick) if table in sections else []
        for name in dict.fromkeys(regime for regime, _, _ in tasks):
            run = [task for regime, scale, task in tasks if (regime, scale) == (name, RUNNABLE)]
            last = max(run, key=lambda task: (task["rounds"], task["dim"], task["value"]))
            private = REGIMES[name].variable == "epsilon"
            goal = {"epsilon": last["value"]} if private else {"switches": int(last["value"])}
            made.append({"rounds": last["rounds"], "dim": last["dim"]} | goal)
    return made


def landscape(places: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]], smooth: bool) -> list[dict[str, Any]]:
    """Return the best system of every place; without `smooth`, of those whose certificates need no smooth losses.

    A certificate of 1 a round or more says nothing: staying at the centre loses no more than that.

    >>> place = {"rounds": 100, "dim": 1, "epsilon": 1.0}
    >>> offered = {"bounds": {"P-COMW": 0.2, "DP-FTRL": 0.1}, "smooth": ["DP-FTRL"]}
    >>> landscape([place], [offered], smooth=False)[0]["system"]
    'P-COMW'
    """
    made = []
    for place, offered in zip(places, found, strict=True):
        allowed = {
            name: bound
            for name, bound in offered["bounds"].items()
            if (smooth or name not in offered["smooth"]) and bound < 1.0
        }
        best = min(allowed, key=allowed.__getitem__, default=None)
        size = {"horizon": place["rounds"], "dim": place["dim"], "epsilon": place["epsilon"]}
        made.append(size | {"system": best, "bound": None if best is None else allowed[best]})
    return made


# Make the tables: all cells in parallel, kept as they finish, then the rows.

SECTIONS = (*TABLES, "landscape", "curves")


@dataclass(frozen=True)
class Workers:
    """Who does the work, where results are kept, and who is told."""

    cache: Path | None = None
    jobs: int = -1
    backend: str = "loky"
    scheduler: str | None = None
    report: Callable[[str], None] | None = None

    def do(
        self,
        function: Callable[..., Any],
        tasks: Sequence[dict[str, Any]],
        title: str,
        sources: Sequence[str] = SOURCES,
    ) -> list[Any]:
        """Do all tasks, those that take longest first, and return the results in the order of the tasks."""
        order = sorted(range(len(tasks)), key=lambda i: -tasks[i]["rounds"] * (1 + tasks[i].get("seeds", 0)))
        shown = [title + ": " + _words(tasks[i]) for i in order]
        found = run_all(
            function,
            [tasks[i] for i in order],
            cache=self.cache,
            jobs=self.jobs,
            backend=self.backend,
            scheduler=self.scheduler,
            report=None if self.report is None else lambda i, _: self.report(shown[i]),  # type: ignore[misc]
            sources=sources,
        )
        placed = dict(zip(order, found, strict=True))
        return [placed[i] for i in range(len(tasks))]


def _words(task: dict[str, Any]) -> str:
    return f"{task.get('system', 'all systems')}, {task['rounds']:.0e} rounds, d = {task['dim']}"


def count(quick: bool, sections: Sequence[str] = SECTIONS) -> int:
    """Return the number of pieces of work.

    >>> count(True, ["landscape"])
    8
    """
    sizes = {name: len(all_tasks(name, quick)) for name in TABLES if name in sections}
    if "landscape" in sections:
        sizes["landscape"] = len(landscape_tasks(quick)) + len(library_tasks(quick, sections))
    if "curves" in sections:
        sizes["curves"] = sum(len(_cell.tasks(variable, quick)) for variable in ("epsilon", "S"))
    return sum(sizes.values())


def make(quick: bool, workers: Workers, sections: Sequence[str] = SECTIONS) -> dict[str, Any]:
    """Return all results as plain data: cells, levels and rows of both tables, the landscape, the curves.

    `seconds` is what this call took; `work` is what the cells of the tables took when they were made, on one core each.
    """
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise ValueError(f"sections must be among {', '.join(SECTIONS)}, got {unknown[0]!r}")
    begin = time.perf_counter()
    results: dict[str, Any] = {"quick": quick, "environment": facts("joblib"), "work": 0.0}
    for name in TABLES:
        if name in sections:
            places = all_tasks(name, quick)
            found = _cells(workers, [task for _, _, task in places], name)
            cells = [
                {"regime": regime, "scale": scale} | task | one
                for (regime, scale, task), one in zip(places, found, strict=True)
            ]
            results[name] = {"cells": cells}
            results["work"] += sum(one["seconds"] for one in found)
    if "landscape" in sections:
        results["landscape"] = _landscape(workers, quick, sections)
    results = judged(results)
    if "curves" in sections:
        results["curves"] = {
            variable: workers.do(_cell.runs, _cell.tasks(variable, quick), "curves") for variable in ("epsilon", "S")
        }
    return results | {"seconds": time.perf_counter() - begin}


def judged(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return results with rows and levels made of their cells: what is not computed but concluded.

    Results of an earlier run, read from its file, are good for that too.
    """
    made = dict(results)
    library = results.get("landscape", {}).get("library", ())
    for name in TABLES:
        if name in made:
            cells = made[name]["cells"]
            made[name] = {"levels": levels_of(cells, library), "rows": rows_of(cells), "cells": cells}
    return made


def _landscape(workers: Workers, quick: bool, sections: Sequence[str]) -> dict[str, Any]:
    tasks, points = landscape_tasks(quick), library_tasks(quick, sections)
    offered = workers.do(offers, [*tasks, *points], "landscape", (*PLANNING, "losses"))
    found, there = offered[: len(tasks)], offered[len(tasks) :]
    return {
        "places": [task | one for task, one in zip(tasks, found, strict=True)],
        "convex": landscape(tasks, found, smooth=False),
        "smooth": landscape(tasks, found, smooth=True),
        "library": [_at(point) | one for point, one in zip(points, there, strict=True)],
    }


def _at(point: Mapping[str, Any]) -> dict[str, Any]:
    variable, value = ("epsilon", point["epsilon"]) if "epsilon" in point else ("S", float(point["switches"]))
    return {"rounds": point["rounds"], "dim": point["dim"], "variable": variable, "value": value}


def _cells(workers: Workers, tasks: Sequence[dict[str, Any]], title: str) -> list[Any]:
    """Make all cells; those without runs stay good whatever changes in learners and streams."""
    found: dict[int, Any] = {}
    for runs, sources in ((False, PLANNING), (True, SOURCES)):
        chosen = [i for i, task in enumerate(tasks) if bool(task["seeds"]) == runs]
        made = workers.do(cell, [tasks[i] for i in chosen], title, sources)
        found |= dict(zip(chosen, made, strict=True))
    return [found[i] for i in range(len(tasks))]
