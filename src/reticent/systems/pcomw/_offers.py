"""P-COMW among the systems to choose from: its tuned plans, and the paper's presets."""

from __future__ import annotations

import math

from reticent._core import _names
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems.pcomw._lazy import plan_lazy
from reticent.systems.pcomw._plan import Plan
from reticent.systems.pcomw._private import plan_private
from reticent.systems.pcomw._theorems import theorem_lazy, theorem_private


def _private(goal: Goal) -> Plan:
    near, who, cap = goal.neighbors, goal.adversary, goal.max_switches
    return plan_private(*goal.target, neighbors=near, adversary=who, max_switches=cap)


def _lazy(goal: Goal) -> Plan:
    switches = goal.horizon if goal.max_switches is None else goal.max_switches
    return plan_lazy(*goal.size, switches)


def _theorem_private(goal: Goal) -> Plan:
    *_, epsilon, delta = goal.target
    if goal.adversary == "adaptive":
        raise NotApplicable("its theorem's privacy is proved for losses that are fixed in advance")
    if goal.neighbors != "replace":
        raise NotApplicable("its theorem is for replaced rounds")
    if epsilon > 1 or delta > 0.5:
        raise NotApplicable("its theorem needs epsilon <= 1 and delta <= 1/2")
    if goal.horizon < 12 * math.log(1 / delta):
        raise NotApplicable(f"its theorem needs {12 * math.log(1 / delta):.0f} rounds or more")
    plan = theorem_private(*goal.target)
    in_machine = plan.account().epsilon(delta)
    if in_machine > epsilon:
        raise NotApplicable(f"its theorem is for real numbers: in the machine its account has epsilon {in_machine:.3g}")
    if goal.max_switches is not None and (plan.expected_switches or 0.0) > goal.max_switches:
        raise NotApplicable(f"switches {plan.expected_switches:,.0f} times")
    return plan


def _theorem_lazy(goal: Goal) -> Plan:
    switches = goal.horizon if goal.max_switches is None else goal.max_switches
    if goal.horizon < 3 or not 1 <= switches <= goal.horizon:
        raise NotApplicable("its theorem needs 3 rounds and from 1 to T switches")
    return theorem_lazy(*goal.size, switches)


SYSTEMS = (
    System(_names.PCOMW, _private, private=True, lazy=True),
    System(_names.DP_OCO, _theorem_private, private=True, lazy=True),
    System(_names.PCOMW_LAZY, _lazy, lazy=True),
    System(_names.LAZY_OCO, _theorem_lazy, lazy=True),
)
