"""Which system has the lowest certificate, over rounds, dimension and epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from reticent.lab.tables._regimes import OBJECTIVE

DELTA = 1e-6


def offers(rounds: int, dim: int, epsilon: float) -> dict[str, float]:
    """Return every private system's certificate for logistic losses of slope 1 on the unit ball, divided by T."""
    import reticent as rt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of vacuous certificates, which are not chosen
        found = rt.compare_plans(rt.Ball(dim), rounds, 1.0, rt.Logistic(), epsilon=epsilon, delta=DELTA)
    return {offer.system: offer.regret_bound / rounds for offer in found}


def tasks(quick: bool) -> list[dict[str, Any]]:
    """Return the places of the map."""
    rounds, dims = ((10**4, 10**6), (1, 10)) if quick else ((10**4, 10**6, 10**8, 10**10), (1, 10, 100))
    epsilons = (0.1, 1.0) if quick else (0.1, 1.0, 10.0)
    return [{"rounds": T, "dim": d, "epsilon": epsilon} for T in rounds for d in dims for epsilon in epsilons]


def cells(places: Sequence[dict[str, Any]], found: Sequence[dict[str, float]], smooth: bool) -> list[dict[str, Any]]:
    """Return the best system of every place; without smoothness objective perturbation does not apply.

    A certificate of 1 a round or more says nothing: staying at the centre loses no more than that.

    >>> place = {"rounds": 100, "dim": 1, "epsilon": 1.0}
    >>> cells([place], [{"P-COMW": 0.2, OBJECTIVE: 0.1}], smooth=False)[0]["system"]
    'P-COMW'
    """
    made = []
    for place, bounds in zip(places, found, strict=True):
        allowed = {name: bound for name, bound in bounds.items() if (smooth or name != OBJECTIVE) and bound < 1.0}
        best = min(allowed, key=allowed.__getitem__, default=None)
        size = {"horizon": place["rounds"], "dim": place["dim"], "epsilon": place["epsilon"]}
        made.append(size | {"system": best, "bound": None if best is None else allowed[best]})
    return made
