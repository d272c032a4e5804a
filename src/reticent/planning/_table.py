"""A plan as an aligned table in plain text."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.planning._plan import Plan
    from reticent.planning._system import SystemPlan

_LABEL = 20
_WIDTH = 100
_NEIGHBORS = {
    "replace": "streams that differ in one round, whose loss is replaced by any other",
    "zero-out": "streams that differ in one round, whose loss is replaced by a constant",
}
_ADVERSARIES = {
    "adaptive": "losses may be chosen after seeing the decisions released so far",
    "oblivious": "losses must not depend on the decisions",
}


def table(plan: Plan) -> str:
    """Return the lines of `print(plan)`."""
    rows = [("plan", plan.source), ("domain", repr(plan.domain)), *size_rows(plan), *_parameters(plan)]
    rows += [*switch_and_regret(plan), *_privacy(plan)]
    rows += [("remark", remark) for remark in (*plan.remarks, *_vacuous(plan))]
    return labelled(rows)


def labelled(rows: list[tuple[str, str]]) -> str:
    """Return labels and texts as lines, long texts wrapped."""
    return "\n".join(_row(label, text) for label, text in rows)


def _row(label: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - _LABEL, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"{label if i == 0 else '':<{_LABEL}}{line}" for i, line in enumerate(lines))


def size_rows(plan: Plan | SystemPlan) -> list[tuple[str, str]]:
    """Return the horizon and the Lipschitz constant."""
    if plan.horizon is None:
        text = f"unknown: doubling epochs, the first of {plan.first_epoch:,} rounds"
        if plan.recipe is not None:
            text += " (parameters below are those of the first)"
    else:
        text = f"{plan.horizon:,} rounds"
    return [("horizon", text), ("lipschitz", number(plan.lipschitz))]


def _parameters(plan: Plan) -> list[tuple[str, str]]:
    log_phi = math.log(plan.phi)
    return [
        ("beta", number(plan.beta)),
        ("lam", number(plan.lam)),
        ("p", number(plan.p)),
        ("phi", f"{plan.phi:.12g} (log phi {number(log_phi)})"),
        ("budget", "no cap on switches" if plan.budget is None else f"at most {plan.budget:,} switches"),
        ("batch", f"{plan.batch:,} {'round' if plan.batch == 1 else 'rounds'} per coin"),
        ("draws", f"{plan.draws:,} auxiliary {'draw' if plan.draws == 1 else 'draws'} per coin that needs one"),
        ("distance", "0 (exact draws only)" if plan.distance == 0 else f"{number(plan.distance)} from exact at most"),
    ]


def switch_and_regret(plan: Plan | SystemPlan) -> list[tuple[str, str]]:
    """Return the certificates: expected switches and regret."""
    if plan.horizon is None:
        later = "depends on the epoch: see plan.epoch(k)"
        return [("expected switches", later), ("regret bound", later)]
    switches = regret = "not stated"
    if plan.expected_switches is not None:
        share = plan.expected_switches / plan.horizon
        switches = f"at most {number(plan.expected_switches)} ({100 * share:.3g}% of the rounds)"
    if plan.regret_bound is not None:
        regret = f"{number(plan.regret_bound)} ({number(plan.regret_bound / plan.horizon)} per round)"
        regret += " in expectation" + ("" if _reacts(plan) else ", for losses that do not depend on the decisions")
    return [("expected switches", switches), ("regret bound", regret)]


def _reacts(plan: Plan | SystemPlan) -> bool:
    """Say whether the regret bound holds for losses that react to decisions; that of P-COMW does not."""
    return hasattr(plan, "system") and plan.adversary == "adaptive"


def _privacy(plan: Plan) -> list[tuple[str, str]]:
    if plan.epsilon is None or plan.delta is None:
        return [("privacy", "none: this plan makes no privacy claim")]
    claim = f"epsilon {number(plan.epsilon)}, delta {number(plan.delta)}"
    if plan.seal is None:
        claim += " (claimed by hand, not certified)"
    return [
        ("privacy", claim),
        ("neighbors", f"{plan.neighbors}: {_NEIGHBORS[plan.neighbors]}"),
        ("adversary", f"{plan.adversary}: {_ADVERSARIES[plan.adversary]}"),
    ]


def _vacuous(plan: Plan) -> list[str]:
    if not plan.vacuous or plan.horizon is None:
        return []
    trivial = plan.lipschitz * plan.domain.diameter * plan.horizon
    return [
        f"The regret bound is vacuous: it is not below lipschitz * diameter * horizon = {number(trivial)}, "
        "which any decisions whatever satisfy."
    ]


def number(value: float) -> str:
    """Return a number for people: six digits, thousands grouped."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e9 else f"{value:.6g}"
