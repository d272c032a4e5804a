"""Losses: what a round charges for a decision."""

from reticent.losses._base import Loss, Rows
from reticent.losses._custom import Custom, Objects
from reticent.losses._differentiated import Differentiated
from reticent.losses._from_jax import from_jax
from reticent.losses._from_torch import from_torch
from reticent.losses._glm import GeneralisedLinear
from reticent.losses._label import Hinge, Logistic
from reticent.losses._linear import Linear
from reticent.losses._residual import Absolute, Huber, Pinball, Squared

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
