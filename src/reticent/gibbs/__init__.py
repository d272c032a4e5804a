"""The Gibbs measure of a stream of convex losses, and draws from it that are exact or certified."""

from ._draw import Draw
from ._measure import Gibbs

__all__ = ["Draw", "Gibbs"]
