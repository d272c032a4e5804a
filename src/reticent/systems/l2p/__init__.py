"""Systems whose coins read the decision alone: lazy-to-private, and continuous weights without a regulariser."""

from reticent.systems.l2p._flat import FLAT, FlatPlan, FlatWeights, plan_flat
from reticent.systems.l2p._l2p import LAZY_TO_PRIVATE, LazyToPrivate, LazyToPrivatePlan, plan_l2p

SYSTEMS = (LAZY_TO_PRIVATE, FLAT)

__all__ = ["SYSTEMS", "FlatPlan", "FlatWeights", "LazyToPrivate", "LazyToPrivatePlan", "plan_flat", "plan_l2p"]
