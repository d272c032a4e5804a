"""From a bound on delta for every epsilon to the epsilon of a delta, rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable

from reticent._check import positive, real

# Sums of the privacy losses are cut off at a chance of 1e-40, and added to delta: a delta near it has no meaning.
LEAST_DELTA = 1e-30
_FAR = 1e9


def check_delta(delta: float) -> float:
    """Return `delta`; refuse what is not a probability that an epsilon can be given for."""
    number = real("delta", delta)
    if not LEAST_DELTA <= number < 1:
        raise ValueError(
            f"delta must be at least {LEAST_DELTA:g} and less than 1, got {delta!r}; draws are compared through normal "
            "laws, which have no finite epsilon at delta = 0: take a delta far below one over the number of people"
        )
    return number


def check_epsilon(epsilon: float) -> float:
    """Return `epsilon`; refuse what is not a number of at least 0."""
    return positive("epsilon", epsilon, zero=True)


def smallest(delta: Callable[[float], float], goal: float) -> float:
    """Return an epsilon with `delta(epsilon) <= goal`, up to a part in 1e11 the smallest; infinity if none is found.

    >>> round(smallest(lambda e: math.exp(-e), 0.1), 9)
    2.302585093
    """
    low, value = 0.0, delta(0.0)
    if value <= goal:
        return 0.0
    low_log = math.log(value / goal)
    high = 1.0
    while (value := delta(high)) > goal:
        if high > _FAR:
            return math.inf
        low, low_log = high, math.log(value / goal)
        high = 2 * high
    high_log = math.log(max(value, 1e-300) / goal)
    # Regula falsi on the logarithm (the Illinois rule), with a halving step whenever it stalls.
    for turn in range(200):
        if high - low <= 1e-11 * high:
            break
        middle = low + (high - low) * low_log / (low_log - high_log)
        if turn % 4 == 3 or not low < middle < high:
            middle = (low + high) / 2
        value = delta(middle)
        if value <= goal:
            high, high_log = middle, math.log(max(value, 1e-300) / goal)
            low_log /= 2 if turn % 4 != 3 and low_log > 0 else 1
            if high_log == 0:
                break
        else:
            low, low_log = middle, math.log(value / goal)
            high_log /= 2 if turn % 4 != 3 else 1
    return high


def lowest(delta: Callable[[float], float], failure: float) -> float:
    """Return an epsilon at which `delta(epsilon) + (1 + exp(epsilon)) failure` is least, or hardly before that.

    As a function of exp(epsilon) the sum is convex, so a search by thirds finds it. The lower end counts: the value
    at an epsilon holds for all larger ones, and so for all beyond the least place.
    """
    low, high = 0.0, max(-math.log(failure), 0.0) if failure > 0 else math.inf
    if math.isinf(high):
        return math.inf
    for _ in range(28):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        if delta(a) + math.exp(a) * failure <= delta(b) + math.exp(b) * failure:
            high = b
        else:
            low = a
    return low
