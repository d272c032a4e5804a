"""Systems over a finite set of experts: Hedge, dartboards (private or not), and perturbed leaders."""

from reticent.systems.experts._budget import RESTARTING, RestartingLeader, RestartingLeaderPlan, plan_restarting_leader
from reticent.systems.experts._dartboard import (
    DARTBOARD,
    PRIVATE,
    DartboardPlan,
    PrivateDartboardPlan,
    plan_dartboard,
    plan_private_dartboard,
)
from reticent.systems.experts._doubling import DoublingExperts, DoublingPlan, plan_doubling
from reticent.systems.experts._drawn_leader import DRAWN, DrawnLeader, DrawnLeaderPlan, plan_drawn_leader
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
from reticent.systems.experts._noisy_weights import (
    WEIGHED,
    AgarwalSinghExperts,
    NoisyWeightsPlan,
    plan_agarwal_singh_experts,
)
from reticent.systems.experts._simplex_leader import (
    SIMPLEX_LEADER,
    SimplexLeader,
    SimplexLeaderPlan,
    plan_simplex_leader,
)

SYSTEMS = (PRIVATE, DRAWN, WEIGHED, DARTBOARD, SIMPLEX_LEADER, *LEADERS, *HEDGES, RESTARTING)

__all__ = [
    "SYSTEMS",
    "AgarwalSinghExperts",
    "DartboardPlan",
    "DoublingExperts",
    "DoublingPlan",
    "DrawnLeader",
    "DrawnLeaderPlan",
    "ExpertsLazyLeader",
    "ExpertsLazyLeaderPlan",
    "HedgePlan",
    "LazyLeaderStar",
    "LazyPerturbedPlan",
    "LimitedSwitching",
    "LimitedSwitchingPlan",
    "MultiplicativeWeights",
    "NoisyWeightsPlan",
    "PerturbedLeader",
    "PerturbedPlan",
    "PrivateDartboard",
    "PrivateDartboardPlan",
    "RestartingLeader",
    "RestartingLeaderPlan",
    "ShrinkingDartboard",
    "SimplexLeader",
    "SimplexLeaderPlan",
    "plan_agarwal_singh_experts",
    "plan_dartboard",
    "plan_doubling",
    "plan_drawn_leader",
    "plan_experts_lazy_leader",
    "plan_hedge",
    "plan_lazy_leader_star",
    "plan_limited_switching",
    "plan_perturbed_leader",
    "plan_private_dartboard",
    "plan_restarting_leader",
    "plan_simplex_leader",
]
