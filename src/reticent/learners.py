"""Learners: play a decision, observe a loss, rarely change; P-COMW, and every prior system behind the same face."""

from reticent.hindsight import Trace
from reticent.systems._empty import EmptyRoundWarning
from reticent.systems._learner import Learner, SystemLearner, make
from reticent.systems.approximate_leader import ApproximateLeader
from reticent.systems.budgeted import BudgetedFollower
from reticent.systems.descent import OnlineGradientDescent, RegularisedLeader
from reticent.systems.experts import (
    AgarwalSinghExperts,
    DoublingExperts,
    DrawnLeader,
    ExpertsLazyLeader,
    LazyLeaderStar,
    LimitedSwitching,
    MultiplicativeWeights,
    PerturbedLeader,
    PrivateDartboard,
    RestartingLeader,
    ShrinkingDartboard,
    SimplexLeader,
)
from reticent.systems.filtered import FilteredGate
from reticent.systems.ftrl import DPFTRL, AgarwalSingh
from reticent.systems.gate import NoisyDescent
from reticent.systems.grid_descent import GridDescent
from reticent.systems.implicit import PrivateImplicitDescent
from reticent.systems.l2p import FlatWeights, LazyFlatWeights, LazyToPrivate
from reticent.systems.lazy_leader import AveragedDescent, LazyLeader
from reticent.systems.newton import OnlineNewtonStep
from reticent.systems.pcomw import PCOMW
from reticent.systems.perturbed import ObjectivePerturbation, ShermanKoren

__all__ = [
    "DPFTRL",
    "PCOMW",
    "AgarwalSingh",
    "AgarwalSinghExperts",
    "ApproximateLeader",
    "AveragedDescent",
    "BudgetedFollower",
    "DoublingExperts",
    "DrawnLeader",
    "EmptyRoundWarning",
    "ExpertsLazyLeader",
    "FilteredGate",
    "FlatWeights",
    "GridDescent",
    "LazyFlatWeights",
    "LazyLeader",
    "LazyLeaderStar",
    "LazyToPrivate",
    "Learner",
    "LimitedSwitching",
    "MultiplicativeWeights",
    "NoisyDescent",
    "ObjectivePerturbation",
    "OnlineGradientDescent",
    "OnlineNewtonStep",
    "PerturbedLeader",
    "PrivateDartboard",
    "PrivateImplicitDescent",
    "RegularisedLeader",
    "RestartingLeader",
    "ShermanKoren",
    "ShrinkingDartboard",
    "SimplexLeader",
    "SystemLearner",
    "Trace",
    "make",
]
