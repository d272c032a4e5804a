"""What FTRL on noisy prefix sums costs: bounds for convex losses, and for linear ones (docs/theory.md, R2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.domains import Domain
from reticent.planning._descent import block_squares
from reticent.planning._noise import Noise
from reticent.planning._noise_cost import chi_shares, mean_length, noise_cost


@dataclass(frozen=True)
class Regret:
    """The two bounds as functions of lam, for noise whose law is known.

    `squares` is G^2 times the sum of squared batch lengths, `drift` the sum over rounds of G times the mean length of
    the noise, `level` the largest deviation of a coordinate of the noise.
    """

    dim: int
    radius: float
    reach: float
    squares: float
    drift: float
    level: float

    @classmethod
    def of(
        cls, domain: Domain, horizon: int, lipschitz: float, *, batch: int, noise: Noise, sigma: float, topped: bool
    ) -> Regret:
        """Take a run; `topped` tops the noise on every sum up to the largest."""
        n, rest = divmod(horizon, batch)
        if topped:
            level = noise.largest(n)
            lengths = batch * max(n - 1, 0) * level + rest * level
        else:
            # The sum of all n batches is played only if a short one follows.
            level = noise.largest(n if rest else max(n - 1, 0))
            lengths = batch * noise.total(n) + (rest * noise.deviation(n) if rest else 0.0)
        d, G = domain.chart_dim, lipschitz
        reach = min(domain.radius, domain.diameter / 2)
        drift = G * mean_length(d) * sigma * lengths
        return cls(d, domain.radius, reach, G**2 * block_squares(horizon, batch), drift, sigma * level)

    def _noiseless(self, lam: float) -> float:
        return lam * self.radius**2 / 2 + self.squares / (2 * lam)

    def convex(self, lam: float) -> float:
        """Return the bound for convex losses, which may react to decisions."""
        return self._noiseless(lam) + self.drift / lam

    def linear(self, lam: float) -> float:
        """Return the bound for linear losses that do not react: E max over r <= reach of r |N| - lam r^2/2 is added.

        The noise N has deviation `level` in each coordinate; |N|^2/level^2 is chi-square.
        """
        return self._noiseless(lam) + noise_cost(self.dim, self.reach, lam, self.level)

    def bound(self, lam: float, linear: bool) -> float:
        """Return the lower of the bounds that hold: what holds for all losses holds for linear ones."""
        return min(self.convex(lam), self.linear(lam)) if linear else self.convex(lam)

    def best(self, linear: bool) -> tuple[float, float]:
        """Return the best lam and its bound."""
        choices = [math.sqrt(self.squares + 2 * self.drift) / self.radius]
        if linear:
            choices.append(self.best_linear())
        bound, lam = min((self.bound(lam, linear), lam) for lam in choices)
        return lam, bound

    def best_linear(self) -> float:
        """Return the lam that is best for the bound for linear losses."""
        from scipy.optimize import brentq

        low = math.sqrt(self.squares) / self.radius
        if self.level == 0:
            return low
        high = math.sqrt(self.squares + self.dim * self.level**2) / self.radius
        # The derivative in lam, times 2 lam^2, is at most 0 at low and at least 0 at high.
        return float(brentq(self._slope, low * (1 - 1e-12), high * (1 + 1e-12), rtol=1e-12))

    def _slope(self, lam: float) -> float:
        inside, _, beyond = chi_shares(self.dim, lam * self.reach / self.level)
        taken = self.level**2 * self.dim * inside + (lam * self.reach) ** 2 * beyond
        return (lam * self.radius) ** 2 - self.squares - taken
