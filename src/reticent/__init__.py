"""Online decisions that change rarely and reveal little: the public names."""

from reticent import fleet, privacy
from reticent._core._errors import WorkLimitError
from reticent._core._random import generator
from reticent.domains import Ball, Box, Experts, Interval, Polytope, Simplex
from reticent.fleet import Fleet
from reticent.gibbs import Draw, Gibbs
from reticent.journal import Journal
from reticent.learners import PCOMW, Trace, make
from reticent.ledger import Ledger
from reticent.losses import Absolute, Custom, Hinge, Huber, Linear, Logistic, Pinball, Squared
from reticent.planning import Plan, best_plan, compare_plans, plan_lazy, plan_private, theorem_lazy, theorem_private
from reticent.systems._front import lazy_learner, private_learner
from reticent.trackers import PrivateIntervals, PrivateMean, PrivateQuantile, PrivateQuantiles
from reticent.trackers._saved import load
from reticent.warming import warm

__all__ = [
    "PCOMW",
    "Absolute",
    "Ball",
    "Box",
    "Custom",
    "Draw",
    "Experts",
    "Fleet",
    "Gibbs",
    "Hinge",
    "Huber",
    "Interval",
    "Journal",
    "Ledger",
    "Linear",
    "Logistic",
    "Pinball",
    "Plan",
    "Polytope",
    "PrivateIntervals",
    "PrivateMean",
    "PrivateQuantile",
    "PrivateQuantiles",
    "Simplex",
    "Squared",
    "Trace",
    "WorkLimitError",
    "best_plan",
    "compare_plans",
    "fleet",
    "generator",
    "lazy_learner",
    "load",
    "make",
    "plan_lazy",
    "plan_private",
    "privacy",
    "private_learner",
    "theorem_lazy",
    "theorem_private",
    "warm",
]
