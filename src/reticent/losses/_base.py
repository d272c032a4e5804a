"""What every loss offers, and blocks of rounds as rows of numbers in the chart of a domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._check import Array, _floats, matrix, vector
from reticent._core._tags import saved


class Box(Protocol):
    """The part of a domain's body that losses read: its bounding box in the chart."""

    @property
    def lo(self) -> Array:
        """The lower corner, `(chart_dim,)`."""

    @property
    def hi(self) -> Array:
        """The upper corner, `(chart_dim,)`."""


class Charted(Protocol):
    """The part of a domain that losses read: an isometric chart centred inside it."""

    @property
    def dim(self) -> int:
        """The number of user coordinates."""

    @property
    def center(self) -> Array:
        """The point that the chart takes to 0."""

    @property
    def radius(self) -> float:
        """The largest distance of a point of the domain from its centre."""

    @property
    def body(self) -> Box:
        """The domain in chart coordinates."""

    def pull(self, rows: Array) -> tuple[Array, Array]:
        """Return chart rows and offsets with `rows @ x == chart_rows @ u + offsets` on the domain."""

    def lengths(self, vectors: Array) -> Array:
        """Return the Lipschitz constant of each linear function in the chart."""

    def from_chart(self, points: Array) -> Array:
        """Return the points whose chart coordinates are given."""


@saved("rows")
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rounds in normal form: the loss of row `i` at chart point `u` is `phi(vectors[i] @ u + offsets[i])`.

    >>> len(Rows(np.ones((3, 2)), np.zeros(3)))
    3
    """

    vectors: Array
    offsets: Array

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.offsets)

    def __getitem__(self, part: slice) -> Rows:
        """Return some of the rounds; they share memory with these."""
        return Rows(self.vectors[part], self.offsets[part])

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        """Return the rounds of several parts as one."""
        return Rows(np.concatenate([part.vectors for part in parts]), np.concatenate([part.offsets for part in parts]))

    def copy(self) -> Rows:
        """Return rounds with memory of their own."""
        return Rows(self.vectors.copy(), self.offsets.copy())


def block(name: str, value: ArrayLike, dim: int) -> Array:
    """Return `value` as at least one finite row of `dim` numbers; one bare row becomes a block of one.

    With `dim == 1` a one-dimensional array is a column: one row per entry.

    >>> block("features", [1.0, 2.0], 2).shape, block("features", [1.0, 2.0], 1).shape
    ((1, 2), (2, 1))
    """
    # One order of storage, so that a row gives the same sums, to the last bit, alone and in any block.
    array = np.ascontiguousarray(_floats(name, value))
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one row of {dim} numbers, got shape {array.shape}")
    if dim == 1 and array.ndim < 2:
        array = array.reshape(-1, 1)
    elif array.ndim == 1 and array.size == dim:
        array = array.reshape(1, -1)
    return matrix(name, array, dim)


def column(name: str, value: ArrayLike, size: int) -> Array:
    """Return `value` as `size` finite numbers, one per row; a bare number serves a single row.

    >>> column("targets", 2.0, 1)
    array([2.])
    """
    array = _floats(name, value)
    return vector(name, array.reshape(1) if size == 1 and array.ndim == 0 else array, size)


def charted(name: str, domain: Charted, rows: Array) -> tuple[Array, Array]:
    """Return `rows` in the chart of `domain` with their offsets; refuse rows so large that this overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        vectors, offsets = domain.pull(rows)
        safe = np.isfinite(offsets)
        if vectors is not rows and not np.isfinite(vectors.sum()):
            safe &= np.isfinite(vectors).all(axis=1)
    if not safe.all():
        row = int(np.argmin(safe))
        raise ValueError(f"{name} must be small enough to add up in double precision, got {rows[row]} in row {row}")
    return np.ascontiguousarray(vectors, dtype=np.float64), np.ascontiguousarray(offsets, dtype=np.float64)


# What every loss offers: values, subgradients, Lipschitz constants, and rounds made ready for a domain.


class Loss(ABC):
    """A convex loss per round; what a round's data is, each kind of loss says.

    Losses are immutable, compare by their parameters, and can be hashed and pickled.

    >>> from reticent.losses import Absolute, Linear
    >>> isinstance(Linear(), Loss), Absolute() == Absolute(), Absolute() == Linear()
    (True, True, False)
    """

    data: ClassVar[tuple[str, ...]]
    """What a round consists of: the arguments that a block of rounds has."""

    @abstractmethod
    def values(self, x: ArrayLike, *data: Any, **named: Any) -> Array:
        """Return the loss of each round at the point `x`, shape `(n,)`."""

    @abstractmethod
    def subgradients(self, x: ArrayLike, *data: Any, **named: Any) -> Array:
        """Return one subgradient of each round's loss at the point `x`, shape `(n, dim)`."""

    @abstractmethod
    def lipschitz(self, domain: Charted, *data: Any, **named: Any) -> Array:
        """Return the Lipschitz constant of each round's loss over the domain, shape `(n,)`."""

    @abstractmethod
    def prepare(self, domain: Charted, *data: Any, **named: Any) -> Any:
        """Check the data of a block of rounds and bring it to the form that the algorithms read.

        With `lipschitz=` a limit, rounds above it are refused, or scaled down with `on_steep="clip"`.
        """

    @abstractmethod
    def total(self, domain: Charted, rows: Any, points: Array) -> Array:
        """Return the sum of prepared rounds at each chart point, less that at the centre of the chart.

        Shape `(m,)` for points of shape `(m, chart_dim)`. So every round contributes its Lipschitz constant times the
        radius at most, and none, however large its loss, swallows the digits of the others (docs/theory, Q12).
        """
