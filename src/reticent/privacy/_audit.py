"""The audit: a lower bound on epsilon that runs of the learner prove, to hold against its certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._check import Array, integer, real
from reticent.privacy._account import account
from reticent.privacy._audit_bound import Evidence, choose, examine
from reticent.privacy._audit_likelihood import Likelihood, known
from reticent.privacy._audit_runs import Factory, Honest, Reduce, collect
from reticent.privacy._audit_streams import Block, block, changed_round
from reticent.privacy._audit_trained import features, train
from reticent.privacy._solve import check_delta

if TYPE_CHECKING:
    from reticent.losses import Loss
    from reticent.planning._goal import AnyPlan

_SCORES = ("likelihood", "trained")
_LEAST = 100  # runs: with fewer no limit says anything


@dataclass(frozen=True)
class Audit:
    """What an audit found: with chance `confidence` at least, the learner's true epsilon is `epsilon_lower` or more.

    `certificate` is the epsilon that the plan's account promises at the same `delta`. A sound learner is caught
    (`violated`) with probability at most 1 - `confidence`; a lower bound far below the certificate proves nothing. The
    event is `sign * score >= threshold`, seen `evidence.hits` times in the world where it is likelier and
    `evidence.false_alarms` times in the other, out of `evidence.runs` runs each.
    """

    epsilon_lower: float
    delta: float
    confidence: float
    certificate: float
    runs: int
    changed: int
    score: str
    sign: int
    threshold: float
    evidence: Evidence

    @property
    def violated(self) -> bool:
        """Whether the lower bound is above the certificate: then plan, learner or proof is wrong."""
        return self.epsilon_lower > self.certificate

    @property
    def ratio(self) -> float:
        """The lower bound as a share of the certificate (0 if both are 0)."""
        if self.certificate == 0:
            return 0.0 if self.epsilon_lower == 0 else float("inf")
        return self.epsilon_lower / self.certificate

    def __str__(self) -> str:
        """Say what was found, in words."""
        e = self.evidence
        verdict = (
            "VIOLATED: the learner reveals more than its certificate allows"
            if self.violated
            else f"not contradicted: the lower bound is {self.ratio:.0%} of it"
        )
        likelier = "stream" if self.sign == 1 else "neighbour"
        return "\n".join(
            [
                f"Audit of {self.runs} runs on each of two streams that differ in round {self.changed + 1}:",
                f"  epsilon >= {self.epsilon_lower:.4g} at delta = {self.delta:g}, with confidence {self.confidence:g}",
                f"  certificate: epsilon = {self.certificate:.4g}; {verdict}",
                f"  event: {'' if self.sign == 1 else '-'}score >= {self.threshold:.4g} ({self.score}), likelier on "
                f"the {likelier}",
                f"  seen in {e.hits} of {e.runs} runs there (chance at least {e.hit_lower:.4g}),",
                f"  in {e.false_alarms} of {e.runs} on the other (chance at most {e.false_alarm_upper:.4g})",
            ]
        )


def audit(
    plan: AnyPlan,
    loss: Loss,
    stream: Any,
    neighbour: Any,
    *,
    runs: int = 10_000,
    delta: float | None = None,
    confidence: float = 0.95,
    learner: Factory | None = None,
    score: str | Callable[[Array], Array] | None = None,
    jobs: int | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Audit:
    """Return a lower bound on the epsilon of a learner, from `runs` runs on each of two neighbouring streams.

    A *score* is computed from the decisions of every run, and nothing else. The first half of the runs chooses the
    event "score beyond a threshold"; the second half counts it. With Clopper-Pearson limits for its chances P and P' in
    the two worlds, epsilon >= log((P - delta) / P') with probability at least `confidence`, whatever the score is.

    `stream` and `neighbour` are what `observe_many` takes (gradients, or a tuple of features and targets) and differ in
    exactly one round; `worst_case(plan)` makes a pair for linear losses. `score` is "likelihood" (linear losses in one
    dimension: the exact ratio for a learner true to its plan), "trained" (logistic regression on the first half of the
    runs, over simple features and that ratio where it is known), a function from decisions, an array (runs, rounds + 1,
    dim), to numbers, or None: the likelihood where it is known, else trained. "trained" finds faults that the
    likelihood, which believes the plan, does not look for.

    `delta` None is the plan's own. A large one, such as 0.01, needs far fewer runs, and the certificate holds for every
    delta: epsilon is never found larger than about log(runs), nor at a delta where events are too rare to be seen.
    `learner` makes the learner under audit from a generator: any object with `decision` and `observe_many`; unless
    given, `make(plan, loss, generator)`. `jobs` is the number of processes (None: all cores); results depend on
    `seed` only. It is a test, run with seeded generators: it cannot see adaptive adversaries, timing, bad randomness,
    or streams that it was not given.

    >>> import reticent as rt
    >>> from reticent.privacy import worst_case
    >>> plan = rt.Plan(rt.Interval(-9.0, 9.0), 4, 1.0, beta=1.0, lam=16.0, p=1.0, phi=1.0, distance=0.0)
    >>> found = audit(plan, rt.Linear(), *worst_case(plan), runs=4000, delta=0.01, jobs=1)
    >>> 0.5 < found.ratio < 1, found.violated
    (True, False)
    """
    wanted = plan.delta if delta is None else delta
    if wanted is None:
        raise ValueError("delta must be given for a plan that claims no privacy, got None; 0.01 needs the fewest runs")
    small = check_delta(wanted)
    level = real("confidence", confidence)
    if not 0.5 <= level < 1:
        raise ValueError(f"confidence must be at least 0.5 and less than 1, got {confidence!r}; 0.95 is usual")
    count = integer("runs", runs, least=_LEAST)
    if jobs is not None:
        integer("jobs", jobs, least=1)
    streams = block("stream", stream), block("neighbour", neighbour)
    changed = changed_round(plan, *streams)
    name, reduce = _reducer(plan, loss, score, streams, changed)
    factory = Honest(plan, loss) if learner is None else learner
    number = integer("seed", seed, least=0)
    ours, theirs = collect(factory, plan.domain, streams, count, number, reduce, jobs, progress)
    half = count // 2
    if name == "trained":
        model = train(ours[:half], theirs[:half])
        ours, theirs = model(ours), model(theirs)
    else:
        ours, theirs = ours[:, 0], theirs[:, 0]
    event = choose(ours[:half], theirs[:half], small, 1 - level)
    evidence = examine(event, ours[half:], theirs[half:], small, 1 - level)
    return Audit(
        epsilon_lower=evidence.epsilon,
        delta=small,
        confidence=level,
        certificate=account(plan).epsilon(small),
        runs=count,
        changed=changed,
        score=name,
        sign=event.sign,
        threshold=event.threshold,
        evidence=evidence,
    )


def _reducer(
    plan: AnyPlan, loss: Loss, score: str | Callable[[Array], Array] | None, streams: tuple[Block, Block], changed: int
) -> tuple[str, Reduce]:
    """Return the name of the score and what is computed from decisions while they are at hand."""
    if callable(score):
        return getattr(score, "__name__", type(score).__name__), score
    if score is None:
        score = "likelihood" if known(plan, loss) else "trained"
    if score not in _SCORES:
        raise ValueError(f"score must be None, 'likelihood', 'trained' or a function of decisions, got {score!r}")
    if score == "likelihood" and not known(plan, loss):
        raise ValueError(
            f"score 'likelihood' must have a plan of P-COMW and linear losses in one dimension, got {loss!r} on "
            f"{plan.domain!r}; take 'trained'"
        )
    ratio = None
    if known(plan, loss):
        gradients = [np.asarray(parts[0], dtype=np.float64).reshape(-1, 1) for parts in streams]
        ratio = Likelihood(plan, gradients[0], gradients[1], changed)
    if score == "likelihood":
        assert ratio is not None
        return score, ratio
    return score, _Features(changed, getattr(plan, "batch", 1), ratio)


@dataclass(frozen=True)
class _Features:
    """What a trained score reads of decisions; the likelihood ratio of an honest learner too, where it is known."""

    changed: int
    batch: int
    ratio: Likelihood | None

    def __call__(self, decisions: Array) -> Array:
        rows = features(decisions, self.changed, self.batch)
        return rows if self.ratio is None else np.column_stack([rows, self.ratio(decisions)])
