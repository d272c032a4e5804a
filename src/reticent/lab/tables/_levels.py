"""Levels: P-COMW beside the previous best at every point of a regime, and who has less regret, promised or measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import stats

from reticent._core._names import PCOMW, PCOMW_FIXED, PCOMW_LAZY
from reticent.lab.tables._regimes import REGIMES, Regime, Rival, in_words

OURS = {1: PCOMW, 2: PCOMW_LAZY}
NEAR = 0.01  # certificates that are nearer to each other than this part of them are a tie
TIE, NONE = "tie", "none"
CONFIDENCE = 0.95

Cell = Mapping[str, Any]


def worst(cell: Cell) -> tuple[str, float]:
    """Return the stream of the panel on which the mean regret is largest, and that."""
    name = max(cell["measured"], key=lambda stream: cell["measured"][stream]["regret"])
    return name, float(cell["measured"][name]["regret"])


def by_certificate(ours: Cell, theirs: Cell) -> str:
    """Return the system with the lower certificate; a tie within one percent; none where neither says anything.

    >>> one = {"system": "A", "certificate": 10.0, "vacuous": False}
    >>> by_certificate(one, one | {"system": "B", "certificate": 10.05}), by_certificate(one, one | {"vacuous": True})
    ('tie', 'A')
    """
    sound = [cell for cell in (ours, theirs) if cell["certificate"] is not None and not cell["vacuous"]]
    if not sound:
        return NONE
    first, last = (pick(sound, key=lambda cell: cell["certificate"]) for pick in (min, max))
    if len(sound) == 2 and last["certificate"] - first["certificate"] < NEAR * first["certificate"]:
        return TIE
    return str(first["system"])


def by_measurement(ours: Cell, theirs: Cell) -> str | None:
    """Return the system whose regret on its worst stream is lower; a tie where the spread of the runs covers both.

    The spread is Student's at 95 percent with the errors of both means; of a single run it is not known. None where
    one of them was not run.
    """
    if not ours["measured"] or not theirs["measured"]:
        return None
    found = [(worst(cell)[1], cell["measured"][worst(cell)[0]]["error"]) for cell in (ours, theirs)]
    free = min(ours["seeds"], theirs["seeds"]) - 1
    reach = float(stats.t.ppf(0.5 + CONFIDENCE / 2, free)) if free > 0 else math.inf
    (mine, my_error), (other, other_error) = found
    if free <= 0 or abs(mine - other) <= reach * math.hypot(my_error, other_error):
        return TIE
    return str((ours if mine < other else theirs)["system"])


def levels_of(cells: Sequence[Cell], library: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return for every regime and previous best all points at which P-COMW stands beside it, and who wins there.

    `library` has certificates of all systems of the library at some points (`rounds`, `dim`, `variable`, `value` and
    `bounds` a round), where they are known.
    """
    known = {(one["rounds"], one["dim"], one["variable"], one["value"]): one["bounds"] for one in library}
    made = []
    for name in dict.fromkeys(cell["regime"] for cell in cells):
        regime = REGIMES[name]
        places: dict[tuple[Any, ...], dict[str, Cell]] = {}
        for cell in cells:
            if cell["regime"] == name:
                place = (cell["scale"], cell["rounds"], cell["dim"], cell["value"])
                places.setdefault(place, {})[cell["system"]] = cell
        for rival in regime.rivals:
            both = [here for here in places.values() if OURS[regime.table] in here and rival.system in here]
            points = [_point(regime, rival, here, known) for here in both]
            if points:
                made.append(_level(regime, rival, points))
    return made


def _point(
    regime: Regime, rival: Rival, here: Mapping[str, Cell], known: Mapping[tuple[Any, ...], Mapping[str, float]]
) -> dict[str, Any]:
    ours, theirs = here[OURS[regime.table]], here[rival.system]
    rounds = ours["rounds"]
    # Privacy against losses that are fixed in advance is a weaker promise: it has no place among the others.
    bounds = {
        system: cell["certificate"] / rounds
        for system, cell in here.items()
        if system != PCOMW_FIXED and cell["certificate"] is not None and not cell["vacuous"]
    }
    asked = known.get((rounds, ours["dim"], ours["variable"], ours["value"]), {})
    others = {system: bound for system, bound in asked.items() if bound < 1}  # others say nothing
    lowest = min((bound, system) for system, bound in (*bounds.items(), *others.items())) if bounds or others else None
    return {
        "scale": ours["scale"],
        "T": rounds,
        "d": ours["dim"],
        ours["variable"]: ours["value"],
        "ours": _level_of(ours),
        "theirs": _level_of(theirs),
        "certificate": by_certificate(ours, theirs),
        "measured": by_measurement(ours, theirs),
        "lowest": None if lowest is None else {"system": lowest[1], "certificate": lowest[0]},
        "of": "library" if asked else "table",
    }


def _level_of(cell: Cell) -> dict[str, Any]:
    """Return certificate and measured regret a round."""
    rounds = cell["rounds"]
    found: dict[str, Any] = {
        "certificate": None if cell["certificate"] is None else cell["certificate"] / rounds,
        "vacuous": bool(cell["vacuous"]),
    }
    if cell["measured"]:
        stream, regret = worst(cell)
        error = cell["measured"][stream]["error"] / rounds
        found |= {"measured": regret / rounds, "error": error, "stream": stream}
    return found


def _level(regime: Regime, rival: Rival, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    run = [point for point in points if point["scale"] == "runnable"]
    large = [point for point in points if point["scale"] == "large"]
    ours = OURS[regime.table]
    expected = {"ours": ours, "theirs": rival.system, "neither": None}[rival.ahead]
    winners = {
        "certificate": [point["certificate"] for point in run],
        "measured": [point["measured"] for point in run if point["measured"] is not None],
        "large": [point["certificate"] for point in large],
    }
    return {
        "table": regime.table,
        "regime": regime.name,
        "text": regime.words,
        "variable": regime.variable,
        "system": ours,
        "rate": in_words(regime.rates[ours]),
        "rival": rival.system,
        "rival_rate": in_words(regime.rates[rival.system]),
        "needs": rival.needs,
        "cited": rival.cited,
        "expected": expected,  # who is ahead by the paper; None where it gives both the same rate
        "shown": max(run or large, key=lambda point: (point["T"], point["d"], point[regime.variable])),
        "winners": {kind: dict(Counter(found).most_common()) for kind, found in winners.items()},
        "points": list(points),
    }
