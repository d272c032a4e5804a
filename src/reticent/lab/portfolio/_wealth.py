"""The wealth of a sequence of target portfolios, net of proportional costs, with holdings that drift between trades."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._check import Array, integer, matrix, vector
from reticent.lab.portfolio._trade import kept
from reticent.learners import Trace

Days = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Wealth:
    """What became of one unit of money.

    `curve` is the wealth at the end of every day; `trades` counts the days with a trade after the first purchase, and
    `turnover` adds up what was bought and sold on them, each trade as a part of the wealth before it.

    >>> Wealth(curve=np.array([1.1, 1.21]), trades=0, turnover=0.0)
    <Wealth: 1.21 after 2 days, 0 trades, turnover 0>
    """

    curve: Array
    trades: int
    turnover: float

    @property
    def final(self) -> float:
        """The wealth at the end of the last day."""
        return float(self.curve[-1])

    def __repr__(self) -> str:
        """Say what is left, after how many days and trades."""
        days, trades = len(self.curve), f"{self.trades} trade{'' if self.trades == 1 else 's'}"
        return f"<Wealth: {self.final:.6g} after {days} days, {trades}, turnover {self.turnover:.3g}>"


def wealth(
    relatives: ArrayLike, targets: Trace | ArrayLike, basis_points: float = 0.0, rebalance: str | int = "on change"
) -> Wealth:
    """Return the wealth of a sequence of targets: a learner's trace, one portfolio, or one for every day.

    With `rebalance="on change"` shares are bought and sold only when the target changes, and drift with the prices in
    between; with `"daily"` the holdings are brought back to the target every morning, with a number k on every k-th day
    as well as when the target changes. Costs are in basis points of what is bought and of what is sold, paid out of the
    portfolio (see `kept`); the first purchase, from cash, pays them too, and nothing is sold at the end.

    >>> up_and_down = [[2.0, 0.5], [0.5, 2.0]]
    >>> wealth(up_and_down, [0.5, 0.5])
    <Wealth: 1 after 2 days, 0 trades, turnover 0>
    >>> wealth(up_and_down, [0.5, 0.5], rebalance="daily")
    <Wealth: 1.5625 after 2 days, 1 trade, turnover 0.6>
    """
    moves = checked_relatives(relatives)
    starts, points = _runs(targets, moves.shape)
    if rebalance != "on change":
        changes, every = starts, _days(rebalance)
        starts = np.union1d(changes, np.arange(0, len(moves), every, dtype=np.int64))
        points = points[np.searchsorted(changes, starts, side="right") - 1]
    grown, ends = _drift(moves, starts, points)
    before = np.vstack([np.zeros(moves.shape[1]), ends[:-1]])
    left = kept(before, points, basis_points)
    volume = np.abs(left[:, None] * points - before)[1:]
    volume[volume < 1e-12] = 0.0  # shares that are the same up to rounding are not traded
    invested = np.cumprod(np.append(1.0, grown[np.append(starts[1:], len(moves)) - 1])[:-1] * left)
    curve = grown * np.repeat(invested, np.diff(np.append(starts, len(moves))))
    return Wealth(curve, int(volume.any(axis=1).sum()), float(volume.sum()))


def buy_and_hold(relatives: ArrayLike, portfolio: ArrayLike | None = None, basis_points: float = 0.0) -> Wealth:
    """Return the wealth of buying a portfolio, the uniform one unless given, on the first day and never trading again.

    >>> buy_and_hold([[2.0, 0.5], [0.5, 2.0]])
    <Wealth: 1 after 2 days, 0 trades, turnover 0>
    """
    moves = checked_relatives(relatives)
    assets = moves.shape[1]
    held = np.full(assets, 1 / assets) if portfolio is None else vector("portfolio", portfolio, assets)
    return wealth(moves, held, basis_points)


def checked_relatives(relatives: ArrayLike) -> Array:
    """Return price relatives, days by assets; refuse what is not positive."""
    moves = matrix("relatives", relatives)
    if not moves.size:
        raise ValueError(f"relatives must hold at least one day of one asset, got shape {moves.shape}")
    if not (moves > 0).all():
        day, asset = (int(i) for i in np.argwhere(~(moves > 0))[0])
        raise ValueError(
            f"relatives must be greater than 0, got {moves[day, asset]} on day {day} of asset {asset}; give price "
            "divided by price of the day before"
        )
    return moves


def _days(rebalance: str | int) -> int:
    if rebalance == "daily":
        return 1
    if isinstance(rebalance, str):
        raise ValueError(f'rebalance must be "on change", "daily" or a number of days, got {rebalance!r}')
    return integer("rebalance", rebalance, least=1)


def _runs(targets: Trace | ArrayLike, shape: tuple[int, ...]) -> tuple[Days, Array]:
    """Return the days on which the target changes, day 0 first, and the targets from then on."""
    days, assets = shape
    if isinstance(targets, Trace):
        if len(targets) != days:
            raise ValueError(
                f"targets must be a trace of the {days} days of relatives, got one of {len(targets)} rounds"
            )
        return targets.starts, _portfolios(targets.points, assets)
    rows = np.asarray(targets)
    if rows.ndim == 1:
        return np.zeros(1, dtype=np.int64), _portfolios(rows[None], assets)
    points = _portfolios(rows, assets)
    if len(points) != days:
        raise ValueError(
            f"targets must be one portfolio, or one for each of the {days} days of relatives, got {len(points)}"
        )
    new = np.append(True, (points[1:] != points[:-1]).any(axis=1))
    return np.flatnonzero(new).astype(np.int64), points[new]


def _portfolios(rows: ArrayLike, assets: int) -> Array:
    """Return rows that are portfolios, scaled to a sum of exactly 1; refuse short sales, debt and cash."""
    points = matrix("targets", rows, assets)
    off = np.maximum(np.abs(points.sum(axis=1) - 1), -points.min(axis=1))
    worst = int(np.argmax(off))
    if off[worst] > 1e-6:
        raise ValueError(
            f"targets must be portfolios with entries of at least 0 and a sum of 1, got a row {worst} with smallest "
            f"entry {points[worst].min():.6g} and sum {points[worst].sum():.6g}; divide it by its sum"
        )
    points = np.maximum(points, 0.0)
    scaled: Array = points / points.sum(axis=1, keepdims=True)
    return scaled


def _drift(moves: Array, starts: Days, points: Array) -> tuple[Array, Array]:
    """Return what one unit invested at the last trade is worth after each day, and the shares when each run ends."""
    grown, ends = np.empty(len(moves)), np.empty(points.shape)
    if len(starts) == len(moves):
        held = points * moves
        grown[:] = held.sum(axis=1)
        return grown, held / grown[:, None]
    for run, (start, stop) in enumerate(zip(starts, np.append(starts[1:], len(moves)), strict=True)):
        held = points[run] * np.cumprod(moves[start:stop], axis=0)
        grown[start:stop] = held.sum(axis=1)
        ends[run] = held[-1] / grown[stop - 1]
    return grown, ends
