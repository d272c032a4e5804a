"""Private implicit gradient descent, after Jain, Kothari and Thakurta 2012."""

from reticent.systems.implicit._implicit import SYSTEMS, ImplicitPlan, PrivateImplicitDescent, plan_implicit

__all__ = ["SYSTEMS", "ImplicitPlan", "PrivateImplicitDescent", "plan_implicit"]
