"""Newton's method for the least sum of losses on a body; kinks are rounded off, less and less."""

from __future__ import annotations

import math

import numpy as np

from reticent._check import Array
from reticent.learners._comparator_program import solve_program
from reticent.learners._comparator_record import Record
from reticent.learners._comparator_sum import Look, RowSum

_CUTS = 8  # shorter and shorter steps tried in one direction


def newton(total: RowSum, record: Record, start: Array, width: float, passes: int) -> None:
    """Look for the minimiser from `start`, with at most `passes` passes over the data.

    Stops when the record has the wanted gap, or when no progress is made. With kinks rounded off over `width`, the
    gap is that of the rounded problem plus what the rounding leaves, which falls with the square of the width where
    kinks lie apart: so the width follows from the gap wanted.
    """
    last = total.passes + passes
    finest = max(record.wanted, total.rounding) / max(1, total.rounds) if total.kinked else 0.0
    width = max(width, finest) if total.kinked else 0.0
    look = total.look(record.inside(start), width)
    behind = record.add(look)
    while not record.done and total.passes < last:
        left = look.value - look.const - float(look.slope @ look.point)  # what rounding off the kinks leaves
        if total.kinked and width > finest and behind <= max(0.5 * left, 0.25 * record.wanted):
            ratio = math.sqrt(0.25 * record.wanted / left) if left > 0 else 0.03
            width = max(finest, width * min(max(ratio, 0.03), 0.3))
            look = total.look(look.point, width)
            behind = record.add(look)
            continue
        found = _step(total, record, look, width, last)
        if found is None:
            return
        look, behind = found


def _step(total: RowSum, record: Record, look: Look, width: float, last: int) -> tuple[Look, float] | None:
    """Take one step, shortened until it pays; None where none does."""
    u = look.point
    A, b, ball = record.constraints()
    bend = look.bend + 1e-12 * max(float(np.trace(look.bend)), 1e-300) / u.size * np.eye(u.size)
    goal, _ = solve_program(bend, look.slope - bend @ u, A, b, ball, u.size)
    move = record.inside(goal) - u
    gain = -float(look.slope @ move)
    if not gain > total.rounding:
        return None
    fraction = 1.0
    for _ in range(_CUTS):
        if total.passes >= last:
            return None
        new = total.look(record.inside(u + fraction * move), width)
        behind = record.add(new)
        if record.done or new.smooth <= look.smooth - 1e-3 * fraction * gain:
            return new, behind
        # Where the slope along the step would vanish, were it linear.
        end = float(new.slope @ move)
        fraction *= min(max(gain / (gain + end), 0.1), 0.6) if end > 0 else 0.3
    return None
