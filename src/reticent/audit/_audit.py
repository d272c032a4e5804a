"""The audit: a lower bound on epsilon that runs of the learner prove, to hold against its certificate.

Privacy says P(O) <= exp(epsilon) P'(O) + delta for every event O. So an event that is seen often in one world and
rarely in the other forces epsilon up: epsilon >= log((P(O) - delta) / P'(O)). Here O is "the score is at least a
threshold", in one direction or the other. Direction and threshold are chosen on some runs and the two chances are
estimated on others, which makes the bound valid whatever the score is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._core._check import Array, integer, real
from reticent.audit._runs import Block, Factory, Honest, Reduce, block, changed_round, collect
from reticent.audit._scores import Likelihood, features, known, train
from reticent.privacy import account
from reticent.privacy._account import check_delta

if TYPE_CHECKING:
    from reticent.losses import Loss
    from reticent.planning import BasePlan


Counts = NDArray[np.int64] | int

_CANDIDATES = 600  # thresholds that are tried, more of them in the tails
_RAREST = 5  # runs beyond a threshold, at least, for it to be tried


class Event(NamedTuple):
    """The event `sign * score >= threshold`, which is more likely in the first world if `sign` is 1, else in the other.

    The likelier world is called "hit", the other "false alarm".
    """

    sign: int
    threshold: float


class Evidence(NamedTuple):
    """How often an event was seen in each world, with limits for its chances, and the epsilon that follows."""

    epsilon: float
    hits: int
    false_alarms: int
    runs: int
    hit_lower: float
    false_alarm_upper: float


def lower_limit(count: Counts, runs: int, miss: float) -> Array:
    """Return the Clopper-Pearson lower limit of a chance, above the truth with probability at most `miss`.

    >>> float(lower_limit(0, 10, 0.05)), round(float(lower_limit(10, 10, 0.05)), 6) == round(0.05**0.1, 6)
    (0.0, True)
    """
    k = np.asarray(count, dtype=np.float64)
    limit: Array = np.where(k > 0, scipy.special.betaincinv(np.maximum(k, 1.0), runs - k + 1, miss), 0.0)
    return limit


def upper_limit(count: Counts, runs: int, miss: float) -> Array:
    """Return the Clopper-Pearson upper limit of a chance, below the truth with probability at most `miss`.

    >>> round(float(upper_limit(0, 100, 0.05)), 6) == round(1 - 0.05**0.01, 6)
    True
    """
    limit: Array = 1.0 - lower_limit(runs - np.asarray(count), runs, miss)
    return limit


def implied(hits: Counts, false_alarms: Counts, runs: int, delta: float, miss: float) -> Array:
    """Return the epsilon that so many hits and false alarms in `runs` runs each force, wrong with chance `miss`.

    Each of the two limits takes half of `miss` (union bound), so nothing is assumed of the two samples.
    """
    likely = lower_limit(hits, runs, miss / 2) - delta
    rare = upper_limit(false_alarms, runs, miss / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        value: Array = np.where(likely > rare, np.log(np.maximum(likely, 1e-300) / rare), 0.0)
    return value


def choose(ours: Array, theirs: Array, delta: float, miss: float) -> Event:
    """Return the event with the largest implied epsilon on these scores of the two worlds."""
    runs = ours.size
    # Evenly spread over the logarithms of both tails, which is where small deltas are decided.
    ranks = np.unique(np.geomspace(min(_RAREST, 2 * runs), 2 * runs, _CANDIDATES).astype(np.int64))
    best, found = Event(1, float(np.median(ours))), -1.0
    for sign, (high, low) in ((1, (ours, theirs)), (-1, (-theirs, -ours))):
        high, low = np.sort(high), np.sort(low)
        tries = np.unique(np.sort(np.concatenate([high, low]))[2 * runs - ranks])
        hits = runs - np.searchsorted(high, tries, side="left")
        false = runs - np.searchsorted(low, tries, side="left")
        epsilons = implied(hits, false, runs, delta, miss)
        top = int(np.argmax(epsilons))
        if epsilons[top] > found:
            best, found = Event(sign, float(tries[top])), float(epsilons[top])
    return best


def examine(event: Event, ours: Array, theirs: Array, delta: float, miss: float) -> Evidence:
    """Return what runs that had no part in the choice of `event` say about it."""
    high, low = (ours, theirs) if event.sign == 1 else (theirs, ours)
    runs = high.size
    hits = int(np.count_nonzero(event.sign * high >= event.threshold))
    false = int(np.count_nonzero(event.sign * low >= event.threshold))
    return Evidence(
        epsilon=float(implied(hits, false, runs, delta, miss)),
        hits=hits,
        false_alarms=false,
        runs=runs,
        hit_lower=float(lower_limit(hits, runs, miss / 2)),
        false_alarm_upper=float(upper_limit(false, runs, miss / 2)),
    )


# The audit: a lower bound on epsilon that runs of the learner prove, to hold against its certificate.

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
    plan: BasePlan,
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
    plan: BasePlan, loss: Loss, score: str | Callable[[Array], Array] | None, streams: tuple[Block, Block], changed: int
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
