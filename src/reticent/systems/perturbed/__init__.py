"""Perturbed regularised leaders: private (Agarwal et al. 2023), and lazy without privacy (Sherman and Koren 2021)."""

from reticent.systems.perturbed._lazy import LAZY, ShermanKorenPlan, plan_sherman_koren
from reticent.systems.perturbed._learner import ObjectivePerturbation, ShermanKoren
from reticent.systems.perturbed._objective import PRIVATE, ObjectivePlan, plan_objective

__all__ = [
    "LAZY",
    "PRIVATE",
    "ObjectivePerturbation",
    "ObjectivePlan",
    "ShermanKoren",
    "ShermanKorenPlan",
    "plan_objective",
    "plan_sherman_koren",
]
