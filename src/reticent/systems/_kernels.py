"""What compiled walks share: slopes of rows, and the next coin to look at."""

from __future__ import annotations

import math

import numpy as np

from reticent._core._fine import exponential_below, fine_rest, standard_exponential
from reticent._core._kernel import kernel
from reticent.gibbs._phi import dphi, margin
from reticent.systems._decider import NEVER


@kernel
def slope(code, parameter, m):
    """The slope of the loss at margin m (reckoned from the kink); linear losses, code -1, have slope 1."""
    return 1.0 if code < 0 else dphi(code, parameter, m)


@kernel
def slope_of_row(code, parameter, vectors, offsets, i, u):
    """The slope of row i at the point u: its gradient there is this times vectors[i]."""
    if code < 0:
        return 1.0
    return dphi(code, parameter, margin(vectors, offsets, i, u))


@kernel
def next_toss(rng, odds):
    """Return after how many coins one has to be looked at, and what its chance to keep must reach; 0 if it is forced.

    More than k are passed over with probability exp(-k rate). Every chance is right to some 2^-41 of itself, however
    rare (docs/theory, Q11): tails of what is drawn are as fine as the rest.
    """
    rate, free, floor = odds
    after = 1.0 + math.floor(min(standard_exponential(rng) / rate, float(NEVER)))
    level = math.exp(-exponential_below(rng, floor)) if fine_rest(rng) < free else 0.0
    return np.int64(after), level


@kernel
def next_coin(rng, odds, done, batch, length):
    """Return the round at which the next coin is due and the level it has to reach, 0 where its switch is forced.

    This is `KeepingCoin.next` and the schedule of a walk in one: coins come at the ends of batches, none at `length`.
    """
    after, level = next_toss(rng, odds)
    if (done // batch + float(after)) * batch < length:
        return (done // batch + after) * batch, level
    return NEVER, level
