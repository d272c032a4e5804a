"""The first term of regret as a smooth function of two numbers, from a table: for searches."""

from __future__ import annotations

import math

import numpy as np
import scipy

from reticent._check import Array
from reticent.domains import Domain
from reticent.planning._first_term import first_term


class FirstTerms:
    """The first term in units of G R, for steps G sqrt(beta/lam) and precisions beta lam R^2 / d around given ones.

    Its logarithm is a spline in both logarithms; outside the table it is infinite.

    >>> from reticent.domains import Ball
    >>> terms = FirstTerms(Ball(3), 10_000, (1e-3, 1e-1), (1.0, 1e3), (9, 9))
    >>> lam = math.sqrt(3 * 20.0) / 0.01
    >>> exact = first_term(Ball(3), lam * 0.01**2, lam, 1e4, quick=True)
    >>> abs(float(terms(np.array(0.01), np.array(20.0))) / exact - 1) < 0.01
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int,
        steps: tuple[float, float],
        precisions: tuple[float, float],
        size: tuple[int, int],
    ) -> None:
        """Fill the table."""
        self._d, R = domain.chart_dim, domain.radius
        self._x = np.linspace(math.log(steps[0]), math.log(steps[1]), size[0])
        self._y = np.linspace(math.log(precisions[0]), math.log(precisions[1]), size[1])
        values = np.empty(size)
        for i, step in enumerate(np.exp(self._x)):
            for j, precision in enumerate(np.exp(self._y)):
                lam = math.sqrt(precision * self._d) / step
                beta = lam * step**2
                # G = 1 / R and beta in its units: first_term is asked for with lengths as they are.
                values[i, j] = first_term(domain, beta, lam / R**2, horizon / R, quick=True)
        self._spline = scipy.interpolate.RectBivariateSpline(self._x, self._y, np.log(np.maximum(values, 1e-300)))

    @property
    def precisions(self) -> tuple[float, float]:
        """The least and the largest precision of the table, a little inside its edges."""
        return math.exp(self._y[0]) * (1 + 1e-9), math.exp(self._y[-1]) * (1 - 1e-9)

    def __call__(self, step: Array, precision: Array) -> Array:
        """Return the first term at each pair."""
        x, y = np.log(step), np.log(precision)
        outside = (x < self._x[0]) | (x > self._x[-1]) | (y < self._y[0]) | (y > self._y[-1])
        value = np.exp(self._spline.ev(np.clip(x, self._x[0], self._x[-1]), np.clip(y, self._y[0], self._y[-1])))
        return np.where(outside, np.inf, value)
