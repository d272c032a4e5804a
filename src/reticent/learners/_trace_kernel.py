"""Margins of rows at decisions in run-length form, compiled."""

from __future__ import annotations

from typing import Any

from reticent._kernel import kernel


@kernel
def run_margins(vectors: Any, offsets: Any, starts: Any, points: Any, out: Any) -> None:
    """Write the margin of each row at the point of the run that it lies in."""
    for k in range(starts.size):
        stop = starts[k + 1] if k + 1 < starts.size else offsets.size
        for i in range(starts[k], stop):
            m = offsets[i]
            for j in range(points.shape[1]):
                m += vectors[i, j] * points[k, j]
            out[i] = m
