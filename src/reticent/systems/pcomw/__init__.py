"""P-COMW, Private Continuous Online Multiplicative Weights (Agarwal, Kale, Singh and Thakurta 2024)."""

from reticent.systems.pcomw._lazy import plan_lazy
from reticent.systems.pcomw._learner import PCOMW
from reticent.systems.pcomw._offers import SYSTEMS
from reticent.systems.pcomw._plan import Plan
from reticent.systems.pcomw._private import plan_private
from reticent.systems.pcomw._theorems import theorem_lazy, theorem_private

__all__ = ["PCOMW", "SYSTEMS", "Plan", "plan_lazy", "plan_private", "theorem_lazy", "theorem_private"]
