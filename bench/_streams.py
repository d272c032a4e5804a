"""Synthetic streams of losses, and the measures they make."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import reticent as rt

BETA, LAM = 0.015, 18_000.0
LENGTH = 0.5  # of the parameter the targets are made from
KINDS = ("cube", "sparse", "binary", "one-hot", "heavy-tailed", "sphere")


@dataclass(frozen=True)
class Stream:
    """A law of rounds: features of a kind, and targets for a loss."""

    loss: str  # "logistic" or "absolute"
    kind: str
    dim: int
    slope: float = 4.0  # of the logistic model of the labels
    seed: int = 1

    def parameter(self) -> np.ndarray:
        """Return the parameter that the targets are made from."""
        direction = np.random.default_rng([self.seed, self.dim]).standard_normal(self.dim)
        return LENGTH * direction / np.linalg.norm(direction)

    def rounds(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return features and targets of so many rounds."""
        A = features(self.kind, count, self.dim, rng)
        signal = A @ self.parameter()
        if self.loss == "absolute":
            return A, signal + rng.uniform(-1.0, 1.0, count)
        positive = rng.random(count) < 1.0 / (1.0 + np.exp(-self.slope * signal))
        return A, np.where(positive, 1.0, -1.0)

    def measure(self) -> rt.Gibbs:
        """Return the measure of this loss on the unit ball, before any round."""
        loss = rt.Absolute() if self.loss == "absolute" else rt.Logistic()
        return rt.Gibbs(rt.Ball(self.dim), loss, beta=BETA, lam=LAM)


def features(kind: str, count: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows of length at most 1."""
    if kind == "one-hot":
        return np.eye(d)[rng.integers(d, size=count)]
    if kind == "binary":
        return rng.integers(2, size=(count, d)) / math.sqrt(d)
    if kind == "heavy-tailed":
        A = rng.standard_t(3, (count, d)) / math.sqrt(3 * d)  # of mean square 1, then cut
        return A / np.maximum(1.0, np.linalg.norm(A, axis=1))[:, None]
    if kind == "sphere":
        A = rng.standard_normal((count, d))
        return A / np.linalg.norm(A, axis=1)[:, None]
    A = rng.uniform(-1.0, 1.0, (count, d)) / math.sqrt(d)
    if kind == "sparse":
        A *= rng.random((count, d)) < 0.1
    elif kind != "cube":
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return A


def inside_slope(dim: int) -> float:
    """Return the slope of the label model: 4 where the regulariser then keeps the mode inside the ball, else 1."""
    return 4.0 if dim >= 10 else 1.0
