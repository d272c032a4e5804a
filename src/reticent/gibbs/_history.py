"""The past of a measure: rows or objects as they came, what samplers know of their sum, and a point near its mode."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent._core._exact import add_exactly
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._base import Body
from reticent.gibbs._phi import curvature_range, d2phi, dphi, margin, margin_bounds, rise
from reticent.losses import Custom, GeneralisedLinear, Hinge, Objects, Rows
from reticent.losses._custom import KeptRows, pulled_bend, rises_of

Counts = NDArray[np.int64]

DRAWN = 0
FAR = 1
"""The sampler has to look after what it knows of the past; the same call goes on after that."""
GIVEN_UP = 2
"""The draw needs more proposals than it may take."""


# A growing column store for rows of numbers: no copy of the past per draw, little memory beyond the rows.

GROWTH = 1.25  # capacity grows by a quarter: amortised constant work, at most a quarter of unused memory


@saved("columns")
class Columns:
    """Rows (vector, offset, running total of a weight) that only ever grow at the end.

    >>> columns = Columns(2)
    >>> columns.append(np.ones((3, 2)), np.zeros(3))
    >>> len(columns), columns.vectors.shape
    (3, (3, 2))
    """

    _moves: ClassVar[tuple[str, ...]] = ("_vectors", "_offsets", "_totals", "_count")
    _grows: ClassVar[tuple[str, ...]] = ("_vectors", "_offsets", "_totals")

    def __init__(self, dim: int) -> None:
        self._vectors = np.zeros((0, dim))
        self._offsets = np.zeros(0)
        self._totals = np.zeros(0)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    @property
    def vectors(self) -> Array:
        """The vectors of all rows: a view, valid until the next `append`."""
        return self._vectors[: self._count]

    @property
    def offsets(self) -> Array:
        """The offsets of all rows: a view, valid until the next `append`."""
        return self._offsets[: self._count]

    @property
    def totals(self) -> Array:
        """The running totals of the weights of all rows: a writable view, valid until the next `append`."""
        return self._totals[: self._count]

    @property
    def room(self) -> tuple[Array, Array, Array]:
        """Vectors, offsets and totals with the room behind the rows, valid until the next `append` or `store`."""
        return self._vectors, self._offsets, self._totals

    def append(self, vectors: Array, offsets: Array) -> None:
        """Store rows behind the present ones; their totals are for the caller to fill in."""
        self.store(vectors, offsets)
        self.set_count(self._count + len(offsets))

    def store(self, vectors: Array, offsets: Array, behind: int = 0) -> None:
        """Put rows into the room behind the present ones, leaving out `behind`; none counts yet."""
        start = self._count + behind
        count = start + len(offsets)
        if count > len(self._offsets):
            capacity = max(count, int(GROWTH * len(self._offsets)), 64)
            # The offsets last, by which the room is known: an interrupt must not leave the others short of it.
            self._vectors, self._totals = grown(self._vectors, capacity), grown(self._totals, capacity)
            self._offsets = grown(self._offsets, capacity)
        self._vectors[start:count] = vectors
        self._offsets[start:count] = offsets

    def set_count(self, count: int) -> None:
        """Say how many of the rows that have been stored count."""
        self._count = count

    def __getstate__(self) -> dict[str, object]:
        """Pickle the rows without the unused capacity."""
        return {"vectors": self.vectors, "offsets": self.offsets, "totals": self.totals}

    def __setstate__(self, state: dict[str, Array]) -> None:
        """Restore rows."""
        self._vectors, self._offsets = state["vectors"], state["offsets"]
        self._totals, self._count = state["totals"], len(state["offsets"])

    def _check_moved(self) -> None:
        if not self._count == len(self._vectors) == len(self._offsets) == len(self._totals):
            raise ValueError(f"it holds {self._count} rounds in columns of other lengths")


def grown(array: Array, capacity: int) -> Array:
    """Return an array with room for `capacity` rows; the one given is used up.

    >>> grown(np.ones((1, 2)), 3).shape
    (3, 2)
    """
    if not array.flags.owndata:  # one that was pickled refers to the memory of the pickle
        array = array.copy()
    # In place: the system moves the pages of a large block instead of copying them.
    array.resize((capacity, *array.shape[1:]), refcheck=False)
    return array


# The sum of past losses: rows, and their first and second order summary at a reference point.

_CHUNK = 1 << 15  # rows handled together where temporary arrays are needed
_SHORT = 1 << 9  # rows whose derivatives are added in plain floating point, before sums in twice the precision


@saved("summary")
class Summary(NamedTuple):
    """What is known of F, the sum of the losses, around the reference point z (all in the chart).

    F(x) >= F(z) + gradient.(x-z) + (x-z)'floor(x-z)/2 on the whole body; `hessian` is that of F at z.
    """

    z: Array
    gradient: Array
    hessian: Array
    floor: Array
    extent: Array  # largest norm of a row, largest |margin| over the body
    low: Array  # what rounding has left of gradient (row 0), hessian and floor (docs/theory, Q12)


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
    z, gradient, hessian, floor, extent, low_parts = summary
    d = z.size
    total = totals[start - 1] if start > 0 else 0.0
    for i in range(start, stop):
        row = vectors[i]
        m = margin(vectors, offsets, i, z)
        slope = dphi(code, parameter, m)
        for j in range(d):
            add_exactly(gradient, low_parts[0], j, slope * row[j])
        low, high, room, norm = margin_bounds(row, offsets[i], body)
        extent[0] = max(extent[0], norm)
        extent[1] = max(extent[1], max(abs(low), abs(high)) + room)
        if curved:
            least, most = curvature_range(code, parameter, low, high, room)
            bend = d2phi(code, parameter, m)
            for j in range(d):
                for k in range(d):
                    product = row[j] * row[k]
                    add_exactly(hessian[j], low_parts[1 + j], k, bend * product)
                    add_exactly(floor[j], low_parts[1 + d + j], k, least * product)
            total += most * norm * norm
        else:
            total += norm * norm
        totals[i] = total


@kernel
def _value(code, parameter, vectors, offsets, x):
    total, low = np.zeros(1), np.zeros(1)
    for i in range(offsets.size):
        v = 0.0
        for j in range(x.size):
            v += vectors[i, j] * x[j]
        add_exactly(total, low, 0, rise(code, parameter, offsets[i], v))
    return total[0]


@kernel
def _gradient(code, parameter, vectors, offsets, x, out):
    low = np.zeros(x.size)
    for i in range(offsets.size):
        slope = dphi(code, parameter, margin(vectors, offsets, i, x))
        for j in range(x.size):
            add_exactly(out, low, j, slope * vectors[i, j])


@kernel
def _add_parts(parts, total, low):
    """Add every row of `parts` to a sum."""
    for i in range(parts.shape[0]):
        for j in range(total.size):
            add_exactly(total, low, j, parts[i, j])


@kernel
def _slopes(code, parameter, margins, slopes, bends):
    for i in range(margins.size):
        slopes[i] = dphi(code, parameter, margins[i])
        bends[i] = d2phi(code, parameter, margins[i])


@saved("row history")
class RowHistory:
    """Past rounds of a generalised linear loss, with a summary that is updated in O(d^2) per row.

    Rows added one by one and in blocks leave the same state to the last bit.
    """

    _moves: ClassVar[tuple[str, ...]] = ("columns", "summary")

    def __init__(self, domain: Domain, loss: GeneralisedLinear) -> None:
        self.domain = domain
        self.loss = loss
        self.shift = loss.parameter if isinstance(loss, Hinge) else 0.0  # kernels have every kink at 0
        self.columns = Columns(domain.chart_dim)
        d = domain.chart_dim
        nothing = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(2)
        self.summary = Summary(*nothing, _no_rest(d))
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
        """Return the sum of the losses at the chart point x, less that at the centre (docs/theory, Q12)."""
        columns = self.columns
        return float(_value(self.loss.code, self.loss.parameter, columns.vectors, columns.offsets, x))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return the sum of the losses at the chart point x, less that at the centre, and a subgradient of it."""
        return self.value(x), self.gradient(x)

    def gradient(self, x: Array) -> Array:
        """Return a subgradient of the sum at x, with the sides of all kinks as `margin` has them."""
        out = np.zeros(x.size)
        _gradient(self.loss.code, self.loss.parameter, self.columns.vectors, self.columns.offsets, x, out)
        return out

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian of the sum of curved losses at x, from all rows."""
        d = x.size
        sums, low = np.zeros(d + d * d), np.zeros(d + d * d)
        columns = self.columns
        for first in range(0, len(columns), _SHORT):
            vectors = columns.vectors[first : first + _SHORT]
            margins = vectors @ x + columns.offsets[first : first + _SHORT]
            slopes, bends = np.empty_like(margins), np.empty_like(margins)
            _slopes(self.loss.code, self.loss.parameter, margins, slopes, bends)
            bent = (vectors * bends[:, None]).T @ vectors
            _add_parts(np.append(slopes @ vectors, bent)[None], sums, low)
        return sums[:d], sums[d:].reshape(d, d)

    def _check_moved(self) -> None:
        for part in (self.summary.hessian, self.summary.floor):
            if (np.diag(part) < 0.0).any():
                raise ValueError("the curvature of its past is below 0")

    def recentre(self, z: Array, gradient: Array, hessian: Array) -> None:
        """Move the reference point to z, where the derivatives are as given."""
        low = self.summary.low.copy()
        low[: z.size + 1] = 0.0
        # In one go: an interrupt must not leave a point with the derivatives of another.
        self.summary = self.summary._replace(
            z=np.array(z), gradient=np.array(gradient), hessian=np.array(hessian), low=low
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if len(self.summary) == 5:
            self.summary = Summary(*self.summary, _no_rest(self.domain.chart_dim))


def _no_rest(d: int) -> Array:
    return np.zeros((1 + 2 * d, d))


# The history of a custom loss: the objects themselves, read through the caller's functions.


@saved("object history")
class ObjectHistory:
    """Past rounds of a custom loss.

    What they are read with is made from them when it is needed: it is no part of the state.
    """

    _moves: ClassVar[tuple[str, ...]] = ("items", "scales", "bounds", "_reader", "_scales", "_limits", "_bases")

    def __init__(self, domain: Domain, loss: Custom) -> None:
        self.domain, self.loss = domain, loss
        self.items: list[object] = []
        self.scales: list[float] = []
        self.bounds: list[float] = []
        self._forget()

    def _forget(self) -> None:
        self._reader: KeptRows = self.loss.reader(self.domain)
        self._scales = self._limits = self._bases = np.zeros(0)

    def _check_moved(self) -> None:
        numbers = [*self.scales, *self.bounds]
        plain = all(type(one) is float and 0.0 <= one < np.inf for one in numbers)
        if not plain or not len(self.items) == len(self.scales) == len(self.bounds):
            raise ValueError(f"it holds {len(self.items)} rounds, of which scales and bounds say otherwise")

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.items)

    def add(self, rows: Objects) -> None:
        """Store objects."""
        self.items += rows.items
        self.scales += rows.scales.tolist()
        self.bounds += rows.bounds.tolist()

    def value(self, u: Array) -> float:
        """Return the sum of the losses at the chart point u, less that at the centre (docs/theory, Q12)."""
        return self._rise(u, self._read().values(self.domain.from_chart(u))) if len(self) else 0.0

    def value_and_gradient(self, u: Array) -> tuple[float, Array]:
        """Return what `value` does and a subgradient; every row is checked."""
        if not len(self):
            return 0.0, np.zeros(self.domain.chart_dim)
        values, slopes = self._read().both(self.domain.from_chart(u), self._limits)
        slope = _total(self._scales[:, None] * slopes)
        return self._rise(u, values), self.domain.pull(slope[None])[0][0]

    def _rise(self, u: Array, values: Array) -> float:
        rises = rises_of(values, self._bases, self._limits, float(np.linalg.norm(u)))
        return float(_total(self._scales * rises))

    def hessian(self, u: Array) -> Array:
        """Return the matrix of second derivatives of the sum of the losses at the chart point u."""
        if not len(self):
            return np.zeros((u.size, u.size))
        bends = self._read().bends(self.domain.from_chart(u))
        return pulled_bend(self.domain, _total(self._scales[:, None, None] * bends))

    def _read(self) -> KeptRows:
        """Return the reader, with all rounds in it."""
        if len(self._reader) < len(self):
            self._reader.add(self.items[len(self._reader) :])
        if len(self._bases) < len(self):
            fresh = self.loss.reader(self.domain)
            fresh.add(self.items[len(self._bases) :])
            bases = fresh.values(self.domain.center)
            self._scales = np.array(self.scales)
            self._limits = np.full(len(self), np.inf)
            np.divide(self.bounds, self._scales, out=self._limits, where=self._scales > 0)
            # Last, as by them it is known what has been read.
            self._bases = np.append(self._bases, bases)
        return self._reader

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the rounds only."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Start with the rounds, none of them read."""
        vars(self).update(state)
        self._forget()


def _total(parts: Array) -> Array:
    """Return the sum of rows, added in their order in twice the precision."""
    rows = np.ascontiguousarray(parts).reshape(len(parts), -1)
    total = np.zeros(rows.shape[1])
    _add_parts(rows, total, np.zeros_like(total))
    return total.reshape(parts.shape[1:])


# A point near the mode, where draws are cheap; it need not be exact, since no law depends on it.
_STEPS = 30


def project_in_chart(domain: Domain, u: Array) -> Array:
    """Return the point of the body nearest to the chart point u."""
    return domain.to_chart(domain.project(domain.from_chart(u)))


def quadratic_minimiser(domain: Domain, slope: Array, bend: Array, start: Array) -> Array:
    """Minimise slope.(x-start) + (x-start)'bend(x-start)/2 over the body, roughly, by accelerated projection."""
    top = float(np.linalg.norm(bend, 2))
    step = -np.linalg.lstsq(bend, slope, rcond=None)[0]
    if top == 0.0:
        return domain.to_chart(domain.support(_push_direction(domain, slope)))
    inside = project_in_chart(domain, start + step)
    if np.linalg.norm(inside - start - step) <= 1e-9 * domain.radius:
        return inside
    x = y = inside
    momentum = 1.0
    for _ in range(300):
        moved = project_in_chart(domain, y - (slope + bend @ (y - start)) / top)
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        y = moved + (momentum - 1.0) / faster * (moved - x)
        done = np.linalg.norm(moved - x) <= 1e-9 * domain.radius
        x, momentum = moved, faster
        if done:
            break
    return x


def _push_direction(domain: Domain, slope: Array) -> Array:
    """A linear function of user coordinates with the given slope in the chart (the chart is an isometry)."""
    return domain.from_chart(slope) - domain.center


def mode_on_body(history: RowHistory, beta: float, lam: float) -> tuple[Array, Array, Array]:
    """Return a point near the minimiser of the losses plus lam/2 |x|^2 on the body, with gradient and Hessian there."""
    x = history.summary.z.copy()
    gradient, hessian = history.summary.gradient.copy(), history.summary.hessian.copy()
    for _ in range(_STEPS):
        slope = gradient + lam * x
        goal = quadratic_minimiser(history.domain, slope, hessian + lam * np.eye(x.size), x)
        gain = -float(slope @ (goal - x))
        # Within a fifth of the width of the peak is near enough.
        if beta * gain < 0.05:
            break
        # A Newton step is cut while it leads well beyond the least value along it: every look is a pass over the past.
        fraction = 1.0
        while True:
            candidate = x + fraction * (goal - x)
            gradient, hessian = history.derivatives(candidate)
            if float((gradient + lam * candidate) @ (goal - x)) <= 0.5 * gain or fraction < 1e-3:
                break
            fraction *= 0.4
        x = candidate
    return x, gradient, hessian
