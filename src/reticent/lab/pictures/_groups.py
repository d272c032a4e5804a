"""Runs taken together: those that differ in their seed only, and systems that promise the same beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._core._look import number
from reticent.lab._study import Best, Run, Study

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
        # Plans whose certificates are both what any decisions suffer differ by their theorems; older studies have none.
        bound = run.plan.get("regret_bound_of_its_theorem", run.plan["regret_bound"])
        key = (run.system, run.plan["epsilon"], run.plan["delta"], _allowed(run.plan), bound)
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


# What was asked of systems, setting by setting: those that promise the same stand beside each other.

_SLACK = 1.05  # how far above the changes asked for a plan may be, where it keeps them in expectation


@dataclass(frozen=True)
class Setting:
    """One epsilon, one limit on changes, or both or neither, with the groups that meet them.

    `free` are the groups that promise less: not private where an epsilon is asked for, or changing without limit.
    """

    epsilon: float | None
    switches: float | None
    groups: list[Group]
    free: list[Group]

    @property
    def title(self) -> str:
        """The setting in a few words, empty if nothing was asked for."""
        parts = [f"epsilon {number(self.epsilon)}"] if self.epsilon is not None else []
        parts += [f"{number(self.switches)} changes"] if self.switches is not None else []
        return ", ".join(parts)


def settings(study: Study, found: Sequence[Group]) -> list[Setting]:
    """Return the settings of a study: every epsilon of its plans with every limit on changes of its goal.

    >>> from reticent.lab.pictures._groups import groups
    >>> study = small_study((0.5, 1.0))
    >>> [(one.title, len(one.groups), len(one.free)) for one in settings(study, groups(study))]
    [('epsilon 0.5', 2, 1), ('epsilon 1', 2, 1)]
    """
    if not found:
        return []
    private: list[float | None] = [*epsilons(found)] or [None]
    limits = limits_of(study)
    asked: list[float | None] = [*limits] or [None]
    result = []
    for epsilon, limit in product(private, asked):
        alike = [group for group in found if group.epsilon == epsilon]
        free = [group for group in found if group.epsilon is None and epsilon is not None]
        if limit is not None:
            free += [group for group in alike if _unlimited(group, limits)]
            alike = _within(alike, limit, limits)
        if alike:
            result.append(Setting(epsilon, limit, alike, free))
    # Where no plan meets both, they were asked for apart: some plans are private, others change rarely.
    return result or settings(replace(study, goal={**study.goal, "max_switches": None}), found)


def limits_of(study: Study) -> list[float]:
    """Return the limits on changes that were asked for, in order; empty without any."""
    asked = study.goal.get("max_switches")
    return sorted({float(one) for one in (asked if isinstance(asked, list) else [asked]) if one is not None})


def _unlimited(group: Group, limits: Sequence[float]) -> bool:
    return group.allowed is None or group.allowed > _SLACK * limits[-1]


def _within(alike: Sequence[Group], limit: float, limits: Sequence[float]) -> list[Group]:
    """Return what was planned for a limit: per system what is above the next lower one, else the nearest below."""
    lower = max((one for one in limits if one < limit), default=0.0)
    found = []
    for system in dict.fromkeys(group.system for group in alike):
        below = [
            (g.allowed, g)
            for g in alike
            if g.system == system and g.allowed is not None and g.allowed <= _SLACK * limit
        ]
        planned = [group for allowed, group in below if allowed > _SLACK * lower]
        found += planned or [group for _, group in sorted(below, key=lambda pair: pair[0])[-1:]]
    return found
