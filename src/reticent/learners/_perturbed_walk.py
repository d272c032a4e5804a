"""The walks of perturbed leaders: the state that coins keep, and the rounds that its minimiser needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.gibbs._columns import Columns
from reticent.losses import Linear, Loss, Rows, Squared

from ._changes import Changes
from ._learner import NEVER
from ._rounds import Reader
from ._steps import StepWalk

_CHANGES = 1024  # that one call of the compiled loop can report


class PerturbedWalk:
    """The minimiser in play, its noise Z, and the Hessian there; past rows where their sums do not tell all.

    Randomness is used where a coin is looked at and then for finding the next, so rounds may be cut into any blocks.
    """

    def __init__(
        self,
        domain: Domain,
        loss: Loss,
        rng: np.random.Generator,
        sigma: float,
        lam: float,
        p: float,
        phi: float,
        budget: int | None,
    ) -> None:
        from ._perturbed_kernel import renew, schedule  # numba loads on first use

        self.domain, self.rng, self.sigma, self.lam = domain, rng, sigma, lam
        self.reader = Reader(loss)
        self.cap = NEVER if budget is None else budget
        log_phi = math.log(phi)
        # 1 - phi^-2 without the cancellation of a phi close to 1; see `reticent.learners._coin`.
        opening = -math.expm1(-2.0 * log_phi)
        look = p + (1.0 - p) * opening
        self.coin = (log_phi, look, p / look if look > 0.0 else 0.0, opening)
        d = domain.chart_dim
        self.columns = None if isinstance(loss, Linear | Squared) else Columns(d)
        self.sum, self.Z, self.H, self.free = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.ones(d, dtype=np.bool_)
        self.nu, self.level = np.zeros(1), np.zeros(1)
        self.counts = np.array([0, NEVER, 0])
        self.torn = False
        self.u: Array = np.zeros(d)
        # Before the first round there is nothing but Z: the row of zeros is not read.
        fixed = (domain.body, self.reader.code, self.reader.parameter, lam, sigma)
        self.nu[0] = renew(rng, *fixed, np.zeros((1, d)), np.zeros(1), 0, self.sum, self.Z, self.u, self.H, self.free)
        schedule(rng, self.coin, self.counts, self.level)

    @property
    def done(self) -> int:
        """Rounds taken in."""
        return int(self.counts[0])

    @property
    def due(self) -> int:
        """When the next coin has to be looked at."""
        return NEVER if self.frozen else int(self.counts[1])

    @property
    def frozen(self) -> bool:
        """Whether the budget is spent."""
        return bool(self.counts[2] >= self.cap)

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds, tossing the coins that fall due among them; changes of decision are added."""
        if not len(rows):
            return
        vectors, offsets = self.reader.plain(rows)
        start = 0
        self.torn = True
        if self.columns is not None and not self.frozen:
            start = len(self.columns)
            self.columns.append(vectors, offsets)
            vectors, offsets = self.columns.vectors, self.columns.offsets
        self.u = self.u.copy()  # the present one may have been given away
        while start < len(offsets):
            start = self._play(vectors, offsets, start, changes)
        if self.columns is not None and self.frozen:
            self.columns = Columns(self.u.size)  # nothing will ever be solved again
        self.torn = False

    def _play(self, vectors: Array, offsets: Array, start: int, changes: Changes) -> int:
        from ._perturbed_kernel import play

        places, points = np.empty(_CHANGES, dtype=np.int64), np.empty((_CHANGES, self.u.size))
        state: tuple[Any, ...] = (self.sum, self.Z, self.u, self.H, self.free)
        start, count = play(
            self.rng,
            self.domain.body,
            self.reader.code,
            self.reader.parameter,
            self.lam,
            self.sigma,
            self.coin,
            self.cap,
            vectors,
            offsets,
            start,
            state,
            self.nu,
            self.counts,
            self.level,
            (places, points),
        )
        changes.add_many(places[:count], points[:count])
        return int(start)


class ReflectedWalk(StepWalk):
    """The noisy sum of linear losses, kept or reflected round after round."""

    def __init__(self, domain: Domain, loss: Loss, rng: np.random.Generator, sigma: float, lam: float) -> None:
        super().__init__(domain, loss)
        self.rng, self.sigma, self.lam = rng, sigma, lam
        self.S, self.Z = np.zeros_like(self.u), sigma * rng.standard_normal(self.u.size)
        self.u = domain.to_chart(domain.project(domain.from_chart(-self.Z / lam)))

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from ._perturbed_kernel import reflect

        reflect(self.rng, self.domain.body, self.lam, self.sigma, vectors, self.S, self.Z, self.u.copy(), after)
