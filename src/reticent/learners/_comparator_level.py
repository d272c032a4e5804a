"""The level method: the least value of any convex sum from values and subgradients, in few passes."""

from __future__ import annotations

import numpy as np

from reticent.learners._comparator_program import solve_program
from reticent.learners._comparator_record import Record, Total

_LEVEL = 0.3  # how far above the lower bound the next point is looked for, as a share of the gap
_BARREN = 40  # passes without a gap a tenth smaller, after which the method gives up


def level(total: Total, record: Record, passes: int) -> None:
    """Shrink the gap of a record with at most `passes` passes.

    Lemarechal, Nemirovskii and Nesterov (1995): project the last point onto where all minorants lie below a level
    between the bounds. Passes grow with 1/gap^2 at worst, whatever the dimension; usually with its logarithm.
    """
    if not len(record.consts):
        record.add(total.look(record.point, bend=False))
    A, b, ball = record.constraints()
    last = total.passes + passes
    at, best, since = record.point, np.inf, 0
    while total.passes < last:
        record.combine()
        if record.done or since > _BARREN:
            return
        best, since = (record.gap, 0) if record.gap < 0.9 * best else (best, since + 1)
        goal = record.lower + _LEVEL * (record.value - record.lower)
        steep = max(float(np.linalg.norm(record.slopes, axis=1).max()), 1e-300)
        rows = np.vstack([A, record.slopes / steep])
        levels = np.concatenate([b, (goal - record.consts) / steep])
        found, _ = solve_program(np.eye(at.size), -at, rows, levels, ball, at.size)
        at = record.inside(found)
        record.add(total.look(at, bend=False))
