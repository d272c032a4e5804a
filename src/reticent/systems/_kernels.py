"""What compiled walks share: slopes of rows, and the next coin to look at."""

from __future__ import annotations

import numpy as np

from reticent._core._kernel import kernel
from reticent.gibbs._phi import dphi, margin
from reticent.systems import _walk
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


coins_ahead = kernel(_walk.coins_ahead)
next_level = kernel(_walk.next_level)


@kernel
def next_coin(rng, odds, done, batch, length):
    """Return the round at which the next coin is due and the level it has to reach, 0 where its switch is forced.

    This is `KeepingCoin.next` and the schedule of a walk in one: coins come at the ends of batches, none at `length`.
    """
    look, forced, opened = odds
    after = coins_ahead(rng.standard_exponential(), look)
    level = next_level(rng, forced, opened)
    if (done // batch + after) * batch < length:
        return (done // batch + np.int64(after)) * batch, level
    return NEVER, level
