"""Portfolios whose trades cost money: exact wealth, the best constant portfolio in hindsight, rounds for a learner."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._core._check import Array, integer, matrix, positive, vector
from reticent.learners import Trace

_MOST = 10_000.0  # basis points in 1: from there on a trade would cost all that it moves


def rate(basis_points: float) -> float:
    """Return costs in basis points of the traded volume as a fraction; refuse what would eat whole trades.

    >>> rate(50)
    0.005
    """
    found = positive("basis_points", basis_points, zero=True)
    if found >= _MOST:
        raise ValueError(
            f"basis_points must be less than {_MOST:,.0f}, which is all of the traded volume, got {basis_points!r}; "
            "10 basis points are 0.1 percent"
        )
    return found / _MOST


def kept(before: ArrayLike, target: ArrayLike, basis_points: float) -> Array:
    """Return the part of the worth that is left after trading shares `before` into shares `target`, row by row.

    It is the one solution k of `k + c * sum(abs(k * target - before)) = 1`: with c the costs per unit bought or sold,
    the trade pays for itself and ends exactly at the target. `before` may sum to less than 1: the rest is cash.

    >>> kept([[0.6, 0.4]], [[0.5, 0.5]], basis_points=100.0).round(6)  # sells about 0.1, buys less
    array([0.998])
    >>> kept([[0.0, 0.0]], [[0.5, 0.5]], basis_points=100.0) * 1.01    # from cash
    array([1.])
    """
    old, new = matrix("before", before), matrix("target", target)
    if old.shape != new.shape:
        raise ValueError(f"before and target must have one shape, got {old.shape} and {new.shape}")
    cost = rate(basis_points)
    k = np.ones(len(new))
    # The left side is convex, rises with slope at least 1 - c and is piecewise linear: Newton's method from the right
    # falls onto the solution after at most one step for each asset, usually two or three.
    for _ in range(new.shape[1] + 1):
        moved = k[:, None] * new - old
        off = k + cost * np.abs(moved).sum(axis=1) - 1
        # At a kink any slope between those of its sides will do: none leads beyond the solution.
        slope = 1 + cost * (np.sign(moved) * new).sum(axis=1)
        following = k - off / slope
        if (following >= k).all():
            break
        k = np.minimum(k, following)
    return k


# The wealth of a sequence of target portfolios, net of proportional costs, with holdings that drift between trades.

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


# The best constant rebalanced portfolio in hindsight, with a certificate of how far from best it can be.

_STEPS = 60  # of Newton's method per barrier: it needs about ten


@dataclass(frozen=True, eq=False)
class Constant:
    """A portfolio to go back to every day; no other constant one has a log of final wealth above `log_wealth + gap`."""

    portfolio: Array = field(repr=False)
    log_wealth: float
    gap: float

    @property
    def wealth(self) -> float:
        """The final wealth, without costs."""
        return math.exp(self.log_wealth)


def best_constant(relatives: ArrayLike, gap: float = 1e-6) -> Constant:
    """Return the constant portfolio whose wealth, rebalanced daily and without costs, is highest, to a certified gap.

    The log of the final wealth is concave with slopes g at x, and `g @ x` is the number of days: so no portfolio is
    better by more than `max(g)` minus that number.

    >>> best = best_constant([[2.0, 0.5], [0.5, 2.0]])
    >>> best.portfolio.round(6), round(best.wealth, 6), best.gap <= 1e-6
    (array([0.5, 0.5]), 1.5625, True)
    """
    moves = checked_relatives(relatives)
    wanted = positive("gap", gap)
    days, assets = moves.shape
    # Scaled day by day: the best portfolio stays, and no day's numbers are out of proportion.
    scaled = moves / moves.max(axis=1, keepdims=True)
    x = np.full(assets, 1 / assets)
    # Of `_slopes`: products over the assets, and a pairwise sum over the days whose depth is below 40.
    rounding = sys.float_info.epsilon * days * (assets + 40)
    barrier = float(days)
    while True:
        x = _centred(scaled, x, barrier)
        off = max(float(_slopes(scaled, x).max()) - days, 0.0) + rounding
        if off <= wanted:
            return Constant(x, float(np.log(moves @ x).sum()), off)
        if barrier < 1e-3 * wanted / assets:
            raise ValueError(
                f"gap must leave room for rounding, got {gap!r}; {off:.2g} is as close as {days} days of these "
                "relatives can be solved"
            )
        barrier *= 0.2


def _slopes(moves: Array, x: Array) -> Array:
    """Return how fast the log of the final wealth rises with each entry of the portfolio."""
    # Days along the last axis: there numpy adds in pairs, which keeps rounding small.
    slopes: Array = np.ascontiguousarray((moves / np.einsum("ti,i->t", moves, x)[:, None]).T).sum(axis=1)
    return slopes


def _centred(moves: Array, x: Array, barrier: float) -> Array:
    """Return the portfolio that maximises the log of wealth plus `barrier` times the sum of the logs of its entries."""
    assets = len(x)
    for _ in range(_STEPS):
        # Not with BLAS: beside other busy processes its threads take 40 times as long for products of this size.
        parts = moves / np.einsum("ti,i->t", moves, x)[:, None]
        slope = parts.sum(axis=0) + barrier / x
        curvature = np.einsum("ti,tj->ij", parts, parts) + np.diag(barrier / x**2)
        # In units of x, so that entries close to 0 do not spoil the solution; the last row keeps the sum at 1.
        system = np.zeros((assets + 1, assets + 1))
        system[:assets, :assets] = curvature * np.outer(x, x)
        system[assets, :assets] = system[:assets, assets] = x
        step = x * np.linalg.solve(system, np.append(x * slope, 0.0))[:assets]
        decrement = math.sqrt(max(float(step @ curvature @ step), 0.0))
        # The sum is self-concordant with this constant: damped steps stay inside and ascend, short ones need no
        # damping.
        scale = max(1.0, 1 / math.sqrt(barrier))
        x = x + step / (1 + scale * decrement) if scale * decrement > 0.25 else x + step
        x = x / x.sum()
        if scale * decrement < 1e-3:  # the certificate does not ask for more
            break
    return x


# A day of a market as a round of a learner: the squared loss that is minus the log of the growth, to second order.


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


__all__ = ["Constant", "Wealth", "best_constant", "buy_and_hold", "kept", "lipschitz", "rounds", "wealth"]
