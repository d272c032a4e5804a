"""The quartic lower bound of a sum of kinked losses near its mode, and its envelope (docs/theory, S8 and S9).

p(v) = a0 + a1 v + a2 v^2 + a3 v^3 - a4 v^4 <= (v - rho)_+ for every real v (docs/theory, S8). They are the only
approximation behind draws for kinked losses, and since every one of them is a true lower bound, a poor choice
costs time and nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent._core._fine import standard_exponential
from reticent._core._kernel import kernel
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._gaussian import Envelope, envelope
from reticent.gibbs._history import RowHistory
from reticent.gibbs._phi import margin

BINS = 24
REACH = 1.2  # in units of the scale; a kink farther away than that is better left alone
WEIGHTS = (0.0, 1.0, 3.0, 10.0)  # how much a quartic term is discouraged beyond its mean under a normal v


EDGES: Array = np.linspace(0.0, REACH, BINS + 1)[1:]  # upper edges of the bins of residuals


@lru_cache(maxsize=1)
def minorant_tables() -> Array:
    """Return the five coefficients per weight and bin, as `bench/minorants.py` has solved them.

    Each is checked again here, and lowered should it be too high: nothing rests on the file being right.
    """
    text = resources.files("reticent.gibbs").joinpath("minorants.json").read_text()
    tables: Array = np.array(json.loads(text))
    for table in tables:
        for rho, a in zip(EDGES, table, strict=True):
            if not a[4] > 0.0:
                a[:] = 0.0  # no minorant at all, whatever the other coefficients are
            a[0] -= max(0.0, excess(a, rho))
    return tables


def best_minorant(rho: float, weight: float) -> Array:
    """Return (a0, ..., a4) with the largest mean of p under a standard normal v, less `weight` times a4.

    Where the best is no better than nothing, it is 0.

    >>> a = best_minorant(1.0, 1.0)
    >>> excess(a, 1.0) <= 0.0
    True
    """
    value = np.array([1.0, 0.0, 1.0, 0.0, -(3.0 + weight)])
    v = np.concatenate([np.linspace(-14, 14, 141), np.linspace(-3, 3, 61), rho + np.linspace(-2, 3, 51)])
    a = np.zeros(5)
    for _ in range(12):
        # Rows are scaled to be of the same size far out.
        scale = 1.0 / np.maximum(1.0, v**4)
        columns = np.stack([v**0, v, v**2, v**3, -(v**4)], axis=1)
        solution = scipy.optimize.linprog(
            -value,
            A_ub=columns * scale[:, None],
            b_ub=np.maximum(v - rho, 0.0) * scale,
            bounds=[(None, None)] * 4 + [(1e-4, None)],
            method="highs",
        )
        if solution.status != 0:
            return np.zeros(5)
        a = np.array(solution.x)
        if excess(a, rho) < 1e-8:
            break
        # The programme only sees a grid: add the places where its answer is too high.
        v = np.append(v, _places(a, rho))
    # Lower the constant by whatever is still too high anywhere, and a little more.
    a[0] -= max(0.0, excess(a, rho)) + 1e-9
    return a if value @ a > 0.0 else np.zeros(5)


def excess(a: Array, rho: float) -> float:
    """Return the largest value over all real v of p(v) - (v - rho)_+, from the roots of its derivatives."""
    v = _places(a, rho)
    return float((a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4]))) - np.maximum(v - rho, 0.0)).max())


def _places(a: Array, rho: float) -> Array:
    """Return where p(v) - (v - rho)_+ may have a maximum: the kink, and the roots of its derivative on either side."""
    slope = np.array([-4 * a[4], 3 * a[3], 2 * a[2], a[1]])
    places = [rho]
    for target, side in ((0.0, -1.0), (1.0, 1.0)):
        roots = np.roots(slope - np.array([0.0, 0.0, 0.0, target]))
        # A root that rounding pushed off the real axis still counts: extra places only make the check stricter.
        places += [float(r.real) for r in roots if side * (r.real - rho) > 0.0]
    return np.array(places)


# A radial envelope exp(-lb(rho)) with a quartic lower bound near the centre and a convex tail (docs/theory, S9).

CELLS = 384


@saved("radial envelope")
class Radial(NamedTuple):
    """The envelope rho^(d-1) exp(-lb(rho)) as cells of constant height and an exponential tail beyond `rho1`."""

    level: float  # lb(0)
    slope: float  # lb falls at most this fast at 0
    cubic: float
    quartic: float
    rho1: float  # end of the quartic part
    top: float  # lb(rho1)
    kappa: float  # strong convexity of the tail
    heights: Array  # log heights of the cells
    totals: Array  # running totals of the masses, the tail's last
    tail_slope: float
    log_mass: float


@kernel
def lower_bound(radial, rho):
    """lb(rho): what the potential is at least, at distance rho in the whitened coordinates."""
    if rho <= radial.rho1:
        return radial.level + rho * (-radial.slope + rho * (0.5 - rho * (radial.cubic + rho * radial.quartic)))
    s = rho / radial.rho1
    return s * radial.top + 0.5 * (s * s - s) * radial.kappa * radial.rho1 * radial.rho1


@kernel
def radial_envelope(d, level, slope, cubic, quartic, kappa, rho1):
    """The envelope that ends its quartic part at rho1; its log mass is infinite if the tail does not fall."""
    heights, totals = np.empty(CELLS), np.empty(CELLS + 1)
    width = rho1 / CELLS
    before = level
    peak = -np.inf
    for cell in range(CELLS):
        right = width * (cell + 1)
        lb = level + right * (-slope + right * (0.5 - right * (cubic + right * quartic)))
        # -lb over a cell is at most the mean of its ends plus half a cell's width times its steepest slope.
        steepest = slope + right * (1.0 + right * (3.0 * cubic + right * 4.0 * quartic))
        heights[cell] = (d - 1) * math.log(right) - 0.5 * (before + lb) + 0.5 * width * steepest
        peak = max(peak, heights[cell])
        before = lb
    top = before
    # The tail (d-1) log rho - lb is concave: its tangent at rho1 lies above it.
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    log_mass = np.inf
    if tail_slope < 0.0:
        tail = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
        peak = max(peak, tail)
        total = 0.0
        for cell in range(CELLS):
            total += math.exp(heights[cell] - peak) * width
            totals[cell] = total
        totals[CELLS] = total + math.exp(tail - peak)
        log_mass = peak + math.log(totals[CELLS])
    return Radial(level, slope, cubic, quartic, rho1, top, kappa, heights, totals, tail_slope, log_mass)


@kernel
def radial_tail(d, level, rise, kappa, rho1):
    """The tail alone, beyond rho1, where the potential is at least level + rise; the log mass as above."""
    top = level + rise
    tail_slope = (d - 1) / rho1 - top / rho1 - 0.5 * kappa * rho1
    log_mass = np.inf
    if tail_slope < 0.0:
        log_mass = (d - 1) * math.log(rho1) - top - math.log(-tail_slope)
    return Radial(level, 0.0, 0.0, 0.0, rho1, top, kappa, np.zeros(1), np.ones(1), tail_slope, log_mass)


@kernel
def draw_tail(rng, radial, d):
    """One proposal of rho beyond rho1 from the exponential hat, and the potential that it stands for (below lb)."""
    step = standard_exponential(rng) / -radial.tail_slope
    rho = radial.rho1 + step
    hat = (d - 1) * math.log(radial.rho1) - radial.top + radial.tail_slope * step
    return rho, (d - 1) * math.log(rho) - hat


@kernel
def draw_radius(rng, radial, d):
    """An exact draw of rho from rho^(d-1) exp(-lb(rho)), and lb there."""
    cells = radial.heights.size
    width = radial.rho1 / cells
    while True:
        target = rng.random() * radial.totals[-1]
        low, high = 0, cells
        while low < high:
            middle = (low + high) // 2
            if radial.totals[middle] > target:
                high = middle
            else:
                low = middle + 1
        if low < cells:
            rho = (low + rng.random()) * width
            height = radial.heights[low]
        else:
            return draw_tail(rng, radial, d)
        lb = lower_bound(radial, rho)
        if rho > 0.0 and standard_exponential(rng) >= height - ((d - 1) * math.log(rho) - lb):
            return rho, lb


# The envelope around a quartic bound: radial when the mode is well inside the body, else a Gaussian on the body.


@saved("norms of a quartic bound")
class Norms(NamedTuple):
    """What an envelope needs to know of a quartic bound, apart from its slope."""

    cubic: float
    quartic: float
    kappa: float  # strong convexity of the potential beside its largest curvature at the bound
    precision: Array
    floor: float  # smallest eigenvalue of the precision
    sphere: float  # log volume of the unit sphere, with the determinant of the whitening


@saved("core of an envelope")
class Core(NamedTuple):
    """An envelope of the quartic bound (docs/theory, S9): all radial, or Gaussian up to rho1 and radial beyond."""

    gaussian: bool
    share: float  # mass of the Gaussian part over the whole
    kept: float  # the part of the curvature that is left up to rho1
    envelope: Envelope
    radial: Radial
    log_mass: float


def norms_of(q: Quartic, quartic: float, strength: float) -> Norms:
    """Return the norms of a bound whose quartic part is at most `quartic` |w|^4, for a strongly convex potential."""
    d = q.slope.size
    precision = q.whiten @ q.whiten
    values = np.linalg.eigvalsh(precision)
    sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
    return Norms(
        cubic=float(np.linalg.norm(q.cubic, 2)) * (1 + 1e-9),
        quartic=quartic,
        kappa=strength / float(values[-1]) * (1 - 1e-9),
        precision=precision,
        floor=float(values[0]) * (1 - 1e-9),
        sphere=sphere - 0.5 * float(np.log(values).sum()),
    )


def best_core(q: Quartic, norms: Norms, z: Array, domain: Domain) -> Core | None:
    """Return the envelope of least mass, or None if every tail is too heavy."""
    d = z.size
    root = math.sqrt(d)
    # Beyond sqrt(d) + 6 there is next to no mass; before 0.6 sqrt(d) a tail would be heavy.
    radial = _least(_radial_core(q, norms, float(rho1)) for rho1 in np.linspace(0.6 * root, root + 6.0, 24))
    deep = (
        radial is not None
        and domain.body.ball
        and float(np.linalg.norm(z)) + radial.radial.rho1 / math.sqrt(norms.floor) < domain.radius
    )
    if deep:
        return radial
    gaussian = _least(
        _gaussian_core(q, norms, z, domain, float(rho1)) for rho1 in np.linspace(0.7 * root, root + 5.0, 8)
    )
    return _least(core for core in (radial, gaussian) if core is not None)


def same_core(q: Quartic, norms: Norms, z: Array, domain: Domain, core: Core) -> Core | None:
    """Return an envelope of the same kind and end as `core`, for a bound whose slope has changed."""
    rho1 = core.radial.rho1
    found = _gaussian_core(q, norms, z, domain, rho1) if core.gaussian else _radial_core(q, norms, rho1)
    return found if math.isfinite(found.log_mass) else None


def _least(cores: Iterator[Core]) -> Core | None:
    finite = [core for core in cores if math.isfinite(core.log_mass)]
    return min(finite, key=lambda core: core.log_mass) if finite else None


def _radial_core(q: Quartic, norms: Norms, rho1: float) -> Core:
    slope = float(np.linalg.norm(q.slope)) * (1 + 1e-9)
    radial = radial_envelope(q.slope.size, q.level, slope, norms.cubic, norms.quartic, norms.kappa, rho1)
    nothing = Envelope(0, np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1), 0.0, -math.inf)
    return Core(False, 0.0, 1.0, nothing, radial, norms.sphere + radial.log_mass)


def _gaussian_core(q: Quartic, norms: Norms, z: Array, domain: Domain, rho1: float) -> Core:
    d = z.size
    kept = max(0.02, 1.0 - 2.0 * rho1 * (norms.cubic + rho1 * norms.quartic))
    linear = q.whiten @ q.slope
    # Over the body the linear part can fall this far below its value at z, whatever the direction.
    lowest = domain.to_chart(domain.support(domain.from_chart(linear) - domain.center))
    dip = max(0.0, float(linear @ (z - lowest))) * (1 + 1e-9)
    tail = radial_tail(d, q.level - dip, 0.5 * kept * rho1 * rho1, norms.kappa, rho1)
    P = kept * norms.precision
    near = envelope(P @ z - linear, P, kept * norms.floor, domain.body, True)
    core_mass = near.log_mass - q.level + float(linear @ z - 0.5 * z @ P @ z)
    mass = float(np.logaddexp(core_mass, norms.sphere + tail.log_mass))
    # A bend that is used up before rho1 leaves no envelope there.
    usable = kept > 0.02 and math.isfinite(mass)
    share = math.exp(core_mass - mass) if usable else 0.0
    return Core(True, share, kept, near, tail, mass if usable else math.inf)


# Builds the quartic lower bound of a sum of kinked losses around a point near the mode (docs/theory, S8 and S9).

Indices = NDArray[np.integer[Any]]
OUTER = 24  # coarse bins beyond the reach of the minorants, for steps so long that they get there
_CHUNK = 1 << 14


@saved("quartic bound")
class Quartic(NamedTuple):
    """A lower bound of the potential around z in whitened coordinates w, and the rows sorted by residual.

    With u = unwhiten w the step from z:

    potential(z+u) - potential(z) >= level + slope.w + |w|^2/2 + w.cubic(ww') - (ww').quartic(ww') for all u.
    """

    rows: int  # rows covered; later ones wait with the minorant 0
    inner: int  # bins with minorants; the outer ones have 0
    jump: float
    scale: float
    level: float
    slope: Array
    unwhiten: Array
    whiten: Array
    cubic: Array  # (d, pairs)
    quartic: Array  # (pairs, pairs)
    coefficients: Array  # (bins, 5) of the minorants, in scaled units
    edges: Array  # (bins + 1,) of the residual, the last infinite
    starts: Indices  # (bins + 1,) where each bin begins in `order`
    order: Indices  # row numbers sorted by bin
    longest: Array  # (bins,) largest norm of a row in each bin
    critical: Array  # (bins, 6) places where a gap may be largest, in scaled units (nan where there are fewer)


@saved("built quartic bound")
class Built(NamedTuple):
    """A quartic bound, its norms and its envelope."""

    bound: Quartic
    norms: Norms
    core: Core


def pairs(d: int) -> tuple[Indices, Indices, Array]:
    """Return rows, columns and factors of the coordinates of ww': norms are kept (off-diagonals count sqrt 2)."""
    i, j = np.triu_indices(d)
    return i, j, np.where(i == j, 1.0, math.sqrt(2.0))


@kernel
def _bin_rows(vectors, offsets, z, edges, bins, negative, longest):
    """Sort each row into a bin by the size of its residual at z; note its sign and the largest norm per bin."""
    for i in range(offsets.size):
        m, square = margin(vectors, offsets, i, z), 0.0
        for j in range(z.size):
            square += vectors[i, j] * vectors[i, j]
        r = abs(m)
        low, high = 0, edges.size - 2
        while low < high:
            middle = (low + high) // 2
            if edges[middle + 1] >= r:
                high = middle
            else:
                low = middle + 1
        bins[i] = low
        negative[i] = m < 0.0
        longest[low] = max(longest[low], math.sqrt(square))


def _moments(vectors: Array, order: Indices, starts: Indices, negative: NDArray[np.bool_]) -> tuple[Array, ...]:
    """Return per bin the count and the sums of s a, aa', s a(aa'), (aa')(aa'); s is the direction towards the kink."""
    d = vectors.shape[1]
    i, j, factor = pairs(d)
    size = i.size
    first, second = np.zeros((BINS, d)), np.zeros((BINS, size))
    third, fourth = np.zeros((BINS, d, size)), np.zeros((BINS, size, size))
    for k in range(BINS):
        for begin in range(starts[k], starts[k + 1], _CHUNK):
            chosen = order[begin : min(begin + _CHUNK, starts[k + 1])]
            a = vectors[chosen]
            s = np.where(negative[chosen], 1.0, -1.0)[:, None]
            aa = a[:, i] * a[:, j] * factor
            first[k] += (s * a).sum(axis=0)
            second[k] += aa.sum(axis=0)
            third[k] += (s * a).T @ aa
            fourth[k] += aa.T @ aa
    return np.diff(starts[: BINS + 1]).astype(float), first, second, third, fourth


def _on_pairs(T: Array) -> Array:
    """Return the matrix that takes the coordinates of aa' to those of (T'a)(T'a)', for a symmetric T."""
    d = T.shape[0]
    i, j, factor = pairs(d)
    out: Array = T[i][:, i] * T[j][:, j]
    out = out + T[i][:, j] * T[j][:, i]
    # (TaaT)_ij = sum over k <= l, with both orders of (k, l) for k < l.
    out *= 0.5 * factor[:, None] * factor[None, :]
    return out


def quartic_norm(M: Array, d: int) -> float:
    """Return an upper bound of (ww').M(ww') over unit vectors w, for a positive semidefinite M.

    For unit w the coordinates q of ww' have |q| = 1 and q.I = 1, so q'Gq = 1 for every G = t II' + (1-t) Id, and the
    largest eigenvalue of M beside G bounds the form, whatever t in [0, 1) is.
    """
    i, j, _ = pairs(d)
    unit = np.where(i == j, 1.0, 0.0) / math.sqrt(d)
    best = math.inf
    # 1/3 is best for features without a preferred direction, 0 for one-hot ones.
    for t in (0.0, 1.0 / 3.0):
        along, across = 1.0 / math.sqrt(t * d + 1.0 - t), 1.0 / math.sqrt(1.0 - t)
        # G^(-1/2) acts as `along` on the identity and as `across` on the rest.
        half = across * M + (along - across) * np.outer(unit, unit @ M)
        half = across * half + (along - across) * np.outer(half @ unit, unit)
        best = min(best, float(np.linalg.eigvalsh(half)[-1]))
    return max(best, 0.0) * (1.0 + 1e-9)


def build_quartic(
    history: RowHistory, gradient: Array, bend: Array, beta: float, lam: float, stretch: float
) -> Built | None:
    """Return the bound at the reference point of `history` with its envelope, or None if there is no use in one.

    `gradient` is that of all the losses there; `bend` an estimate of their curvature, for the scale only, which
    `stretch` multiplies.
    """
    columns, loss = history.columns, history.loss
    pieces = loss.pieces()
    assert pieces is not None  # kinked losses only come here
    z = history.summary.z
    d = z.size
    jump = float(pieces[1][0])
    vectors, offsets = columns.vectors, columns.offsets
    n = len(offsets)
    covariance = np.linalg.pinv(beta * (bend + lam * np.eye(d)))
    sample = vectors[:: max(1, n // 4096)]
    spread = float(np.einsum("ij,jk,ik->i", sample, covariance, sample).mean()) if n else 0.0
    if spread <= 0.0:
        return None
    scale = stretch * math.sqrt(spread)
    edges = np.concatenate([[0.0], scale * EDGES, scale * REACH * np.geomspace(1.15, 64.0, OUTER)])
    edges[-1] = np.inf
    bins, negative = np.empty(n, np.uint8), np.empty(n, np.bool_)
    longest = np.zeros(edges.size - 1)
    _bin_rows(vectors, offsets, z, edges, bins, negative, longest)
    order: Indices = np.argsort(bins, kind="stable").astype(np.int32 if n < 2**31 else np.int64)
    starts = np.searchsorted(bins[order], np.arange(edges.size)).astype(np.int64)
    counts, first, second, third, fourth = _moments(vectors, order, starts, negative)
    i, j, factor = pairs(d)
    best: Built | None = None
    for table in minorant_tables():
        c = jump * scale * table  # the minorant of a row is jump * scale * table(v / scale)
        C = np.zeros((d, d))
        C[i, j] = (second.T @ c[:, 2]) / scale**2 / factor
        C = C + C.T - np.diag(np.diag(C))
        values, basis = np.linalg.eigh(beta * (2.0 * C + lam * np.eye(d)))
        if values[0] <= 0.0:
            continue
        unwhiten = basis / np.sqrt(values) @ basis.T
        on_pairs = _on_pairs(unwhiten)
        coefficients = np.zeros((edges.size - 1, 5))
        coefficients[:BINS] = table
        built = Quartic(
            rows=n,
            inner=BINS,
            jump=jump,
            scale=scale,
            level=beta * float(counts @ c[:, 0]),
            slope=beta * unwhiten @ (first.T @ c[:, 1] / scale + gradient + lam * z),
            unwhiten=unwhiten,
            whiten=basis * np.sqrt(values) @ basis.T,
            cubic=beta / scale**3 * unwhiten @ np.tensordot(c[:, 3], third, 1) @ on_pairs.T,
            quartic=beta / scale**4 * on_pairs @ np.tensordot(c[:, 4], fourth, 1) @ on_pairs.T,
            coefficients=coefficients,
            edges=edges,
            starts=starts,
            order=order,
            longest=longest,
            critical=_critical(coefficients, edges / scale),
        )
        norms = norms_of(built, quartic_norm(built.quartic, d), beta * lam)
        core = best_core(built, norms, z, history.domain)
        if core is not None and (best is None or core.log_mass < best.core.log_mass):
            best = Built(built, norms, core)
    return best


def _critical(coefficients: Array, edges: Array) -> Array:
    """Return the places where (v - lower edge)_+ - p(v) may be largest inside an interval, beside its ends."""
    out = np.full((len(coefficients), 7), np.nan)
    for k, a in enumerate(coefficients):
        slope = np.array([-4 * a[4], 3 * a[3], 2 * a[2], a[1]])
        found = [edges[k]]
        if a[4] > 0.0:
            for target in (0.0, 1.0):
                found += [float(r.real) for r in np.roots(slope - np.array([0.0, 0.0, 0.0, target]))]
        out[k, : len(found)] = found
    return out


def fits(built: Built, d: int, rounds: int) -> bool:
    """Say whether a bound, from a file, has arrays of the types and shapes of one for so many rounds and dimensions."""
    bound, norms, core = built
    bins, many = len(bound.coefficients), len(pairs(d)[0])
    floats = (
        *((bound.slope, (d,)), (bound.unwhiten, (d, d)), (bound.whiten, (d, d)), (norms.precision, (d, d))),
        *((bound.cubic, (d, many)), (bound.quartic, (many, many)), (bound.coefficients, (bins, 5))),
        *((bound.edges, (bins + 1,)), (bound.longest, (bins,)), (bound.critical, (bins, *bound.critical.shape[1:2]))),
    )
    integers = (bound.starts, (bins + 1,)), (bound.order, (bound.rows,))
    for arrays, kind in ((floats, "f8"), (integers, "i4 i8")):
        if any(array.dtype.str[1:] not in kind or array.shape != shape for array, shape in arrays):
            return False
    heights, totals = core.radial.heights, core.radial.totals
    none = core.gaussian and heights.shape == totals.shape == (1,)  # beyond a Gaussian there may be a tail only
    if not none and (heights.shape, totals.shape) != ((CELLS,), (CELLS + 1,)):
        return False
    if not 0 < bound.rows <= rounds or not 0 <= bound.inner <= bins:
        return False
    inside = 0 <= bound.order.min() <= bound.order.max() < rounds
    rising = bound.starts[0] == 0 and bound.starts[-1] == bound.rows and (np.diff(bound.starts) >= 0).all()
    return bool(inside and rising) and all(part.dtype == np.float64 for part in core.envelope[1:5])
