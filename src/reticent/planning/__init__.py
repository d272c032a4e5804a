"""From a goal to parameters: plans, the paper's presets and the tuned lazy and private plans."""

from reticent.planning._lazy import plan_lazy
from reticent.planning._plan import Plan
from reticent.planning._private import plan_private
from reticent.planning._theorems import theorem_lazy, theorem_private

__all__ = ["Plan", "plan_lazy", "plan_private", "theorem_lazy", "theorem_private"]
