"""Learners: play a decision, observe a loss, rarely change; P-COMW, and every prior system behind the same face."""

from reticent.hindsight import Trace
from reticent.systems._learner import Learner, SystemLearner, make
from reticent.systems.approximate_leader import ApproximateLeader
from reticent.systems.descent import OnlineGradientDescent, RegularisedLeader
from reticent.systems.experts import (
    ExpertsLazyLeader,
    LazyLeaderStar,
    LimitedSwitching,
    MultiplicativeWeights,
    PerturbedLeader,
    PrivateDartboard,
    ShrinkingDartboard,
)
from reticent.systems.ftrl import DPFTRL, AgarwalSingh
from reticent.systems.implicit import PrivateImplicitDescent
from reticent.systems.l2p import FlatWeights, LazyToPrivate
from reticent.systems.lazy_leader import LazyLeader
from reticent.systems.newton import OnlineNewtonStep
from reticent.systems.pcomw import PCOMW
from reticent.systems.perturbed import ObjectivePerturbation, ShermanKoren

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
