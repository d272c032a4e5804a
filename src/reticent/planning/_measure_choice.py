"""One half of lazy planning: the best measure for a given step of the coin."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy

from reticent._check import Array
from reticent.domains import Domain
from reticent.planning._first_term import first_term

_PER_DECADE = 2.5


class MeasureCosts:
    """First term and stability at the best `lam`, as a function of the step `lipschitz * sqrt(beta / lam)`.

    The coin's law depends on the measure through the step alone, so the two choices separate.

    >>> from reticent.domains import Ball
    >>> costs = MeasureCosts(Ball(2), 1.0, 10_000)
    >>> lam, beta = costs.measure(0.01)
    >>> round(math.sqrt(beta / lam), 12)
    0.01
    """

    def __init__(self, domain: Domain, lipschitz: float, horizon: int) -> None:
        """Take what the measure is about."""
        self._domain, self._G, self._T = domain, lipschitz, horizon
        # Dimensionless: lam in units of G / R, costs in units of G R.
        self._unit = lipschitz / domain.radius

    def measure(self, step: float) -> tuple[float, float]:
        """Return the best `lam` and the `beta` that goes with it."""
        lam = self._best(step)[0]
        return lam, lam * (step / self._G) ** 2

    def still(self) -> tuple[float, float]:
        """Return `lam` and `beta` of a measure so narrow and slow that its first draw can be kept for good."""
        # The draw is within a part in a thousand of the centre (root mean square), and beta is so small that the
        # measure moves by less than that over the whole run: (T^2 step) is what clipping could cost.
        k = 1e6 * self._domain.chart_dim / self._domain.radius**2
        step = 1e-6 / self._T**2
        return math.sqrt(k) * self._G / step, math.sqrt(k) * step / self._G

    def enough(self) -> float:
        """Return the least step (on a grid) at which the cost is within a twentieth of that at any step.

        The last percents would take a measure many times narrower, from which kinked losses are hard to draw.
        """
        steps, costs = self._table
        return float(steps[np.flatnonzero(costs <= 1.05 * costs.min())[0]])

    def cost(self, step: Array) -> Array:
        """Return the cost at each step, by interpolation: for searches."""
        steps, _ = self._table
        return np.exp(self._curve(np.log(np.clip(step, steps[0], steps[-1]))))

    @cached_property
    def _curve(self) -> scipy.interpolate.PchipInterpolator:
        steps, costs = self._table
        return scipy.interpolate.PchipInterpolator(np.log(steps), np.log(costs))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        # Below 1/T not even one switch is expected; above sqrt(d) the measure is a point at every round.
        low, high = 1e-3 / self._T, 10 * math.sqrt(self._domain.chart_dim)
        steps = np.geomspace(low, high, math.ceil(_PER_DECADE * math.log10(high / low)))
        return steps, np.array([self._best(float(step), rough=True)[1] for step in steps])

    def _best(self, step: float, rough: bool = False) -> tuple[float, float]:
        T, d = self._T, self._domain.chart_dim

        def cost(log_lam: float) -> float:
            lam = math.exp(log_lam) * self._unit
            first = first_term(self._domain, lam * (step / self._G) ** 2, lam, self._G * T, quick=True)
            return first + T * self._G**2 / (2 * lam)

        # lam between that of no noise at all and that at which the measure is a point in the centre.
        low = math.log(0.03 * math.sqrt(T))
        high = math.log(max(100 * math.sqrt(T), 1e4 * math.sqrt(d) / step))
        grid = np.linspace(low, high, 14)
        values = [cost(x) for x in grid]
        i = int(np.argmin(values))
        found = scipy.optimize.minimize_scalar(
            cost,
            bounds=(grid[max(i - 1, 0)], grid[min(i + 1, 13)]),
            method="bounded",
            options={"xatol": 0.02 if rough else 1e-4},
        )
        best, value = (float(found.x), float(found.fun)) if found.fun < values[i] else (float(grid[i]), values[i])
        return math.exp(best) * self._unit, value
