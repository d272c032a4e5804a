"""Finite sets of experts."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, integer, matrix
from reticent._core._tags import saved
from reticent.domains._base import Body, Domain, read_only


@saved("experts")
class Experts(Domain):
    """`n` experts, of which one is followed at a time: the decision is a vector with a single 1.

    A round is a `Linear` loss, with what each expert loses as its entries. Two experts are at distance 1 whatever they
    are, so the Lipschitz constant of a round is the range of its entries, largest less smallest; a number added to
    all of them changes nothing. In the chart the smallest entry of every round is 0.

    >>> Experts(3).support([1.0, -1.0, 0.0])
    array([0., 1., 0.])
    >>> Experts(3).lengths(np.array([[1.0, -1.0, 0.0]]))
    array([2.])
    """

    finite: ClassVar[bool] = True

    def __init__(self, n: int) -> None:
        """Take the number of experts, at least 2."""
        super().__init__(np.zeros(integer("n", n, least=2)), radius=1.0, diameter=1.0)

    def pull(self, rows: ArrayLike) -> tuple[Array, Array]:
        """Return rows less their smallest entries, and these as offsets."""
        checked = matrix("rows", rows, self._dim)
        least: Array = checked.min(axis=1)
        return checked - least[:, None], least

    def lengths(self, vectors: Array) -> Array:
        """Return the range of each row."""
        ranges: Array = vectors.max(axis=1) - vectors.min(axis=1)
        return ranges

    def _parameters(self) -> tuple[Any, ...]:
        return (self._dim,)

    def _excess(self, x: Array) -> float:
        return float(np.abs(x - self._project(x)).max())

    def _project(self, x: Array) -> Array:
        return self._support(-x)

    def _support(self, c: Array) -> Array:
        chosen = np.zeros(self._dim)
        chosen[np.argmin(c)] = 1.0
        return chosen

    def _log_z(self, k: float, upper: bool) -> NoReturn:
        raise ValueError(f"{self!r} is a finite set without a volume; Simplex({self._dim}) has one")

    def _make_body(self) -> Body:
        n = self._dim
        none = read_only(np.zeros((0, n)))
        lo, hi = read_only(np.zeros(n)), read_only(np.ones(n))
        return Body(False, False, 0, n, 1.0, none, read_only(np.zeros(0)), lo, hi, none)
