"""Systems over a finite set of experts: Hedge, dartboards (private or not), and perturbed leaders."""

from reticent.systems.experts._dartboard import (
    DARTBOARD,
    PRIVATE,
    DartboardPlan,
    PrivateDartboardPlan,
    plan_dartboard,
    plan_private_dartboard,
)
from reticent.systems.experts._hedge import HEDGES, HedgePlan, LimitedSwitchingPlan, plan_hedge, plan_limited_switching
from reticent.systems.experts._leaders import (
    LEADERS,
    ExpertsLazyLeader,
    ExpertsLazyLeaderPlan,
    LazyLeaderStar,
    LazyPerturbedPlan,
    PerturbedLeader,
    PerturbedPlan,
    plan_experts_lazy_leader,
    plan_lazy_leader_star,
    plan_perturbed_leader,
)
from reticent.systems.experts._learner import (
    LimitedSwitching,
    MultiplicativeWeights,
    PrivateDartboard,
    ShrinkingDartboard,
)

SYSTEMS = (PRIVATE, DARTBOARD, *LEADERS, *HEDGES)

__all__ = [
    "SYSTEMS",
    "DartboardPlan",
    "ExpertsLazyLeader",
    "ExpertsLazyLeaderPlan",
    "HedgePlan",
    "LazyLeaderStar",
    "LazyPerturbedPlan",
    "LimitedSwitching",
    "LimitedSwitchingPlan",
    "MultiplicativeWeights",
    "PerturbedLeader",
    "PerturbedPlan",
    "PrivateDartboard",
    "PrivateDartboardPlan",
    "ShrinkingDartboard",
    "plan_dartboard",
    "plan_experts_lazy_leader",
    "plan_hedge",
    "plan_lazy_leader_star",
    "plan_limited_switching",
    "plan_perturbed_leader",
    "plan_private_dartboard",
]
