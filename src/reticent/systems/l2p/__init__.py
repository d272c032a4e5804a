"""Systems whose coins read the decision alone: lazy-to-private, and continuous weights without a regulariser."""

from reticent.systems.l2p._flat import FLAT, FlatPlan, FlatWeights, plan_flat
from reticent.systems.l2p._flat_lazy import FLAT_LAZY, FlatLazyPlan, LazyFlatWeights, plan_flat_lazy
from reticent.systems.l2p._l2p import LAZY_TO_PRIVATE, LazyToPrivate, LazyToPrivatePlan, plan_l2p

SYSTEMS = (LAZY_TO_PRIVATE, FLAT, FLAT_LAZY)

__all__ = [
    "SYSTEMS",
    "FlatLazyPlan",
    "FlatPlan",
    "FlatWeights",
    "LazyFlatWeights",
    "LazyToPrivate",
    "LazyToPrivatePlan",
    "plan_flat",
    "plan_flat_lazy",
    "plan_l2p",
]
