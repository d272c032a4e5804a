"""From a goal to parameters: plans of P-COMW, the paper's presets, and the plans of prior systems."""

from reticent.planning._approximate_leader import ApproximateLeaderPlan, plan_approximate_leader
from reticent.planning._compare import Comparison, Offer, best_plan, compare_plans
from reticent.planning._descent import DescentPlan, LeaderPlan, plan_descent, plan_leader
from reticent.planning._experts import HedgePlan, LimitedSwitchingPlan, plan_hedge, plan_limited_switching
from reticent.planning._experts_dartboard import DartboardPlan, plan_dartboard
from reticent.planning._experts_leaders import (
    ExpertsLazyLeaderPlan,
    LazyPerturbedPlan,
    PerturbedPlan,
    plan_experts_lazy_leader,
    plan_lazy_leader_star,
    plan_perturbed_leader,
)
from reticent.planning._flat import FlatPlan, plan_flat
from reticent.planning._ftrl import FTRLPlan, TreeLeaderPlan, plan_agarwal_singh, plan_ftrl
from reticent.planning._goal import Goal, NotApplicable, System
from reticent.planning._implicit import ImplicitPlan, plan_implicit
from reticent.planning._l2p import LazyToPrivatePlan, plan_l2p
from reticent.planning._lazy import plan_lazy
from reticent.planning._lazy_leader import LazyLeaderPlan, plan_lazy_leader
from reticent.planning._newton import NewtonPlan, plan_newton
from reticent.planning._perturbed_lazy import ShermanKorenPlan, plan_sherman_koren
from reticent.planning._perturbed_objective import ObjectivePlan, plan_objective
from reticent.planning._plan import Plan
from reticent.planning._private import plan_private
from reticent.planning._private_dartboard import PrivateDartboardPlan
from reticent.planning._private_dartboard_search import plan_private_dartboard
from reticent.planning._system import SystemPlan
from reticent.planning._theorems import theorem_lazy, theorem_private

__all__ = [
    "ApproximateLeaderPlan",
    "Comparison",
    "DartboardPlan",
    "DescentPlan",
    "ExpertsLazyLeaderPlan",
    "FTRLPlan",
    "FlatPlan",
    "Goal",
    "HedgePlan",
    "ImplicitPlan",
    "LazyLeaderPlan",
    "LazyPerturbedPlan",
    "LazyToPrivatePlan",
    "LeaderPlan",
    "LimitedSwitchingPlan",
    "NewtonPlan",
    "NotApplicable",
    "ObjectivePlan",
    "Offer",
    "PerturbedPlan",
    "Plan",
    "PrivateDartboardPlan",
    "ShermanKorenPlan",
    "System",
    "SystemPlan",
    "TreeLeaderPlan",
    "best_plan",
    "compare_plans",
    "plan_agarwal_singh",
    "plan_approximate_leader",
    "plan_dartboard",
    "plan_descent",
    "plan_experts_lazy_leader",
    "plan_flat",
    "plan_ftrl",
    "plan_hedge",
    "plan_implicit",
    "plan_l2p",
    "plan_lazy",
    "plan_lazy_leader",
    "plan_lazy_leader_star",
    "plan_leader",
    "plan_limited_switching",
    "plan_newton",
    "plan_objective",
    "plan_perturbed_leader",
    "plan_private",
    "plan_private_dartboard",
    "plan_sherman_koren",
    "theorem_lazy",
    "theorem_private",
]
