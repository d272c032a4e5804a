"""Convex bodies, and finite sets, that decisions are taken from."""

from reticent.domains._ball import Ball
from reticent.domains._base import Domain
from reticent.domains._box import Box, Interval
from reticent.domains._experts import Experts
from reticent.domains._polytope import Polytope
from reticent.domains._simplex import Simplex

__all__ = ["Ball", "Box", "Domain", "Experts", "Interval", "Polytope", "Simplex"]
