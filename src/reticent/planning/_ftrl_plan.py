"""Plans of private FTRL: DP-FTRL with Toeplitz or tree noise, and Agarwal and Singh's for linear losses."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from reticent._check import integer, positive, vector
from reticent.losses import Linear, Loss
from reticent.planning._ftrl_regret import Regret
from reticent.planning._noise import Buffers, Noise, SquareRoot, Tree
from reticent.planning._noise_fit import fit_buffers
from reticent.planning._plan import check_body, check_firm
from reticent.planning._system import SystemPlan
from reticent.planning._table import number

if TYPE_CHECKING:
    from reticent.privacy._ledger import Statement

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
    def regret(self) -> Regret:
        """The bounds of docs/theory.md, R2, as functions of lam."""
        return Regret.of(
            self.domain,
            self.horizon,
            self.lipschitz,
            batch=self._rounds_per_batch,
            noise=self.mechanism,
            sigma=self.sigma,
            topped=self.topped,
        )

    def mu(self, rounds: int | None = None) -> float:
        """Return the mu for which the first `rounds` rounds (all, unless given) are mu-GDP (docs/theory.md, R2)."""
        batches = (self.horizon if rounds is None else rounds) // self._rounds_per_batch
        return self.change * self.mechanism.sensitivity(batches) / self.sigma

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return that the sums of the batches that are full by then are mu-GDP."""
        from reticent.privacy._ledger import gaussian

        return (gaussian(self.mu(rounds)),)

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is."""
        from dp_accounting import dp_event as events

        mu = self.mu()
        return events.GaussianDpEvent(1 / mu) if mu else events.NoOpDpEvent()

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


@dataclass(frozen=True, kw_only=True)
class FTRLPlan(NoisyLeaderPlan):
    """DP-FTRL: after every `batch` rounds the least of <noisy sum of all gradients, x> + `lam`/2 |x - center|^2.

    `noise` is "toeplitz" (streams with a few buffers; `weights` and `decays` are fitted to the square root unless
    given), "toeplitz-exact" (drawn in advance) or "tree" (Honaker's variance reduction). `linear` claims the lower
    bound for linear losses that do not react to decisions (docs/theory.md, R2).

    >>> from reticent.domains import Ball
    >>> plan = FTRLPlan(Ball(2), 1000, 1.0, lam=200.0, sigma=20.0)
    >>> len(plan.weights), round(plan.mu(), 3)
    (4, 0.18)
    """

    system: ClassVar[str] = "DP-FTRL"
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
        """The bound of docs/theory.md, R2."""
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
        exact = Regret.of(*size, batch=self.batch, noise=noise, sigma=sigma, topped=False)
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


@dataclass(frozen=True, kw_only=True)
class TreeLeaderPlan(NoisyLeaderPlan):
    """FTRL for linear losses on the prefix sums of a binary tree, all topped up to one law (Agarwal and Singh).

    Regret is at most lam R^2/2 + T G^2/(2 lam) + E h(|N|), h(z) = max over r <= D/2 of r z - lam r^2/2, N the noise on
    a sum: privacy costs nothing in the leading term (docs/theory.md, R2).

    >>> from reticent.domains import Ball
    >>> TreeLeaderPlan(Ball(2), 1000, 1.0, lam=40.0, sigma=30.0).max_switches
    1000
    """

    system: ClassVar[str] = "FTRL on a tree (Agarwal, Singh)"
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
        """The bound of docs/theory.md, R2."""
        return self.regret.linear(self.lam)

    def check_loss(self, loss: Loss) -> None:
        """Refuse all but linear losses."""
        self._only_linear(loss)
