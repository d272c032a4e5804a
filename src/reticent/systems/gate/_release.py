"""The gate: block sums of clipped rows, in integers on a public grid, released once with rounded normal noise.

What comes in is rows, each clipped by itself; what goes out is one vector of integers per block (docs/theory, R8). All
that is computed from these vectors is post-processing: the module knows no learner.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array, integer, norms, positive
from reticent._core._tags import saved
from reticent.systems.gate._normal import rounded_normals

Integers = NDArray[np.int64]

_FINEST = 30  # binary digits of a clipped row on the grid, at most: squares of it are below 2^60
_WIDE = 62  # binary digits that sums stay within, of the 63 that an integer has
_DEVIATIONS = 6  # binary digits of a normal variable before the point: beyond 2^6 deviations there is no chance
_COARSEST = 8  # binary digits of a clipped row on the grid, at least


def digits(block: int, dim: int) -> int:
    """Return how many binary digits the grid may give a row of length `clip`, so that no sum overflows.

    The squares of a row's `dim` entries add up in 64 bits, and so do `block` rows.

    >>> digits(27, 10), digits(2**40, 10), digits(27, 1000)
    (29, 20, 26)
    """
    return min(_FINEST, (_WIDE - dim.bit_length()) // 2, _WIDE - 1 - block.bit_length())


@saved("release of block sums")
class BlockRelease:
    """Releases h = (sum of a block's rows, each of length at most `clip`) + noise of deviation `sigma`, in integers.

    The grid has the step sigma 2^-shift, which depends on public numbers only. A row becomes integers whose sum of
    squares is at most `most` = floor((clip/step)^2), checked in integers; the noise of a coordinate is a normal
    variable rounded to the grid, exactly in law. One changed row moves a block's sum by at most 2 clip, so whatever is
    computed from the releases is (2 clip/sigma)-GDP, clip/sigma if the row becomes 0 instead.

    >>> release = BlockRelease(clip=1.0, sigma=8.0, block=10, dim=2)
    >>> total = release.rounded(np.array([[3.0, 4.0], [0.25, 0.0]])).sum(axis=0)
    >>> release.real(total).round(6)
    array([0.85, 0.8 ])
    >>> release.released(total, np.random.default_rng(0)).dtype
    dtype('int64')
    """

    def __init__(self, clip: float, sigma: float, block: int, dim: int) -> None:
        """Take the length that rows are clipped to, the deviation of the noise, rounds of a block, and dimensions."""
        self.clip, self.sigma = positive("clip", clip), positive("sigma", sigma)
        self.block, self.dim = integer("block", block, least=1), integer("dim", dim, least=1)
        ratio, room = Fraction(self.clip) / Fraction(self.sigma), digits(self.block, self.dim)
        shift = room - (ratio.numerator.bit_length() - ratio.denominator.bit_length()) + 1
        while ratio * Fraction(2) ** shift > 1 << max(room, 0):
            shift -= 1
        self.shift = min(shift, _WIDE - 1 - _DEVIATIONS)
        length = ratio * Fraction(2) ** self.shift  # of a clipped row, in steps
        self.most = math.floor(length * length)
        if self.most < 1 << (2 * _COARSEST) or self.shift < 1:
            raise ValueError(
                f"sigma={sigma!r}, clip={clip!r}, block={block!r} and dim={dim!r} leave no grid on which sums of 64 "
                "bits are exact; take shorter blocks, or a sigma nearer to clip"
            )
        self.step = math.ldexp(self.sigma, -self.shift)
        self.largest = math.isqrt(self.most)

    @property
    def error(self) -> float:
        """How far a row on the grid can be from the row, if that is no longer than `clip`.

        Rounding towards 0 moves each coordinate by less than a step. The hundredth is for rows a few units in the last
        place longer than `clip`, and for the shrinking that makes up for them. Where the step is finer than it needs to
        be the coarsest of its octave is taken, so that more noise never has a smaller error.
        """
        coarse = max(self.step, math.ldexp(self.clip, 1 - digits(self.block, self.dim)))
        return 1.01 * math.sqrt(self.dim) * coarse

    @property
    def deviation(self) -> float:
        """What the root mean square of a coordinate of the rounded noise is at most."""
        return self.sigma * (1 + math.ldexp(1.0, -self.shift - 1))

    def rounded(self, rows: Array) -> Integers:
        """Return rows of numbers on the grid, as integers: each clipped, rounded, and its length checked in integers.

        The integers of a row depend on that row alone, not on those beside it.
        """
        if not np.isfinite(rows).all():
            raise ValueError("rows must be finite: a NaN or an infinity has no place on the grid")
        return self._whole(rows, np.ones(len(rows))).astype(np.int64)

    def summed(self, vectors: Array, slopes: Array) -> Integers:
        """Return the sum of the rows slopes[i] * vectors[i], each as `rounded` has it; at most 2^22 of them.

        A slope that is no number (a margin has overflowed) counts as 0.
        """
        # Whole numbers of 2^30 at most: sums of them are exact in floating point, in any order.
        total: Array = np.ones(len(slopes)) @ self._whole(vectors, slopes)
        return total.astype(np.int64)

    def summed_apart(self, vectors: Array, slopes: Array, starts: Integers) -> Integers:
        """Return such sums of several blocks that stand one after the other, each from its start on."""
        totals: Array = np.add.reduceat(self._whole(vectors, slopes), starts, axis=0)
        return totals.astype(np.int64)

    def whole(self, vectors: Array, slopes: Array) -> Integers:
        """Return the rows slopes[i] * vectors[i] as `rounded` has them: not longer than `clip`, in integers."""
        if not len(slopes):
            return np.zeros((0, self.dim), dtype=np.int64)
        return self._whole(vectors, slopes).astype(np.int64)

    def shortened(self, sums: Integers) -> Integers:
        """Return sums of rows, each no longer than `clip` by itself: longer ones are shrunk; checked in integers.

        What becomes of a sum depends on that sum alone.
        """
        steps = sums.astype(np.float64)
        squares, near = np.einsum("ij,ij->i", steps, steps), self.most * (1 - math.ldexp(self.dim + 4, -52))
        if not len(sums) or squares.max() <= near:
            return sums
        # What may be too long is looked at in integers, whose squares do not overflow where entries are on the grid.
        over = np.flatnonzero(~(squares <= near))
        inside = np.abs(sums[over]).max(axis=1) <= self.largest
        over = over[~inside | self._too_long(np.where(inside[:, None], sums[over], 0))]
        found, most = sums.copy(), self.clip / self.step - 0.505 * math.sqrt(self.dim)
        found[over] = self._short(steps[over] * np.minimum(most / norms(steps[over]), 1.0)[:, None])
        return found

    def _whole(self, vectors: Array, slopes: Array) -> Array:
        """Return rows in steps as whole numbers, not longer than allowed."""
        # Rounding lengthens a row by half a step in each coordinate at most: so hardly any is too long afterwards.
        most = self.clip - 0.505 * math.sqrt(self.dim) * self.step
        with np.errstate(all="ignore"):
            lengths = norms(vectors)
            scales = slopes * lengths
            np.minimum(np.maximum(scales, -most, out=scales), most, out=scales)
            scales /= lengths
            scales /= self.step
        if not np.isfinite(scales).all():
            scales = np.where(np.isfinite(scales), scales, 0.0)
        steps = vectors * scales[:, None]
        found = np.rint(steps)
        # Sums of squares in floating point are right to dim + 1 roundings: rows that may be too long, or whose entries
        # leave the grid, are looked at in integers, and from there on nothing rests on floating point.
        near, squares = self.most * (1 - math.ldexp(self.dim + 2, -52)), np.einsum("ij,ij->i", found, found)
        if not squares.max() <= near:
            over = ~(squares <= near)
            found[over] = self._short(steps[over])
        return found

    def _short(self, steps: Array) -> Integers:
        """Return rows as integers whose length is checked in integers, shrunk where they are too long."""
        found: Integers = np.clip(np.rint(steps), -self.largest, self.largest).astype(np.int64)
        over = np.flatnonzero(self._too_long(found))
        nudge = 2.0**-40
        while over.size:
            shrunk = np.trunc(steps[over] * max(0.0, 1.0 - nudge))
            found[over] = np.clip(shrunk, -self.largest, self.largest).astype(np.int64)
            over = over[self._too_long(found[over])]
            nudge *= 2.0
        return found

    def _too_long(self, found: Integers) -> NDArray[np.bool_]:
        squares: Integers = (found * found).sum(axis=1)
        return squares > self.most

    def released(self, total: Integers, rng: np.random.Generator) -> Integers:
        """Return the sum of a block with fresh noise; of each block once, and only this may be shown or computed with.

        Commit it (to a walk, a disk) before it is used: a second one for the same block is a second release.
        """
        return total + rounded_normals(rng, self.dim, self.shift)

    def real(self, found: Integers) -> Array:
        """Return integers of the grid as numbers."""
        values: Array = found.astype(np.float64) * self.step
        return values
