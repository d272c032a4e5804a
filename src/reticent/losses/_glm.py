"""Generalised linear losses: a convex function of one number, the margin, that is linear in the point."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, vector
from reticent.losses._base import Charted, Loss, Rows, block, charted, column
from reticent.losses._limit import at_most, limited, margin_range, outer_range, steepness

ABSOLUTE, PINBALL, HINGE, HUBER, LOGISTIC, SQUARED = range(6)

Pieces = tuple[Array, Array, Array, float]


def above(m: Array, v: Array) -> Array:
    """Return how much of the steps from margins `m` to `m + v` lies above 0, with the sign of `v`.

    That is by how much `max(0, m)` rises, right to a rounding of `v`: all that losses with kinks are made of.

    >>> above(np.array([1e20, -1e20, 1.0]), np.array([-0.3, 0.3, -1.5]))
    array([-0.3,  0. , -1. ])
    """
    end = m + v
    return np.where(m >= 0, np.where(end >= 0, v, -m), np.maximum(end, 0.0))


class GeneralisedLinear(Loss):
    """The loss `phi(m)` of a margin `m` made from the features `a` and the target `y` of a round.

    Two families differ in the margin: `a @ x - y` for real targets, `y * (a @ x)` for labels. The function
    `phi` has no parameters of its own per round, so a prepared round is a vector and an offset.

    >>> from reticent.losses import Huber
    >>> Huber(width=1.0)
    Huber(width=1.0)
    >>> Huber(width=1.0).values([1.0], [[3.0], [1.0]], [1.0, 0.5])
    array([1.5  , 0.125])
    """

    data: ClassVar[tuple[str, ...]] = ("features", "targets")
    code: ClassVar[int]
    """Which `phi` this is, as a number for compiled kernels."""
    curved: ClassVar[bool] = False
    """Whether `phi` is smooth with a positive second derivative everywhere."""

    @property
    def parameter(self) -> float:
        """The one parameter of `phi`, 0.0 where it has none; for compiled kernels."""
        return 0.0

    @abstractmethod
    def phi(self, m: Array) -> Array:
        """Return the loss at margins `m`."""

    @abstractmethod
    def rise(self, m: Array, v: Array) -> Array:
        """Return by how much the loss rises from margins `m` to `m + v`, right to a rounding of `v` however far `m` is.

        As a difference of two losses it would have the digits of the larger one only; see `above`.
        """

    @abstractmethod
    def dphi(self, m: Array) -> Array:
        """Return the slope at margins `m`; at a kink, the mean of the slopes on its two sides."""

    @abstractmethod
    def d2phi(self, m: Array) -> Array:
        """Return the second derivative at margins `m`; 0 at a kink."""

    @abstractmethod
    def curvature_bounds(self, m_low: Array, m_high: Array) -> tuple[Array, Array]:
        """Return the least and largest second derivative over each range; the largest is inf at a kink."""

    @abstractmethod
    def slope_bound(self, m_low: Array, m_high: Array) -> Array:
        """Return the largest absolute slope over each closed range, both sides of a kink counted."""

    def self_concordance(self, max_abs_margin: float) -> float | None:
        """Return `M` with `|phi'''| <= M phi''` for `|m| <= max_abs_margin`; None where there is none."""
        return None

    def pieces(self) -> Pieces | None:
        """Return `(breaks, slope_jumps, curvature_jumps, slope0)` of a piecewise quadratic `phi`, else None.

        From minus infinity on, `phi` has slope `slope0` and no curvature; at `breaks[k]` its slope jumps by
        `slope_jumps[k]` and its second derivative by `curvature_jumps[k]`.
        """
        return None

    @abstractmethod
    def _targets(self, targets: Array) -> Array:
        """Check targets, which are finite numbers already."""

    @abstractmethod
    def _normal(self, vectors: Array, offsets: Array, targets: Array) -> Rows:
        """Fold the targets into rows that give `a @ x` as `vectors @ u + offsets`."""

    def values(self, x: ArrayLike, features: ArrayLike, targets: ArrayLike) -> Array:
        """Return the loss of each round at the point `x`, shape `(n,)`."""
        point = vector("x", x)
        rows = self._plain(point, features, targets)
        return self.phi(rows.vectors @ point + rows.offsets)

    def subgradients(self, x: ArrayLike, features: ArrayLike, targets: ArrayLike) -> Array:
        """Return one subgradient of each round's loss at the point `x`, shape `(n, dim)`; see `dphi`."""
        point = vector("x", x)
        rows = self._plain(point, features, targets)
        return self.dphi(rows.vectors @ point + rows.offsets)[:, None] * rows.vectors

    def lipschitz(self, domain: Charted, features: ArrayLike, targets: ArrayLike) -> Array:
        """Return the Lipschitz constant of each round's loss over the domain, shape `(n,)`."""
        return self.rows_lipschitz(domain, self.prepare(domain, features, targets))

    def curvature(self, domain: Charted, features: ArrayLike, targets: ArrayLike) -> tuple[Array, Array]:
        """Return bounds of the second derivative in the margin over the domain, each of shape `(n,)`."""
        return self.rows_curvature(domain, self.prepare(domain, features, targets))

    def rows_lipschitz(self, domain: Charted, rows: Rows) -> Array:
        """Return the Lipschitz constant of each prepared row over the domain."""
        return steepness(domain, rows, self.slope_bound)

    def rows_curvature(self, domain: Charted, rows: Rows) -> tuple[Array, Array]:
        """Return bounds of the second derivative in the margin of each prepared row over the domain.

        The upper one holds at every margin that rounding may lead to.
        """
        least, most = self.curvature_bounds(*margin_range(domain, rows))
        return least, at_most(most, self.curvature_bounds(*outer_range(domain, rows))[1])

    def total(self, domain: Charted, rows: Rows, points: Array) -> Array:
        """Return the sum of prepared rows at each chart point, less that at the centre."""
        result: Array = self.rise(rows.offsets, points @ rows.vectors.T).sum(axis=1)
        return result

    def prepare(
        self,
        domain: Charted,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        lipschitz: float | None = None,
        on_steep: str = "raise",
    ) -> Rows:
        """Check a block of rounds and bring it to normal form in the chart of the domain.

        Features are `(n, dim)` with `(n,)` targets, or one row with one target. With `lipschitz`, rows that
        are steeper over the domain are refused, or with `on_steep="clip"` scaled down (vector and offset)
        just enough, each by itself. Where nothing changes, the rows share memory with the features.
        """
        array = block("features", features, domain.dim)
        checked = self._targets(column("targets", targets, len(array)))
        return limited(domain, self.assemble(domain, array, checked), self.slope_bound, lipschitz, on_steep)

    def assemble(self, domain: Charted, features: Array, targets: Array) -> Rows:
        """Bring rounds to normal form that are known to be good: finite rows, targets as this loss has them."""
        return self._normal(*charted("features", domain, features), targets)

    def _plain(self, point: Array, features: ArrayLike, targets: ArrayLike) -> Rows:
        array = block("features", features, point.size)
        checked = self._targets(column("targets", targets, len(array)))
        return self._normal(array, np.zeros(len(array)), checked)
