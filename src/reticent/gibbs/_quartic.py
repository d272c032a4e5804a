"""Builds the quartic lower bound of a sum of kinked losses around a point near the mode (docs/theory.md, S8 and S9)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent._check import Array
from reticent._kernel import kernel

from ._core import Core, Norms, best_core, norms_of
from ._history import RowHistory
from ._minorants import BINS, EDGES, REACH, minorant_tables
from ._phi import margin

Indices = NDArray[np.integer[Any]]
OUTER = 24  # coarse bins beyond the reach of the minorants, for steps so long that they get there
_CHUNK = 1 << 14


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
