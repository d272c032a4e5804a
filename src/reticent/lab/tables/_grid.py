"""The points at which the tables are computed: inside every regime, for certificates and for runs."""

from __future__ import annotations

from typing import Any

from reticent.lab.tables._regimes import FIXED, LAZY_PAPER, PAPER, REGIMES, TABLES, Regime

PARTS = (0.1, 0.9)  # of the way through a regime, in logarithms
# A delta of 1e-6 is not small beside the epsilons of the last regimes at large T, and would soften them.
DELTA = {"runnable": 1e-6, "large": 1e-9}
RUNNABLE, LARGE = "runnable", "large"

_ROUNDS = {
    (RUNNABLE, False): (10**4, 6 * 10**4, 4 * 10**5),
    (RUNNABLE, True): (3 * 10**3, 3 * 10**4),
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
    if scale == LARGE and system in (PAPER, LAZY_PAPER):
        rounds_here = _FORMULA[quick]
    elif scale == LARGE and regime.table == 2:
        rounds_here = _LAZY_LARGE[quick]
    elif scale == RUNNABLE and regime.name in ("1.5", "1.6"):
        rounds_here = _LATER[quick]
    measured = scale == RUNNABLE and system not in (PAPER, LAZY_PAPER)
    tasks = []
    for rounds in rounds_here:
        for dim in _DIMS_OF.get((regime.name, scale), _DIMS[scale]):
            for part in PARTS:
                value = regime.at(rounds, dim, part)
                if value is None:
                    continue
                size = {"system": system, "rounds": rounds, "dim": dim, "variable": regime.variable, "value": value}
                seeds = seeds_of(rounds) if measured else 0
                tasks.append(size | {"delta": DELTA[scale] if regime.table == 1 else 0.0, "seeds": seeds})
    return tasks


def all_tasks(table: str, quick: bool) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (regime, scale, task) of every cell of a table."""
    return [
        (regime.name, scale, task)
        for regime in TABLES[table]
        for system in regime.rates
        if not (quick and system == FIXED)  # the slower of two plans of P-COMW
        for scale in (RUNNABLE, LARGE)
        for task in tasks_of(regime, system, scale, quick)
    ]


def regime_of(name: str) -> Regime:
    """Return the regime of this name."""
    return REGIMES[name]
