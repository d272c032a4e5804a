"""Where P-COMW loses: the rivals that did better on the same terms, found in the numbers of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reticent.lab.pictures._groups import Group, Spread
from reticent.lab.pictures._settings import Setting

FAR, _SURE = "by more than two standard errors", 2.0


@dataclass(frozen=True)
class Defeat:
    """A rival with lower regret or a lower certificate than the best P-COMW of its setting.

    A rival that promises less than any setting asks for has none, and stands beside the best P-COMW of all.
    """

    setting: Setting | None
    ours: Group
    rival: Group

    @property
    def by_regret(self) -> bool:
        """Whether the rival's measured regret (or mean loss) is lower."""
        return paid(self.rival).mean < paid(self.ours).mean

    @property
    def by_certificate(self) -> bool:
        """Whether the rival's certified regret is lower."""
        return self.rival.bound is not None and (self.ours.bound is None or self.rival.bound < self.ours.bound)

    @property
    def chance(self) -> str:
        """How the difference in what was measured compares with the spread over seeds, in words."""
        a, b = paid(self.ours), paid(self.rival)
        if max(a.runs, b.runs) < 2:
            return "one run each"  # a system without randomness has one run in any case, and no deviation
        return FAR if abs(a.mean - b.mean) > _SURE * math.hypot(a.error, b.error) else "within two standard errors"


def paid(group: Group) -> Spread:
    """Return regret, or the mean loss where regret is not known."""
    return group.regret or group.loss


def is_ours(group: Group) -> bool:
    """Whether a group is P-COMW, in any of its plans."""
    return group.system.startswith("P-COMW")


def defeats(found: Sequence[Setting]) -> list[Defeat]:
    """Return every rival that beats P-COMW, those that promise the same first.

    >>> from reticent.lab.pictures._example import small_study
    >>> from reticent.lab.pictures._groups import groups
    >>> from reticent.lab.pictures._settings import settings
    >>> study = small_study()
    >>> [(one.rival.label, one.by_regret, one.by_certificate) for one in defeats(settings(study, groups(study)))]
    [('DP-FTRL', True, False), ('online gradient descent', True, True)]
    """
    pairs = []
    for setting in found:
        ours = [group for group in setting.groups if is_ours(group)]
        if ours:
            best = min(ours, key=lambda group: paid(group).mean)
            pairs += [Defeat(setting, best, group) for group in setting.groups if not is_ours(group)]
    if pairs:
        best = min((pair.ours for pair in pairs), key=lambda group: paid(group).mean)
        free = {group.label: group for setting in found for group in setting.free if not is_ours(group)}
        pairs += [Defeat(None, best, group) for group in free.values()]
    return [pair for pair in pairs if pair.by_regret or pair.by_certificate]
