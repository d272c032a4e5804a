"""What every loss offers: values, subgradients, Lipschitz constants, and rounds made ready for a domain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from reticent._check import Array
from reticent.losses._rows import Charted


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
        """Return the sum of prepared rounds at each chart point, shape `(m,)` for points of shape `(m, chart_dim)`."""
