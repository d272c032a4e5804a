"""Private FTRL on noisy prefix sums: DP-FTRL with Toeplitz or tree noise, and Agarwal and Singh's."""

from reticent.systems.ftrl._learner import DPFTRL, AgarwalSingh
from reticent.systems.ftrl._plan import FTRLPlan, SmoothFTRLPlan, TreeLeaderPlan
from reticent.systems.ftrl._search import SYSTEMS, plan_agarwal_singh, plan_ftrl

__all__ = [
    "DPFTRL",
    "SYSTEMS",
    "AgarwalSingh",
    "FTRLPlan",
    "SmoothFTRLPlan",
    "TreeLeaderPlan",
    "plan_agarwal_singh",
    "plan_ftrl",
]
