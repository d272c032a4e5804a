"""Plans of private FTRL, with Toeplitz or tree noise: what noise costs, and their planners (docs/theory, R2)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import integer, positive, vector
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Linear, Loss
from reticent.privacy._account import Statement, gaussian
from reticent.privacy._events import gaussian_events
from reticent.systems._bounds import block_squares, chi_shares, mean_length, noise_cost
from reticent.systems._checks import check_body, check_firm, check_target
from reticent.systems._goal import Goal, NotApplicable, System
from reticent.systems._plan import SystemPlan
from reticent.systems._words import number
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers

# What FTRL on noisy prefix sums costs: bounds for convex losses, and for linear ones (docs/theory, R2).


@dataclass(frozen=True)
class LeaderRegret:
    """The two bounds as functions of lam, for noise whose law is known.

    `squares` is G^2 times the sum of squared batch lengths, `drift` the sum over rounds of G times the mean length of
    the noise, `level` the largest deviation of a coordinate of the noise.
    """

    dim: int
    radius: float
    reach: float
    squares: float
    drift: float
    level: float

    @classmethod
    def of(
        cls, domain: Domain, horizon: int, lipschitz: float, *, batch: int, noise: Noise, sigma: float, topped: bool
    ) -> LeaderRegret:
        """Take a run; `topped` tops the noise on every sum up to the largest."""
        n, rest = divmod(horizon, batch)
        if topped:
            level = noise.largest(n)
            lengths = batch * max(n - 1, 0) * level + rest * level
        else:
            # The sum of all n batches is played only if a short one follows.
            level = noise.largest(n if rest else max(n - 1, 0))
            lengths = batch * noise.total(n) + (rest * noise.deviation(n) if rest else 0.0)
        d, G = domain.chart_dim, lipschitz
        reach = min(domain.radius, domain.diameter / 2)
        drift = G * mean_length(d) * sigma * lengths
        return cls(d, domain.radius, reach, G**2 * block_squares(horizon, batch), drift, sigma * level)

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


# Plans of private FTRL, with Toeplitz or tree noise, and their planners (docs/theory, R2).
NOISES = ("toeplitz", "toeplitz-exact", "tree")
LONGEST_TABLE = 2_000_000  # batches whose noise is drawn in advance, at most
_HEAVIEST = 0.9  # weights of buffers in all: the square root's coefficient is 1/2, and at 1 noise no longer settles
# Beyond these the deviations of the noise lose their digits; fits for up to 1e12 batches are far from them.
_LIGHTEST, _SLOWEST = 1e-9, 1 - 1e-13


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
            self.domain,
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
        return self.change * self.mechanism.sensitivity(batches) / self.sigma

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the sums of the batches that are full by then are mu-GDP."""
        return (gaussian(self.mu(rounds)),)

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is."""
        return gaussian_events([(self.mu(), 1)])

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
        """The bound of docs/theory, R2."""
        return self.regret.bound(self.lam, self.linear)

    def check_loss(self, loss: Loss) -> None:
        """Refuse all but linear losses if the plan is for those."""
        if self.linear:
            self._only_linear(loss)

    @property
    def excess(self) -> float:
        """The certificate as a multiple of what exact Toeplitz noise of the same privacy and batches could have."""
        noise = SquareRoot()
        most = max(self.batches, 1)
        sigma = self.sigma * noise.sensitivity(most) / self.mechanism.sensitivity(most)
        size = (self.domain, self.horizon, self.lipschitz)
        exact = LeaderRegret.of(*size, batch=self.batch, noise=noise, sigma=sigma, topped=False)
        return self.regret_bound / exact.best(self.linear)[1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What noise costs: in regret for the approximation, in memory for exact noise."""
        if self.noise == "toeplitz":
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
        return self.regret.linear(self.lam)

    def check_loss(self, loss: Loss) -> None:
        """Refuse all but linear losses."""
        self._only_linear(loss)


# Planners of private FTRL: the best regulariser and batches for a goal (docs/theory, R2).

__all__ = ["SYSTEMS", "FTRLPlan", "TreeLeaderPlan", "plan_agarwal_singh", "plan_ftrl"]

_COARSE, _FINE = 40, 24  # batches tried: over all lengths, and around the best of these


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
) -> FTRLPlan:
    """Return DP-FTRL with the best regulariser and, unless `batch` is given, the best batches.

    `noise` is "toeplitz" (streams, and is within 0.5% of the exact), "toeplitz-exact" (drawn in advance, for up to two
    million batches) or "tree" (as first published). `max_switches` is a hard cap. `linear` is for linear losses that do
    not react to decisions, whose bound is far lower.

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
    least = 1
    if max_switches is not None:
        # The fewest rounds per batch with so many full batches at most: a change after the last round counts as one.
        least = T // (integer("max_switches", max_switches, least=0) + 1) + 1
    unit = (2 * G if neighbors == "replace" else G) / most
    # Buffers are within 0.5% of the square root, which has no fit to wait for.
    law: Noise = Tree(True) if noise == "tree" else SquareRoot()
    topped = linear and noise == "tree"

    def size(b: int, law: Noise) -> tuple[float, LeaderRegret]:
        sigma = unit * law.sensitivity(max(T // b, 1))
        return sigma, LeaderRegret.of(domain, T, G, batch=b, noise=law, sigma=sigma, topped=topped)

    if batch is not None:
        b = integer("batch", batch, least=1)
        if b < least:
            raise ValueError(
                f"batch must be at least {least} for at most {max_switches} switches in {T} rounds, got {batch}"
            )
    else:
        # The sensitivity of a tree jumps where its levels do: there are better batches just before.
        levels = [T // 2**k + 1 for k in range(T.bit_length())] if noise == "tree" else []
        b = _best_batch(lambda b: size(b, law)[1].best(linear)[1], least, T, levels)
    fit = fit_buffers(T // b) if noise == "toeplitz" else ((), ())
    sigma, regret = size(b, Buffers(*fit) if noise == "toeplitz" else law)
    lam, _ = regret.best(linear)
    return FTRLPlan(
        domain,
        T,
        G,
        lam=lam,
        sigma=sigma,
        batch=b,
        noise=noise,
        linear=linear,
        weights=fit[0],
        decays=fit[1],
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )


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
    law = Tree(False)
    sigma = (2 * G if neighbors == "replace" else G) / most * law.sensitivity(T)
    regret = LeaderRegret.of(domain, T, G, batch=1, noise=law, sigma=sigma, topped=True)
    lam = regret.best_linear()
    return TreeLeaderPlan(domain, T, G, lam=lam, sigma=sigma, epsilon=epsilon, delta=delta, neighbors=neighbors)


def _best_batch(price: Callable[[int], float], least: int, horizon: int, others: list[int]) -> int:
    """Return the batch of the lowest price, by a coarse search and a fine one around the best, and among `others`."""
    tried = {b: price(b) for b in others if b >= least}

    def look(low: float, high: float, count: int) -> None:
        for b in {max(least, round(x)) for x in np.geomspace(low, high, count)}:
            if b not in tried:
                tried[b] = price(b)

    look(least, max(horizon, least), _COARSE)
    step = math.exp(math.log(max(horizon / least, 1.0)) / (_COARSE - 1))
    # Prices of trees have several valleys: a closer look around the best of both kinds.
    others = sorted((b for b in others if b in tried), key=lambda b: tried[b])[:2]
    for best in [min(tried, key=lambda b: (tried[b], b)), *others]:
        look(best / step, best * step, _FINE)
    return min(tried, key=lambda b: (tried[b], b))


def _ftrl(noise: str, linear: bool, goal: Goal) -> FTRLPlan:
    if linear and not isinstance(goal.loss, Linear):
        raise NotApplicable("its bound is for linear losses")
    cap, near = goal.max_switches, goal.neighbors
    return plan_ftrl(*goal.target, noise=noise, max_switches=cap, neighbors=near, linear=linear)


def _agarwal_singh(goal: Goal) -> TreeLeaderPlan:
    if not isinstance(goal.loss, Linear):
        raise NotApplicable("takes linear losses only")
    return plan_agarwal_singh(*goal.target, neighbors=goal.neighbors)


SYSTEMS = (
    System(_names.DP_FTRL, partial(_ftrl, "toeplitz", False), private=True, lazy=True),
    System(_names.DP_FTRL_LINEAR, partial(_ftrl, "toeplitz", True), private=True, lazy=True),
    System(_names.DP_FTRL_TREE, partial(_ftrl, "tree", False), private=True, lazy=True),
    System(TreeLeaderPlan.system, _agarwal_singh, private=True),
)
