"""Few switches over convex bodies: follow the lazy leader, and averages of descent for independent losses."""

from reticent.systems.lazy_leader._independent import AveragedDescent, IndependentPlan, plan_independent
from reticent.systems.lazy_leader._lazy_leader import SYSTEMS, LazyLeader, LazyLeaderPlan, plan_lazy_leader

__all__ = [
    "SYSTEMS",
    "AveragedDescent",
    "IndependentPlan",
    "LazyLeader",
    "LazyLeaderPlan",
    "plan_independent",
    "plan_lazy_leader",
]
