"""The best fixed decision in hindsight, to a certified gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent._check import Array, positive
from reticent.domains import Domain
from reticent.learners._comparator_level import level
from reticent.learners._comparator_line import line
from reticent.learners._comparator_newton import newton
from reticent.learners._comparator_record import Record
from reticent.learners._comparator_sum import Blocks, ObjectSum, RowSum
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Squared

_RELATIVE = 1e-6  # the gap unless given, as a share of lipschitz * diameter * rounds
_LARGE = 1 << 17  # rows from which on a sample tells where to start
_NEWTON = 60  # passes of Newton's method before the level method takes over
_PASSES = 200  # passes of the level method


@dataclass(frozen=True, slots=True, eq=False)
class Hindsight:
    """A decision, the sum of all losses at it, and how far below that the least sum over the domain may be.

    The least sum lies in `[value - gap, value]`; the gap holds an allowance for the rounding of the sums. `passes`
    says how often the data was read.
    """

    point: Array
    value: float
    gap: float
    passes: int


def best_fixed(domain: Domain, loss: Loss, blocks: Blocks, lipschitz: float, *, gap: float | None = None) -> Hindsight:
    """Return a decision whose total loss over the prepared `blocks` is within a certified gap of the least.

    `blocks` are rounds as `loss.prepare` returns them, or a function that gives them afresh for every pass. `gap`
    is the gap wanted, `1e-6 * lipschitz * diameter * rounds` unless given. Where that takes too many passes, the
    gap reported is what was reached; it is never less than the truth.

    Linear losses need the support function only. Smooth ones are solved by Newton's method on the body, kinked ones
    exactly on a line and otherwise by Newton's method with the kinks rounded off, custom ones by the level method.
    The lower bound is the least value over the domain of an affine function that lies below the sum of losses. On a
    finite set every decision is tried.

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> domain = Interval(0.0, 10.0)
    >>> rows = Absolute().prepare(domain, [[1.0], [1.0], [1.0]], [1.0, 2.0, 9.0])
    >>> best = best_fixed(domain, Absolute(), [rows], 1.0)
    >>> float(best.point[0]), best.value, best.gap < 1e-10
    (2.0, 8.0, True)
    """
    steep = positive("lipschitz", lipschitz)
    wanted = None if gap is None else positive("gap", gap, zero=True)
    if domain.finite:
        return _finite(domain, loss, blocks)
    if isinstance(loss, Custom):
        record = _custom(domain, loss, blocks, steep, wanted)
    elif isinstance(loss, GeneralisedLinear | Linear):
        record = _rows(domain, loss, blocks, steep, wanted)
    else:
        raise ValueError(f"no solver knows the loss {loss!r}; wrap it in Custom(value, subgradient)")
    return Hindsight(domain.from_chart(record.point), record.value, record.gap, record.total.passes)


def _goal(domain: Domain, rounds: int, steep: float, wanted: float | None) -> float:
    return _RELATIVE * steep * domain.diameter * rounds if wanted is None else wanted


def _custom(domain: Domain, loss: Custom, blocks: Blocks, steep: float, wanted: float | None) -> Record:
    total = ObjectSum(domain, loss, blocks)
    first = total.look(np.zeros(domain.chart_dim))
    _refuse_empty(total.rounds)
    record = Record(domain, total, _goal(domain, total.rounds, steep, wanted))
    record.add(first)
    level(total, record, _PASSES)
    return record


def _rows(domain: Domain, loss: Loss, blocks: Blocks, steep: float, wanted: float | None) -> Record:
    sampling = not isinstance(loss, Linear | Squared) and domain.chart_dim > 1
    total = RowSum(domain, loss, blocks, sample=sampling)
    _refuse_empty(total.rounds)
    record = Record(domain, total, _goal(domain, total.rounds, steep, wanted))
    middle = np.zeros(domain.chart_dim)
    if isinstance(loss, Linear):
        _linear(record, total)
    elif total.kinked and domain.chart_dim == 1:
        line(total, record)
    else:
        start, width = middle, 0.3 * total.reach
        if sampling and total.rounds > _LARGE:
            rows = total.sample()
            small = RowSum(domain, loss, [rows])
            # A sample of m rows knows the minimiser to about 1 / sqrt(m): no use in solving it further than that.
            guess = Record(domain, small, 1e-4 * steep * domain.diameter * small.rounds)
            newton(small, guess, middle, width, _NEWTON)
            start, width = guess.point, 2.0 * total.reach / float(np.sqrt(small.rounds))
        newton(total, record, start, width, _NEWTON)
        if not record.done:
            level(total, record, _PASSES)
    return record


def _finite(domain: Domain, loss: Loss, blocks: Blocks) -> Hindsight:
    """Return the point of a finite set with the least sum: column sums, whose error `RowSum.rounding` bounds."""
    if not isinstance(loss, Linear):
        raise ValueError(f"losses over {domain!r} must be Linear(), got {loss!r}")
    total = RowSum(domain, loss, blocks)
    _refuse_empty(total.rounds)
    sums, offset = np.zeros(domain.chart_dim), 0.0
    for vectors, offsets in total.chunks():
        sums += vectors.sum(axis=0)
        offset += float(offsets.sum())
    best = int(np.argmin(sums))
    point = np.zeros(domain.chart_dim)
    point[best] = 1.0
    return Hindsight(domain.from_chart(point), float(sums[best]) + offset, total.rounding, total.passes)


def _linear(record: Record, total: RowSum) -> None:
    look = total.look(record.point, bend=False)
    record.add(look)
    domain = record.domain
    # The chart is an isometry, so the slope in user coordinates is its image.
    push = domain.from_chart(np.zeros(domain.chart_dim))
    scale = float(np.abs(look.slope).max())
    if scale > 0:
        small = look.slope / scale * (0.1 * domain.radius)
        point = record.inside(domain.to_chart(domain.support(domain.from_chart(small) - push)))
        value = look.const + float(look.slope @ point)
        if value < record.value:
            record.value, record.point = value, point


def _refuse_empty(rounds: int) -> None:
    if rounds == 0:
        raise ValueError("blocks must hold at least one round, got none; observe something first")
