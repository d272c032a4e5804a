"""What a draw returns."""

from __future__ import annotations

from dataclasses import dataclass

from reticent._check import Array


@dataclass(frozen=True, slots=True)
class Draw:
    """A point drawn from the measure, and how.

    `distance` is the distance of its law from the measure as a GDP number: 0 for an exact draw, else w such that
    telling the two apart is no easier than N(0, 1) from N(w, 1). `losses_read` counts past losses looked at,
    `proposals` the candidates tried.
    """

    point: Array
    method: str
    proposals: int
    losses_read: int
    distance: float = 0.0
