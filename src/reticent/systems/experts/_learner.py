"""Learners over experts that draw from weights: Hedge, in blocks, and the shrinking dartboard, private or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.losses import Rows
from reticent.saving import refuse_unless
from reticent.systems._decider import Batched, Changes, Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems.experts._dartboard import DartboardPlan, PrivateDartboardPlan
from reticent.systems.experts._hedge import HedgePlan, LimitedSwitchingPlan

Experts = NDArray[np.int64]


class ExpertsWalk(Batched, ABC):
    """Follows one expert at a time; subclasses have one compiled loop, `_play`, over the losses of all experts."""

    _moves: ClassVar[tuple[str, ...]] = ("sums", "expert", "u")

    def __init__(self, n: int, rng: np.random.Generator, batch: int = 1) -> None:
        """Start with nothing observed; the subclass puts its first expert in play by `_start`."""
        super().__init__(batch)
        self.n, self.rng = n, rng
        self.sums: Array = np.zeros(n)
        self._start(0)

    def _start(self, expert: int) -> None:
        self.expert = expert
        self.u = one_hot(np.array([expert]), self.n)[0]

    def _check_moved(self) -> None:
        there = 0 <= self.expert < self.n and bool(self.u[self.expert] == 1.0)
        refuse_unless(there and np.count_nonzero(self.u) == 1, f"it does not follow expert {self.expert} of {self.n}")
        counts = getattr(self, "state", None)  # what compiled loops keep: the expert first
        if counts is not None:
            refuse_unless(int(counts[0]) == self.expert and int(counts.min()) >= 0, "it counts otherwise than its loop")

    @abstractmethod
    def _play(self, vectors: Array, after: Experts) -> None:
        """Take in rounds and write the expert in play after round i into `after[i]`."""

    def take(self, rows: Rows, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        after = np.empty(len(rows), dtype=np.int64)
        self.torn = True
        self._play(np.ascontiguousarray(rows.vectors), after)
        places = np.flatnonzero(np.diff(after, prepend=self.expert))
        if places.size:
            changes.add_many(places + self.done + 1, one_hot(after[places], self.n))
            self._start(int(after[-1]))
        self.done += len(after)
        self.torn = False


def one_hot(experts: Experts, n: int) -> Array:
    """Return the decisions that follow these experts, one row each.

    >>> one_hot(np.array([2, 0]), 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    rows = np.zeros((len(experts), n))
    rows[np.arange(len(experts)), experts] = 1.0
    return rows


@saved("walk of a dartboard")
class Dartboard(ExpertsWalk):
    """Draws from the weights exp(-beta sums); a coin after each batch says when. Hedge is the case p = 1."""

    _moves = ("state", "own", "low")

    def __init__(
        self, n: int, rng: np.random.Generator, *, beta: float, p: float, batch: int = 1, budget: int | None = None
    ) -> None:
        """Draw the first expert; it is no draw of the budget, for no loss has been seen."""
        super().__init__(n, rng, batch)
        self.beta, self.p = beta, p
        self.budget = (1 << 62) if budget is None else budget
        self._start(int(rng.integers(n)))
        self.state = np.array([self.expert, 0, 0])
        self.own = np.zeros(2)  # and what rounding has left of it
        self.low = np.zeros(n)  # what rounding has left of the sums

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a saved state; those of older versions have sums in single precision only."""
        vars(self).update(state)
        if "low" not in state:
            self.low = np.zeros(self.n)
        if len(self.own) == 1:
            self.own = np.append(self.own, 0.0)

    def _check_moved(self) -> None:
        super()._check_moved()
        right = self.draws <= min(self.budget, self.done) and (self.frozen or self.state[1] == self.done % self.batch)
        refuse_unless(right, f"it has made {self.draws} draws, with {self.state[1]} rounds in its batch")

    @property
    def draws(self) -> int:
        """How often an expert has been drawn since the first, the same one again included."""
        return int(self.state[2])

    @property
    def frozen(self) -> bool:
        """Whether the budget of draws is spent."""
        return self.draws >= self.budget

    def _play(self, vectors: Array, after: Experts) -> None:
        from reticent.systems.experts._kernel import dartboard  # numba loads on first use

        dartboard(
            self.rng,
            self.beta,
            self.p,
            self.batch,
            self.budget,
            vectors,
            self.sums,
            self.low,
            self.state,
            self.own,
            after,
        )


# Learners over experts that draw from weights: Hedge, in blocks, and the shrinking dartboard, private or not.


class ExpertsLearner(SystemLearner):
    """A learner that follows one of finitely many experts at a time."""

    @property
    def expert(self) -> int:
        """The number of the expert that is followed, from 0 on."""
        return int(np.argmax(self.decision))


@saved("Hedge")
class MultiplicativeWeights(ExpertsLearner):
    """Hedge: follows an expert drawn afresh from the weights exp(-beta * sum of losses) in every round.

    Theorem: expected regret <= log(n)/beta + beta G^2 T/8, for losses that do not react to the decision of their own
    round (docs/theory, R4). Linear losses over experts, each of range G at most. Not private, not lazy.
    References: Littlestone and Warmuth 1994; Freund and Schapire 1997.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_hedge(rt.Experts(3), 1000, 1.0)
    >>> learner = rt.learners.MultiplicativeWeights(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, float(trace.regret()) <= plan.regret_bound
    (1, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = HedgePlan

    def _new_walk(self) -> Decider:
        return Dartboard(self.plan.n, self._rng, beta=self.plan.beta, p=1.0)


@saved("limited switching")
class LimitedSwitching(ExpertsLearner):
    """Hedge in blocks: an expert is drawn at the end of each block, so the number of switches has a hard cap.

    Theorem: with probability 1 - failure, regret <= log(n)/beta + beta G^2 B/8 + G sqrt(B log(1/failure)/2), B the sum
    of the squared block lengths; in expectation without the last term (docs/theory, R4). For losses that do not
    react to the decision of their own block; linear, over experts. Not private.
    References: Altschuler and Talwar 2021 for the problem, whose own method is another, of a better rate; Merhav,
    Ordentlich, Seroussi and Weinberger 2002 for blocks. Derived from these published ideas.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_limited_switching(rt.Experts(3), 1000, 1.0, max_switches=50)
    >>> learner = rt.learners.LimitedSwitching(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> trace.switches <= 50, float(trace.regret()) <= plan.high_probability_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = LimitedSwitchingPlan

    def _new_walk(self) -> Decider:
        return Dartboard(self.plan.n, self._rng, beta=self.plan.beta, p=1.0, batch=self.plan.batch)


@saved("dartboard")
class ShrinkingDartboard(ExpertsLearner):
    """Keeps the expert with probability exp(-beta * its loss), else draws one from the weights exp(-beta * sums).

    Losses count from the smallest of their round. Theorem: every round has the law of Hedge, so expected regret <=
    log(n)/beta + beta G^2 T/8, with expected switches <= T (1 - exp(-beta G)) (1 - exp(-beta G)/(n-1)) for n > 2 and
    T tanh(beta G/4) for n = 2; a budget of draws adds G times the expected rounds after it is spent (docs/theory,
    R4). For losses that do not react to decisions; linear, over experts. Not private.
    Reference: Geulen, Voecking and Winkler 2010.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_dartboard(rt.Experts(3), 1000, 1.0, max_switches=20)
    >>> learner = rt.learners.ShrinkingDartboard(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (1000, 1)))
    >>> learner.expert, trace.switches
    (1, 0)
    """

    plan_type: ClassVar[type[SystemPlan]] = DartboardPlan

    def _new_walk(self) -> Decider:
        return Dartboard(self.plan.n, self._rng, beta=self.plan.beta, p=0.0, budget=self.plan.budget)

    _walk: Dartboard

    @property
    def draws(self) -> int:
        """How often an expert has been drawn since the first; one that came again did not switch."""
        return int(self._walk.draws)


@saved("private dartboard")
class PrivateDartboard(ExpertsLearner):
    """The shrinking dartboard with coins of probability p that force a draw: its decisions are private.

    Algorithm: after each batch, with probability p draw an expert from the weights exp(-beta * sums), else keep the one
    in play with probability exp(-beta * its loss in the batch), else draw; after `budget` draws it stays.
    Theorem: the decisions are (epsilon, delta)-private as `plan.account()` says, also for losses that react to them:
    one coin, of the changed batch, whose chances differ by a factor exp(beta G) at most, and draws of range beta Delta.
    Expected regret <= log(n)/beta + beta G^2 B/8 (B the sum of squared batch lengths) plus what comes after the budget
    is spent, for losses that do not react (docs/theory, R4). Linear losses over experts.
    Reference: Asi, Feldman, Koren and Talwar 2023; the account is derived anew.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_private_dartboard(rt.Experts(3), 10_000, 1.0, epsilon=1.0, delta=1e-6)
    >>> learner = rt.learners.PrivateDartboard(plan, rt.Linear(), seed=1)
    >>> trace = learner.observe_many(np.tile([1.0, 0.0, 0.5], (10_000, 1)))
    >>> learner.expert, learner.draws <= plan.budget, learner.spent() <= 1
    (1, True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = PrivateDartboardPlan

    def _new_walk(self) -> Decider:
        plan = self.plan
        return Dartboard(plan.n, self._rng, beta=plan.beta, p=plan.p, batch=plan.batch, budget=plan.budget)

    _walk: Dartboard

    @property
    def draws(self) -> int:
        """How often an expert has been drawn since the first (secret: a draw may bring the same expert again)."""
        return int(self._walk.draws)
