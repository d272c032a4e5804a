"""The filtered gate: epochs of correlated noise, and Kalman filters behind it; for ordinary data."""

from reticent.systems.filtered._learner import FilteredGate
from reticent.systems.filtered._plan import SYSTEMS, FilteredPlan, clip_for, plan_filtered

__all__ = ["SYSTEMS", "FilteredGate", "FilteredPlan", "clip_for", "plan_filtered"]
