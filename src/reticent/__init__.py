"""Online decisions that change rarely and reveal little: the public names."""

from reticent._errors import WorkLimitError
from reticent._random import generator
from reticent.domains import Ball, Box, Interval, Polytope, Simplex
from reticent.gibbs import Draw, Gibbs
from reticent.losses import Absolute, Custom, Hinge, Huber, Linear, Logistic, Pinball, Squared

__all__ = [
    "Absolute",
    "Ball",
    "Box",
    "Custom",
    "Draw",
    "Gibbs",
    "Hinge",
    "Huber",
    "Interval",
    "Linear",
    "Logistic",
    "Pinball",
    "Polytope",
    "Simplex",
    "Squared",
    "WorkLimitError",
    "generator",
]
