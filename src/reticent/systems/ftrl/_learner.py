"""Private FTRL: DP-FTRL with Toeplitz or tree noise, and Agarwal and Singh's for linear losses."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Loss
from reticent.losses._gate import Gate
from reticent.systems._decider import Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._smooth import SmoothGateEverywhere, limit_inbox
from reticent.systems._steps import NoisyWalk
from reticent.systems.ftrl._noise import Tree, root_coefficients
from reticent.systems.ftrl._plan import FTRLPlan, NoisyLeaderPlan, SmoothFTRLPlan, TreeLeaderPlan

TABLE, BUFFERS, TREE = 0, 1, 2  # kinds of noise, as the compiled loop knows them


@saved("DP-FTRL")
class DPFTRL(SystemLearner):
    """Plays the regularised leader of all gradients so far plus noise, anew after every batch of rounds.

    Algorithm: after batch k play nearest(-(S_k + N_k)/lam) around the centre, S_k the sum of the gradients of all
    rounds so far, each at the decision it met, N_k correlated Gaussian noise: square-root Toeplitz, streamed with a few
    buffers or drawn in advance, or a binary tree with Honaker's variance reduction. Memory is d times the buffers, the
    batches, or the logarithm of the batches.
    Theorem (docs/theory, R2): mu-GDP with mu = Delta |c|/sigma, or for trees what prefixes reveal (R2e), and
    E regret <= lam R^2/2 + sum b_k^2 G^2/(2 lam) + (G/lam) sum b_k E|N_{k-1}|, both also for losses that react.
    A plan with `linear=True` takes linear losses only, and has a lower bound if they do not react. A `SmoothFTRLPlan`
    takes smooth losses, whose decisions live in a ball so large that nothing is ever projected: there noise costs
    (beta/(2 lam^2)) sum b_k E|N_{k-1}|^2 only, if losses do not react (docs/theory, R9). Assumes convex Lipschitz
    losses; neither smooth nor linear ones are needed otherwise.
    References: Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021; Denisov et al. 2022; Fichtenberger, Henzinger and
    Upadhyay 2023; Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (buffers).

    >>> import reticent as rt
    >>> plan = rt.planning.plan_ftrl(rt.Interval(-1.0, 1.0), 10_000, 1.0, 1.0, 1e-6)
    >>> learner = rt.learners.DPFTRL(plan, rt.Absolute(), seed=1)
    >>> trace = learner.observe_many(np.ones((10_000, 1)), np.full(10_000, 0.5))
    >>> float(trace.regret()) <= plan.regret_bound, learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = FTRLPlan

    def _new_gate(self) -> Gate:
        if isinstance(self.plan, SmoothFTRLPlan):
            return SmoothGateEverywhere(self.plan, self.loss, self._on_steep)
        return super()._new_gate()

    def _new_walk(self) -> Decider:
        if isinstance(self.plan, SmoothFTRLPlan):
            limit_inbox(self._inbox, self.loss, self.plan.smoothness)
        return NoisyLeader(self.plan, self.loss, self._rng)


@saved("Agarwal-Singh")
class AgarwalSingh(SystemLearner):
    """Plays the regularised leader on prefix sums from a noisy binary tree, all topped up to one law; linear losses.

    Algorithm: x_{t+1} = nearest(-(S_t + N_t)/lam), N_t the noise of the nodes of t's binary digits plus independent
    noise that makes the law of every N_t the same. Memory O(d log T).
    Theorem (docs/theory, R2): mu-GDP with the mu that prefixes reveal (R2e), also for losses that react to decisions;
    E regret <= lam R^2/2 + T G^2/(2 lam) + E max over r <= D/2 of r |N| - lam r^2/2, for losses that do not. The price
    of privacy is not in the leading term. Assumes linear losses, and refuses others. Derived from the published idea,
    with a bound of our own. Reference: Agarwal and Singh 2017.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_agarwal_singh(rt.Ball(2), 10_000, 1.0, 1.0, 1e-6)
    >>> learner = rt.learners.AgarwalSingh(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (10_000, 1)))
    >>> bool(trace.losses.mean() < -0.9), learner.spent() <= 1.0
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = TreeLeaderPlan

    def _new_walk(self) -> Decider:
        return NoisyLeader(self.plan, self.loss, self._rng)


@saved("walk of DP-FTRL")
class NoisyLeader(NoisyWalk):
    """The walk of both: sums of gradients, and noise that streams or lies ready in `state`."""

    _moves = ("total", "noise", "state")

    def __init__(self, plan: NoisyLeaderPlan, loss: Loss, rng: np.random.Generator) -> None:
        """Start at the centre."""
        super().__init__(plan.domain, loss, plan.batch if isinstance(plan, FTRLPlan) else 1)
        self.rng, self.lam, self.sigma = rng, plan.lam, plan.sigma
        self.total, self.noise = np.zeros((2, self.u.size)), np.zeros_like(self.u)  # sums in twice the precision
        self.a, self.b, self.c, self.ceiling = np.zeros(0), np.zeros(0), np.zeros(0), 0.0
        if isinstance(plan, SmoothFTRLPlan):
            self._pulled = (plan.pull, plan.body.radius)
        mechanism, d = plan.mechanism, self.u.size
        if isinstance(mechanism, Tree):
            self.kind, self.mechanism = TREE, mechanism
            self.state = np.zeros((0, d))
            self._grow(plan.batches.bit_length())
            if plan.topped:
                self.ceiling = mechanism.largest(plan.batches) ** 2
        elif isinstance(plan, FTRLPlan) and plan.noise == "toeplitz":
            self.kind = BUFFERS
            self.a, self.b = np.array(plan.weights), np.array(plan.decays)
            self.state = np.zeros((self.a.size, d))
        else:
            self.kind = TABLE
            self.state = self._drawn(plan.batches)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if self.total.ndim == 1:
            self.total = np.stack([self.total, np.zeros_like(self.total)])

    def _catch_up(self, found: NoisyLeader) -> None:
        """Make room for as many rounds as a loaded walk has taken in: it may have gone beyond its horizon."""
        self.done = found.done
        self._make_room(0)

    def _drawn(self, count: int) -> Array:
        """Return the noise of so many batches, a row each: independent noise convolved with the coefficients."""
        from scipy.fft import irfft, next_fast_len, rfft

        from reticent._core._fine import normals  # numba loads on first use

        if count == 0:
            return np.zeros((0, self.u.size))
        size = next_fast_len(2 * count, real=True)
        spectrum = rfft(root_coefficients(count), size)
        table = np.empty((count, self.u.size))
        for j in range(self.u.size):  # one at a time: transforms need several times the memory of what they return
            table[:, j] = irfft(spectrum * rfft(self.sigma * normals(self.rng, count), size), size)[:count]
        return table

    def _grow(self, levels: int) -> None:
        """Make room for nodes of more heights."""
        old = len(self.state)
        self.state = np.concatenate([self.state, np.zeros((levels - old, self.u.size))])
        self.c = self.mechanism.variances(levels)
        heights = np.arange(levels, dtype=np.float64)
        # Inverse variances: 1 for a node's own noise, 1 - 2^-h for its children's; without reduction, the own only.
        self.a = self.c
        self.b = self.c * (1 - 2**-heights) if self.mechanism.reduced else np.zeros(levels)

    def _make_room(self, rounds: int) -> None:
        """Provide for rounds beyond the horizon, which a plan without a privacy claim may have."""
        batches = (self.done + rounds) // self.batch
        if self.kind == TREE and batches.bit_length() > len(self.state):
            self._grow(batches.bit_length())
        while self.kind == TABLE and batches > len(self.state):
            # The noise starts anew, on top of what there is.
            last = self.state[-1] if len(self.state) else np.zeros_like(self.u)
            self.state = np.concatenate([self.state, last + self._drawn(max(len(self.state), 64))])

    _pulled = (0.0, 0.0)
    """How strongly decisions are pulled back, and to within which radius; walks of plans without that have no more."""

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.ftrl._kernel import lead_privately  # numba loads on first use

        self._make_room(len(offsets))
        lead_privately(
            *self._rows(code, vectors, offsets),
            self.lam,
            self.batch,
            self.done,
            self.kind,
            self.rng,
            self.sigma,
            self.a,
            self.b,
            self.c,
            self.ceiling,
            self.state,
            self.noise,
            *self.total,
            *self._pulled,
            self.u.copy(),
            after,
        )
