"""A day of a market as a round of a learner: the squared loss that is minus the log of the growth, to second order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from reticent._check import Array, integer, positive
from reticent.lab.portfolio._wealth import checked_relatives


def rounds(relatives: ArrayLike, limit: float = 0.3) -> tuple[Array, Array]:
    """Return features and targets for `rt.Squared()` on `rt.Simplex(assets)`, one round for each day.

    With u the portfolio's return of a day, `(u - 1)**2 / 2 = 1/2 - u + u**2 / 2` is 1/2 - log(1 + u) but for a term of
    about `u**3 / 3`. Moves of an asset beyond `limit`, a bound fixed in advance, count as `limit`: in the loss only,
    wealth is always computed from the relatives themselves.

    >>> rounds([[1.02, 0.99], [1.5, 1.0]])[0].round(12)
    array([[ 0.02, -0.01],
           [ 0.3 ,  0.  ]])
    """
    moves = checked_relatives(relatives) - 1
    bound = _limit(limit)
    return np.clip(moves, -bound, bound), np.ones(len(moves))


def lipschitz(assets: int, limit: float = 0.3) -> float:
    """Return the largest slope of such a round on the simplex: half of the assets up by `limit`, the others down.

    Learners bound a round's slope from outside, for many assets loosely: pass `on_steep="clip"`, so that a day on which
    all shares move by nearly `limit` is scaled down instead of refused.

    >>> round(lipschitz(36), 6)
    2.34
    """
    bound = _limit(limit)
    return (1 + bound) * bound * math.sqrt(integer("assets", assets, least=2))


def _limit(limit: float) -> float:
    bound = positive("limit", limit)
    if bound >= 1:
        raise ValueError(f"limit must be less than 1, got {limit!r}; 0.3 is a move of 30 percent")
    return bound
