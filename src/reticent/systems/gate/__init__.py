"""The gate, which every round passes once (clipped, summed in integers, noise, one release), and descent behind it."""

from reticent.systems.gate._base import GatePlan
from reticent.systems.gate._learner import NoisyDescent
from reticent.systems.gate._plan import SYSTEMS, NoisyDescentPlan, plan_noisy_descent
from reticent.systems.gate._release import BlockRelease
from reticent.systems.gate._walk import BlockWalk, GateLearner

__all__ = [
    "SYSTEMS",
    "BlockRelease",
    "BlockWalk",
    "GateLearner",
    "GatePlan",
    "NoisyDescent",
    "NoisyDescentPlan",
    "plan_noisy_descent",
]
