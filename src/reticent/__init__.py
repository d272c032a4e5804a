"""Online decisions that change rarely and reveal little: the public names."""

from reticent import privacy
from reticent._core._errors import WorkLimitError
from reticent._core._random import generator
from reticent.domains import Ball, Box, Experts, Interval, Polytope, Simplex
from reticent.gibbs import Draw, Gibbs
from reticent.journal import Journal
from reticent.learners import PCOMW, Trace, make
from reticent.losses import Absolute, Custom, Hinge, Huber, Linear, Logistic, Pinball, Squared
from reticent.planning import Plan, best_plan, compare_plans, plan_lazy, plan_private, theorem_lazy, theorem_private
from reticent.systems._saved import load
from reticent.trackers import PrivateMean, PrivateQuantile

__all__ = [
    "PCOMW",
    "Absolute",
    "Ball",
    "Box",
    "Custom",
    "Draw",
    "Experts",
    "Gibbs",
    "Hinge",
    "Huber",
    "Interval",
    "Journal",
    "Linear",
    "Logistic",
    "Pinball",
    "Plan",
    "Polytope",
    "PrivateMean",
    "PrivateQuantile",
    "Simplex",
    "Squared",
    "Trace",
    "WorkLimitError",
    "best_plan",
    "compare_plans",
    "generator",
    "load",
    "make",
    "plan_lazy",
    "plan_private",
    "privacy",
    "theorem_lazy",
    "theorem_private",
]
