"""Draws that kernels of other modules make, by whichever sampler the measure at hand is compiled for."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

from reticent._check import Array

from ._curved import CurvedParts, draw_curved
from ._kinks import LineParts, draw_line


def draw_alone(rng: np.random.Generator, parts: CurvedParts | LineParts, n: int, out: Array) -> int:
    """Fill the rows of `out` with draws from the measure of the first `n` rounds; return how that ended.

    For use inside and outside of kernels; `parts` is what the sampler of `Gibbs.compiled` gives.
    """
    return int((draw_curved if isinstance(parts, CurvedParts) else draw_line)(rng, parts, n, out))


# Kernels are compiled for one sampler at a time, by the type of its parts.
@overload(draw_alone)
def _draw_alone(rng, parts, n, out):
    chosen = draw_curved if issubclass(parts.instance_class, CurvedParts) else draw_line
    return lambda rng, parts, n, out: chosen(rng, parts, n, out)
