"""Learners: play a decision, observe a loss, rarely change; P-COMW, and every prior system behind the same face."""

from reticent.learners._descent import OnlineGradientDescent, RegularisedLeader
from reticent.learners._learner import Learner
from reticent.learners._make import make
from reticent.learners._pcomw import PCOMW
from reticent.learners._system import SystemLearner
from reticent.learners._trace import Trace

__all__ = ["PCOMW", "Learner", "OnlineGradientDescent", "RegularisedLeader", "SystemLearner", "Trace", "make"]
