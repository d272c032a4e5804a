"""Follow the lazy leader over convex bodies (Kalai and Vempala 2005)."""

from reticent.systems.lazy_leader._lazy_leader import SYSTEMS, LazyLeader, LazyLeaderPlan, plan_lazy_leader

__all__ = ["SYSTEMS", "LazyLeader", "LazyLeaderPlan", "plan_lazy_leader"]
