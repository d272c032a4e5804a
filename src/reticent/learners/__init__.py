"""Learners: play a decision, observe a loss, rarely change; P-COMW, and every prior system behind the same face."""

from reticent.learners._approximate_leader import ApproximateLeader
from reticent.learners._descent import OnlineGradientDescent, RegularisedLeader
from reticent.learners._experts import LimitedSwitching, MultiplicativeWeights, PrivateDartboard, ShrinkingDartboard
from reticent.learners._experts_leaders import ExpertsLazyLeader, LazyLeaderStar, PerturbedLeader
from reticent.learners._ftrl import DPFTRL, AgarwalSingh
from reticent.learners._implicit import PrivateImplicitDescent
from reticent.learners._learner import Learner
from reticent.learners._make import make
from reticent.learners._pcomw import PCOMW
from reticent.learners._system import SystemLearner
from reticent.learners._trace import Trace

__all__ = [
    "DPFTRL",
    "PCOMW",
    "AgarwalSingh",
    "ApproximateLeader",
    "ExpertsLazyLeader",
    "LazyLeaderStar",
    "Learner",
    "LimitedSwitching",
    "MultiplicativeWeights",
    "OnlineGradientDescent",
    "PerturbedLeader",
    "PrivateDartboard",
    "PrivateImplicitDescent",
    "RegularisedLeader",
    "ShrinkingDartboard",
    "SystemLearner",
    "Trace",
    "make",
]
