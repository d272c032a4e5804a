"""Exponential weights on noisy sums: the regularised leader of experts with entropy (docs/theory, R4j)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Ball, Domain, Simplex
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_target, least_batch, machine_mu
from reticent.systems._decider import Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import LARGEST_NOISE, Rounding
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk
from reticent.systems.experts._drawn_leader import Drawn, DrawnPlan, noisy_leader, steepness
from reticent.systems.experts._hedge import check_experts, weights_regret
from reticent.systems.experts._learner import ExpertsLearner
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers
from reticent.systems.ftrl._plan import FTRLPlan
from reticent.systems.ftrl._regret import played_level
from reticent.systems.ftrl._search import MOST_BATCHES, cheapest_batches

NOISES = ("toeplitz", "tree")
_DEVIATIONS = 1000.0  # noise is larger with a chance below exp(-499,000), however many sums and experts there are
_MOST_STEPS = 2.0**51  # of the grid in a sum with its noise
_LEAST_NOISE = 1e-100  # in units of lipschitz: squares and quotients stay in double precision
_FARTHEST = 1e100  # the largest radius of a domain
_CLOSER = 8  # batches that are priced with the noise that they will have


def _level(leader: FTRLPlan) -> float:
    """Return the largest deviation of the noise on a sum, in any direction."""
    return leader.sigma * leader.mechanism.largest(leader.batches)


def _reach(leader: FTRLPlan) -> float:
    """Return what no coordinate of a noisy sum within the horizon exceeds but with a chance that no number holds."""
    return leader.lipschitz * leader.horizon + _DEVIATIONS * _level(leader)


@saved("plan of weights on noisy sums")
@dataclass(frozen=True, kw_only=True)
class NoisyWeightsPlan(DrawnPlan):
    """After every `batch` rounds an expert of chance in proportion to exp(-beta * noisy sum of its losses).

    That is the regularised leader of the simplex with entropy. `sigma` is the noise at its source, `noise` its kind:
    "toeplitz" (with `weights` and `decays` as in `FTRLPlan`) or "tree", reduced Gaussian noise topped up to one law.
    Regret is at most log(n)/beta + beta (G^2 B/8 + (1 - 1/n) L^2/2), B the sum of squared batch lengths and L the
    largest deviation of the noise on a sum that is played, and 0.18 beta G T sqrt(n-1) times the step of the grid on
    which private plans release sums (docs/theory, R4j).

    >>> from reticent.domains import Experts
    >>> plan = plan_agarwal_singh_experts(Experts(100), 1_000_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> plan.regret_bound < 2000, round(plan.account().epsilon(1e-6), 6)
    (True, 1.0)
    """

    system: ClassVar[str] = _names.NOISY_WEIGHTS
    reference: ClassVar[str] = "Agarwal and Singh 2017; Toeplitz noise: Fichtenberger, Henzinger and Upadhyay 2023"

    beta: float
    sigma: float
    batch: int = 1
    noise: str = "toeplitz"
    weights: tuple[float, ...] = ()
    decays: tuple[float, ...] = ()

    def _check(self) -> None:
        super()._check()
        self._set(beta=positive("beta", self.beta), sigma=positive("sigma", self.sigma))
        if self.sigma < _LEAST_NOISE * self.lipschitz:
            raise ValueError(f"sigma must be at least {_LEAST_NOISE:g} * lipschitz, got {self.sigma!r}")
        if self.noise not in NOISES:
            raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {self.noise!r}")
        checked = self.leader
        self._set(sigma=checked.sigma, batch=checked.batch, weights=checked.weights, decays=checked.decays)

    @cached_property
    def leader(self) -> FTRLPlan:
        """The plan of the noisy sums: a leader with lam = 1 in a ball that these do not leave."""
        unit = FTRLPlan(
            Ball(self.n - 1),
            self.horizon,
            steepness(self.n) * self.lipschitz,
            lam=1.0,
            sigma=self.sigma,
            batch=self.batch,
            noise=self.noise,
            linear=True,
            weights=self.weights,
            decays=self.decays,
            neighbors=self.neighbors,
        )
        # Sums alone are at most a quarter of that long, and so is what all coordinates of the noise have in reach.
        far = 4 * math.sqrt(self.n) * _reach(unit)
        if far > _FARTHEST:
            raise ValueError(
                f"noisy sums of losses must stay below {_FARTHEST:g}, but may reach {far:.3g} with "
                f"lipschitz={self.lipschitz!r} and sigma={self.sigma!r}; choose other units"
            )
        return replace(unit, domain=Ball(self.n - 1, far))

    @property
    def level(self) -> float:
        """The largest deviation of the noise on a sum, in any direction."""
        return _level(self.leader)

    @property
    def steps(self) -> Array:
        """The step of the grid in every coordinate: the least power of two that is not too small (docs/theory, R4j).

        A deviation of the noise has no more than 2^22 steps, and a sum fewer than 2^52: beyond, its last bits show.
        """
        least = max(self.level / LARGEST_NOISE, _reach(self.leader) / _MOST_STEPS)
        part, power = math.frexp(least)
        return np.full(self.n - 1, math.ldexp(0.5 if part == 0.5 else 1.0, power))

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4j."""
        G, squares = self.lipschitz, block_squares(self.horizon, self.batch)
        noise = self.beta * (1 - 1 / self.n) * self.leader.regret.level**2 / 2
        moved = float(np.linalg.norm(self.steps)) / 2 if self.private else 0.0
        # Sums off by so long a vector, of range sqrt(2) times that, move chances by beta/4 times the range.
        grid = G * self.horizon * self.beta * math.sqrt(2) * moved / 4
        return weights_regret(self.n, self.beta, G, squares) + noise + grid

    def parameters(self) -> list[tuple[str, str]]:
        """Return the parameters of the system; of buffers only their number."""
        rows = [row for row in super().parameters() if row[0] not in ("weights", "decays")]
        return [*rows, ("buffers", str(len(self.weights)))] if self.noise == "toeplitz" else rows


def plan_agarwal_singh_experts(
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
) -> NoisyWeightsPlan:
    """Return exponential weights on noisy sums of least certified regret: Agarwal and Singh's leader for experts.

    `noise` is "toeplitz", or "tree": reduced Gaussian trees, topped up, which cost more (the paper's have Laplace
    noise). `max_switches` is a hard cap, through batches.

    >>> from reticent.domains import Experts
    >>> plan_agarwal_singh_experts(Experts(5), 10_000, 1.0, 1.0, 1e-6, max_switches=100).max_switches
    100
    """
    check_experts(domain)
    target = check_target(domain, horizon, lipschitz, epsilon, delta, neighbors)
    T, G, n, most = target.horizon, target.lipschitz, domain.dim, target.largest_mu()
    if noise not in NOISES:
        raise ValueError(f"noise must be {' or '.join(map(repr, NOISES))}, got {noise!r}")
    least = least_batch(T, max_switches)
    if batch is not None and integer("batch", batch, least=1) < least:
        raise ValueError(
            f"batch must be at least {least} for at most {max_switches} switches in {T} rounds, got {batch}"
        )
    topped = noise == "tree"
    if not topped and batch is None:
        least = max(least, -(-T // MOST_BATCHES))
    change = steepness(n) * G * (2 if neighbors == "replace" else 1)

    def size(b: int, law: Noise) -> tuple[float, float]:
        """Return the noise at its source, and twice what the best beta is multiplied by in the bound."""
        batches = max(T // b, 1)
        mu = Rounding.of(Simplex(n), T, batches).narrowed(most)
        if mu == 0:
            return math.inf, math.inf
        sigma = change / mu * law.sensitivity(batches, batches if topped else 0)
        spread = (1 - 1 / n) * (sigma * played_level(law, T, b, topped)) ** 2
        return sigma, G**2 * block_squares(T, b) / 4 + spread

    def real(b: int) -> Noise:
        return Tree(True) if topped else Buffers(*fit_buffers(T // b))

    if batch is None:
        # Buffers are within 0.5% of the square root, which has no fit to wait for: enough to find a few, not the best.
        guess: Noise = Tree(True) if topped else SquareRoot()
        levels = [T // 2**k + 1 for k in range(T.bit_length())] if topped else []
        few = cheapest_batches(lambda b: size(b, guess)[1], least, T, levels)[:_CLOSER]
        few += [
            max(least, T // (T // b + 1) + 1) for b in few
        ]  # as many batches, and the last not shorter than need be
        # Where no noise is played either way, longer batches have a finer grid.
        batch = min(few, key=lambda b: (size(b, real(b))[1], -b))
    machine_mu(target, Simplex(n), max(T // batch, 1))  # refuses what rounding makes impossible
    fit = ((), ()) if topped else fit_buffers(T // batch)
    sigma, price = size(batch, real(batch))
    return NoisyWeightsPlan(
        domain,
        T,
        G,
        beta=math.sqrt(2 * math.log(n) / price),
        sigma=sigma,
        batch=batch,
        noise=noise,
        weights=fit[0],
        decays=fit[1],
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
    )


def _weigh(goal: Goal) -> NoisyWeightsPlan:
    return plan_agarwal_singh_experts(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


WEIGHED = System(NoisyWeightsPlan.system, _weigh, private=True, lazy=True, experts=True)


@saved("weights on noisy sums")
class AgarwalSinghExperts(ExpertsLearner):
    """Follows an expert drawn from exponential weights on sums of losses with correlated noise; keeps it if it can.

    Algorithm: p_1 is uniform; after batch k, p_{k+1} is in proportion to exp(-beta (S_k + N_k)), S_k the sums of the
    experts' losses less their mean and N_k Gaussian noise, Toeplitz or of a binary tree topped up to one law. The
    expert in play changes as in `DrawnLeader`, as rarely as these laws allow.
    Theorem: private as DP-FTRL is, also for losses that react to decisions; expected regret <= log(n)/beta + beta
    (G^2 B/8 + (1 - 1/n) L^2/2 + 0.18 G T sqrt(n-1) s), B the sum of squared batch lengths, L the largest deviation of
    noise that is played and s the step of the grid of private plans, for losses that do not (docs/theory, R4j): privacy
    is not in the leading term. Linear losses over experts, of range G.
    Derived from the published idea, with a bound of our own. Reference: Agarwal and Singh 2017.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_agarwal_singh_experts(rt.Experts(3), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.AgarwalSinghExperts(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (10_000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 1
    (1, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = NoisyWeightsPlan

    def _new_walk(self) -> Decider:
        return Weighing(self.plan.n, self._rng, noisy_leader(self.plan, self._rng), self.plan.beta)


@saved("walk of weights on noisy sums")
class Weighing(Drawn):
    """The same, where minus the noisy sums are released, and chances are in proportion to exp(beta times these)."""

    def __init__(self, n: int, rng: np.random.Generator, leader: StepWalk, beta: float) -> None:
        """Start with an expert of the uniform law."""
        super().__init__(n, rng, leader)
        self.beta = beta

    def _law(self, points: Array) -> Array:
        from reticent.systems.experts._kernel import proportions

        # Without the centre, which would swallow the sums where losses are tiny.
        found: Array = proportions(self.beta, Simplex(self.n).push(points))
        return found
