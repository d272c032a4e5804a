"""From a goal to parameters: the plans and planners of all systems, and the choice among them."""

from reticent.systems._choice import Comparison, Offer, best_plan, compare_plans
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._group import for_persons
from reticent.systems._plan import BasePlan, SystemPlan
from reticent.systems.approximate_leader import ApproximateLeaderPlan, plan_approximate_leader
from reticent.systems.budgeted import BudgetedPlan, plan_budgeted
from reticent.systems.descent import DescentPlan, LeaderPlan, plan_descent, plan_leader
from reticent.systems.experts import (
    DartboardPlan,
    DoublingPlan,
    DrawnLeaderPlan,
    ExpertsLazyLeaderPlan,
    HedgePlan,
    LazyPerturbedPlan,
    LimitedSwitchingPlan,
    NoisyWeightsPlan,
    PerturbedPlan,
    PrivateDartboardPlan,
    RestartingLeaderPlan,
    SimplexLeaderPlan,
    plan_agarwal_singh_experts,
    plan_dartboard,
    plan_doubling,
    plan_drawn_leader,
    plan_experts_lazy_leader,
    plan_hedge,
    plan_lazy_leader_star,
    plan_limited_switching,
    plan_perturbed_leader,
    plan_private_dartboard,
    plan_restarting_leader,
    plan_simplex_leader,
)
from reticent.systems.filtered import FilteredPlan, plan_filtered
from reticent.systems.ftrl import FTRLPlan, SmoothFTRLPlan, TreeLeaderPlan, plan_agarwal_singh, plan_ftrl
from reticent.systems.gate import NoisyDescentPlan, plan_noisy_descent
from reticent.systems.grid_descent import GridDescentPlan, plan_grid_descent
from reticent.systems.implicit import ImplicitPlan, plan_implicit
from reticent.systems.l2p import FlatLazyPlan, FlatPlan, LazyToPrivatePlan, plan_flat, plan_flat_lazy, plan_l2p
from reticent.systems.lazy_leader import IndependentPlan, LazyLeaderPlan, plan_independent, plan_lazy_leader
from reticent.systems.newton import NewtonPlan, plan_newton
from reticent.systems.pcomw import Plan, plan_lazy, plan_private, theorem_lazy, theorem_private
from reticent.systems.perturbed import ObjectivePlan, ShermanKorenPlan, plan_objective, plan_sherman_koren

__all__ = [
    "ApproximateLeaderPlan",
    "BasePlan",
    "BudgetedPlan",
    "Comparison",
    "DartboardPlan",
    "DescentPlan",
    "DoublingPlan",
    "DrawnLeaderPlan",
    "ExpertsLazyLeaderPlan",
    "FTRLPlan",
    "FilteredPlan",
    "FlatLazyPlan",
    "FlatPlan",
    "Goal",
    "GridDescentPlan",
    "HedgePlan",
    "ImplicitPlan",
    "IndependentPlan",
    "LazyLeaderPlan",
    "LazyPerturbedPlan",
    "LazyToPrivatePlan",
    "LeaderPlan",
    "LimitedSwitchingPlan",
    "NewtonPlan",
    "NoisyDescentPlan",
    "NoisyWeightsPlan",
    "NotApplicable",
    "ObjectivePlan",
    "Offer",
    "PerturbedPlan",
    "Plan",
    "PrivateDartboardPlan",
    "RestartingLeaderPlan",
    "ShermanKorenPlan",
    "SimplexLeaderPlan",
    "SmoothFTRLPlan",
    "System",
    "SystemPlan",
    "TreeLeaderPlan",
    "best_plan",
    "compare_plans",
    "for_persons",
    "plan_agarwal_singh",
    "plan_agarwal_singh_experts",
    "plan_approximate_leader",
    "plan_budgeted",
    "plan_dartboard",
    "plan_descent",
    "plan_doubling",
    "plan_drawn_leader",
    "plan_experts_lazy_leader",
    "plan_filtered",
    "plan_flat",
    "plan_flat_lazy",
    "plan_ftrl",
    "plan_grid_descent",
    "plan_hedge",
    "plan_implicit",
    "plan_independent",
    "plan_l2p",
    "plan_lazy",
    "plan_lazy_leader",
    "plan_lazy_leader_star",
    "plan_leader",
    "plan_limited_switching",
    "plan_newton",
    "plan_noisy_descent",
    "plan_objective",
    "plan_perturbed_leader",
    "plan_private",
    "plan_private_dartboard",
    "plan_restarting_leader",
    "plan_sherman_koren",
    "plan_simplex_leader",
    "theorem_lazy",
    "theorem_private",
]
