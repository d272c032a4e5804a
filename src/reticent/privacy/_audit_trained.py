"""A score learnt from runs: logistic regression on what decisions show around a changed round."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from reticent._check import Array

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
