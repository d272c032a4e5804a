"""Numbers and promises in plain words, and where ours loses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reticent._core._html import Html, join, tag
from reticent._core._look import number
from reticent._core._names import BUDGETED, FILTERED, PCOMW
from reticent.lab.pictures._groups import Group, Setting, Spread
from reticent.lab.report._html import listed

FAR, _SURE = "by more than two standard errors", 2.0


@dataclass(frozen=True)
class Defeat:
    """A rival with lower regret or a lower certificate than the best of ours in its setting.

    A rival that promises less than any setting asks for has none, and stands beside the best of ours of all.
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
    """Whether a group is ours: P-COMW in any of its plans, or a learner for ordinary data."""
    return group.system.startswith(PCOMW) or group.system in (FILTERED, BUDGETED)


def defeats(found: Sequence[Setting]) -> list[Defeat]:
    """Return every rival that beats the best of ours, those that promise the same first.

    >>> from reticent.lab.pictures._groups import groups
    >>> from reticent.lab.pictures._groups import settings
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


# Numbers and promises in plain words.

_NAMES = {
    "epsilon": "epsilon (how much may be revealed)",
    "delta": "delta (chance of revealing more)",
    "max_switches": "changes allowed",
    "horizon": "horizon (rounds)",
    "lipschitz": "steepest loss (Lipschitz constant)",
    "neighbors": "what one person can change",
    "adversary": "who may choose the losses",
    "seeds": "seeds",
    "systems": "systems",
}
NEIGHBOURS = {
    "replace": "two streams are neighbours if one round's loss is replaced by any other",
    "zero-out": "two streams are neighbours if one round's loss is replaced by nothing (a loss of zero)",
}
ADVERSARY = {
    "adaptive": "the losses may be chosen by somebody who watches the decisions",
    "oblivious": "the losses must not depend on the decisions",
}


def plus_minus(value: Spread | None) -> str:
    """Return mean and deviation.

    >>> plus_minus(Spread(12.34, 0.512, 3)), plus_minus(Spread(1234.5, 102.3, 3)), plus_minus(None)
    ('12.3 ± 0.51', '1,234 ± 102', 'not known')
    """
    if value is None:
        return "not known"
    if value.runs < 2:
        return number(value.mean)
    return f"{number(value.mean)} ± {number(value.sd if value.sd >= 10 else float(f'{value.sd:.2g}'))}"


def plain(value: Any) -> str:
    """Return any value of a goal or of the facts about a machine as text.

    >>> plain([0.5, 1.0]), plain(1000000), plain(1e-06), plain({"cores": 2})
    ('0.5, 1', '1,000,000', '1e-6', 'cores 2')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {plain(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return ", ".join(plain(one) for one in value)
    return str(value)


def named(pairs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is known of a goal under names that a person understands."""
    return [
        (_NAMES.get(name, name.replace("_", " ")), plain(value))
        for name, value in pairs.items()
        if value not in (None, [], "")
    ]


def promise(group: Group) -> str:
    """Return a plan's promise in one line."""
    rounds = group.horizon
    parts = [
        "no useful regret bound"
        if group.bound is None
        else f"regret at most {number(group.bound)} ({number(group.bound / rounds)} per round)"
    ]
    if group.plan["max_switches"] is not None:
        parts.append(f"at most {group.plan['max_switches']:,.0f} changes")
    elif group.plan["expected_switches"] is not None:
        parts.append(f"at most {number(group.plan['expected_switches'])} changes in expectation")
    parts.append(
        "not private"
        if group.epsilon is None
        else f"epsilon {number(group.epsilon)}, delta {number(group.plan['delta'] or 0.0)}"
    )
    return "; ".join(parts)


def in_short(found: Sequence[Setting]) -> list[str]:
    """Return what came out, in a sentence per setting (and one for systems that promise less)."""
    free = list({group.label: group for setting in found for group in setting.free}.values())
    parts = [(f"With {one.title}" if one.title else "Here", one.groups) for one in found]
    parts += [("Promising less", free)] if free else []
    return [_sentence(terms, inside) for terms, inside in parts]


def _sentence(terms: str, inside: Sequence[Group]) -> str:
    best = min(inside, key=lambda group: paid(group).mean)
    ours = sorted((group for group in inside if is_ours(group)), key=lambda group: paid(group).mean)
    among = f"{terms}: " if len(inside) == 1 else f"{terms}, the best of {len(inside)}: "
    others = [outcome(group) for group in ours[:1] if group is not best]
    return "; ".join([among + outcome(best), *others]) + "."


def outcome(group: Group) -> str:
    """Return what one system came to."""
    found, rounds = group.regret, group.runs[0].rounds
    cost = f"a mean loss of {plus_minus(group.loss)}"
    if found is not None:
        cost = f"a regret of {plus_minus(found)} ({number(found.mean / rounds)} per round)"
        cost += "" if group.bound is None else f", where at most {number(group.bound)} was certified"
    return f"{group.system} with {cost}, and {number(group.switches.mean)} changes"


def paragraphs(text: str) -> Html:
    """Return text with blank lines between paragraphs and starred points as HTML.

    >>> paragraphs("One\\nline.\\n\\nAssumes:\\n  * this;\\n  * that\\n    too.")
    '<p>One line.</p><p>Assumes:</p><ul><li>this;</li><li>that too.</li></ul>'
    """
    found = []
    for part in text.split("\n\n"):
        head, *points = part.split("\n  * ")
        found.append(tag("p", " ".join(head.split())))
        if points:
            found.append(listed(" ".join(point.split()) for point in points))
    return join(found)
