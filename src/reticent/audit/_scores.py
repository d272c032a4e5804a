"""Scores of a transcript: its exact log-likelihood ratio where that is known, or one learnt from runs.

A fresh decision is a normal variable on an interval, whose density is known (docs/theory, S1). The chance that a
coin keeps x is (1 - p) E clip(exp(beta L (y - x)) / phi, phi^-2, 1) over such a variable y, L the batch's sum of
gradients: three integrals of a normal density. The ratio of two transcripts is the product of these from the changed
batch on; before it both worlds have one law. It is the best score that there is (Neyman and Pearson) for a learner
that does what its plan says. With several auxiliary draws per coin the clip is taken after the mean: exact where
nothing is clipped, near it otherwise; a score may be anything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import scipy

from reticent._core._check import Array
from reticent.losses import Linear
from reticent.planning import Plan

if TYPE_CHECKING:
    from reticent.losses import Loss
    from reticent.planning import BasePlan, Plan


class Segment(NamedTuple):
    """A normal law on an interval: its mean (one per coin), deviation and ends."""

    mean: Array
    deviation: float
    low: float
    high: float

    def mass(self, tilt: Array, a: Array, b: Array) -> Array:
        """Return log E exp(tilt (y - mean)) 1{a <= y <= b} over the normal law without its ends."""
        a, b = np.clip(a, self.low, self.high), np.clip(b, self.low, self.high)
        middle = self.mean + tilt * self.deviation**2
        u, v = (a - middle) / self.deviation, (b - middle) / self.deviation
        # In the upper tail reflect, so that neither value is close to 1.
        flip = u > 0
        u, v = np.where(flip, -v, u), np.where(flip, -u, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = scipy.special.log_ndtr(v), scipy.special.log_ndtr(u)
            found = top + np.log(-np.expm1(np.minimum(bottom - top, 0.0)))
        value: Array = np.where(v > u, found, -np.inf) + (tilt * self.deviation) ** 2 / 2
        return value


class Likelihood:
    """A score of decisions: log of their likelihood on one stream over that on another, `(runs, rounds + 1, 1)`."""

    def __init__(self, plan: Plan, stream: Array, neighbour: Array, changed: int) -> None:
        self.plan = plan
        self.center = float(plan.domain.center[0])
        self.first = changed // plan.batch  # coins from this one on can tell, counted from 0
        self.coins = len(stream) // plan.batch
        self.sums = [self._sums(gradients) for gradients in (stream, neighbour)]

    def _sums(self, gradients: Array) -> tuple[Array, Array]:
        """Return the sum of gradients in each batch, and up to its end, for the coins that can tell."""
        whole = gradients[: self.coins * self.plan.batch, 0].reshape(self.coins, self.plan.batch).sum(axis=1)
        return whole[self.first :], np.cumsum(whole)[self.first :]

    def __call__(self, decisions: Array) -> Array:
        """Return the log-likelihood ratio of each run."""
        places = np.arange(self.first, self.coins + 1) * self.plan.batch
        if places.size < 2:
            return np.zeros(len(decisions))
        x = decisions[:, places, 0] - self.center
        before, after = x[:, :-1], x[:, 1:]
        moved = before != after
        active = np.ones_like(moved)
        if self.plan.budget is not None:
            earlier = self._earlier(decisions)
            active = earlier[:, None] + np.cumsum(moved, axis=1) - moved < self.plan.budget
        ours, theirs = (self._logs(before, after, *sums) for sums in self.sums)
        with np.errstate(invalid="ignore"):
            steps = np.where(moved, ours[1] - theirs[1], ours[0] - theirs[0])
        # What neither world can do has no ratio; it tells nothing about which of the two it was.
        ratio: Array = np.where(active, np.nan_to_num(steps, nan=0.0, posinf=1e3, neginf=-1e3), 0.0).sum(axis=1)
        return ratio

    def _earlier(self, decisions: Array) -> Array:
        """Return the number of switches before the first coin that can tell."""
        past = decisions[:, : self.first * self.plan.batch + 1, 0]
        count: Array = np.count_nonzero(np.diff(past, axis=1), axis=1)
        return count

    def _logs(self, x: Array, fresh: Array, batch: Array, total: Array) -> tuple[Array, Array]:
        """Return the logarithms of the chance to keep x, and of the chance to switch times the density of `fresh`."""
        plan = self.plan
        deviation = 1 / math.sqrt(plan.beta * plan.lam)
        body = plan.domain.body
        law = Segment(-total / plan.lam, deviation, float(body.lo[0]), float(body.hi[0]))
        log_mass = law.mass(np.zeros_like(total), np.full_like(total, -np.inf), np.full_like(total, np.inf))
        keep = (1 - plan.p) * self._kept(x, batch, law, log_mass)
        with np.errstate(divide="ignore"):
            switch = np.log(np.maximum(1 - keep, 0.0))
            density = -((fresh - law.mean) ** 2) / (2 * deviation**2) - log_mass
            return np.log(keep), switch + density

    def _kept(self, x: Array, batch: Array, law: Segment, log_mass: Array) -> Array:
        """Return the chance that the coin, not forced, keeps x."""
        log_phi = math.log(self.plan.phi)
        tilt = np.broadcast_to(self.plan.beta * batch, x.shape)
        shift = tilt * (law.mean - x) - log_phi
        if self.plan.draws > 1:
            whole = law.mass(tilt, np.full_like(tilt, -np.inf), np.full_like(tilt, np.inf)) - log_mass
            return np.exp(np.clip(whole + shift, -2 * log_phi, 0.0))
        # The exponent is tilt (y - x): in order of it, y below `cuts[0]` is clipped from below, beyond `cuts[1]` above.
        with np.errstate(divide="ignore", invalid="ignore"):
            near, far = x - log_phi / np.abs(tilt), x + log_phi / np.abs(tilt)
        none, edge = np.zeros_like(tilt), np.full_like(tilt, np.inf)
        middle = np.exp(law.mass(tilt, near, far) + shift - log_mass)
        left, right = np.exp(law.mass(none, -edge, near) - log_mass), np.exp(law.mass(none, far, edge) - log_mass)
        clipped = np.where(tilt > 0, left * math.exp(-2 * log_phi) + right, right * math.exp(-2 * log_phi) + left)
        chance: Array = np.where(tilt == 0, math.exp(-log_phi), middle + clipped)
        return np.clip(chance, math.exp(-2 * log_phi), 1.0)


def known(plan: BasePlan, loss: Loss) -> TypeGuard[Plan]:
    """Say whether the likelihood is known: P-COMW, linear losses on an interval, a box or a ball of one dimension."""
    return isinstance(plan, Plan) and isinstance(loss, Linear) and plan.domain.dim == 1 and bool(plan.domain.body.box)


# A score learnt from runs: logistic regression on what decisions show around a changed round.
_NEXT = 4  # coins after the special one whose outcomes are features of their own
_PENALTY = 1e-4  # on squared weights of standardised features, beside the mean log loss
_FEW = 3  # dimensions up to which products of coordinates are features


def features(decisions: Array, changed: int, batch: int) -> Array:
    """Return one row of features for each run of `(runs, rounds + 1, dim)` decisions.

    The sum of all fresh decisions after the change (for normal laws it holds all that draws tell), how many there are,
    what the coin of the changed batch did, the decisions before and after it, and the coins that follow.
    """
    _, places, dim = decisions.shape
    coin = (changed // batch + 1) * batch  # the decision of this round, from 0, is the first that may know
    moved = (decisions[:, 1:] != decisions[:, :-1]).any(axis=2)  # at [t]: between rounds t and t + 1
    later = moved[:, changed:]
    count = later.sum(axis=1, keepdims=True).astype(np.float64)
    total = np.einsum("rt,rtd->rd", later, decisions[:, changed + 1 :])
    columns = [count, total, total / np.sqrt(np.maximum(count, 1.0)), decisions[:, -1]]
    if coin < places:
        before, after = decisions[:, coin - 1], decisions[:, coin]
        special = moved[:, coin - 1 : coin].astype(np.float64)
        step = after - before
        columns += [special, (1 - special) * before, special * before, special * after, total - special * after]
        columns += [special * np.sign(step) * np.sqrt(np.abs(step))]
        if dim <= _FEW:
            columns += [special * before * after, special * step**2, special * step**3]
        for place in range(coin + batch, min(places, coin + (_NEXT + 1) * batch), batch):
            columns.append(moved[:, place - 1 : place].astype(np.float64))
    return np.concatenate(columns, axis=1)


class Trained(NamedTuple):
    """A linear score of standardised features."""

    middle: Array
    scale: Array
    weights: Array

    def __call__(self, rows: Array) -> Array:
        """Return the score of each row of features: the larger, the more it looks like the first world."""
        score: Array = (rows - self.middle) / self.scale @ self.weights
        return score


def train(ours: Array, theirs: Array) -> Trained:
    """Return the score that tells rows of the first world from those of the second, by penalised logistic regression.

    >>> rng = np.random.default_rng(1)
    >>> score = train(rng.normal(1.0, 1.0, (500, 1)), rng.normal(0.0, 1.0, (500, 1)))
    >>> bool(score(np.ones((1, 1))) > score(np.zeros((1, 1))))
    True
    """
    rows = np.concatenate([ours, theirs])
    signs = np.concatenate([np.ones(len(ours)), -np.ones(len(theirs))])
    middle, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(middle)), scale, np.inf)  # columns that never change weigh nothing
    z = (rows - middle) / scale

    def cost(parameters: Array) -> tuple[float, Array]:
        weights, level = parameters[:-1], parameters[-1]
        margin = signs * (z @ weights + level)
        pull = -signs * scipy.special.expit(-margin) / signs.size
        value = float(np.logaddexp(0.0, -margin).mean() + _PENALTY * weights @ weights / 2)
        return value, np.append(z.T @ pull + _PENALTY * weights, pull.sum())

    found: Any = scipy.optimize.minimize(cost, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B")
    return Trained(middle, scale, found.x[:-1])
