"""The online Newton step, for losses with curvature along their gradients."""

from reticent.systems.newton._newton import SYSTEMS, NewtonPlan, OnlineNewtonStep, plan_newton

__all__ = ["SYSTEMS", "NewtonPlan", "OnlineNewtonStep", "plan_newton"]
