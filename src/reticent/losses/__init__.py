"""Losses: what a round charges for a decision."""

from reticent.losses._absolute import Absolute
from reticent.losses._base import Loss
from reticent.losses._custom import Custom, Objects
from reticent.losses._differentiated import Differentiated
from reticent.losses._from_jax import from_jax
from reticent.losses._from_torch import from_torch
from reticent.losses._glm import GeneralisedLinear
from reticent.losses._hinge import Hinge
from reticent.losses._huber import Huber
from reticent.losses._linear import Linear
from reticent.losses._logistic import Logistic
from reticent.losses._pinball import Pinball
from reticent.losses._rows import Rows
from reticent.losses._squared import Squared

__all__ = [
    "Absolute",
    "Custom",
    "Differentiated",
    "GeneralisedLinear",
    "Hinge",
    "Huber",
    "Linear",
    "Logistic",
    "Loss",
    "Objects",
    "Pinball",
    "Rows",
    "Squared",
    "from_jax",
    "from_torch",
]
