"""Who is protected by a plan, against which change, and over how long, in words (docs/theory, R14 to R16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.systems._plan import BasePlan


LEFT_OUT = "rows of a person beyond the cap are not learned from, and regret counts them"
"""Why no bound on regret is stated for persons."""
UNBOUND = "not stated: rows beyond the cap are not learned from"
"""The same in a table."""


def ordinary(plan: BasePlan) -> bool:
    """Say whether the unit of a plan is one round among others that are counted."""
    return plan.max_rows is None and not plan.clock


def changed(plan: BasePlan) -> str:
    """Say what two neighbouring streams differ in."""
    zeroed = plan.neighbors != "replace"
    if plan.max_rows is None:
        if not plan.clock:
            return "change one round"
        return "put in or leave out one round" if zeroed else "replace, put in or leave out one round"
    when = f" in any {span(plan)} in a row" if plan.window is not None else ""
    if zeroed:
        return f"leave one person out, with all that they do{when}"
    return f"change everything that one person does{when}"


def span(plan: BasePlan) -> str:
    """Say how long a window is."""
    return f"{plan.window:,} {'blocks' if plan.clock else 'rounds'}"


def sentences(plan: BasePlan) -> str:
    """Say what the change may be, for a plan whose unit is not one round among others that are counted."""
    zeroed, told = plan.neighbors != "replace", []
    if plan.max_rows is not None:
        each = "in all"
        if plan.window is not None:  # where blocks are counted a window ends with one
            each = f"in each window of {'' if plan.clock else 'at least '}{span(plan)}"
        told.append(
            f"Of a person the first {plan.max_rows:,} rows count {each}; others are left out of learning, and how many "
            "is secret."
        )
    if plan.clock:
        told.append(
            "A row more or less moves no other, as blocks end when a public clock strikes."
            if plan.max_rows is None or not zeroed
            else "Their rows are not there at all; others do not move, as blocks end when a public clock strikes."
        )
    elif plan.max_rows is not None and plan.for_persons:
        told.append(
            "Their rounds are empty in the other stream; all others stay where they are."
            if zeroed
            else "Wherever a round is theirs in one stream, it is theirs with any other loss, or empty, in the other; "
            "all others stay where they are. Rounds put in or left out are not covered."
        )
    elif plan.max_rows is not None:
        told.append(
            "The same rounds are theirs in both streams, "
            + ("and constants in one" if zeroed else "with any other losses")
            + ": by the bound for groups of rounds. Rounds put in or left out, or given to others, are not covered."
        )
    if plan.window is not None:
        told.append("What a person does in n windows costs more, up to n times as much: the budget is renewed.")
    return " ".join(told)
