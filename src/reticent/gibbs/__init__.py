"""The Gibbs measure of a stream of convex losses, and draws from it that are exact or certified."""

from reticent._core._tags import later
from reticent.gibbs._measure import Draw, Gibbs

__all__ = ["Draw", "Gibbs"]

# Histories and samplers are compiled, and loaded when they are first needed; saved files may need them first.
later("reticent.gibbs._history", "columns", "summary", "row history", "object history")
later("reticent.gibbs._sums", "quadratic history", "gaussian sampler")
later("reticent.gibbs._curved", "curved sampler")
later("reticent.gibbs._kinks", "sampler of kinks on a line")
later("reticent.gibbs._kinked", "kinked sampler")
later("reticent.gibbs._potential", "line sampler", "anchor", "tangent sampler", "proximal sampler")
later(
    "reticent.gibbs._quartic",
    *("radial envelope", "norms of a quartic bound", "core of an envelope", "quartic bound", "built quartic bound"),
)
later("reticent.domains._gaussian", "gaussian envelope")
