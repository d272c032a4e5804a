"""A goal to meet, and the systems that may meet it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reticent.domains import Domain
from reticent.losses import Loss
from reticent.planning._plan import Plan
from reticent.planning._system import SystemPlan

AnyPlan = Plan | SystemPlan


class NotApplicable(ValueError):
    """A system cannot meet a goal; the message says why, in a few words."""


@dataclass(frozen=True)
class Goal:
    """What is asked of a plan: rounds of one loss over a domain, and what may be revealed and changed.

    `smoothness` bounds the second derivatives of every round's loss, and `exp_concavity` is the largest alpha for which
    exp(-alpha loss) is concave, where the caller knows them.
    """

    domain: Domain
    horizon: int
    lipschitz: float
    loss: Loss
    epsilon: float | None = None
    delta: float | None = None
    max_switches: int | None = None
    neighbors: str = "replace"
    adversary: str = "adaptive"
    smoothness: float | None = None
    exp_concavity: float | None = None


@dataclass(frozen=True)
class System:
    """A system among those to choose from: `propose` returns its best plan for a goal, or raises `NotApplicable`.

    `private` systems can meet an epsilon, `lazy` ones a `max_switches` (in expectation at least).
    """

    name: str
    propose: Callable[[Goal], AnyPlan]
    private: bool = False
    lazy: bool = False
    experts: bool = False
