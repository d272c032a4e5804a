"""How much of a promised epsilon is spent as rounds go by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.lab._study import Study
from reticent.lab.pictures._groups import epsilons, groups
from reticent.lab.pictures._style import MUTED, blank, counts, legend, look, number, styles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def privacy_spent(study: Study) -> Figure:
    """Draw epsilon spent after each round (at the plan's delta) and, dotted, the epsilon promised.

    The study's plans must have been described with `plan_facts(plan, spent=True)`.

    >>> from reticent.lab.pictures._example import small_study
    >>> len(privacy_spent(small_study()).axes)
    1
    """
    found = [group for group in groups(study) if group.plan["spent"]]
    if not found:
        raise ValueError(
            f"the study {study.title!r} does not hold the privacy spent; describe a private plan with spent=True"
        )
    drawn = styles(group.system for group in groups(study))
    with look():
        figure, axes = blank(height=3.0)
        axis = axes[0, 0]
        for group in found:
            style, at, spent = drawn[group.system], group.plan["spent_at"], group.plan["spent"]
            axis.plot(at, spent, **style.line(), **style.dots(), markevery=max(1, len(at) // 6), label=group.system)
        for epsilon in epsilons(found):
            axis.axhline(epsilon, color=MUTED, linewidth=1, linestyle=":", label="epsilon promised")
            axis.annotate(
                f" {number(epsilon)}", (1, epsilon), xycoords=("axes fraction", "data"), va="center", fontsize=8
            )
        axis.set(xlabel="rounds", ylabel="epsilon spent so far", ylim=(0, None))
        counts(axis.xaxis)
        legend(figure, [axis])
    return figure
