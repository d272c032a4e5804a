"""Independent losses of one law: a handful of switches are enough, each to an average of hidden descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent._core import _names
from reticent._core._check import Array, integer, positive
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.saving import refuse_unless
from reticent.systems._checks import check_body
from reticent.systems._decider import Decider
from reticent.systems._learner import SystemLearner
from reticent.systems._plan import SystemPlan
from reticent.systems._steps import StepWalk

# Epochs that are searched, and how much longer one may be than the one before: 64 doublings are more than any horizon.
_MOST_EPOCHS = 64
_RATIOS = np.exp(np.linspace(math.log(1.2), math.log(1e6), 200))
_PATIENCE = 6  # so many more epochs without a lower bound end the search


@saved("plan of averaged descent")
@dataclass(frozen=True, kw_only=True)
class IndependentPlan(SystemPlan):
    """Averages of hidden descent, one for each of the epochs of `lengths`, for losses that are independent and alike.

    The first epoch plays the centre; in each epoch but the last descent runs hidden, from the centre, and the next
    epoch plays the average of its points. Expected regret is at most G R (n_1 + sum of n_k/sqrt(n_{k-1}) + sqrt(T)),
    n_k the lengths (docs/theory, R5k).

    >>> from reticent.domains import Ball
    >>> plan = plan_independent(Ball(3), 10**6, 1.0)
    >>> plan.max_switches, round(plan.regret_bound)
    (13, 4326)
    >>> [round(plan_independent(Ball(3), 10**6, 1.0, max_switches=S).regret_bound) for S in (2, 4)]
    [8371, 5213]
    """

    system: ClassVar[str] = _names.INDEPENDENT
    reference: ClassVar[str] = "after Sherman and Koren 2021; Cesa-Bianchi, Conconi and Gentile 2004 (averages)"
    assumes: ClassVar[str] = "convex losses that are independent draws of one law"
    adversary: ClassVar[str] = "oblivious"

    lengths: tuple[int, ...]

    def _check(self) -> None:
        check_body(self.domain)
        self._set(lengths=tuple(integer("lengths", length, least=1) for length in self.lengths))
        if sum(self.lengths) != self.horizon:
            raise ValueError(
                f"lengths must add up to the horizon of {self.horizon}, got {self.lengths!r} of sum "
                f"{sum(self.lengths)}; plan_independent chooses them"
            )

    def check_loss(self, loss: Loss) -> None:
        """Refuse losses that can only be read at the decision in play."""
        if isinstance(loss, Custom):
            raise ValueError(
                f"loss must be Linear() or a generalised linear loss for {self.system}, got {loss!r}: its gradients "
                "are taken at hidden points; plan_descent in blocks takes any convex loss"
            )

    @property
    def regret_bound(self) -> float:
        """The bound of docs/theory, R5k."""
        return float(_cost(np.array(self.lengths, dtype=np.float64)) * self.lipschitz * self.domain.radius)

    @property
    def max_switches(self) -> int:
        """One change after each epoch but the last."""
        return len(self.lengths) - 1

    @property
    def remarks(self) -> tuple[str, ...]:
        """What happens to other losses."""
        return ("Nothing is certified for losses that are chosen by someone, or whose law changes.",)


def _cost(lengths: Array) -> float:
    """Return the regret bound for G R = 1."""
    later = lengths[1:] / np.sqrt(lengths[:-1])
    return float(lengths[0] + later.sum() + math.sqrt(lengths.sum()))


def plan_independent(
    domain: Domain, horizon: int, lipschitz: float, max_switches: int | None = None
) -> IndependentPlan:
    """Return epochs with the least regret bound for losses that are independent draws of one law.

    About log(T) epochs without a `max_switches`, which is a hard cap. Epochs grow by a constant factor, or so that each
    costs the same.
    """
    check_body(domain)
    T, G = integer("horizon", horizon, least=1), positive("lipschitz", lipschitz)
    most = _MOST_EPOCHS if max_switches is None else integer("max_switches", max_switches, least=0) + 1
    best, last = np.array([T], dtype=np.int64), 1
    for count in range(2, min(most, _MOST_EPOCHS, T) + 1):
        if count - last > _PATIENCE:
            break
        places = np.arange(count)
        shapes = [ratio**places for ratio in _RATIOS if count * math.log(ratio) < 600]
        # Lengths T^(1 - 2^-k), up to a factor: then n_k/sqrt(n_{k-1}) is the same for all k.
        shapes.append(float(T) ** ((1 - 0.5 ** (places + 1)) / (1 - 0.5**count)))
        for shape in shapes:
            lengths = np.maximum(np.floor(shape / shape.sum() * T), 1).astype(np.int64)
            lengths[-1] += T - lengths.sum()
            if lengths[-1] >= 1 and _cost(lengths.astype(np.float64)) < _cost(best.astype(np.float64)):
                best, last = lengths, count
    return IndependentPlan(domain, T, G, lengths=tuple(int(length) for length in best))


@saved("averaged descent")
class AveragedDescent(SystemLearner):
    """Plays the average of hidden gradient descent over the epoch before: a few switches in all.

    Algorithm: w = 0 (the centre) at the start of an epoch of n rounds; after each, w = nearest(w - step * gradient at
    w), step = R/(G sqrt(n)). The next epoch plays the mean of the points w; the first plays the centre.
    Theorem: for losses that are independent draws of one law, expected regret <= G R (n_1 + sum of n_k/sqrt(n_{k-1}) +
    sqrt(T)), 4.35 G R sqrt(T) or so with about log(T) switches (docs/theory, R5k). Assumes convex Lipschitz losses,
    linear or generalised linear ones. Nothing holds for losses of another kind. Not private.
    References: Sherman and Koren 2021 for the regime; Cesa-Bianchi, Conconi and Gentile 2004 for averages. Derived.

    >>> import reticent as rt
    >>> plan = rt.planning.plan_independent(rt.Ball(2), 1000, 1.0)
    >>> learner = rt.learners.AveragedDescent(plan, rt.Linear())
    >>> trace = learner.observe_many(np.tile([0.6, 0.8], (1000, 1)))
    >>> trace.switches <= plan.max_switches < 10, float(trace.regret()) <= plan.regret_bound
    (True, True)
    """

    plan_type: ClassVar[type[SystemPlan]] = IndependentPlan

    def _new_walk(self) -> Decider:
        return _Averages(self.plan, self.loss)


@saved("walk of averaged descent")
class _Averages(StepWalk):
    _moves = ("state", "hidden", "total")

    def __init__(self, plan: IndependentPlan, loss: Loss) -> None:
        super().__init__(plan.domain, loss)
        self.lengths = np.array(plan.lengths)
        self.steps = plan.domain.radius / (plan.lipschitz * np.sqrt(self.lengths))
        self.state = np.zeros(2, dtype=np.int64)  # the epoch, and its rounds so far
        self.hidden, self.total = np.zeros_like(self.u), np.zeros_like(self.u)

    def _check_moved(self) -> None:
        epoch, rounds = self.state.tolist()
        last = self.lengths.size - 1
        before = int(self.lengths[:epoch].sum()) if 0 <= epoch <= last else -1
        right = before >= 0 and (before <= self.done if epoch == last else before + rounds == self.done)
        refuse_unless(right, f"it stands in epoch {epoch} after {self.done} rounds")

    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        from reticent.systems.lazy_leader._kernel import average  # numba loads on first use

        average(
            *self._rows(code, vectors, offsets),
            self.lengths,
            self.steps,
            self.state,
            self.hidden,
            self.total,
            self.u.copy(),
            after,
        )
