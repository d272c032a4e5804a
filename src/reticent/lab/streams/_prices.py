"""Portfolios: what was paid for the shares of a market, day after day, as price relatives and as streams."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from reticent._core._check import Array
from reticent.domains import Simplex
from reticent.lab.streams._real import table
from reticent.lab.streams._stream import Block, Stream
from reticent.losses import Squared

_BOUND = 0.3  # of a share's gain on a day, and of the length of a day's gains: public, and rarely reached

MARKETS = {
    "nyse_o": (5651, 36, "New York, 1962 to 1984"),
    "nyse_n": (6431, 23, "New York, 1985 to 2010"),
    "sp500": (1276, 25, "the largest of the S&P 500, 1998 to 2003"),
    "djia": (507, 30, "the Dow Jones, 2001 to 2003"),
}
"""Days, shares and where and when, of every market."""


def relatives(name: str) -> tuple[None, tuple[str, ...], Array]:
    """Return the dates (None: the files have none), the shares' names and the price relatives of a market.

    Row t, column i: what one unit of money in share i at the start of day t is worth at its end.

    >>> dates, shares, r = relatives("djia")
    >>> len(shares), r.shape
    (30, (507, 30))
    """
    if name not in MARKETS:
        raise ValueError(f"the market must be one of {', '.join(MARKETS)}, got {name!r}")
    prices = table("universal", "data", f"{name}.csv")
    worth = prices.to_numpy(dtype=np.float64)
    # The files hold products of all relatives so far, from 1 before the first day.
    before = np.vstack([np.ones(worth.shape[1]), worth[:-1]])
    return None, tuple(str(share) for share in prices.columns), worth / before


def _growth(name: str) -> Iterator[Block]:
    _, _, r = relatives(name)
    gains = np.clip(r - 1.0, -_BOUND, _BOUND)
    lengths = np.linalg.norm(gains, axis=1)
    yield gains * np.minimum(1.0, _BOUND / np.maximum(lengths, _BOUND))[:, None], np.ones(len(gains))


def _market(name: str, days: int, shares: int, where: str) -> Stream:
    return Stream(
        name=name,
        title=f"which shares to hold for growth: {where}",
        why="every change of the portfolio is paid for; prices are public, but what is held may not be",
        source=f"daily prices of {shares} shares over {days:,} days, as universal-portfolios ships them; which shares "
        "are in it was perhaps chosen in hindsight, and trading is free",
        domain=Simplex(shares),
        loss=Squared(),
        lipschitz=_BOUND * (1.0 + _BOUND),
        rounds=days,
        decision=tuple(f"share {i}" for i in range(1, shares + 1)),
        scaling=f"gains r - 1 clipped to [-{_BOUND:g}, {_BOUND:g}], days of a length above {_BOUND:g} scaled "
        "down to it; with u = <r - 1, x> the loss (u - 1)^2 / 2 is 1/2 - log(1 + u), the growth lost, to second order",
        best_for="lazy",
        pieces=partial(_growth, name),
    )


PORTFOLIOS = tuple(_market(name, *about) for name, about in MARKETS.items())
