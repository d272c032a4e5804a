"""Plans without a horizon: doubling epochs, each planned anew (docs/theory.md, P8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reticent.planning._plan import Plan


def doubling(recipe: Callable[..., Plan], least: float, *remarks: str) -> Plan:
    """Return the plan with `horizon=None` whose epochs come from `recipe(horizon=...)`.

    The first epoch has the least power of two of rounds that is at least 1024 and at least `least`.
    """
    rounds = 1024
    while rounds < least:
        rounds *= 2
    first = recipe(horizon=rounds)
    return replace(
        first,
        horizon=None,
        expected_switches=None,
        regret_bound=None,
        first_epoch=rounds,
        remarks=remarks,
        recipe=recipe,
        seal=None,
    ).sealed()


def per_epoch(kind: str, switches: int) -> str:
    """Return the remark of a plan whose bound on switches holds for each epoch.

    >>> per_epoch("at most", 3)
    'Every epoch switches at most 3 times: the bound is one per epoch, and the start of an epoch is one more change.'
    """
    return (
        f"Every epoch switches {kind} {switches:,} times: the bound is one per epoch, "
        "and the start of an epoch is one more change."
    )
