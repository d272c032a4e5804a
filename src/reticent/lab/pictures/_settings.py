"""What was asked of systems, setting by setting: those that promise the same stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from reticent.lab._study import Study
from reticent.lab.pictures._groups import Group, epsilons
from reticent.lab.pictures._style import number

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

    >>> from reticent.lab.pictures._example import small_study
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
