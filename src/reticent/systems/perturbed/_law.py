"""What perturbed regularised leaders cost, drift and reveal, as functions of their parameters (docs/theory, R5)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from reticent._core._check import Array
from reticent.domains import Domain
from reticent.losses import Huber, Linear, Logistic, Loss, Squared
from reticent.privacy._losses import hockey_stick
from reticent.systems._bounds import noise_cost
from reticent.systems._goal import Goal, NotApplicable
from reticent.systems.pcomw._switching import delta0

_SMOOTH = (Linear, Logistic, Squared, Huber)
# Where the curve of one draw is checked: so many places, up to so many deviations of the noise along a row.
_PLACES, _FAR = 400, 8.0


def leader_regret(domain: Domain, horizon: int, lipschitz: float, lam: float, sigma: float) -> float:
    """Return the bound on the expected regret of decisions that have the law of the perturbed leader (R5d)."""
    stability = horizon * lipschitz**2 / (2 * lam)
    return lam * domain.radius**2 / 2 + stability + noise_cost(domain.chart_dim, domain.radius, lam, sigma)


@lru_cache(maxsize=4096)  # a search asks for the same noises again and again
def best_lam(domain: Domain, horizon: int, lipschitz: float, sigma: float) -> float:
    """Return the regulariser with the least `leader_regret` for the noise."""
    R, T, G = domain.radius, horizon, lipschitz
    low = 0.5 * math.log(T) + math.log(G / R)  # without noise; the noise only ever asks for more
    high = 0.5 * math.log(T + domain.chart_dim * (sigma / G) ** 2) + math.log(G / R)
    found = scipy.optimize.minimize_scalar(
        lambda x: leader_regret(domain, T, G, math.exp(x), sigma), bounds=(low - 1e-6, high + 1e-6), method="bounded"
    )
    return math.exp(float(found.x))


def drift(log_phi: float, noise: float, bend: float) -> float:
    """Return what clipping moves per coin at most; `noise` is G/sigma, `bend` is smoothness/lam (R5c).

    >>> drift(0.5, 0.1, 0.0) < drift(0.5, 0.1, 0.05) < 1e-5
    True
    """
    if bend == 0:
        return float(delta0(log_phi, noise))
    room = log_phi - math.log1p(bend)
    if room < noise**2 / 2:
        return 1.0
    return min(1.0, 2 * float(delta0(room, noise)))


def bend_change(bend: float) -> float:
    """Return how much one changed loss can move the logarithm of a later coin's determinant (R5f).

    >>> bend_change(0.0), round(bend_change(0.1), 6)
    (0.0, 0.008299)
    """
    return math.log1p(bend * (bend / (1 + 2 * bend)))


@lru_cache(maxsize=4096)
def draw_gdp(noise: float, bend: float) -> float:
    """Return mu such that a draw is mu-GDP where one smooth loss is replaced by a constant (R5e).

    The logarithm of the density ratio is at most K|b| + K^2/2 + log(1 + bend), b standard normal, in both directions.

    >>> 1.59 < draw_gdp(0.01, 0.0) / 0.01 < 1.61
    True
    """
    K, c = noise, math.log1p(bend)
    places = c + K * np.linspace(0.0, _FAR, _PLACES) + K**2 / 2
    curve = _excess(K, c, places)
    # The true curve is convex: between places 1/a and a it lies below the chord, of which the middle is needed.
    share = 1 / (np.exp(np.minimum(places, 700.0)) + 1)
    fall = np.exp(-places)
    middle = share * curve + (1 - share) * (-np.expm1(-places) + fall * curve)
    best = int(np.argmin(middle))
    # N(mu/2) - 1/2 is half of the middle; the inverse error function keeps the digits of a small one.
    mu = 2 * math.sqrt(2) * float(scipy.special.erfinv(float(middle[best])))
    while not _covers(mu, K, c, places[best:], curve[best:]):
        mu *= 1.005
    return mu


def _excess(K: float, c: float, epsilon: Array) -> Array:
    """Return E(1 - exp(epsilon - K|b| - K^2/2 - c))+ for epsilon of at least c + K^2/2: both tails alike."""
    value: Array = 2 * hockey_stick(K, epsilon - c)
    return value


def _covers(mu: float, K: float, c: float, places: Array, curve: Array) -> bool:
    """Say whether the curve of a mu-GDP release lies above from the first place on (R5e)."""
    if mu <= K:
        return False
    known = hockey_stick(mu, places)
    # Curves fall: the value at the left end of a stretch is compared with that at its right end.
    if (curve[:-1] > known[1:]).any():
        return False
    near, wide = (places[-1] - c) / K - K / 2, places[-1] / mu - mu / 2
    tails = scipy.special.log_ndtr(np.array([-near, -wide]))
    return bool(near >= wide and math.log(2) + tails[0] <= tails[1])


def check_smooth(system: str, loss: Loss, smoothness: float) -> None:
    """Refuse losses that are not smooth, and curved ones where the plan allows for no curvature."""
    if not isinstance(loss, _SMOOTH):
        raise ValueError(
            f"{system} needs losses whose gradient does not jump (Linear, Logistic, Squared, Huber), got {loss!r}; "
            "PCOMW and DPFTRL do not need smoothness"
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
    """Return the smoothness that a goal has; 0 for linear losses, G^2 for the logistic loss around the origin.

    The slope of log(1 + exp(-m)) at a margin of 0 is 1/2, and a margin of 0 or less is reached over a body around the
    origin: |a|/2 <= G, so second derivatives are at most |a|^2/4 <= G^2.
    """
    if isinstance(goal.loss, Linear):
        return 0.0
    if not isinstance(goal.loss, _SMOOTH):
        raise NotApplicable("needs smooth losses")
    if not round_or_box(goal.domain):
        raise NotApplicable("needs a ball or a box, or linear losses")
    if goal.smoothness is not None:
        if goal.smoothness <= 0:
            raise NotApplicable("needs a positive smoothness bound")
        return goal.smoothness
    if isinstance(goal.loss, Logistic) and not goal.domain.center.any():
        return goal.lipschitz**2
    raise NotApplicable("needs a smoothness bound")
