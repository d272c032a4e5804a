"""The budgeted follower: the best measured regret on ordinary streams at a number of changes that never breaks."""

from reticent.systems.budgeted._learner import BudgetedFollower
from reticent.systems.budgeted._plan import SYSTEMS, BudgetedPlan, plan_budgeted

__all__ = ["SYSTEMS", "BudgetedFollower", "BudgetedPlan", "plan_budgeted"]
