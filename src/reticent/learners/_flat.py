"""Continuous multiplicative weights over a body, kept as by the shrinking dartboard (Asi et al. 2023)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.gibbs import Gibbs
from reticent.losses import GeneralisedLinear, Linear, Loss, Objects
from reticent.losses._label import Label
from reticent.losses._margins import margin_range
from reticent.planning._flat import FlatPlan
from reticent.planning._system import SystemPlan

from ._coin import KeepingCoin
from ._l2p import exact_measure
from ._system import SystemLearner
from ._walk import Walk


class FlatWeights(SystemLearner):
    """Plays draws of the weights exp(-beta * sum of past losses), each kept while its own weight hardly falls.

    Algorithm: x_1 is uniform on the body. After every batch the switch is forced with probability p; else x is kept
    with probability exp(-beta (L(x) - m)), L the sum of the batch's losses and m the sum of lower bounds of each over
    the body: the shrinking dartboard of Geulen, Voecking and Winkler, on a continuum. On a switch x is a fresh draw of
    the weights. After `plan.budget` switches it stays. It is P-COMW with lam = 0 and another coin, which needs no
    auxiliary draw at all; derived from the published idea.

    Theorem (docs/theory.md, R6): for losses that do not depend on the decisions these follow the weights exactly, and
    regret is at most (d/beta) log(1/e) + e G T m + beta G^2 D^2 (sum of squared batches)/8, any e in (0, 1] and m the
    mean distance of the uniform law, plus G D T times the chance that the budget runs out. Privacy holds for losses
    that react to decisions: a draw has a privacy loss of range beta Delta D, later coins cost nothing. Assumes convex
    Lipschitz losses. Draws are exact; without a regulariser some are too hard, and raise `WorkLimitError`. Reference:
    Asi, Feldman, Koren and Talwar 2023.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_flat(rt.Interval(-1.0, 1.0), 2000, 1.0, epsilon=3.0, delta=1e-5)
    >>> learner = rt.learners.FlatWeights(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((2000, 1)), np.full(2000, 0.5))
    >>> trace.switches <= plan.budget, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 3.0
    (True, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = FlatPlan

    def _new_walk(self) -> Any:
        measure = exact_measure(self.plan, 0.0, self.loss, self._on_steep)
        return Walk(self.plan, measure, self._rng, DartboardCoin(self.plan))


class DartboardCoin(KeepingCoin):
    """Keeps x with probability exp(-beta (L(x) - m)), m a lower bound of L that is a function of the batch alone."""

    def __init__(self, plan: FlatPlan) -> None:
        super().__init__(plan.p, plan.floor)
        self.beta = plan.beta

    def keeps(self, measure: Gibbs, rows: Any, u: Array, rng: np.random.Generator) -> float:
        """Return the chance to keep; it reads nothing of the past but the decision."""
        least = float(least_losses(measure.domain, measure.loss, rows).sum())
        here = float(measure.loss.total(measure.domain, rows, u[None])[0])
        return math.exp(self.beta * min(0.0, least - here))


def least_losses(domain: Domain, loss: Loss, rows: Any) -> Array:
    """Return a lower bound of each round's loss over the domain, within 2 R times its Lipschitz constant of all values.

    >>> import reticent as rt
    >>> rows = rt.Absolute().prepare(rt.Interval(-1.0, 1.0), [[1.0], [1.0]], [0.5, 3.0])
    >>> least_losses(rt.Interval(-1.0, 1.0), rt.Absolute(), rows)
    array([0., 2.])
    """
    if isinstance(rows, Objects):
        centre = np.zeros((1, domain.chart_dim))
        values = [float(loss.total(domain, rows[i : i + 1], centre)[0]) for i in range(len(rows))]
        return np.array(values) - domain.radius * rows.bounds
    low, high = margin_range(domain, rows)
    if isinstance(loss, Linear):
        return low
    assert isinstance(loss, GeneralisedLinear)
    # Losses of labels fall with the margin; the others are least where it is 0.
    return loss.phi(high if isinstance(loss, Label) else np.clip(0.0, low, high))
