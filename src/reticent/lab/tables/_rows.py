"""Rows of the tables: for a regime and a system the paper's exponents, the certificate's and the measured ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reticent.lab.tables._fit import Fit, fit
from reticent.lab.tables._grid import LARGE, RUNNABLE
from reticent.lab.tables._regimes import LAZY_PAPER, PAPER, REGIMES, Regime, in_words

Cell = Mapping[str, Any]


def rows_of(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the rows of a table from its cells (`regime`, `scale`, the task's words and what `cell` returned)."""
    keys = list(dict.fromkeys((cell["regime"], cell["system"]) for cell in cells))
    return [_row(*key, [cell for cell in cells if (cell["regime"], cell["system"]) == key]) for key in keys]


def _row(name: str, system: str, cells: Sequence[Cell]) -> dict[str, Any]:
    regime = REGIMES[name]
    runnable, large = ([cell for cell in cells if cell["scale"] == scale] for scale in (RUNNABLE, LARGE))
    worst = [(cell, *_worst(cell)) for cell in runnable if cell["measured"]]
    measured = [_point(cell, regret) for cell, _, regret in worst if regret > 0]
    variables = ("T", "d", regime.variable)
    formula = system in (PAPER, LAZY_PAPER)  # its exponents mean something even where it says nothing
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
        "worst": dict(Counter(stream for _, stream, _ in worst).most_common()),
        "above": _above(worst),
        "vacuous": {
            scale: sum(cell["vacuous"] for cell in part)
            for scale, part in zip((RUNNABLE, LARGE), (runnable, large), strict=True)
        },
        "refused": sorted({cell["reason"].partition(", got")[0] for cell in cells if cell["reason"]}),
        "last": _last(large),
        "last_run": _last(runnable),
    }


def _worst(cell: Cell) -> tuple[str, float]:
    """Return the stream of the panel on which the mean regret is largest, and that."""
    name = max(cell["measured"], key=lambda stream: cell["measured"][stream]["regret"])
    return name, float(cell["measured"][name]["regret"])


def _above(worst: Sequence[tuple[Cell, str, float]]) -> dict[str, float]:
    """Return how many means are above their certificates, and the most standard errors that one is above."""
    over = [
        (regret - cell["certificate"]) / max(cell["measured"][stream]["error"], 1e-12)
        for cell, stream, regret in worst
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
    sound = [cell for cell in cells if cell["certificate"] is not None and (formula or not cell["vacuous"])]
    return [_point(cell, cell["certificate"]) for cell in sound]


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
    measured = _worst(cell)[1] / root if cell["measured"] else None
    return found | {"certificate": cell["certificate"] / root, "measured": measured}
