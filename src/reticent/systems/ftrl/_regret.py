"""What FTRL on noisy prefix sums costs: bounds for convex and linear losses (docs/theory, R2) and smooth ones (R9)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.domains import Domain
from reticent.systems._bounds import block_squares, chi_shares, mean_length, noise_cost
from reticent.systems.ftrl._noise import Noise


@dataclass(frozen=True)
class LeaderRegret:
    """The bounds as functions of lam, for noise whose law is known.

    `squares` is G^2 times the sum of squared batch lengths, `drift` the sum over rounds of G times the mean length of
    the noise, `power` the sum over rounds of its mean squared length, `level` the largest deviation of a coordinate.
    """

    dim: int
    radius: float
    reach: float
    squares: float
    drift: float
    level: float
    power: float = 0.0

    @classmethod
    def of(
        cls, domain: Domain, horizon: int, lipschitz: float, *, batch: int, noise: Noise, sigma: float, topped: bool
    ) -> LeaderRegret:
        """Take a run; `topped` tops the noise on every sum up to the largest."""
        n, rest = divmod(horizon, batch)
        level = played_level(noise, horizon, batch, topped)
        if topped:
            lengths = batch * max(n - 1, 0) * level + rest * level
            power = lengths * level
        else:
            lengths = batch * noise.total(n) + (rest * noise.deviation(n) if rest else 0.0)
            power = batch * noise.squares(n) + (rest * noise.deviation(n) ** 2 if rest else 0.0)
        d, G = domain.chart_dim, lipschitz
        reach = min(domain.radius, domain.diameter / 2)
        drift = G * mean_length(d) * sigma * lengths
        squares = G**2 * block_squares(horizon, batch)
        return cls(d, domain.radius, reach, squares, drift, sigma * level, d * sigma**2 * power)

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

    def smooth(self, lam: float, smoothness: float, steps: float = 0.0) -> float:
        """Return the bound for smooth losses that do not react, where nothing is projected (docs/theory, R9).

        `steps` is the rounds of a batch times what pulls decisions back, whose curvature is in `smoothness`.
        """
        if steps >= lam:
            return math.inf
        more = self.squares / (2 * lam) * (steps / (lam - steps))
        return self._noiseless(lam) + more + smoothness * self.power / (2 * lam**2)

    def best_smooth(self, smoothness: float) -> float:
        """Return the lam that is best for that bound: radius^2 lam^3 = squares lam + 2 smoothness power there."""
        from scipy.optimize import brentq

        bend = smoothness * self.power
        low = math.sqrt(self.squares) / self.radius
        high = low + (2 * bend / self.radius**2) ** (1 / 3)

        def slope(lam: float) -> float:
            return (lam * self.radius) ** 2 - self.squares - 2 * bend / lam

        return float(brentq(slope, low * (1 - 1e-12), high * (1 + 1e-12), rtol=1e-12))

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


def played_level(noise: Noise, horizon: int, batch: int, topped: bool) -> float:
    """Return the largest deviation of the noise on a sum that is played: that of all batches only if more rounds come.

    >>> from reticent.systems.ftrl._noise import Tree
    >>> [played_level(Tree(False), 4, batch, topped=False) for batch in (1, 2, 3, 4, 5)]
    [1.4142135623730951, 1.0, 1.0, 0.0, 0.0]
    """
    n, rest = divmod(horizon, batch)
    played = n if rest else n - 1
    return noise.largest(n if topped and played else played)
