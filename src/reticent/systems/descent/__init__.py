"""Gradient methods that are neither private nor random: online gradient descent, in blocks for laziness, and FTRL."""

from reticent.systems.descent._descent import (
    SYSTEMS,
    DescentPlan,
    LeaderPlan,
    OnlineGradientDescent,
    RegularisedLeader,
    plan_descent,
    plan_leader,
)

__all__ = [
    "SYSTEMS",
    "DescentPlan",
    "LeaderPlan",
    "OnlineGradientDescent",
    "RegularisedLeader",
    "plan_descent",
    "plan_leader",
]
