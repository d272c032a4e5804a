"""Losses of rows at the decisions in play, and prepared rows made again from the blocks a caller handed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array, real
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects, Rows

PART = 1 << 15  # rows prepared together

Starts = NDArray[np.int64]


def suffered(loss: Loss, domain: Domain, rows: Rows | Objects, starts: Starts, chart_points: Array) -> Array:
    """Return the loss of each prepared row at the decision in play: run k has `chart_points[k]` from `starts[k]` on.

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> rows = Absolute().prepare(Interval(-1, 1), [[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0])
    >>> suffered(Absolute(), Interval(-1, 1), rows, np.array([0, 2]), np.array([[0.5], [-0.25]]))
    array([0.5 , 0.5 , 0.25])
    """
    if isinstance(rows, Objects):
        assert isinstance(loss, Custom)
        stops = np.append(starts[1:], len(rows)).tolist()
        out = np.empty(len(rows))
        for start, stop, x in zip(starts.tolist(), stops, domain.from_chart(chart_points), strict=True):
            for i in range(start, stop):
                out[i] = rows.scales[i] * real("the value of a custom loss", loss.value(x, rows.items[i]))
        return out
    from reticent.learners._trace_kernel import run_margins  # numba loads on first use

    margins = np.empty(len(rows))
    # Contiguous copies only where needed, so that the kernel is compiled once.
    points, firsts = np.ascontiguousarray(chart_points), np.ascontiguousarray(starts, dtype=np.int64)
    run_margins(np.ascontiguousarray(rows.vectors), np.ascontiguousarray(rows.offsets), firsts, points, margins)
    return loss.phi(margins) if isinstance(loss, GeneralisedLinear) else margins


def runs_within(starts: Starts, first: int, stop: int) -> tuple[Starts, slice]:
    """Return the starts, from `first`, of the runs that rows `first` to `stop` lie in, and which runs these are.

    >>> runs_within(np.array([0, 4, 9]), 5, 10)
    (array([0, 4]), slice(1, 3, None))
    """
    low, high = int(np.searchsorted(starts, first, "right")) - 1, int(np.searchsorted(starts, stop, "left"))
    return np.maximum(starts[low:high] - first, 0), slice(low, high)


def prepared(
    domain: Domain, loss: Loss, lipschitz: float, on_steep: str, data: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Make prepared rows of a caller's blocks again: in parts of 2**15 at most, small blocks joined."""
    waiting: list[Any] = []
    count = 0
    for block in data:
        for part in _parts(domain, loss, block):
            rows = loss.prepare(domain, *part, lipschitz=lipschitz, on_steep=on_steep)
            if count + len(rows) > PART and waiting:
                yield _joined(waiting)
                waiting, count = [], 0
            waiting.append(rows)
            count += len(rows)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else type(parts[0]).join(parts)


def _parts(domain: Domain, loss: Loss, block: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Cut a long block of arrays, or of custom objects, into parts; anything else goes through as it is."""
    sizes = {len(part) if isinstance(part, Sequence) or np.ndim(part) > 0 else 1 for part in block}
    single = not isinstance(loss, Custom) and domain.dim > 1 and np.ndim(block[0]) == 1
    if single or len(sizes) != 1 or max(sizes) <= PART:
        yield block
        return
    for first in range(0, sizes.pop(), PART):
        yield tuple(part[first : first + PART] for part in block)
