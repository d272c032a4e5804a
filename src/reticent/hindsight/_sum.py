"""How the sum of all losses rises from the centre, read in passes: its value, and affine functions below it.

Sums of the losses themselves would have the digits of the largest only: one round far out would take those of all
others (docs/theory, Q12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from reticent._core._check import Array, real, vector
from reticent.domains import Domain
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects, Rows

Blocks = Sequence[Any] | Callable[[], Iterable[Any]]

_CHUNK = 1 << 12  # rows handled together: temporary arrays stay in the cache, and sums of so few round little
_SAMPLE = 1 << 15  # rows in a random sample, which tells where to look first
_EPS = 2.0**-52


class Look(NamedTuple):
    """What one pass finds at the chart point `point`; every v of the body has F(v) >= `const + slope @ v`.

    `smooth`, `slope` and `bend` (the Hessian) belong to F, or where it has kinks to F with its kinks rounded off.
    """

    point: Array
    value: float
    smooth: float
    slope: Array
    const: float
    bend: Array


class RowSum:
    """The sum of linear or generalised linear losses of prepared rows, less `base`, that at the centre of the chart.

    The first pass finds the number of rows and their size, from which `rounding` bounds the error of any sum here:
    a sum of N terms in double precision is off by at most N eps times the sum of their sizes, whatever its order;
    rows are summed in chunks of 4,096, and no point of the body gives terms larger than `scale` says. However far out a
    row is, its loss rises by its slope times its length times the radius at most.
    """

    def __init__(self, domain: Domain, loss: Loss, blocks: Blocks, *, sample: bool = False) -> None:
        self.domain, self.loss, self._blocks = domain, loss, blocks
        self.passes = 0
        self.rounds = 0
        self._chance = 1.0
        self.sampled: list[tuple[Array, Array]] = []
        pieces = loss.pieces() if isinstance(loss, GeneralisedLinear) else None
        self.kinked = pieces is not None and not pieces[2].any()
        if pieces is not None and self.kinked:
            self.kink, self.low, self.high = float(pieces[0][0]), pieces[3], pieces[3] + float(pieces[1][0])
        self._survey(sample)

    def _survey(self, sample: bool) -> None:
        domain, loss = self.domain, self.loss
        chosen = np.random.default_rng(0)  # where to look first is no secret and decides no result
        levels, steep, top, self.base, self.reach = 0.0, 0.0, 0.0, 0.0, 0.0
        for vectors, offsets in self.chunks():
            norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            top = max(top, float((norms * domain.radius + np.abs(offsets)).max()))
            self.reach += float(norms.sum()) * domain.radius
            level = loss.phi(offsets) if isinstance(loss, GeneralisedLinear) else offsets
            self.base += float(level.sum())
            levels += float(np.abs(level).sum())
            if sample:
                self._keep(chosen, vectors, offsets)
            self.rounds += len(offsets)
        margins = self.reach
        far = self.reach / domain.radius * float(np.linalg.norm(domain.center))
        self.reach /= max(1, self.rounds)
        if isinstance(loss, GeneralisedLinear):
            ends = np.array([-top, top])
            steep = float(np.abs(loss.slope_bound(ends[:1], ends[1:])).max())
        else:
            steep = 1.0
        self.scale = steep * margins
        # Twice for value and bound, and as much again for margins, slopes and the dot products with u; and what the
        # point loses when it is moved to user coordinates, where the centre may be far from 0.
        terms = min(_CHUNK, self.rounds) + 8 * domain.dim + self.rounds / _CHUNK
        self.rounding = 4.0 * _EPS * (terms * self.scale + steep * far)
        self.blur = 4.0 * _EPS * terms * levels  # what rounding leaves open of the base

    def _keep(self, chosen: np.random.Generator, vectors: Array, offsets: Array) -> None:
        """Keep a random sample: each row with a chance that halves whenever the sample is full."""
        chance = 0.5 ** max(0, int(np.ceil(np.log2(max(1.0, (self.rounds + len(offsets)) / _SAMPLE)))))
        if self.sampled and chance < self._chance:
            for i, (old, level) in enumerate(self.sampled):
                kept = chosen.random(len(level)) < chance / self._chance
                self.sampled[i] = old[kept], level[kept]
        self._chance = chance
        kept = chosen.random(len(offsets)) < chance
        self.sampled.append((vectors[kept], offsets[kept]))

    def sample(self) -> Rows:
        """Return the sample that the first pass took."""
        vectors, offsets = zip(*self.sampled, strict=True)
        self.sampled = []
        return Rows(np.concatenate(vectors), np.concatenate(offsets))

    def chunks(self) -> Iterator[tuple[Array, Array]]:
        """Read all rows once, a few thousand at a time."""
        self.passes += 1
        for rows in self._blocks() if callable(self._blocks) else self._blocks:
            for first in range(0, len(rows), _CHUNK):
                part = slice(first, first + _CHUNK)
                yield rows.vectors[part], rows.offsets[part]

    def look(self, u: Array, width: float = 0.0, *, bend: bool = True) -> Look:
        """Read all rows at the chart point u, with kinks rounded off over `width` on each side of a slope of 1.

        Rounding off a kink from slope p to q means s = clip(mid + m / width, p, q) instead of p or q. Any s in [p, q]
        has phi(m) >= s m for every m (m from the kink, where phi is 0), so the minorant holds for any width.
        """
        d = u.size
        value, smooth, const = 0.0, 0.0, 0.0
        slope, hessian = np.zeros(d), np.zeros((d, d))
        for vectors, offsets in self.chunks():
            v = vectors @ u
            risen, f, s, c, h = self._kinked(v, offsets, width) if self.kinked else self._smooth(v, offsets)
            value, smooth, const = value + risen, smooth + f, const + c
            slope += s @ vectors
            if bend:
                zone = np.flatnonzero(h) if self.kinked else slice(None)
                picked = vectors[zone]
                hessian += (picked.T * h[zone]) @ picked
        return Look(u, value, smooth, slope, const, hessian)

    def _smooth(self, v: Array, offsets: Array) -> tuple[float, float, Array, float, Array]:
        loss = self.loss
        if not isinstance(loss, GeneralisedLinear):  # linear: the loss is the margin
            return float(v.sum()), float(v.sum()), np.ones_like(v), 0.0, np.zeros_like(v)
        m = offsets + v
        s = loss.dphi(m)
        value = float(loss.rise(offsets, v).sum())
        return value, value, s, value - float(s @ v), loss.d2phi(m)

    def _kinked(self, v: Array, offsets: Array, width: float) -> tuple[float, float, Array, float, Array]:
        assert isinstance(self.loss, GeneralisedLinear)
        low, high = self.low, self.high
        middle = 0.5 * (low + high)
        start = offsets - self.kink
        r = start + v
        value = float(self.loss.rise(offsets, v).sum())
        raw = middle + r / width if width > 0.0 else r
        s = np.clip(raw, low, high) if width > 0.0 else np.where(r > 0, high, np.where(r < 0, low, middle))
        # Of a row that has its kink elsewhere this is 0, to the last digit.
        const = float((s * start - np.maximum(low * start, high * start)).sum())
        if width > 0.0:
            smooth = float(s @ v) + const - 0.5 * width * float(np.square(s - middle).sum())
            return value, smooth, s, const, np.where(s == raw, 1.0 / width, 0.0)
        return value, value, s, const, np.zeros_like(r)


class ObjectSum:
    """The sum of custom losses, less that at the centre of the chart, read through the caller's functions."""

    kinked = False
    blur = 0.0  # of the base; `rounding` has it, by the sizes of the losses

    def __init__(self, domain: Domain, loss: Custom, blocks: Blocks) -> None:
        self.domain, self.loss, self._blocks = domain, loss, blocks
        self.passes = 0
        self.rounds = 0
        self.scale = self.base = 0.0

    @property
    def rounding(self) -> float:
        """A bound of the rounding of sums, from the largest sizes seen; the caller's functions are taken as exact."""
        return 4.0 * _EPS * (8 * self.domain.dim + self.rounds) * self.scale

    def look(self, u: Array, width: float = 0.0, *, bend: bool = False) -> Look:
        """Read all objects at the chart point u."""
        self.passes += 1
        x = self.domain.from_chart(u)
        reach = 2.0 * self.domain.radius + float(np.abs(x).max())
        value, size, count, base = 0.0, 0.0, 0, 0.0
        slope = np.zeros(x.size)
        for block in self._blocks() if callable(self._blocks) else self._blocks:
            assert isinstance(block, Objects)
            for item, scale in zip(block.items, block.scales.tolist(), strict=True):
                one = scale * real("the value of a custom loss", self.loss.value(x, item))
                start = scale * real("the value of a custom loss", self.loss.value(self.domain.center, item))
                g = vector("the subgradient of a custom loss", self.loss.subgradient(x, item), x.size)
                value += one - start
                base += start
                slope += scale * g
                size += abs(one) + abs(start) + scale * float(np.abs(g).sum()) * reach
            count += len(block)
        self.rounds, self.base, self.scale = count, base, max(self.scale, size)
        pulled = self.domain.pull(slope[None])[0][0]
        return Look(u, value, value, pulled, value - float(pulled @ u), np.zeros((u.size, u.size)))
