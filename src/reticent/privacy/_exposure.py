"""What draws and coins after a changed round reveal at most, and the certificates that follow (docs/theory, Q0 to Q6).

Where losses are fixed in advance the coin of the changed batch costs far less (Q6). The decision in play at the changed
batch has the same law in both worlds, and does not know of the losses. Released together with the coin's "keep" it is
one more draw; with "switch" it is a pair of sub-densities whose hockey stick T is bounded here, point by point, and
turned into privacy losses by its lower convex hull.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent._core._check import Array
from reticent.privacy._coins import NO_LOSS, Coin
from reticent.privacy._compose import Bound, Term
from reticent.privacy._losses import Losses, hockey_stick

# Points of the curve T on each side of 1, and of the free parameter t in it: every choice is valid.
_CURVE, _FREE = 200, 64
# Beyond exp(30) the rest of T counts as an infinite loss.
_FAR = 30.0


@dataclass(frozen=True)
class Exposure:
    """The draws and coins after a changed round, at most, and the constants of docs/theory, Q0 to Q6.

    `shift` is s, `eta` that of a later coin, `eta_special` that of the coin of the changed batch, `length` s_L = b G
    sqrt(beta/lam). For oblivious adversaries `clip` and `clip_low` bound what clipping moves per coin (P4), and
    `slip` the chance that some draw is not what an exact draw would have been (P7). `miss` is the chance that floating
    point makes more of some draw than `shift` allows for (Q11); `off` is by how much, as a logarithm, it may change the
    chances of both sides of the coin of the changed batch, and `blur` that of the decision in play there.
    """

    shift: float
    eta: float
    eta_special: float
    p: float
    log_phi: float
    length: float
    draws: int
    later: int
    special: bool
    clip: float = 0.0
    clip_low: float = 0.0
    slip: float = 0.0
    miss: float = 0.0
    off: float = 0.0
    blur: float = 0.0

    @property
    def coin(self) -> Coin:
        """The pair that dominates a coin after the changed batch (docs/theory, Q2)."""
        return Coin(self.p, self.eta)

    @property
    def special_coin(self) -> Coin:
        """The pair that dominates the coin of the changed batch (docs/theory, Q3)."""
        return Coin(self.p, self.eta_special)

    @property
    def nothing(self) -> bool:
        """Whether the decisions cannot depend on the changed round at all."""
        return self.draws == 0 and self.later == 0 and not self.special


def bounds(exposure: Exposure, adversary: str) -> tuple[Bound, ...]:
    """Return the bounds that hold; the smallest counts.

    Whoever fixes the losses in advance is one of those who may adapt them, so the adaptive bound holds for both.
    """
    if exposure.nothing:
        return (Bound(((Term(0.0, exposure.coin, 0, NO_LOSS),),)),)
    if adversary == "adaptive" or not exposure.special:
        return (adaptive(exposure),)
    found = oblivious(exposure)
    return (adaptive(exposure),) if found is None else (adaptive(exposure), found)


def adaptive(exposure: Exposure) -> Bound:
    """Return the certificate for losses that may react to released decisions (docs/theory, Q4).

    The coin of the changed batch is the first event that differs between the two worlds. So its direction is settled
    before anything has been paid, and the worse of the two is enough (Q4b); later directions may depend on the past.
    """
    mu = exposure.shift * math.sqrt(exposure.draws)
    special = exposure.special_coin.directions() if exposure.special else (NO_LOSS,)
    alternatives = tuple((Term(mu, exposure.coin, exposure.later, other),) for other in special)
    return Bound(alternatives, exposure.miss)


def oblivious(exposure: Exposure) -> Bound | None:
    """Return the certificate of an oblivious adversary; None where it says nothing (p near 0 or 1, much clipping)."""
    e = exposure
    if not 0 < e.p < 1 or e.shift == 0 or e.off + e.blur > 1:
        return None
    # How far the decision and its coin are from unclipped ones; draws that are not exact come on top (P7).
    clipped = (1 - e.p) * (min(1 / e.p, e.later) * e.clip + e.clip + e.clip_low)
    failure = clipped * math.exp(e.off + e.blur) + e.slip + e.miss
    if failure >= 1:
        return None
    keep = (1 - e.p) * math.exp(-e.log_phi)
    kept = Losses(np.zeros(1), np.array([keep]), 0.0)
    # What the machine makes of the decision is the same in both worlds, of the coin it need not be (Q11).
    kept, changed = (losses.loosened(2 * e.off, e.off + e.blur) for losses in (kept, switched(e)))
    # After a "keep" draws come from the later coins only.
    terms = (
        Term(e.shift * math.sqrt(min(e.draws, e.later) + 1), e.coin, e.later, kept),
        Term(e.shift * math.sqrt(e.draws), e.coin, e.later, changed),
    )
    return Bound((terms,), failure)


def switched(e: Exposure) -> Losses:
    """Return the losses of a decision together with the coin's "switch", of mass 1 - (1-p)/phi on each side."""
    keep = (1 - e.p) * math.exp(-e.log_phi)
    rest = e.p - (1 - e.p) * math.expm1(-e.log_phi)
    if rest <= 0:
        return Losses(np.zeros(0), np.zeros(0), 0.0)
    end = min(_FAR, -math.log(e.p))
    alpha = 1 + np.concatenate(([0.0], np.geomspace(1e-6 * math.expm1(end), math.expm1(end), _CURVE)))
    bound = curve(alpha, e, keep)
    # The other side of 1 by exchanging the worlds, which have the same masses.
    inverse = 1 / alpha[:0:-1]
    left = rest * (1 - inverse) + inverse * bound[:0:-1]
    places = np.concatenate(([0.0], inverse, alpha))
    heights = np.concatenate(([rest], left, bound))
    corners = _hull(places, heights)
    x, y = places[corners], heights[corners]
    slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    mass = np.maximum(np.diff(slopes), 0.0) * x[1:]
    return Losses.of([*np.log(x[1:]), math.inf], [*mass, max(y[-1], 0.0)])


def curve(alpha: Array, e: Exposure, keep: float) -> Array:
    """Return a bound on the hockey stick of the two "switch" sub-densities at every `alpha` >= 1.

    With rho, rho' the density ratios of the next measures to the present one, a = `keep`, and without clipping, it is
    E (1 - a rho - alpha (1 - a rho'))+. 1 >= a rho'/(1-p), or 1 >= exp(-t) rho' - (exp(-t) rho' - 1)+ for any t, make
    it the hockey stick of a draw (docs/theory, Q6).
    """
    best = _draw(keep, (1 - e.p * alpha) / (1 - e.p), e.shift)
    free = np.concatenate(
        (np.linspace(0, e.log_phi, _FREE // 2), np.linspace(0, min(e.log_phi, 12 * e.length), _FREE // 2))
    )
    tail = np.exp(-free) * hockey_stick(e.length, free)
    factor = alpha[:, None] - (alpha[:, None] - 1) * np.exp(-free) / keep
    found = _draw(keep, factor, e.shift) + (alpha[:, None] - 1) * tail
    value: Array = np.minimum(best, found.min(axis=1))
    return value


def _draw(keep: float, factor: Array, shift: float) -> Array:
    """Return the mass of keep (factor mu' - mu)+ for two draws that are `shift`-GDP; 0 if factor <= 0."""
    live = factor > 0
    safe = np.where(live, factor, 1.0)
    value: Array = np.where(live, keep * safe * hockey_stick(shift, -np.log(safe)), 0.0)
    return value


def _hull(x: Array, y: Array) -> list[int]:
    """Return the corners of the lower convex hull of points with increasing x."""
    corners: list[int] = []
    for i in range(x.size):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return corners
