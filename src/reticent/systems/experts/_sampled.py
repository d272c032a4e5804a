"""Experts drawn from private leaders on the simplex: noisy sums of losses, and a draw that costs nothing more."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._random import apart
from reticent._core._tags import saved
from reticent.domains import Ball, Domain, Simplex
from reticent.losses import Linear, Rows
from reticent.privacy._account import Statement
from reticent.saving import refuse_unless
from reticent.systems._bounds import block_squares
from reticent.systems._checks import check_target, least_batch, machine_mu
from reticent.systems._decider import Changes, Decider
from reticent.systems._goal import Goal, System
from reticent.systems._grid import LARGEST_NOISE, Rounding, largest_step
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk
from reticent.systems.experts._hedge import ExpertsPlan, check_experts, weights_regret
from reticent.systems.experts._learner import ExpertsLearner, ExpertsWalk
from reticent.systems.ftrl._learner import NoisyLeader
from reticent.systems.ftrl._noise import Buffers, Noise, SquareRoot, Tree, fit_buffers
from reticent.systems.ftrl._plan import MOST_BATCHES, FTRLPlan, cheapest_batches, plan_ftrl, played_level


def steepness(n: int) -> float:
    """Return how long a vector of `n` numbers of range 1 can be once its mean is taken off (docs/theory, R4i).

    >>> round(steepness(2), 6), steepness(4)
    (0.707107, 1.0)
    """
    return math.sqrt((n // 2) * (n - n // 2) / n)


@dataclass(frozen=True, kw_only=True)
class DrawnPlan(ExpertsPlan):
    """What plans share whose experts are drawn from noisy sums of losses: the sums are released, draws reveal no more.

    `leader` is the plan of the sums, whose claim of privacy is made here, not there.
    """

    leader: ClassVar[Any]

    @property
    @abstractmethod
    def steps(self) -> Array:
        """The steps of the public grid of what is released, in the chart of the simplex."""

    @property
    def max_switches(self) -> int:
        """One change after each full batch."""
        return int(self.leader.max_switches)

    def statements(self, rounds: int) -> tuple[Statement, ...]:
        """Return what is proved of the leader: what is drawn from it is post-processing."""
        found: tuple[Statement, ...] = self.leader.statements(rounds)
        return found

    def in_floating_point(self, rounds: int) -> tuple[Statement, ...]:
        """Return the statements with what rounding may add to what experts are drawn from."""
        found: tuple[Statement, ...] = self.leader.in_floating_point(rounds)
        return found

    def dp_event(self) -> Any:
        """Return the Gaussian event that a run is."""
        return self.leader.dp_event()


@saved("plan of the drawn leader")
@dataclass(frozen=True, kw_only=True)
class DrawnLeaderPlan(DrawnPlan):
    """DP-FTRL on the simplex of probabilities, whose point after every `batch` rounds says how an expert is drawn.

    `lam` is the regulariser and `sigma` the noise at its source, `weights` and `decays` are those of Toeplitz noise as
    in `FTRLPlan`. The point is released as in DP-FTRL, and an expert drawn from it reveals no more; in the mean it
    loses what the point does (docs/theory, R4i).

    >>> from reticent.domains import Experts
    >>> plan = plan_drawn_leader(Experts(3), 1_000_000, 1.0, epsilon=0.1, delta=1e-6)
    >>> plan.regret_bound < 800, round(plan.account().epsilon(1e-6), 6)
    (True, 0.1)
    """

    system: ClassVar[str] = _names.DRAWN_LEADER
    reference: ClassVar[str] = "Agarwal and Singh 2017 (FTRL on the simplex); Kairouz et al. 2021 (the noise)"

    lam: float
    sigma: float
    batch: int = 1
    weights: tuple[float, ...] = ()
    decays: tuple[float, ...] = ()

    def _check(self) -> None:
        super()._check()
        checked = self.leader
        self._set(lam=checked.lam, sigma=checked.sigma, batch=checked.batch)
        self._set(weights=checked.weights, decays=checked.decays)

    @cached_property
    def leader(self) -> FTRLPlan:
        """The plan of the leader on the simplex; its own claim of privacy is made here, not there."""
        return FTRLPlan(
            Simplex(self.n),
            self.horizon,
            steepness(self.n) * self.lipschitz,
            lam=self.lam,
            sigma=self.sigma,
            batch=self.batch,
            linear=True,
            weights=self.weights,
            decays=self.decays,
            neighbors=self.neighbors,
        )

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R4i."""
        return self.leader.regret_bound + self.leader.lipschitz * self.horizon * self._step

    @property
    def _step(self) -> float:
        """How far rounding may move the point that experts are drawn from."""
        return largest_step(self.leader.domain, cut=False) if self.private else 0.0

    @property
    def steps(self) -> Array:
        """The grid of the simplex."""
        return self.leader.grid


def plan_drawn_leader(
    domain: Domain,
    horizon: int,
    lipschitz: float,
    epsilon: float,
    delta: float,
    *,
    batch: int | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
) -> DrawnLeaderPlan:
    """Return the private leader on the simplex, from which experts are drawn, of least certified regret.

    It is best for two or three experts; for more see `plan_agarwal_singh_experts`, and for few changes
    `plan_private_dartboard`.
    `max_switches` is a hard cap, through batches.

    >>> from reticent.domains import Experts
    >>> plan_drawn_leader(Experts(5), 10_000, 1.0, 1.0, 1e-6, max_switches=100).max_switches
    100
    """
    check_experts(domain)
    n = domain.dim
    found = plan_ftrl(
        Simplex(n),
        horizon,
        steepness(n) * lipschitz,
        epsilon,
        delta,
        batch=batch,
        max_switches=max_switches,
        neighbors=neighbors,
        linear=True,
    )
    return DrawnLeaderPlan(
        domain,
        found.horizon,
        lipschitz,
        lam=found.lam,
        sigma=found.sigma,
        batch=found.batch,
        weights=found.weights,
        decays=found.decays,
        epsilon=found.epsilon,
        delta=found.delta,
        neighbors=neighbors,
    )


def _propose(goal: Goal) -> DrawnLeaderPlan:
    return plan_drawn_leader(*goal.target, max_switches=goal.max_switches, neighbors=goal.neighbors)


DRAWN = System(DrawnLeaderPlan.system, _propose, private=True, lazy=True, experts=True)


# Exponential weights on noisy sums: Agarwal and Singh's regularised leader of experts, with entropy (docs/theory, R4j).

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


@saved("drawn leader")
class DrawnLeader(ExpertsLearner):
    """Follows an expert drawn from the probabilities that DP-FTRL releases, and keeps it as long as these allow.

    Algorithm: p_1 is uniform; after batch k, p_{k+1} is the point of the simplex nearest to -(S_k + N_k)/lam around
    the centre, S_k the sums of the experts' losses and N_k correlated Gaussian noise. The expert in play stays with
    probability min(1, p_{k+1}/p_k) of its own; else one is drawn from the positive part of p_{k+1} - p_k. So its law
    given the points is p_{k+1}, with as few changes as two such laws allow.
    Theorem: private as DP-FTRL is, also for losses that react to decisions; expected regret is that of DP-FTRL for
    linear losses on the simplex, for losses that do not (docs/theory, R4i). Linear losses over experts, of range G.
    References: Agarwal and Singh 2017; Kairouz et al. 2021. Derived from these.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_drawn_leader(rt.Experts(3), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.DrawnLeader(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (10_000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound, learner.spent() <= 1
    (1, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = DrawnLeaderPlan

    def _new_walk(self) -> Decider:
        return Drawn(self.plan.n, self._rng, _leader(self.plan, self._rng))


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
        return Weighing(self.plan.n, self._rng, _leader(self.plan, self._rng), self.plan.beta)


def _leader(plan: DrawnPlan, rng: np.random.Generator) -> NoisyLeader:
    """Return the walk of noisy sums, on the grid of the plan if that is private."""
    leader = NoisyLeader(plan.leader, Linear(), rng)
    if plan.private:
        leader.steps = plan.steps
    return leader


@saved("walk of the drawn leader")
class Drawn(ExpertsWalk):
    """The walk of a leader on the simplex, with noise or without, and an expert drawn from where it stands."""

    _moves = ("leader", "own", "chances")

    def __init__(self, n: int, rng: np.random.Generator, leader: StepWalk) -> None:
        """Start with an expert of the uniform law."""
        super().__init__(n, rng, leader.batch)
        self.leader = leader
        # The leader draws the noise of a whole block of rounds before the first expert of it is drawn.
        self.own = apart(rng)
        self.chances = np.full(n, 1 / n)
        self._start(int(self.own.integers(n)))

    def _catch_up(self, found: Drawn) -> None:
        refuse_unless(found.leader.done == found.done, "its leader has not taken in the rounds that it has")

    def _check_moved(self) -> None:
        super()._check_moved()
        told = self._law(self.leader.u[None])[0]
        same = np.allclose(self.chances, told, rtol=1e-9, atol=1e-12)
        refuse_unless(same, f"its chances {self.chances!r} are not those at the point of its leader")

    def _law(self, points: Array) -> Array:
        """Return the chances of experts at points that the leader has released: on the simplex, the points."""
        found: Array = np.maximum(self.leader.domain.from_chart(points), 0.0)
        return found

    def _play(self, vectors: Array, after: NDArray[np.int64]) -> None:
        from reticent.systems.experts._kernel import draw_along  # numba loads on first use

        simplex, before, found = Simplex(self.n), self.leader.done, Changes()
        self.leader.take(Rows(*simplex.pull(vectors)), found)
        points = self._law(found.points(simplex.chart_dim))
        draw_along(self.own, found.places() - before - 1, points, self.chances, self.expert, after)


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
