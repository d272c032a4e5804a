"""What the contract test needs to know of a learner: a plan that is quick to run, and the loss to run it on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reticent.losses import Loss


@dataclass(frozen=True)
class Case:
    """`plan` makes a plan of a few hundred rounds; the contract makes its own streams from domain and loss.

    `scale` shrinks the features of the streams, for plans that limit curvature as well.
    """

    name: str
    plan: Callable[[], Any]
    loss: Loss
    certified: bool = True  # whether measured regret must stay below the plan's bound
    scale: float = 1.0
