"""The certificates as sums of products: what has to be composed for each adversary (docs/theory.md, Q4 and Q6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.privacy._coin import NO_LOSS, Coin
from reticent.privacy._exposure import Exposure
from reticent.privacy._losses import Losses


@dataclass(frozen=True)
class Term:
    """A `mu`-GDP release, `count` symmetric coins, and the losses of whatever else there is, all composed."""

    mu: float
    coin: Coin
    count: int
    other: Losses


@dataclass(frozen=True)
class Bound:
    """A bound on delta: the worst alternative, each a sum of terms, plus (1 + exp(epsilon)) times a failure."""

    alternatives: tuple[tuple[Term, ...], ...]
    failure: float = 0.0


def bounds(exposure: Exposure, adversary: str) -> tuple[Bound, ...]:
    """Return the bounds that hold; the smallest counts.

    Whoever fixes the losses in advance is one of those who may adapt them, so the adaptive bound holds for both.
    """
    if exposure.nothing:
        return (Bound(((Term(0.0, exposure.coin, 0, NO_LOSS),),)),)
    if adversary == "adaptive" or not exposure.special:
        return (adaptive(exposure),)
    from reticent.privacy._oblivious import oblivious

    found = oblivious(exposure)
    return (adaptive(exposure),) if found is None else (adaptive(exposure), found)


def adaptive(exposure: Exposure) -> Bound:
    """Return the certificate for losses that may react to released decisions (docs/theory.md, Q4).

    The coin of the changed batch is the first event that differs between the two worlds. So its direction is settled
    before anything has been paid, and the worse of the two is enough (Q4b); later directions may depend on the past.
    """
    mu = exposure.shift * math.sqrt(exposure.draws)
    special = exposure.special_coin.directions() if exposure.special else (NO_LOSS,)
    alternatives = tuple((Term(mu, exposure.coin, exposure.later, other),) for other in special)
    return Bound(alternatives)
