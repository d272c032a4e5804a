"""Plans of private FTRL, with Toeplitz or tree noise (docs/theory, R2), and of its smooth version (R9)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import integer, positive, vector
from reticent._core._tags import saved
from reticent.domains import Ball, Domain
from reticent.losses import Custom, Huber, Linear, Logistic, Loss
from reticent.losses._limit import SLACK
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events
from reticent.systems._checks import check_body, check_firm
from reticent.systems._grid import LARGEST_NOISE, Rounding, largest_step
from reticent.systems._plan import SystemPlan
from reticent.systems._words import number
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers
from reticent.systems.ftrl._regret import LeaderRegret

NOISES = ("toeplitz", "toeplitz-exact", "tree")
LONGEST_TABLE = 2_000_000  # batches whose noise is drawn in advance, at most
_HEAVIEST = 0.9  # weights of buffers in all: the square root's coefficient is 1/2, and at 1 noise no longer settles
# Beyond these the deviations of the noise lose their digits; fits for up to 1e12 batches are far from them.
_LIGHTEST, _SLOWEST = 1e-9, 1 - 1e-13


def firm_lam(domain: Domain, deviation: float) -> float:
    """Return the least lam at which noise of that deviation is not too large beside the steps of the grid."""
    return deviation / (LARGEST_NOISE * float(domain.grid.min()))


@lru_cache(maxsize=64)
def _buffers(weights: tuple[float, ...], decays: tuple[float, ...]) -> Buffers:
    return Buffers(weights, decays)


@dataclass(frozen=True, kw_only=True)
class NoisyLeaderPlan(SystemPlan):
    """What plans of FTRL on noisy prefix sums share: `lam`, the regulariser, and `sigma`, the noise at its source."""

    lam: float
    sigma: float

    def _check(self) -> None:
        check_body(self.domain)
        self._set(lam=check_firm("lam", self.lam, self.domain, self.lipschitz), sigma=positive("sigma", self.sigma))

    @property
    @abstractmethod
    def mechanism(self) -> Noise:
        """The noise on prefix sums, for `sigma` = 1."""

    @property
    @abstractmethod
    def topped(self) -> bool:
        """Whether the noise on every sum is topped up to one and the same law."""

    @property
    def _rounds_per_batch(self) -> int:
        return 1

    @property
    def batches(self) -> int:
        """The number of full batches: those whose gradients are ever used."""
        return self.horizon // self._rounds_per_batch

    @property
    def regret(self) -> LeaderRegret:
        """The bounds of docs/theory, R2, as functions of lam."""
        return LeaderRegret.of(
            self.comparators,
            self.horizon,
            self.lipschitz,
            batch=self._rounds_per_batch,
            noise=self.mechanism,
            sigma=self.sigma,
            topped=self.topped,
        )

    def mu(self, rounds: int | None = None) -> float:
        """Return the mu for which the first `rounds` rounds (all, unless given) are mu-GDP (docs/theory, R2)."""
        batches = (self.horizon if rounds is None else rounds) // self._rounds_per_batch
        return self.change * self.mechanism.sensitivity(batches, self.batches if self.topped else 0) / self.sigma

    def rounding(self, rounds: int) -> Rounding:
        """Return what the machine's arithmetic may add: more where noise is large, whose last bits then show."""
        found = super().rounding(rounds)
        return found.rougher(max(1.0, self.least_lam / self.lam))

    @property
    def least_lam(self) -> float:
        """The least lam for this noise at which its last bits cost no more than is allowed for (docs/theory, Q11)."""
        return firm_lam(self.comparators, self.sigma * self.mechanism.largest(self.batches))

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the sums of the batches that are full by then are mu-GDP."""
        return (gaussian(self.mu(rounds)),)

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is."""
        return gaussian_events([(self.rounding(self.horizon).widened(self.mu()), 1)])

    @property
    def max_switches(self) -> int:
        """One change after each full batch."""
        return self.batches

    def _only_linear(self, loss: Loss) -> None:
        if not isinstance(loss, Linear):
            raise ValueError(
                f"loss must be Linear() for this plan of {self.system}, got {loss!r}: its regret bound rests on "
                "gradients that do not depend on decisions; DPFTRL with a plan of linear=False and PCOMW take any "
                "convex loss"
            )


@saved("plan of DP-FTRL")
@dataclass(frozen=True, kw_only=True)
class FTRLPlan(NoisyLeaderPlan):
    """DP-FTRL: after every `batch` rounds the least of <noisy sum of all gradients, x> + `lam`/2 |x - center|^2.

    `noise` is "toeplitz" (streams with a few buffers; `weights` and `decays` are fitted to the square root unless
    given), "toeplitz-exact" (drawn in advance) or "tree" (Honaker's variance reduction). `linear` claims the lower
    bound for linear losses that do not react to decisions (docs/theory, R2).

    >>> from reticent.domains import Ball
    >>> plan = FTRLPlan(Ball(2), 1000, 1.0, lam=200.0, sigma=20.0)
    >>> len(plan.weights), round(plan.mu(), 3)
    (4, 0.18)
    """

    system: ClassVar[str] = _names.DP_FTRL
    reference: ClassVar[str] = (
        "Kairouz et al. 2021; Toeplitz noise: Fichtenberger, Henzinger and Upadhyay 2023; buffers: Dvijotham et al. "
        "2024"
    )

    batch: int = 1
    noise: str = "toeplitz"
    linear: bool = False
    weights: tuple[float, ...] = ()
    decays: tuple[float, ...] = ()

    def _check(self) -> None:
        super()._check()
        self._set(batch=integer("batch", self.batch, least=1))
        if self.noise not in NOISES:
            raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {self.noise!r}")
        if not isinstance(self.linear, bool):
            raise ValueError(f"linear must be True or False, got {self.linear!r}")
        if self.noise == "toeplitz-exact" and self.batches > LONGEST_TABLE:
            raise ValueError(
                f'noise "toeplitz-exact" is drawn in advance, for at most {LONGEST_TABLE:,} batches, got '
                f'{self.batches:,}; take noise="toeplitz", which streams, or a larger batch'
            )
        self._check_buffers()

    def _check_buffers(self) -> None:
        if self.noise != "toeplitz":
            self._set(weights=(), decays=())
            return
        weights, decays = (tuple(vector(name, getattr(self, name)).tolist()) for name in ("weights", "decays"))
        if not weights and not decays:
            weights, decays = fit_buffers(self.batches)
            self._set(weights=weights, decays=decays)
            return
        if len(weights) != len(decays):
            raise ValueError(f"weights and decays must be as many, got {len(weights)} and {len(decays)}")
        if min(weights) < _LIGHTEST or sum(weights) > _HEAVIEST:
            raise ValueError(f"weights must be at least {_LIGHTEST}, and {_HEAVIEST} at most in all, got {weights!r}")
        if min(decays) <= 0 or max(decays) > _SLOWEST:
            raise ValueError(f"decays must be greater than 0 and at most 1 - 1e-13, got {decays!r}")
        self._set(weights=weights, decays=decays)

    @property
    def adversary(self) -> str:  # type: ignore[override]
        """For whom the regret bound holds."""
        return "oblivious" if self.linear else "adaptive"

    @property
    def assumes(self) -> str:  # type: ignore[override]
        """What the certificates rest on, in words."""
        return "linear losses" if self.linear else "convex losses"

    @property
    def mechanism(self) -> Noise:
        """The noise on prefix sums, for `sigma` = 1."""
        if self.noise == "tree":
            return Tree(True)
        return _buffers(self.weights, self.decays) if self.noise == "toeplitz" else SquareRoot()

    @property
    def topped(self) -> bool:
        """Tree noise rises and falls; the bound for linear losses needs a deviation that does not fall."""
        return self.linear and self.noise == "tree"

    @property
    def _rounds_per_batch(self) -> int:
        return self.batch

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory: R2, or R9 for smooth losses."""
        return self._bound + self.grid_regret

    @property
    def _bound(self) -> float:
        """The bound but for what the grid may cost."""
        return self.regret.bound(self.lam, self.linear)

    def check_loss(self, loss: Loss) -> None:
        """Refuse all but linear losses if the plan is for those."""
        if self.linear:
            self._only_linear(loss)

    @property
    def excess(self) -> float:
        """The certificate as a multiple of what exact Toeplitz noise of the same privacy and batches could have."""
        return self._bound / self._exact.best(self.linear)[1]

    @property
    def _exact(self) -> LeaderRegret:
        noise = SquareRoot()
        most = max(self.batches, 1)
        sigma = self.sigma * noise.sensitivity(most) / self.mechanism.sensitivity(most)
        size = (self.comparators, self.horizon, self.lipschitz)
        return LeaderRegret.of(*size, batch=self.batch, noise=noise, sigma=sigma, topped=False)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What noise costs: in regret for the approximation, in memory for exact noise."""
        if self.noise == "toeplitz":
            if not self.certifies:
                return (f"Noise by {len(self.weights)} buffers: privacy is that of its own coefficients.",)
            return (
                f"Noise by {len(self.weights)} buffers: privacy and regret are those of its own coefficients, and the "
                f"regret bound is {self.excess:.5f} times what exact square-root Toeplitz noise could have.",
            )
        if self.noise == "toeplitz-exact":
            size = 8 * self.batches * self.domain.chart_dim / 1e6
            return (f"The noise of all batches is drawn in advance: {number(float(f'{size:.3g}'))} MB of memory.",)
        return ()

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the system; of buffers only their number."""
        rows = [row for row in super().parameters() if row[0] not in ("weights", "decays")]
        return [*rows, ("buffers", str(len(self.weights)))] if self.noise == "toeplitz" else rows


@saved("plan of smooth DP-FTRL")
@dataclass(frozen=True, kw_only=True)
class SmoothFTRLPlan(FTRLPlan):
    """DP-FTRL whose decisions are as good as not projected, for losses that are smooth: noise costs in second order.

    Regret is certified against `body`, and decisions live in `domain`, a larger ball around the same centre: so large
    that the noise takes them to its surface with a chance that is in the certificate. `smoothness` bounds the second
    derivatives of every round's loss, and `lipschitz` its slope, on all of `domain`. `pull` times the squared distance
    from the smallest ball around `body`, halved, is added to every loss: it keeps decisions near (docs/theory, R9).

    >>> from reticent.domains import Ball
    >>> from reticent.planning import plan_ftrl
    >>> plan = plan_ftrl(Ball(10), 1_000_000, 1.0, 1.0, 1e-6, smoothness=0.25)
    >>> plan.comparators, plan.domain.radius > 100, plan.regret_bound / 1e6 < 0.0019
    (Ball(10, 1.0), True, True)
    """

    system: ClassVar[str] = _names.DP_FTRL_SMOOTH
    farthest: ClassVar[str] = "(radius of the ball of decisions + radius of the body)"

    smoothness: float
    body: Domain
    pull: float = 0.0

    def _check(self) -> None:
        super()._check()
        self._set(smoothness=positive("smoothness", self.smoothness), pull=positive("pull", self.pull, zero=True))
        if self.batch * self.pull >= self.lam:
            raise ValueError(f"pull must be less than lam/batch = {self.lam / self.batch:g}, got {self.pull!r}")
        if self.linear:
            raise ValueError("linear must be False for a plan for smooth losses, got True; leave smoothness out")
        check_flat(self.body)
        inside = isinstance(self.domain, Ball) and np.array_equal(self.domain.center, self.body.center)
        if not inside or self.domain.radius < self.body.radius:
            raise ValueError(
                f"domain must be a ball around the centre of the comparators' body {self.body!r} that holds it, got "
                f"{self.domain!r}; plan_ftrl(..., smoothness=...) finds one"
            )

    @property
    def comparators(self) -> Domain:
        """Whom the regret bound is against: `body`."""
        return self.body

    @property
    def trivial_regret(self) -> float:
        """What the regret of any decisions in `domain` is below: they may be far from `body`."""
        return self.lipschitz * (self.domain.radius + self.body.radius) * self.horizon

    @property
    def adversary(self) -> str:  # type: ignore[override]
        """For whom the regret bound holds: losses that do not react."""
        return "oblivious"

    @property
    def assumes(self) -> str:  # type: ignore[override]
        """What the certificates rest on, in words."""
        return f"smooth losses, decisions up to {number(float(f'{self.domain.radius:.3g}'))} from the centre"

    @property
    def astray(self) -> float:
        """A bound on the chance that any decision of a run is stopped at the surface of the domain."""
        level = self.regret.level
        return min(1.0, self.batches * _beyond(self.domain.dim, self._room / level)) if level else 0.0

    @property
    def _room(self) -> float:
        """How long noise may be for decisions to stay inside: gradients, the grid and what pulls take up the rest."""
        if not self.pull:
            inside = self.lam * (self.domain.radius - self._step)
            return max(inside - longest_sum(self.batches * self.batch, self.lipschitz), 0.0)
        reach = self.body.radius + longest_sum(1, self.lipschitz) / self.pull + 2 * self._step
        return max(self.lam * (self.domain.radius - reach) / 2, 0.0)

    @property
    def _step(self) -> float:
        """How far the grid moves a decision."""
        return largest_step(self.body, self.cut) if self.on_grid else 0.0

    @property
    def grid_regret(self) -> float:
        """What the grid may cost: gradients are longer where decisions are pulled back."""
        kept = 1 - self.batch * self.pull / self.lam
        second = -(-self.horizon // self.batch) * self.lam * self._step**2 / 2 if self.pull else 0.0
        return (super().grid_regret + second) / kept

    @property
    def _bound(self) -> float:
        """The bound of docs/theory, R9, or of R2 where that is lower."""
        found = self.regret
        best = found.smooth(self.lam, self.smoothness + self.pull, self.batch * self.pull)
        best += self.astray * self.trivial_regret
        return best if self.pull else min(found.convex(self.lam), best)

    @property
    def excess(self) -> float:
        """The certificate as a multiple of what exact Toeplitz noise of the same privacy and batches could have."""
        exact = self._exact
        lam = self.lam if self.pull else exact.best_smooth(self.smoothness)
        return self._bound / exact.smooth(lam, self.smoothness + self.pull, self.batch * self.pull)

    def losses_in_words(self) -> str:
        """Say for which losses the regret bound holds, and against whom."""
        return (
            f"The fixed decision is one of {self.body!r}; the learner's own may leave that, up to "
            f"{self.domain.radius:.3g} from the centre. This holds for losses whose second derivatives are at most "
            f"{self.smoothness:g}, and that do not react to decisions ({self.system}: {self.reference})."
        )

    def exactness_in_words(self) -> str:
        """Say what the method itself takes for granted."""
        checked = "rows are checked, custom losses taken on trust"
        return f"second derivatives of losses are at most {self.smoothness:g} everywhere ({checked});"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Where decisions live."""
        where = (
            f"Decisions may leave {self.body!r}, which regret is against: they live in {self.domain!r}. Losses are "
            "smooth and no steeper than the Lipschitz constant on all of that."
        )
        return (where, *super().remarks)

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that are not smooth, or whose slope has no bound far from the centre."""
        if not isinstance(loss, SMOOTH):
            raise ValueError(
                f"loss must be smooth with slopes that are bounded everywhere (Logistic, Huber, Linear, or Custom, on "
                f"trust) for this plan of {self.system}, got {loss!r}: decisions may leave the body of comparators; "
                "plan_ftrl without smoothness takes any convex loss, and so does PCOMW"
            )


SMOOTH = (Linear, Logistic, Huber, Custom)


def longest_sum(rounds: int, lipschitz: float) -> float:
    """Return how long a sum of gradients can be, with what the gate lets through for rounding."""
    return rounds * lipschitz * (1 + 2 * SLACK)


def _beyond(dim: int, length: float) -> float:
    """Return the chance that a standard normal vector is longer."""
    from scipy.special import gammaincc

    return float(gammaincc(dim / 2, min(length, 1e150) ** 2 / 2))


def check_flat(domain: Domain) -> None:
    """Refuse bodies that lie in a subspace: a larger ball around them would leave it."""
    check_body(domain)
    if domain.chart_dim != domain.dim:
        raise ValueError(
            f"domain must have an inside for decisions that may leave it, got {domain!r}; plan without smoothness"
        )


@saved("plan of Agarwal-Singh")
@dataclass(frozen=True, kw_only=True)
class TreeLeaderPlan(NoisyLeaderPlan):
    """FTRL for linear losses on the prefix sums of a binary tree, all topped up to one law (Agarwal and Singh).

    Regret is at most lam R^2/2 + T G^2/(2 lam) + E h(|N|), h(z) = max over r <= D/2 of r z - lam r^2/2, N the noise on
    a sum: privacy costs nothing in the leading term (docs/theory, R2).

    >>> from reticent.domains import Ball
    >>> TreeLeaderPlan(Ball(2), 1000, 1.0, lam=40.0, sigma=30.0).max_switches
    1000
    """

    system: ClassVar[str] = _names.AGARWAL_SINGH
    reference: ClassVar[str] = "Agarwal and Singh 2017"
    assumes: ClassVar[str] = "linear losses"
    adversary: ClassVar[str] = "oblivious"

    @property
    def mechanism(self) -> Noise:
        """The noise on prefix sums, for `sigma` = 1."""
        return Tree(False)

    @property
    def topped(self) -> bool:
        """All sums have one law."""
        return True

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R2."""
        return self.regret.linear(self.lam) + self.grid_regret

    def check_loss(self, loss: Loss) -> None:
        """Refuse all but linear losses."""
        self._only_linear(loss)
