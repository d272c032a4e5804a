"""What perturbed regularised leaders cost, drift and reveal, as functions of their parameters (docs/theory, R5)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.losses import Custom, Huber, Linear, Logistic, Loss, Squared
from reticent.privacy._losses import hockey_stick
from reticent.systems._bounds import noise_cost
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.pcomw._switching import delta0

_SMOOTH = (Linear, Logistic, Squared, Huber)
# Where the curve of one draw is checked: so many places, up to so many deviations beyond the mean length of the noise,
# and between two of them so many cells where that curve has no formula.
_PLACES, _FAR, _CELLS = 400, 8.0, 4
# Cells of the integral of what clipping moves, and how far they go beyond where it begins.
_DRIFT_CELLS, _DRIFT_FAR = 400, 12.0
_STEEPEST = 600.0  # a logarithm beyond which numbers overflow, and a coin is of no use


def leader_regret(domain: Domain, squares: float, lipschitz: float, lam: float, sigma: float) -> float:
    """Return the bound on the expected regret of decisions that have the law of the perturbed leader (R5d).

    `squares` is the sum of the squared lengths of batches, the horizon if rounds come one by one.
    """
    stability = squares * lipschitz**2 / (2 * lam)
    return lam * domain.radius**2 / 2 + stability + noise_cost(domain.chart_dim, domain.radius, lam, sigma)


@lru_cache(maxsize=4096)  # a search asks for the same noises again and again
def best_lam(domain: Domain, squares: float, lipschitz: float, sigma: float) -> float:
    """Return the regulariser with the least `leader_regret` for the noise."""
    R, G = domain.radius, lipschitz
    low = 0.5 * math.log(squares) + math.log(G / R)  # without noise; the noise only ever asks for more
    high = 0.5 * math.log(squares + domain.chart_dim * (sigma / G) ** 2) + math.log(G / R)
    found = scipy.optimize.minimize_scalar(
        lambda x: leader_regret(domain, squares, G, math.exp(x), sigma),
        bounds=(low - 1e-6, high + 1e-6),
        method="bounded",
    )
    return math.exp(float(found.x))


def swelling(bend: float, rank: int = 1, batch: int = 1, dim: int = 1) -> float:
    """Return what the logarithm of a coin's determinant is at most; `bend` is smoothness/lam (R5b).

    A round has second derivatives in `rank` directions, `bend` at most in each; `batch` rounds together have them in
    `dim` directions at most.

    >>> swelling(0.0), round(swelling(0.1), 6), round(swelling(0.1, batch=3, dim=2), 6)
    (0.0, 0.09531, 0.279524)
    """
    directions = min(dim, batch * rank)
    return directions * math.log1p(batch * rank * bend / directions)


def drift(log_phi: float, noise: float, swell: float, directions: int = 1) -> float:
    """Return what clipping moves per coin at most (R5c).

    `noise` is the largest length of a batch's gradient over sigma, `swell` the largest logarithm of the determinant
    (0: linear losses), and its gradient lies in so many fixed directions.

    >>> drift(0.5, 0.1, 0.0) < drift(0.5, 0.1, 0.05) < drift(0.5, 0.1, 0.05, 2) < 1e-4
    True
    """
    if swell == 0:
        return float(delta0(log_phi, noise))
    room = log_phi - swell
    if room < noise**2 / 2:
        return 1.0
    if directions == 1:
        return min(1.0, 2 * float(delta0(room, noise)))
    return min(1.0, _long_drift(log_phi, room, noise, directions))


@lru_cache(maxsize=4096)
def _long_drift(log_phi: float, room: float, noise: float, directions: int) -> float:
    """Return a bound on the mass that either clip moves, where all that is known of the noise is its length.

    That length is a chi variable. In both integrals its chance to be longer falls, and the rest is integrated exactly.
    """
    first, reach = room / noise + noise / 2, max(log_phi / noise - noise / 2, 0.0)
    far = _DRIFT_FAR + max(math.sqrt(directions) - min(first, reach), 2 * noise, 0.0)
    if noise * far > _STEEPEST:
        return 1.0
    cells = np.linspace(0.0, far, _DRIFT_CELLS + 1)
    tails = _longer(directions, np.array([[first], [reach]]) + cells)
    # E(exp(noise (chi - first)) - 1)_+; beyond the cells the chance falls at a rate of at least `fall` (R5e).
    last = first + far
    fall = last - (directions - 1) / last - noise
    grown = np.exp(noise * cells)
    high = float((tails[0, :-1] * np.diff(grown)).sum()) + float(tails[0, -1] * grown[-1]) * noise / fall
    # phi^-2 E(1 - exp(-noise (chi - reach)))_+.
    left = np.exp(-noise * cells)
    low = float((tails[1, :-1] * -np.diff(left)).sum()) + float(tails[1, -1] * left[-1])
    return max(high, math.exp(-2 * log_phi) * low)


def _longer(directions: int, lengths: Array) -> Array:
    """Return the chance that so many standard normal numbers together are longer."""
    found: Array = np.asarray(scipy.special.gammaincc(directions / 2, lengths**2 / 2), dtype=np.float64)
    return found


def bend_change(bend: float, rank: int = 1, batch: int = 1) -> float:
    """Return how much one changed loss can move the logarithm of a later coin's determinant (R5f).

    >>> bend_change(0.0), round(bend_change(0.1), 6), bend_change(0.1, rank=3) == 3 * bend_change(0.1)
    (0.0, 0.008299, True)
    """
    return rank * math.log1p(bend * (batch * bend / (1 + bend + batch * bend)))


@lru_cache(maxsize=4096)
def draw_gdp(noise: float, bend: float, rank: int = 1) -> float:
    """Return mu such that a draw is mu-GDP where one smooth loss is replaced by a constant (R5e).

    The logarithm of the density ratio is at most K b + K^2/2 + rank log(1 + bend) in both directions, b the length of
    `rank` independent standard normal numbers.

    >>> 1.59 < draw_gdp(0.01, 0.0) / 0.01 < 1.61
    True
    """
    K, c = noise, swelling(bend, rank, 1, rank)
    lengths, curve = _curve(K, rank)
    places = c + K * lengths + K**2 / 2
    # The true curve is convex: between places 1/a and a it lies below the chord, of which the middle is needed.
    share = 1 / (np.exp(np.minimum(places, 700.0)) + 1)
    fall = np.exp(-places)
    middle = share * curve + (1 - share) * (-np.expm1(-places) + fall * curve)
    best = int(np.argmin(middle))
    # N(mu/2) - 1/2 is half of the middle; the inverse error function keeps the digits of a small one.
    mu = 2 * math.sqrt(2) * float(scipy.special.erfinv(float(middle[best])))
    while not _covers(mu, K, rank, lengths[-1], places[best:], curve[best:]):
        mu *= 1.005
    return mu


@lru_cache(maxsize=64)
def _tails(rank: int) -> tuple[Array, float, Array]:
    """Return lengths, a cell between two of them, and at all ends of cells the chance of longer standard noise."""
    lengths = np.linspace(0.0, _FAR + math.sqrt(rank - 1), _PLACES)
    fine = np.linspace(0.0, lengths[-1], (_PLACES - 1) * _CELLS + 1)
    return lengths, float(fine[1]), _longer(rank, fine)


def _curve(K: float, rank: int) -> tuple[Array, Array]:
    """Return lengths y and bounds on E(1 - exp(-K (b - y)))_+, b the length of `rank` standard normal numbers."""
    lengths, cell, tails = _tails(rank)
    if rank == 1:
        return lengths, 2 * hockey_stick(K, K * lengths + K**2 / 2)  # both tails alike
    # From the far end on, cell by cell: the chance of a longer b falls, and the weight is integrated exactly.
    # Beyond the last the chance falls at a rate of at least `rate` (R5e).
    rate = lengths[-1] - (rank - 1) / lengths[-1]
    parts = np.append(tails[-1:] * K / (K + rate), -math.expm1(-K * cell) * tails[-2::-1])
    values = scipy.signal.lfilter([1.0], [1.0, -math.exp(-K * cell)], parts)
    return lengths, np.asarray(values[::-1][::_CELLS])


def _covers(mu: float, K: float, rank: int, near: float, places: Array, curve: Array) -> bool:
    """Say whether the curve of a mu-GDP release lies above from the first place on (R5e); `near` is the last length."""
    if mu <= K:
        return False
    known = hockey_stick(mu, places)
    # Curves fall: the value at the left end of a stretch is compared with that at its right end.
    if (curve[:-1] > known[1:]).any():
        return False
    wide = places[-1] / mu - mu / 2
    tail = math.log(float(_longer(rank, np.array(near))))
    return bool(near - (rank - 1) / near >= wide and tail <= scipy.special.log_ndtr(-wide))


def check_smooth(system: str, loss: Loss, smoothness: float, rank: int, dim: int) -> None:
    """Refuse losses that are not smooth, and curved ones where the plan allows for no curvature, or for less of it."""
    custom = isinstance(loss, Custom) and loss.hessian is not None
    if not custom and not isinstance(loss, _SMOOTH):
        raise ValueError(
            f"{system} needs losses whose gradient does not jump (Linear, Logistic, Squared, Huber, or a Custom loss "
            f"with its hessian=), got {loss!r}; PCOMW and DPFTRL do not need smoothness"
        )
    if custom and rank < dim:
        raise ValueError(
            f"a custom loss may bend in every direction, got {loss!r} for a plan of generalised linear ones; plan with "
            "general=True"
        )
    if smoothness == 0 and not isinstance(loss, Linear):
        raise ValueError(
            f"smoothness must be greater than 0 for {loss!r}, got a plan with smoothness=0, which is for Linear only; "
            "plan with a bound on the second derivatives of every round's loss"
        )


def check_face(domain: Domain, smoothness: float) -> None:
    """Refuse bodies other than balls and boxes for losses that are not linear."""
    if smoothness and not round_or_box(domain):
        raise ValueError(
            f"domain must be a Ball, a Box or an Interval where smoothness is above 0, got {domain!r}; any convex body "
            "will do for Linear losses (smoothness=0), and for PCOMW"
        )


def round_or_box(domain: Domain) -> bool:
    """Say whether the determinant of the minimiser's map is known on every face of the body."""
    return domain.body.ball or domain.body.box


def goal_smoothness(goal: Goal) -> float:
    """Return the smoothness that a goal has; 0 for linear losses, G^2 at most for the logistic loss around the origin.

    The slope of log(1 + exp(-m)) at a margin of 0 is 1/2, and a margin of 0 or less is reached over a body around the
    origin: |a|/2 <= G, so second derivatives are at most |a|^2/4 <= G^2. Rows with more are too steep in any case.
    """
    if isinstance(goal.loss, Linear):
        return 0.0
    if not isinstance(goal.loss, _SMOOTH) and not (isinstance(goal.loss, Custom) and goal.loss.hessian is not None):
        raise NotApplicable("needs smooth losses, custom ones with a hessian")
    if not round_or_box(goal.domain):
        raise NotApplicable("needs a ball or a box, or linear losses")
    if goal.smoothness == 0:
        raise NotApplicable("needs a positive smoothness bound")
    known = isinstance(goal.loss, Logistic) and not goal.domain.center.any()
    found = min(goal.smoothness or math.inf, goal.lipschitz**2 if known else math.inf)
    if math.isinf(found):
        raise NotApplicable("needs a smoothness bound")
    return found
