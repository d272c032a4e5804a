"""Plans of private FTRL, with Toeplitz or tree noise: what noise costs, and their planners (docs/theory, R2, R9)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
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
from reticent.systems._bounds import block_squares, chi_shares, least_at, mean_length, noise_cost
from reticent.systems._checks import LONGEST, check_body, check_firm, check_target, least_batch, machine_mu
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._grid import LARGEST_NOISE, Rounding, largest_step
from reticent.systems._plan import SystemPlan
from reticent.systems._words import number
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers

# What FTRL on noisy prefix sums costs: bounds for convex losses, linear ones (docs/theory, R2) and smooth ones (R9).


@dataclass(frozen=True)
class LeaderRegret:
    """The bounds as functions of lam, for noise whose law is known.

    `squares` is G^2 times the sum of squared batch lengths, `drift` the sum over rounds of G times the mean length of
    the noise, `power` the sum over rounds of its mean squared length, `level` the largest deviation of a coordinate.
    """

    dim: int
    radius: float
    reach: float
    squares: float
    drift: float
    level: float
    power: float = 0.0

    @classmethod
    def of(
        cls, domain: Domain, horizon: int, lipschitz: float, *, batch: int, noise: Noise, sigma: float, topped: bool
    ) -> LeaderRegret:
        """Take a run; `topped` tops the noise on every sum up to the largest."""
        n, rest = divmod(horizon, batch)
        level = played_level(noise, horizon, batch, topped)
        if topped:
            lengths = batch * max(n - 1, 0) * level + rest * level
            power = lengths * level
        else:
            lengths = batch * noise.total(n) + (rest * noise.deviation(n) if rest else 0.0)
            power = batch * noise.squares(n) + (rest * noise.deviation(n) ** 2 if rest else 0.0)
        d, G = domain.chart_dim, lipschitz
        reach = min(domain.radius, domain.diameter / 2)
        drift = G * mean_length(d) * sigma * lengths
        squares = G**2 * block_squares(horizon, batch)
        return cls(d, domain.radius, reach, squares, drift, sigma * level, d * sigma**2 * power)

    def _noiseless(self, lam: float) -> float:
        return lam * self.radius**2 / 2 + self.squares / (2 * lam)

    def convex(self, lam: float) -> float:
        """Return the bound for convex losses, which may react to decisions."""
        return self._noiseless(lam) + self.drift / lam

    def linear(self, lam: float) -> float:
        """Return the bound for linear losses that do not react: E max over r <= reach of r |N| - lam r^2/2 is added.

        The noise N has deviation `level` in each coordinate; |N|^2/level^2 is chi-square.
        """
        return self._noiseless(lam) + noise_cost(self.dim, self.reach, lam, self.level)

    def smooth(self, lam: float, smoothness: float, steps: float = 0.0) -> float:
        """Return the bound for smooth losses that do not react, where nothing is projected (docs/theory, R9).

        `steps` is the rounds of a batch times what pulls decisions back, whose curvature is in `smoothness`.
        """
        if steps >= lam:
            return math.inf
        more = self.squares / (2 * lam) * (steps / (lam - steps))
        return self._noiseless(lam) + more + smoothness * self.power / (2 * lam**2)

    def best_smooth(self, smoothness: float) -> float:
        """Return the lam that is best for that bound: radius^2 lam^3 = squares lam + 2 smoothness power there."""
        from scipy.optimize import brentq

        bend = smoothness * self.power
        low = math.sqrt(self.squares) / self.radius
        high = low + (2 * bend / self.radius**2) ** (1 / 3)

        def slope(lam: float) -> float:
            return (lam * self.radius) ** 2 - self.squares - 2 * bend / lam

        return float(brentq(slope, low * (1 - 1e-12), high * (1 + 1e-12), rtol=1e-12))

    def bound(self, lam: float, linear: bool) -> float:
        """Return the lower of the bounds that hold: what holds for all losses holds for linear ones."""
        return min(self.convex(lam), self.linear(lam)) if linear else self.convex(lam)

    def best(self, linear: bool) -> tuple[float, float]:
        """Return the best lam and its bound."""
        choices = [math.sqrt(self.squares + 2 * self.drift) / self.radius]
        if linear:
            choices.append(self.best_linear())
        bound, lam = min((self.bound(lam, linear), lam) for lam in choices)
        return lam, bound

    def best_linear(self) -> float:
        """Return the lam that is best for the bound for linear losses."""
        from scipy.optimize import brentq

        low = math.sqrt(self.squares) / self.radius
        if self.level == 0:
            return low
        high = math.sqrt(self.squares + self.dim * self.level**2) / self.radius
        # The derivative in lam, times 2 lam^2, is at most 0 at low and at least 0 at high.
        return float(brentq(self._slope, low * (1 - 1e-12), high * (1 + 1e-12), rtol=1e-12))

    def _slope(self, lam: float) -> float:
        inside, _, beyond = chi_shares(self.dim, lam * self.reach / self.level)
        taken = self.level**2 * self.dim * inside + (lam * self.reach) ** 2 * beyond
        return (lam * self.radius) ** 2 - self.squares - taken


def played_level(noise: Noise, horizon: int, batch: int, topped: bool) -> float:
    """Return the largest deviation of the noise on a sum that is played: that of all batches only if more rounds come.

    >>> [played_level(Tree(False), 4, batch, topped=False) for batch in (1, 2, 3, 4, 5)]
    [1.4142135623730951, 1.0, 1.0, 0.0, 0.0]
    """
    n, rest = divmod(horizon, batch)
    played = n if rest else n - 1
    return noise.largest(n if topped and played else played)


def _firm(domain: Domain, deviation: float) -> float:
    """Return the least lam at which noise of that deviation is not too large beside the steps of the grid."""
    return deviation / (LARGEST_NOISE * float(domain.grid.min()))


# Plans of private FTRL, with Toeplitz or tree noise, and their planners (docs/theory, R2).
NOISES = ("toeplitz", "toeplitz-exact", "tree")
LONGEST_TABLE = 2_000_000  # batches whose noise is drawn in advance, at most
_HEAVIEST = 0.9  # weights of buffers in all: the square root's coefficient is 1/2, and at 1 noise no longer settles
# Beyond these the deviations of the noise lose their digits; fits for up to 1e12 batches are far from them.
_LIGHTEST, _SLOWEST = 1e-9, 1 - 1e-13
MOST_BATCHES = 10**12  # of planned ones


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
        return _firm(self.comparators, self.sigma * self.mechanism.largest(self.batches))

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
            return max(inside - _full(self.batches * self.batch, self.lipschitz), 0.0)
        reach = self.body.radius + _full(1, self.lipschitz) / self.pull + 2 * self._step
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
        if not isinstance(loss, _SMOOTH):
            raise ValueError(
                f"loss must be smooth with slopes that are bounded everywhere (Logistic, Huber, Linear, or Custom, on "
                f"trust) for this plan of {self.system}, got {loss!r}: decisions may leave the body of comparators; "
                "plan_ftrl without smoothness takes any convex loss, and so does PCOMW"
            )


_SMOOTH = (Linear, Logistic, Huber, Custom)


def _full(rounds: int, lipschitz: float) -> float:
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


# Planners of private FTRL: the best regulariser and batches for a goal (docs/theory, R2).

__all__ = ["SYSTEMS", "FTRLPlan", "SmoothFTRLPlan", "TreeLeaderPlan", "plan_agarwal_singh", "plan_ftrl"]

_FEW, _COARSE, _FINE = 20, 40, 8  # batches tried: for each small number of them, over all lengths, and in a valley
_VALLEYS = 6  # that are looked at more closely, twice
_SPARE = 0.05  # the share of mu that may be spent on the last bits of large noise
_ASTRAY = 1e-20  # the chance that a plan for smooth losses leaves for noise to take decisions to the surface: nothing


def plan_ftrl(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    noise: str = "toeplitz",
    batch: int | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
    linear: bool = False,
    smoothness: float | None = None,
    reach: float | None = None,
) -> FTRLPlan:
    """Return DP-FTRL with the best regulariser and, unless `batch` is given, the best batches.

    `noise` is "toeplitz" (streams, and is within 0.5% of the exact), "toeplitz-exact" (drawn in advance, for up to two
    million batches) or "tree" (as first published). `max_switches` is a hard cap. `linear` is for linear losses that do
    not react to decisions, whose bound is far lower.

    `smoothness` bounds the second derivatives of losses that do not react: the plan is a `SmoothFTRLPlan` then, with a
    far lower bound against `domain`, and decisions that may leave it (`plan.domain` is a larger ball). `reach` is how
    far from the centre they may go; the nearer that is to the radius of `domain`, the more it costs.

    >>> from reticent.domains import Ball
    >>> plan = plan_ftrl(Ball(10), 100_000, 1.0, 1.0, 1e-6)
    >>> plan.regret_bound / 1e5 < 0.0457, round(plan.account().epsilon(1e-6), 6)
    (True, 1.0)
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {noise!r}")
    least = least_batch(T, max_switches)
    if noise == "toeplitz" and batch is None:
        least = max(least, -(-T // MOST_BATCHES))
    change = 2 * G if neighbors == "replace" else G
    # Buffers are within 0.5% of the square root, which has no fit to wait for.
    law: Noise = Tree(True) if noise == "tree" else SquareRoot()
    topped = linear and noise == "tree"
    if reach is not None and smoothness is None:
        raise ValueError(f"reach is for plans with smoothness, got {reach!r} without; decisions stay in the domain")
    if smoothness is not None:
        smoothness = positive("smoothness", smoothness)
        check_flat(domain)
        if linear:
            raise ValueError(f"smoothness must be left out where linear=True, got {smoothness!r}")

    def size(b: int, law: Noise, rough: float = 1.0) -> tuple[float, LeaderRegret]:
        n = max(T // b, 1)
        machine = Rounding.of(domain, T, n)
        mu = machine.rougher(rough).narrowed(most)
        mu = max(mu, 1e-6 * most)  # what is too rough is very expensive
        sigma = change / mu * law.sensitivity(n, n if topped else 0)
        return sigma, LeaderRegret.of(domain, T, G, batch=b, noise=law, sigma=sigma, topped=topped)

    def free(regret: LeaderRegret) -> float:
        return regret.best(linear)[0] if smoothness is None else regret.best_smooth(smoothness)

    def settle(b: int, law: Noise) -> tuple[float, LeaderRegret, float, float]:
        spare = _SPARE * most / (2 * Rounding.of(domain, T, max(T // b, 1)).distance)
        deviation = law.largest(T // b)
        return _settled(partial(size, b, law), free, lambda sigma: _firm(domain, sigma * deviation), spare)

    def price(b: int) -> float:
        _, regret, _, lam = settle(b, law)
        return regret.bound(lam, linear) if smoothness is None else regret.smooth(lam, smoothness)

    if batch is not None:
        b = integer("batch", batch, least=1)
        if b < least:
            raise ValueError(
                f"batch must be at least {least} for at most {max_switches} switches in {T} rounds, got {batch}"
            )
    else:
        # The sensitivity of a tree jumps where its levels do: there are better batches just before.
        levels = [T // 2**k + 1 for k in range(T.bit_length())] if noise == "tree" else []
        b = best_batch(price, least, T, levels)
    machine_mu(target, domain, max(T // b, 1))  # refuses what rounding makes impossible
    fit = fit_buffers(T // b) if noise == "toeplitz" else ((), ())
    sigma, regret, firm, lam = settle(b, Buffers(*fit) if noise == "toeplitz" else law)
    parts: dict[str, Any] = {"lam": lam, "sigma": sigma, "batch": b, "noise": noise, "weights": fit[0]}
    parts |= {"decays": fit[1], "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    if smoothness is None:
        return FTRLPlan(domain, T, G, linear=linear, **parts)
    return _within_reach(domain, T, G, smoothness, reach, regret, firm, parts)


def _settled(
    size: Callable[[float], tuple[float, LeaderRegret]],
    free: Callable[[LeaderRegret], float],
    least: Callable[[float], float],
    spare: float,
) -> tuple[float, LeaderRegret, float, float]:
    """Return the noise, the regret, the least lam that rounding then allows, and the best one.

    Where the last bits of noise would show, some of mu is spent on them, `spare` times what rounding costs else at
    most, and lam is larger if that is not enough.
    """
    sigma, regret = size(1.0)
    lam, firm = free(regret), least(sigma)
    if firm > lam:
        rough = max(1.0, min(1.1 * firm / lam, spare))
        sigma, regret = size(rough)
        lam, firm = free(regret), least(sigma) / rough
    return sigma, regret, firm, max(lam, firm)


def _within_reach(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    smoothness: float,
    reach: float | None,
    regret: LeaderRegret,
    firm: float,
    parts: dict[str, Any],
) -> SmoothFTRLPlan:
    """Return the plan for smooth losses with a ball that decisions do not leave, of radius `reach` if that is given."""
    b, d = parts["batch"], domain.dim
    n = horizon // b
    # A standard normal vector is longer than sqrt(d) + t with a chance of exp(-t^2/2) at most.
    longest = regret.level * (math.sqrt(d) + math.sqrt(2 * math.log(max(n, 1) / _ASTRAY)))

    def plan(lam: float, radius: float, pull: float) -> SmoothFTRLPlan:
        ball, more = Ball(d, radius, domain.center), {**parts, "lam": lam}
        size = (ball, horizon, lipschitz)
        return SmoothFTRLPlan(*size, body=domain, smoothness=smoothness, pull=pull, **more)

    step = largest_step(domain, cut=False)
    free = max(domain.radius, (_full(n * b, lipschitz) + longest) / parts["lam"] * (1 + 1e-12) + step)
    if reach is None or free <= positive("reach", reach):
        return plan(parts["lam"], free, 0.0)

    def pull(lam: float) -> float:
        """What keeps decisions within reach if noise is no longer than that."""
        left = reach - domain.radius - 2 * longest / lam * (1 + 1e-12) - 2 * step
        return _full(1, lipschitz) / left * (1 + 1e-12) if left > 0 else math.inf

    worst = 1e6 * lipschitz * (domain.radius + reach) * horizon

    def price(lam: float) -> float:
        if pull(lam) >= lam / b:
            return worst
        return min(regret.smooth(lam, smoothness + pull(lam), b * pull(lam)), worst)

    lam = least_at(price, max(parts["lam"] / 10, firm), parts["lam"] * 1e4)
    if price(lam) == worst:
        raise ValueError(
            f"reach must be greater than the radius {domain.radius:g} of the domain, and by enough for noise, got "
            f"{reach!r}"
        )
    return plan(lam, reach, pull(lam))


def plan_agarwal_singh(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    neighbors: str = "replace",
) -> TreeLeaderPlan:
    """Return Agarwal and Singh's FTRL for linear losses, with the best regulariser.

    >>> from reticent.domains import Ball
    >>> plan = plan_agarwal_singh(Ball(10), 100_000, 1.0, 1.0, 1e-6)
    >>> plan.regret_bound < 2 * 100_000**0.5
    True
    """
    check_body(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, most = target.horizon, target.lipschitz, target.largest_mu()
    law, machine = Tree(False), Rounding.of(domain, T, T)
    machine_mu(target, domain, T)  # refuses what rounding makes impossible

    def size(rough: float) -> tuple[float, LeaderRegret]:
        mu = machine.rougher(rough).narrowed(most)
        sigma = (2 * G if neighbors == "replace" else G) / mu * law.sensitivity(T, T)
        return sigma, LeaderRegret.of(domain, T, G, batch=1, noise=law, sigma=sigma, topped=True)

    def least(sigma: float) -> float:
        return _firm(domain, sigma * law.largest(T))

    spare = _SPARE * most / (2 * machine.distance)
    sigma, _, _, lam = _settled(size, LeaderRegret.best_linear, least, spare)
    return TreeLeaderPlan(domain, T, G, lam=lam, sigma=sigma, epsilon=epsilon, delta=delta, neighbors=neighbors)


def best_batch(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> int:
    """Return the batch of the lowest price, by a coarse search and a fine one around the best, and among `others`."""
    return cheapest_batches(price, least, horizon, others)[0]


def cheapest_batches(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> list[int]:
    """Return the batches that this search looks at, the lowest price first.

    Prices jump where one full batch less fits into the horizon, and have a valley in between. Where it looks first does
    not hang on `least`, so that more switches hardly ever find less; with batches longer than the horizon nothing is
    released at all.
    """
    tried: dict[int, float] = {}

    def look(batches: Iterable[float]) -> None:
        for b in {round(x) for x in batches}:
            if b >= least and b not in tried:
                tried[b] = price(b)

    look([least, min(horizon + 1, LONGEST), *others])
    for few in range(1, _FEW + 1):
        look(np.linspace(horizon // (few + 1) + 1, horizon // few, 5).tolist())
    look(np.geomspace(1, horizon, _COARSE).tolist())
    for _ in range(2):
        known = sorted(tried)
        ends = [known[0], *known, known[-1]]
        around = zip(known, ends[:-2], ends[2:], strict=True)
        valleys = sorted((tried[b], low, high) for b, low, high in around if tried[b] <= min(tried[low], tried[high]))
        for _, low, high in valleys[:_VALLEYS]:
            look(np.geomspace(low, high, _FINE).tolist())
    return sorted(tried, key=lambda b: (tried[b], b))


def _ftrl(noise: str, linear: bool, goal: Goal) -> FTRLPlan:
    if linear and not isinstance(goal.loss, Linear):
        raise NotApplicable("its bound is for linear losses")
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, noise=noise, max_switches=cap, neighbors=near, linear=linear)


def _smooth(goal: Goal) -> FTRLPlan:
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, max_switches=cap, neighbors=near, smoothness=_bend(goal))


def _bend(goal: Goal) -> float:
    """Return a smoothness of every loss that is no steeper than the goal's Lipschitz constant everywhere.

    The learner's gate refuses rows that bend more, also those that are steeper beyond the domain only; a planner that
    is called by itself (`plan_ftrl`) takes any smoothness.
    """
    loss, G = goal.loss, goal.lipschitz
    if isinstance(loss, Linear):
        raise NotApplicable("linear losses have a plan of their own")
    if not isinstance(loss, _SMOOTH):
        raise NotApplicable("needs smooth losses with slopes that are bounded everywhere")
    known = math.inf
    if isinstance(loss, Logistic):
        known = G**2 / 4  # rows no longer than G, and a profile of second derivative 1/4
    elif isinstance(loss, Huber):
        known = (G / loss.width) ** 2  # rows no longer than G/width, and a profile of second derivative 1
    found = min(goal.smoothness or math.inf, known)
    if math.isinf(found):
        raise NotApplicable("needs a smoothness bound")
    return found


def _agarwal_singh(goal: Goal) -> TreeLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("takes linear losses only")
    return plan_agarwal_singh(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (
    System(_names.DP_FTRL, partial(_ftrl, "toeplitz", False), private=True, lazy=True),
    System(_names.DP_FTRL_LINEAR, partial(_ftrl, "toeplitz", True), private=True, lazy=True),
    System(_names.DP_FTRL_TREE, partial(_ftrl, "tree", False), private=True, lazy=True),
    System(_names.DP_FTRL_SMOOTH, _smooth, private=True, lazy=True),
    System(TreeLeaderPlan.system, _agarwal_singh, private=True),
)
