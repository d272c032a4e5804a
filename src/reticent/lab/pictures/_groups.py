"""Runs that differ in their seed only, taken together: means, spreads and curves over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.lab._study import Best, Run, Study
from reticent.lab.pictures._style import number

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A mean with its standard deviation over seeds (0 for a single run)."""

    mean: float
    sd: float
    runs: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.runs)


@dataclass(frozen=True)
class Group:
    """The runs of one plan with several seeds.

    `rank` counts the groups of one system and one epsilon, `label` names the group within its study.
    """

    label: str
    system: str
    rank: int
    runs: Sequence[Run]

    @property
    def plan(self) -> dict[str, Any]:
        """What was promised."""
        return self.runs[0].plan

    @property
    def epsilon(self) -> float | None:
        """The epsilon promised, None without privacy."""
        found = self.plan["epsilon"]
        return None if found is None else float(found)

    @property
    def bound(self) -> float | None:
        """The certified regret; None without a certificate that says something."""
        return None if self.plan["vacuous"] else self.runs[0].bound

    @property
    def allowed(self) -> float | None:
        """How many switches the plan allows, at most or at least in expectation."""
        return _allowed(self.plan)

    @property
    def horizon(self) -> int:
        """The round at which the certificate holds: the plan's horizon, or the end of the run."""
        return int(self.plan["horizon"] or self.runs[0].rounds)

    @property
    def switches(self) -> Spread:
        """How often the decision changed."""
        return spread([run.switches for run in self.runs])

    @property
    def loss(self) -> Spread:
        """The mean loss of a round."""
        return spread([run.total / run.rounds for run in self.runs])

    @property
    def regret(self) -> Spread | None:
        """The regret, None where the best fixed decision was not looked for."""
        found = [run.regret for run in self.runs if run.regret is not None]
        return spread(found) if len(found) == len(self.runs) else None

    @property
    def seconds(self) -> Spread:
        """The learner's time."""
        return spread([run.seconds for run in self.runs])

    def over_time(self, best: Best | None) -> tuple[Floats, Floats, Floats]:
        """Return rounds, and there mean and deviation of the loss beyond `best`'s (or of the mean loss without it)."""
        last = min(run.rounds for run in self.runs)
        at = np.array([t for t in self.runs[0].at if t <= last], dtype=float)
        sums = np.array([np.interp(at, run.at, run.losses) for run in self.runs])
        found = sums / at if best is None else sums - np.interp(at, best.at, best.curve)
        return at, found.mean(axis=0), _deviation(found)


def spread(values: Sequence[float]) -> Spread:
    """Return mean and standard deviation.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, sd=1.4142135623730951, runs=2)
    """
    found = np.array(values, dtype=float)
    return Spread(float(found.mean()), float(_deviation(found)), found.size)


def _deviation(values: Floats) -> Floats:
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])


def groups(study: Study) -> list[Group]:
    """Return the runs of a study by what they were to do, in the order in which they first occur.

    A plan that answers several goals has its runs once: those with one seed are the same.
    """
    parts: dict[tuple[Any, ...], dict[int | None, Run]] = {}
    for run in study.runs:
        key = (run.system, run.plan["epsilon"], run.plan["delta"], _allowed(run.plan), run.plan["regret_bound"])
        seeds = parts.setdefault(key, {})
        seeds.setdefault(len(seeds) if run.seed is None else run.seed, run)
    several = len({key[1] for key in parts if key[1] is not None}) > 1
    found: list[Group] = []
    for key, runs in parts.items():
        alike = [other for other in parts if other[:2] == key[:2]]
        label = key[0]
        if several and key[1] is not None:
            label += f", epsilon {number(key[1])}"
        if len(alike) > 1:
            label += f", {_difference(key, alike)}"
        found.append(Group(label, key[0], alike.index(key), list(runs.values())))
    return found


def _allowed(plan: dict[str, Any]) -> float | None:
    most, usual = plan["max_switches"], plan["expected_switches"]
    found = usual if most is None else most
    return None if found is None else float(found)


def _difference(key: tuple[Any, ...], alike: list[tuple[Any, ...]]) -> str:
    """Say in what a plan differs from others of its system and epsilon."""
    if len({other[3] for other in alike}) == len(alike):
        return "any changes" if key[3] is None else f"{number(key[3])} changes"
    if len({other[2] for other in alike}) == len(alike):
        return f"delta {number(key[2])}"
    return f"plan {alike.index(key) + 1}"


def epsilons(found: Sequence[Group]) -> list[float]:
    """Return the epsilons that occur, in order."""
    return sorted({group.epsilon for group in found if group.epsilon is not None})


def some(study: Study) -> list[Group]:
    """Return the groups of a study that has runs; refuse one that has none."""
    found = groups(study)
    if not found:
        raise ValueError(f"the study {study.title!r} has no runs to draw; make it again with a system that applies")
    return found
