"""The sum of past losses: rows, and their first and second order summary at a reference point."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reticent._check import Array
from reticent._kernel import kernel
from reticent.domains import Domain
from reticent.domains._body import Body
from reticent.losses import GeneralisedLinear, Hinge, Rows

from ._columns import Columns
from ._phi import curvature_range, d2phi, dphi, margin, margin_bounds, phi

_CHUNK = 1 << 15  # rows handled together where temporary arrays are needed


class Summary(NamedTuple):
    """What is known of F, the sum of the losses, around the reference point z (all in the chart).

    F(x) >= F(z) + gradient.(x-z) + (x-z)'floor(x-z)/2 on the whole body; `hessian` is that of F at z.
    """

    z: Array
    gradient: Array
    hessian: Array
    floor: Array
    extent: Array  # largest norm of a row, largest |margin| over the body


class Past(NamedTuple):
    """What kernels read and write of a history; the arrays have room behind the rows that count."""

    code: int
    parameter: float
    curved: bool
    vectors: Array
    offsets: Array
    totals: Array
    body: Body
    summary: Summary


@kernel
def ingest(past, start, stop):
    """Add the rows from `start` to `stop` to the summary, one after the other."""
    code, parameter, curved, vectors, offsets, totals, body, summary = past
    z, gradient, hessian, floor, extent = summary
    d = z.size
    total = totals[start - 1] if start > 0 else 0.0
    for i in range(start, stop):
        row = vectors[i]
        m = margin(vectors, offsets, i, z)
        slope = dphi(code, parameter, m)
        for j in range(d):
            gradient[j] += slope * row[j]
        low, high, norm = margin_bounds(row, offsets[i], body)
        extent[0] = max(extent[0], norm)
        extent[1] = max(extent[1], max(abs(low), abs(high)))
        if curved:
            least, most = curvature_range(code, parameter, low, high)
            bend = d2phi(code, parameter, m)
            for j in range(d):
                for k in range(d):
                    product = row[j] * row[k]
                    hessian[j, k] += bend * product
                    floor[j, k] += least * product
            total += most * norm * norm
        else:
            total += norm * norm
        totals[i] = total


@kernel
def _value(code, parameter, vectors, offsets, x):
    total = 0.0
    for i in range(offsets.size):
        m = offsets[i]
        for j in range(x.size):
            m += vectors[i, j] * x[j]
        total += phi(code, parameter, m)
    return total


@kernel
def _gradient(code, parameter, vectors, offsets, x, out):
    for i in range(offsets.size):
        slope = dphi(code, parameter, margin(vectors, offsets, i, x))
        for j in range(x.size):
            out[j] += slope * vectors[i, j]


@kernel
def _slopes(code, parameter, margins, slopes, bends):
    for i in range(margins.size):
        slopes[i] = dphi(code, parameter, margins[i])
        bends[i] = d2phi(code, parameter, margins[i])


class RowHistory:
    """Past rounds of a generalised linear loss, with a summary that is updated in O(d^2) per row.

    Rows added one by one and in blocks leave the same state to the last bit.
    """

    def __init__(self, domain: Domain, loss: GeneralisedLinear) -> None:
        self.domain = domain
        self.loss = loss
        self.shift = loss.parameter if isinstance(loss, Hinge) else 0.0  # kernels have every kink at 0
        self.columns = Columns(domain.chart_dim)
        d = domain.chart_dim
        self.summary = Summary(np.zeros(d), np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(2))
        # Huber rows count as curved too: where the body keeps them in their quadratic part, they are.
        pieces = loss.pieces()
        self.curved = pieces is None or bool(pieces[2].any())

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.columns)

    def add(self, rows: Rows) -> None:
        """Store rows and update the summary."""
        start, stop = len(self.columns), len(self.columns) + len(rows)
        self.store(rows)
        ingest(self.past, start, stop)
        self.columns.set_count(stop)

    def store(self, rows: Rows) -> None:
        """Store rows that a kernel is going to take in; none counts yet."""
        for first in range(0, len(rows), _CHUNK):
            part = slice(first, first + _CHUNK)
            offsets = rows.offsets[part]
            self.columns.store(rows.vectors[part], offsets - self.shift if self.shift else offsets, behind=first)

    @property
    def past(self) -> Past:
        """The rows and their summary, for kernels; valid until more rows are stored."""
        return Past(
            self.loss.code, self.loss.parameter, self.curved, *self.columns.room, self.domain.body, self.summary
        )

    def value(self, x: Array) -> float:
        """Return the sum of the losses at the chart point x."""
        columns = self.columns
        return float(_value(self.loss.code, self.loss.parameter, columns.vectors, columns.offsets, x))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return the sum of the losses at the chart point x and a subgradient of it."""
        return self.value(x), self.gradient(x)

    def gradient(self, x: Array) -> Array:
        """Return a subgradient of the sum at x, with the sides of all kinks as `margin` has them."""
        out = np.zeros(x.size)
        _gradient(self.loss.code, self.loss.parameter, self.columns.vectors, self.columns.offsets, x, out)
        return out

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian of the sum of curved losses at x, from all rows."""
        d = x.size
        gradient, hessian = np.zeros(d), np.zeros((d, d))
        columns = self.columns
        for first in range(0, len(columns), _CHUNK):
            vectors = columns.vectors[first : first + _CHUNK]
            margins = vectors @ x + columns.offsets[first : first + _CHUNK]
            slopes, bends = np.empty_like(margins), np.empty_like(margins)
            _slopes(self.loss.code, self.loss.parameter, margins, slopes, bends)
            gradient += slopes @ vectors
            hessian += (vectors * bends[:, None]).T @ vectors
        return gradient, hessian

    def recentre(self, z: Array, gradient: Array, hessian: Array) -> None:
        """Move the reference point to z, where the derivatives are as given."""
        # In one go: an interrupt must not leave a point with the derivatives of another.
        self.summary = self.summary._replace(z=np.array(z), gradient=np.array(gradient), hessian=np.array(hessian))
