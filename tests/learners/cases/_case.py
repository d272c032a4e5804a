"""What the contract test needs to know of a learner: a plan that is quick to run, and the loss to run it on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reticent.losses import Loss


@dataclass(frozen=True)
class Case:
    """`plan` makes a plan of a few hundred rounds; the contract makes its own streams from domain and loss."""

    name: str
    plan: Callable[[], Any]
    loss: Loss
    certified: bool = True  # whether measured regret must stay below the plan's bound
    labels: dict[str, Any] = field(default_factory=dict)
