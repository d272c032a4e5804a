"""A private mean of a stream of numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from reticent._core._check import Array, integer
from reticent._core._random import Seed
from reticent.learners import make
from reticent.losses import Linear
from reticent.planning import plan_ftrl
from reticent.trackers._tracker import Tracker, public_interval


class PrivateMean(Tracker):
    """The mean so far of a stream of values between public bounds, private and up to date after every value.

    `horizon` is the number of values to come. The whole sequence of `value` is (`epsilon`, `delta`)-private in any one
    of the values. Running sums with square-root Toeplitz noise (those of DP-FTRL, docs/theory, R2) are divided by
    the number of rounds, so that the noise in the mean falls like one over the rounds; `deviation` says how large it
    is. In the first rounds, where noise would be larger than the bounds, the mean is drawn to their middle.

    A mean is a sum, and needs no learner of general losses: of 100,000 values at epsilon 1, P-COMW on the squared loss
    was off by 2 percent of the width of the bounds, and this by 0.02 percent. A `seed` is for tests and experiments.

    >>> import numpy as np
    >>> import reticent as rt
    >>> spending = rt.PrivateMean(0.0, 100.0, horizon=20_000, epsilon=1.0, delta=1e-6, seed=1)
    >>> spending.update_many(np.random.default_rng(0).uniform(0.0, 50.0, size=20_000))
    >>> abs(spending.value - 25.0) < 0.5, spending.deviation < 0.2, spending.spent() <= 1.0
    (True, True, True)
    """

    def __init__(
        self,
        low: float,
        high: float,
        horizon: int,
        epsilon: float,
        delta: float,
        *,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None:
        """Plan for the goal, and start in the middle."""
        if horizon is None:
            raise ValueError(
                "horizon must be a number of rounds for PrivateMean, got None: its noise is planned for the whole run; "
                "give the most values that may come"
            )
        domain, rounds = public_interval(low, high), integer("horizon", horizon, least=1)
        # Values from the middle, turned round, as gradients: the leader with lam = T is their sum over T.
        plan = plan_ftrl(domain, rounds, domain.radius, epsilon, delta, batch=1, linear=True, neighbors=neighbors)
        super().__init__(make(replace(plan, lam=float(rounds)), Linear(), seed), low, high)
        self._middle = float(domain.center[0])

    def _take(self, value: float) -> None:
        self._learner.observe(self._gradients(np.array([value])))

    def _take_many(self, values: Array) -> None:
        self._learner.observe_many(self._gradients(values))

    def _gradients(self, values: Array) -> Array:
        # The middle is rounded, so that a bound may be farther from it than half the width: a round is never refused.
        most = self.plan.lipschitz
        gradients: Array = np.clip(self._middle - values, -most, most)
        return gradients

    @property
    def value(self) -> float:
        """The mean so far, with noise."""
        if not self.rounds:
            return self._middle
        total = (float(self._learner.decision[0]) - self._middle) * self.plan.horizon
        # Noise of a known law, and a mean that could be anywhere between the bounds: the best multiple of their sum.
        mean = total / (self.rounds + self._noise**2 / (self.rounds * self._spread**2))
        return float(np.clip(self._middle + mean, self.low, self.high))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in `value`; public, since it depends on the number of rounds only.

        Where it is not small beside the bounds, `value` is also drawn towards their middle.
        """
        if not self.rounds:
            return 0.0
        return self._noise / (self.rounds + self._noise**2 / (self.rounds * self._spread**2))

    @property
    def _noise(self) -> float:
        """The standard deviation of the noise in the sum so far."""
        return float(self.plan.sigma * self.plan.mechanism.deviation(self.rounds))

    @property
    def _spread(self) -> float:
        """The standard deviation of a number anywhere between the bounds."""
        return (self.high - self.low) / math.sqrt(12.0)

    def __repr__(self) -> str:
        """Say where the tracker stands."""
        return self._says("PrivateMean")
