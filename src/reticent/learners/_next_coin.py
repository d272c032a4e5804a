"""The next coin that has to be looked at, for compiled walks: `KeepingCoin.next` and `Walk._schedule` in one."""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel

from ._learner import NEVER


@kernel
def next_coin(rng, look, share, open_, done, batch, length):
    """Return the round at which the next coin is due and the level it has to reach, 0 where its switch is forced."""
    after = 1.0 + math.floor(rng.standard_exponential() / -math.log1p(-look))
    level = 0.0
    if rng.random() >= share:
        level = 1.0 - open_ * rng.random()
    if (done // batch + after) * batch < length:
        return (done // batch + np.int64(after)) * batch, level
    return NEVER, level
