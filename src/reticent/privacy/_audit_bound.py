"""A lower bound on epsilon from counts: Clopper-Pearson limits of the two chances of one event.

Privacy says P(O) <= exp(epsilon) P'(O) + delta for every event O. So an event that is seen often in one world and
rarely in the other forces epsilon up: epsilon >= log((P(O) - delta) / P'(O)). Here O is "the score is at least a
threshold", in one direction or the other. Direction and threshold are chosen on some runs and the two chances are
estimated on others, which makes the bound valid whatever the score is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._check import Array

Counts = NDArray[np.int64] | int

_CANDIDATES = 600  # thresholds that are tried, more of them in the tails
_RAREST = 5  # runs beyond a threshold, at least, for it to be tried


class Event(NamedTuple):
    """The event `sign * score >= threshold`, which is more likely in the first world if `sign` is 1, else in the other.

    The likelier world is called "hit", the other "false alarm".
    """

    sign: int
    threshold: float


class Evidence(NamedTuple):
    """How often an event was seen in each world, with limits for its chances, and the epsilon that follows."""

    epsilon: float
    hits: int
    false_alarms: int
    runs: int
    hit_lower: float
    false_alarm_upper: float


def lower_limit(count: Counts, runs: int, miss: float) -> Array:
    """Return the Clopper-Pearson lower limit of a chance, above the truth with probability at most `miss`.

    >>> float(lower_limit(0, 10, 0.05)), round(float(lower_limit(10, 10, 0.05)), 6) == round(0.05**0.1, 6)
    (0.0, True)
    """
    k = np.asarray(count, dtype=np.float64)
    limit: Array = np.where(k > 0, scipy.special.betaincinv(np.maximum(k, 1.0), runs - k + 1, miss), 0.0)
    return limit


def upper_limit(count: Counts, runs: int, miss: float) -> Array:
    """Return the Clopper-Pearson upper limit of a chance, below the truth with probability at most `miss`.

    >>> round(float(upper_limit(0, 100, 0.05)), 6) == round(1 - 0.05**0.01, 6)
    True
    """
    limit: Array = 1.0 - lower_limit(runs - np.asarray(count), runs, miss)
    return limit


def implied(hits: Counts, false_alarms: Counts, runs: int, delta: float, miss: float) -> Array:
    """Return the epsilon that so many hits and false alarms in `runs` runs each force, wrong with chance `miss`.

    Each of the two limits takes half of `miss` (union bound), so nothing is assumed of the two samples.
    """
    likely = lower_limit(hits, runs, miss / 2) - delta
    rare = upper_limit(false_alarms, runs, miss / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        value: Array = np.where(likely > rare, np.log(np.maximum(likely, 1e-300) / rare), 0.0)
    return value


def choose(ours: Array, theirs: Array, delta: float, miss: float) -> Event:
    """Return the event with the largest implied epsilon on these scores of the two worlds."""
    runs = ours.size
    # Evenly spread over the logarithms of both tails, which is where small deltas are decided.
    ranks = np.unique(np.geomspace(min(_RAREST, 2 * runs), 2 * runs, _CANDIDATES).astype(np.int64))
    best, found = Event(1, float(np.median(ours))), -1.0
    for sign, (high, low) in ((1, (ours, theirs)), (-1, (-theirs, -ours))):
        high, low = np.sort(high), np.sort(low)
        tries = np.unique(np.sort(np.concatenate([high, low]))[2 * runs - ranks])
        hits = runs - np.searchsorted(high, tries, side="left")
        false = runs - np.searchsorted(low, tries, side="left")
        epsilons = implied(hits, false, runs, delta, miss)
        top = int(np.argmax(epsilons))
        if epsilons[top] > found:
            best, found = Event(sign, float(tries[top])), float(epsilons[top])
    return best


def examine(event: Event, ours: Array, theirs: Array, delta: float, miss: float) -> Evidence:
    """Return what runs that had no part in the choice of `event` say about it."""
    high, low = (ours, theirs) if event.sign == 1 else (theirs, ours)
    runs = high.size
    hits = int(np.count_nonzero(event.sign * high >= event.threshold))
    false = int(np.count_nonzero(event.sign * low >= event.threshold))
    return Evidence(
        epsilon=float(implied(hits, false, runs, delta, miss)),
        hits=hits,
        false_alarms=false,
        runs=runs,
        hit_lower=float(lower_limit(hits, runs, miss / 2)),
        false_alarm_upper=float(upper_limit(false, runs, miss / 2)),
    )
