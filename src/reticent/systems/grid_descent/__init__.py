"""Few switches for strongly convex losses over boxes: hidden descent, seen through a grid with random thresholds."""

from reticent.systems.grid_descent._learner import GridDescent
from reticent.systems.grid_descent._plan import SYSTEMS, GridDescentPlan, plan_grid_descent

__all__ = ["SYSTEMS", "GridDescent", "GridDescentPlan", "plan_grid_descent"]
