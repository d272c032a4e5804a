"""Where the best decision may be, by what the gate released: Kalman filters for several curvatures and drifts, mixed.

All of it is post-processing of public numbers. It models, coordinate by coordinate, a block's sum of gradients at the
decision u as W h (u - w), w the best decision, plus the noise of the gate, whose correlations are known. That is not
true of any stream, and nothing is certified of the decisions. The constants were chosen on synthetic streams
(bench/constants.py) and are the same for all.
"""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.saving import refuse_unless
from reticent.systems.filtered._release import EpochRelease, mixed
from reticent.systems.gate._release import Integers

CURVATURES = (16.0, 4.0, 1.0, 0.25, 0.0625)
"""Second derivatives per round and coordinate, in units of lipschitz/radius."""
DRIFTS = (0.0, 1e-5, 1e-4)
"""Variance that w gains with every round, in units of the variance at the beginning."""
SPREADS = (0.25, 0.8)
"""Deviations of w at the beginning, in units of radius/sqrt(dim)."""
SCATTER = 0.3
"""Variance of a round's gradient, in units of clip^2/dim."""
CROSSTALK = 0.1
"""Mean square of what another coordinate's error adds to a gradient, beside the curvature's own: mixed derivatives."""
SHARED = 0.1
"""How much the evidence of each other coordinate counts, beside a coordinate's own."""
_LEAST = 1e-9  # what is left of the first variance, at least: rounding may leave less
_FIRST, _EVERY = 16, 8  # weights are computed anew after the first blocks of an epoch, then after every eighth


@saved("filter of an epoch's releases")
class Filter:
    """The mean of w given all releases so far, over hypotheses (curvature, spread, drift) weighted by evidence.

    The state of a hypothesis is w and the buffers of the noise; covariances are the same for all coordinates.

    >>> release = EpochRelease(clip=1.0, noise=1.0, block=50, blocks=8, dim=1, change=2.0)
    >>> found = Filter(dim=1, radius=1.0, lipschitz=1.0)
    >>> found.begin(release, 50)
    >>> bool(found.update(np.array([40_000_000_000]), np.zeros(1))[0] < 0)
    True
    """

    _moves: ClassVar[tuple[str, ...]] = ("evidence", "weights", "mean", "covariance", "past", "seen")

    def __init__(self, dim: int, radius: float, lipschitz: float) -> None:
        """Know nothing but the scale."""
        grid = np.array([*product(CURVATURES, SPREADS, DRIFTS)])
        self.curvatures = grid[:, 0] * lipschitz / radius
        self.variance = (grid[:, 1] * radius) ** 2 / dim
        self.drifts = grid[:, 2] * self.variance
        count = len(grid)
        self.evidence: Array = np.zeros((dim, count))  # logarithms
        self.weights: Array = np.full((dim, count), 1 / count)
        # The state's parts, coordinates and hypotheses; covariances of parts, for each hypothesis.
        self.mean: Array = np.zeros((1, dim, count))
        self.covariance: Array = self.variance[None, None]

    def begin(self, release: EpochRelease, block: int) -> None:
        """Start an epoch of blocks of so many rounds: w is kept, the noise is new."""
        _, dim, count = self.mean.shape
        weights, decays = release.weights, release.decays
        size = weights.size + 1
        self.step, self.seen = release.grid.step, 0
        self.noise_weights, self.decays = weights, decays[:, None]
        self.moves = np.zeros((size, size))  # of the state from one block to the next, but for new noise
        self.moves[0, 0] = 1.0
        self.moves[1:, 1:] = np.diag(decays) - weights
        self.fresh = release.grid.sigma**2  # variance of new noise
        self.scatter = block * SCATTER * release.grid.clip**2 / dim
        self.steepness = block * self.curvatures
        self.gained = block * self.drifts
        self.crosstalk = CROSSTALK * (dim - 1) * (block * self.curvatures) ** 2
        self.reads = np.vstack([-self.steepness, np.tile(-weights[:, None], count)])
        mean, covariance = np.zeros((size, dim, count)), np.zeros((size, size, count))
        mean[0] = self.mean[0]
        covariance[0, 0] = np.maximum(self.covariance[0, 0], _LEAST * self.variance)
        self.mean, self.covariance = mean, covariance
        self.past = np.zeros((weights.size, dim))  # buffers of the increments, which undo the mixing of the gate

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state, from a file, that may have a matrix more: it says nothing that others do not."""
        vars(self).update((name, part) for name, part in state.items() if name != "told")

    def _check_moved(self) -> None:
        variances = np.einsum("aaj->aj", self.covariance)
        refuse_unless(bool((variances >= 0.0).all()), "its filter has variances below 0")

    def update(self, released: Integers, u: Array) -> Array:
        """Take in a release, which a block at the decision `u` led to; return the mean of w."""
        gains, spread = self.gains()
        self.mean, self.evidence, self.past = self.moved(
            gains, spread, self.mean, self.evidence, self.past, released, u
        )
        if weighs(self.seen):
            self.evidence, self.weights = weighed(self.evidence)
        self.seen += 1
        return expected(self.weights, self.mean)

    def moved(
        self, gains: Array, spread: Array, mean: Array, evidence: Array, past: Array, released: Integers, u: Array
    ) -> tuple[Array, Array, Array]:
        """Return mean, evidence and past after a release, of one learner or, on axes before theirs, of several.

        Everything is done number by number, so that the bits of one learner do not depend on how many there are.
        """
        weights = self.noise_weights
        increment = released * self.step - mixed(weights, past)
        past = self.decays * past + increment[..., None, :]
        noise = mixed(weights, mean[..., 1:, :, :].reshape(*mean.shape[:-3], weights.size, -1))
        noise = noise.reshape(evidence.shape)  # what the model expects of the noise of the next block
        error = noise + increment[..., None] - self.steepness * (u[..., None] - mean[..., 0, :, :])
        new = gains[:, None] * error[..., None, :, :]
        new[..., 0, :, :] += mean[..., 0, :, :]
        new[..., 1:, :, :] += self.decays[:, :, None] * mean[..., 1:, :, :] - noise[..., None, :, :]
        error *= error
        error /= 2 * spread
        error += 0.5 * np.log(spread)
        return new, evidence - error, past

    def gains(self) -> tuple[Array, Array]:
        """Return what of an error each hypothesis adds to its state, and the variance of the error; go on."""
        V, moves = self.covariance, self.moves
        read = np.einsum("abj,bj->aj", V, self.reads)
        spread = np.einsum("aj,aj->j", self.reads, read) + (self.fresh + self.scatter) + self.crosstalk * V[0, 0]
        carried = moves @ read
        carried[1:] += self.fresh
        gains = carried / spread
        half = (moves @ V.reshape(len(moves), -1)).reshape(V.shape).transpose(1, 0, 2)
        V = (moves @ half.reshape(len(moves), -1)).reshape(V.shape) - carried[:, None] * gains
        V[1:, 1:] += self.fresh
        V[0, 0] += self.gained
        self.covariance = V
        return gains, spread


def weighs(seen: int) -> bool:
    """Say whether weights are computed anew after a block, before which so many of its epoch were seen."""
    return seen < _FIRST or seen % _EVERY == 0


def weighed(evidence: Array) -> tuple[Array, Array]:
    """Return evidence, less its largest, and the weights of hypotheses by it, coordinate by coordinate."""
    evidence = evidence - evidence.max(axis=-1, keepdims=True)
    logs = (1 - SHARED) * evidence + SHARED * evidence.sum(axis=-2, keepdims=True)
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return evidence, weights


def expected(weights: Array, mean: Array) -> Array:
    """Return the mean of w over the hypotheses."""
    found: Array = (weights * mean[..., 0, :, :]).sum(axis=-1)
    return found
