"""A privacy loss with finitely many values, and how to put it on a grid without ever understating it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent._check import Array
from reticent.privacy._gauss import hockey_stick


@dataclass(frozen=True)
class Losses:
    """The law of log(P/Q) under P: `value` with probabilities `mass`, and the rest, `infinite`, where Q is 0.

    The masses may add up to less than 1: then P is a part of a law, and the rest is accounted elsewhere.

    >>> round(Losses.of([0.5, -0.5], [0.6, 0.4]).delta(0.0, 0.0), 6)
    0.236082
    """

    value: Array
    mass: Array
    infinite: float

    @classmethod
    def of(cls, value: Sequence[float], mass: Sequence[float]) -> Losses:
        """Make one from lists; values of plus infinity are collected, those without mass are dropped."""
        values, masses = np.asarray(value, dtype=np.float64), np.asarray(mass, dtype=np.float64)
        kept = (masses > 0) & np.isfinite(values)
        return cls(values[kept], masses[kept], float(masses[values == np.inf].sum()))

    def spread(self) -> float:
        """Return the standard deviation of the finite losses."""
        total = self.mass.sum()
        if total == 0:
            return 0.0
        mean = self.mass @ self.value / total
        return float(np.sqrt(self.mass @ (self.value - mean) ** 2 / total))

    def times(self, other: Losses) -> Losses:
        """Return the losses of both together, independent given the world."""
        value = (self.value[:, None] + other.value).ravel()
        mass = (self.mass[:, None] * other.mass).ravel()
        finite = float(self.mass.sum())
        infinite = self.infinite * (other.mass.sum() + other.infinite) + finite * other.infinite
        return Losses(value, mass, float(infinite))

    def on_grid(self, spacing: float) -> Losses:
        """Move every loss to the two multiples of `spacing` around it, both P and Q keeping their masses.

        The hockey stick, as a function of exp(epsilon), is then replaced by chords of itself: never smaller.

        >>> Losses.of([0.05], [1.0]).on_grid(0.1).mass.round(6)
        array([0.487503, 0.512497])
        """
        place = np.floor(self.value / spacing)
        rest = np.clip(self.value - place * spacing, 0.0, spacing)
        up = self.mass * (np.expm1(-rest) / np.expm1(-spacing))
        index = place.astype(np.int64)
        first = int(index.min())
        size = int(index.max()) - first + 2
        mass: Array = np.zeros(size)
        mass += np.bincount(index - first, self.mass - up, size)
        mass += np.bincount(index - first + 1, up, size)
        kept = mass > 0
        value = (first + np.arange(size, dtype=np.float64)) * spacing
        return Losses(value[kept], mass[kept], self.infinite)

    def delta(self, mu: float, epsilon: float) -> float:
        """Return the hockey stick at `epsilon` of these losses together with a `mu`-GDP release.

        With L the loss here and g that of the release, the hockey stick is E (1 - exp(epsilon - L - g))+ under P.
        """
        return self.infinite + float(self.mass @ hockey_stick(mu, epsilon - self.value))
