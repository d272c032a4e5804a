"""Stand-in domains and the losses under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from reticent._core._check import Array, norms
from reticent.losses import Absolute, GeneralisedLinear, Hinge, Huber, Logistic, Pinball, Squared

GLMS: list[GeneralisedLinear] = [
    Absolute(),
    Pinball(0.3),
    Hinge(),
    Hinge(0.4),
    Huber(),
    Huber(0.25),
    Logistic(),
    Squared(),
]


@dataclass
class Slab:
    """A box of the first `chart_dim` axes of a turned frame: an isometric chart that is not the identity."""

    dim: int = 3
    lo: Array = field(default_factory=lambda: np.array([-1.0, -0.25]))
    hi: Array = field(default_factory=lambda: np.array([0.5, 2.0]))
    seed: int = 7

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        frame = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))[0]
        self.frame = frame[:, : self.lo.size]
        self.center = rng.normal(size=self.dim)
        self.body = SimpleNamespace(lo=self.lo, hi=self.hi)
        self.radius = float(np.linalg.norm(np.maximum(-self.lo, self.hi)))

    lengths = staticmethod(norms)

    def pull(self, rows: Array) -> tuple[Array, Array]:
        return rows @ self.frame, rows @ self.center

    def push(self, u: Array) -> Array:
        return self.center + u @ self.frame.T


@dataclass
class Cube:
    """The cube `[-1, 1]^dim`, whose chart is the identity."""

    dim: int = 2

    def __post_init__(self) -> None:
        ones = np.ones(self.dim)
        self.center = np.zeros(self.dim)
        self.body = SimpleNamespace(lo=-ones, hi=ones)
        self.radius = float(np.sqrt(self.dim))

    lengths = staticmethod(norms)

    def pull(self, rows: Array) -> tuple[Array, Array]:
        return rows, np.zeros(len(rows))


@pytest.fixture(params=GLMS, ids=repr)
def glm(request: pytest.FixtureRequest) -> GeneralisedLinear:
    loss = request.param
    assert isinstance(loss, GeneralisedLinear)
    return loss


@pytest.fixture
def slab() -> Slab:
    return Slab()


@pytest.fixture
def cube() -> Cube:
    return Cube()
