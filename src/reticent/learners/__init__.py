"""Learners: play a decision, observe a loss, rarely change; P-COMW, and every prior system behind the same face."""

from reticent.learners._approximate_leader import ApproximateLeader
from reticent.learners._descent import OnlineGradientDescent, RegularisedLeader
from reticent.learners._experts import LimitedSwitching, MultiplicativeWeights, PrivateDartboard, ShrinkingDartboard
from reticent.learners._experts_leaders import ExpertsLazyLeader, LazyLeaderStar, PerturbedLeader
from reticent.learners._flat import FlatWeights
from reticent.learners._ftrl import DPFTRL, AgarwalSingh
from reticent.learners._implicit import PrivateImplicitDescent
from reticent.learners._l2p import LazyToPrivate
from reticent.learners._lazy_leader import LazyLeader
from reticent.learners._learner import Learner
from reticent.learners._make import make
from reticent.learners._newton import OnlineNewtonStep
from reticent.learners._pcomw import PCOMW
from reticent.learners._perturbed import ObjectivePerturbation, ShermanKoren
from reticent.learners._system import SystemLearner
from reticent.learners._trace import Trace

__all__ = [
    "DPFTRL",
    "PCOMW",
    "AgarwalSingh",
    "ApproximateLeader",
    "ExpertsLazyLeader",
    "FlatWeights",
    "LazyLeader",
    "LazyLeaderStar",
    "LazyToPrivate",
    "Learner",
    "LimitedSwitching",
    "MultiplicativeWeights",
    "ObjectivePerturbation",
    "OnlineGradientDescent",
    "OnlineNewtonStep",
    "PerturbedLeader",
    "PrivateDartboard",
    "PrivateImplicitDescent",
    "RegularisedLeader",
    "ShermanKoren",
    "ShrinkingDartboard",
    "SystemLearner",
    "Trace",
    "make",
]
