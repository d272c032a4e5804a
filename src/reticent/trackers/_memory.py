"""What to publish after many releases: how far back to look is chosen from the releases alone, which costs nothing."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.saving import refuse_unless

# Chosen on made-up streams (`bench/trackers.py --only models`), none of which is reported as a result.
_SIZES = (1, 3, 5, 9, 17, 33, 65)  # releases that a forecast looks back over, beside all of them
_KEPT = 0.9  # of the errors of forecasts from release to release: some ten count
_WORTH = 0.7  # errors of one release by which a change must differ from what is published
_FACTS = 6  # numbers of a memory's row before its forecasts
_FAR = 3.0  # errors beyond which a release is taken for news, and published as it is


@saved("memory")
class Memory:
    """Publishes a number after each release: a mean of forecasts, weighted by how well each foretold the releases.

    A forecast is the mean of the middle half of the last 1, 3, 5, ... releases, or that of all. What is published stays
    while forecasts are near it, the nearer the longer it has stood; a release far from it is published at once. A
    heuristic, without a promise: all of it is computed from releases.

    >>> memory = Memory(0.0)
    >>> shown = [memory.take(5.0 + (-1) ** k) for k in range(200)]
    >>> 4.5 < memory.shown < 5.5, len(set(shown)) < 60
    (True, True)
    """

    _moves: ClassVar[tuple[str, ...]] = (
        *("shown", "releases", "forecasts", "errors", "weight", "count", "mean", "stood"),
    )

    def __init__(self, start: float) -> None:
        """Publish `start` until there is a release."""
        self.shown = start
        self.releases: list[float] = []
        self.forecasts: Array = np.full(len(_SIZES) + 1, start)
        self.errors: Array = np.zeros(len(_SIZES) + 1)
        self.weight = 0.0
        self.count = 0
        self.mean = 0.0
        self.stood = 0  # releases since the published number changed

    def _check_moved(self) -> None:
        plain = all(type(one) is float and math.isfinite(one) for one in self.releases)
        right = plain and len(self.releases) == min(self.count, _SIZES[-1]) and 0 <= self.stood <= self.count
        refuse_unless(right, f"it holds {len(self.releases)} of {self.count} releases")
        weighed = self.weight >= (1.0 if self.count > 1 else 0.0) and bool((self.errors >= 0.0).all())
        refuse_unless(weighed, "its forecasts have errors that cannot be")

    def row(self) -> Array:
        """Return the memory as numbers, from which `of_row` makes it again; what is published is the first."""
        releases = np.zeros(_SIZES[-1])
        releases[: len(self.releases)] = self.releases
        facts = [self.shown, self.weight, self.count, self.mean, self.stood, len(self.releases)]
        return np.concatenate([facts, self.forecasts, self.errors, releases])

    @classmethod
    def of_row(cls, row: Array) -> Memory:
        """Return the memory of a row of numbers.

        >>> memory = Memory(0.0)
        >>> shown = [memory.take(float(k % 7)) for k in range(100)]
        >>> Memory.of_row(memory.row()).take(3.0) == memory.take(3.0)
        True
        """
        found, facts, many = cls(0.0), row[:_FACTS].tolist(), len(_SIZES) + 1
        found.shown, found.weight, found.mean = facts[0], facts[1], facts[3]
        found.count, found.stood = int(facts[2]), int(facts[4])
        found.forecasts, found.errors, releases = np.split(row[_FACTS:].copy(), [many, 2 * many])
        found.releases = releases[: int(facts[5])].tolist()
        return found

    def take(self, release: float) -> float:
        """Take in a release; return what to publish."""
        if self.count:
            self.errors = _KEPT * self.errors + np.abs(release - self.forecasts)
            self.weight = _KEPT * self.weight + 1
        self.count += 1
        self.stood += 1
        self.mean += (release - self.mean) / self.count
        self.releases = [*self.releases[1 - _SIZES[-1] :], release]
        self.forecasts = np.array([*(_inner(self.releases[-size:]) for size in _SIZES), self.mean])
        now = self._worth_showing(release)
        if now != self.shown:
            self.shown, self.stood = now, 0
        return self.shown

    def _worth_showing(self, release: float) -> float:
        if self.count == 1:
            return release
        least = float(self.errors.min())
        error = least / self.weight
        if self.count > 3 and abs(release - self.shown) > _FAR * error:
            return release
        # Forecasts whose errors differ by less than one release's are alike.
        weights = np.exp(-self.weight * (self.errors / least - 1)) if least > 0 else (self.errors == 0.0) * 1.0
        mean = float(weights @ self.forecasts) / float(weights.sum())
        return mean if abs(mean - self.shown) > _WORTH * error / math.sqrt(self.stood) else self.shown


def _inner(releases: list[float]) -> float:
    """Return the mean of the middle half of some numbers; of three, the middle one."""
    ranked, size = sorted(releases), len(releases)
    cut = (size - 1) // 4 if size > 3 else (size - 1) // 2
    return sum(ranked[cut : size - cut]) / (size - 2 * cut)
