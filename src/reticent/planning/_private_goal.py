"""What a private plan is asked for, in the units of the search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.domains import Domain


@dataclass(frozen=True)
class Goal:
    """The question put to the planner of private plans.

    >>> from reticent.domains import Ball
    >>> Goal(Ball(2), 1000, 3.0, 1.0, 1e-6, "replace", "adaptive", None, 4).change
    2.0
    """

    domain: Domain
    horizon: int
    lipschitz: float
    epsilon: float
    delta: float
    neighbors: str
    adversary: str
    max_switches: int | None
    draws: int

    @property
    def change(self) -> float:
        """The Lipschitz constant of the difference of neighbouring losses, in units of `lipschitz`."""
        return 2.0 if self.neighbors == "replace" else 1.0

    @property
    def oblivious(self) -> bool:
        """Whether the plan may use the certificate for losses that do not depend on the decisions."""
        return self.adversary == "oblivious"

    @property
    def wide(self) -> float:
        """The diameter in units of the radius."""
        return self.domain.diameter / self.domain.radius

    @property
    def cap(self) -> float:
        """The largest budget allowed."""
        return math.inf if self.max_switches is None else float(self.max_switches)

    @property
    def source(self) -> str:
        """Where a plan for this goal comes from."""
        also = "" if self.max_switches is None else f", never more than {self.max_switches:,} switches"
        return f"plan_private, epsilon {self.epsilon:g} at delta {self.delta:g}{also}"
