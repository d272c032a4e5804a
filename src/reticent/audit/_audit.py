"""The audit: a lower bound on epsilon that runs of a learner prove, by scores of its transcripts.

A fresh decision is a normal variable on an interval, whose density is known (docs/theory, S1). The chance that a
coin keeps x is (1 - p) E clip(exp(beta L (y - x)) / phi, phi^-2, 1) over such a variable y, L the batch's sum of
gradients: three integrals of a normal density. The ratio of two transcripts is the product of these from the changed
batch on; before it both worlds have one law. It is the best score that there is (Neyman and Pearson) for a learner
that does what its plan says. With several auxiliary draws per coin the clip is taken after the mean: exact where
nothing is clipped, near it otherwise; a score may be anything.

Privacy says P(O) <= exp(epsilon) P'(O) + delta for every event O. So an event that is seen often in one world and
rarely in the other forces epsilon up: epsilon >= log((P(O) - delta) / P'(O)). Here O is "the score is at least a
threshold", in one direction or the other. Direction and threshold are chosen on some runs and the two chances are
estimated on others, which makes the bound valid whatever the score is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import scipy
from numpy.typing import NDArray

from reticent._core._check import Array, integer, real
from reticent.audit._runs import Block, Factory, Honest, Reduce, block, changed_round, collect
from reticent.losses import Linear
from reticent.planning import Plan
from reticent.privacy import account
from reticent.privacy._account import check_delta

if TYPE_CHECKING:
    from reticent.losses import Loss
    from reticent.planning import BasePlan, Plan


class Segment(NamedTuple):
    """A normal law on an interval: its mean (one per coin), deviation and ends."""

    mean: Array
    deviation: float
    low: float
    high: float

    def mass(self, tilt: Array, a: Array, b: Array) -> Array:
        """Return log E exp(tilt (y - mean)) 1{a <= y <= b} over the normal law without its ends."""
        a, b = np.clip(a, self.low, self.high), np.clip(b, self.low, self.high)
        middle = self.mean + tilt * self.deviation**2
        u, v = (a - middle) / self.deviation, (b - middle) / self.deviation
        # In the upper tail reflect, so that neither value is close to 1.
        flip = u > 0
        u, v = np.where(flip, -v, u), np.where(flip, -u, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = scipy.special.log_ndtr(v), scipy.special.log_ndtr(u)
            found = top + np.log(-np.expm1(np.minimum(bottom - top, 0.0)))
        value: Array = np.where(v > u, found, -np.inf) + (tilt * self.deviation) ** 2 / 2
        return value


class Likelihood:
    """A score of decisions: log of their likelihood on one stream over that on another, `(runs, rounds + 1, 1)`."""

    def __init__(self, plan: Plan, stream: Array, neighbour: Array, changed: int) -> None:
        self.plan = plan
        self.center = float(plan.domain.center[0])
        self.first = changed // plan.batch  # coins from this one on can tell, counted from 0
        self.coins = len(stream) // plan.batch
        self.sums = [self._sums(gradients) for gradients in (stream, neighbour)]

    def _sums(self, gradients: Array) -> tuple[Array, Array]:
        """Return the sum of gradients in each batch, and up to its end, for the coins that can tell."""
        whole = gradients[: self.coins * self.plan.batch, 0].reshape(self.coins, self.plan.batch).sum(axis=1)
        return whole[self.first :], np.cumsum(whole)[self.first :]

    def __call__(self, decisions: Array) -> Array:
        """Return the log-likelihood ratio of each run."""
        places = np.arange(self.first, self.coins + 1) * self.plan.batch
        if places.size < 2:
            return np.zeros(len(decisions))
        x = decisions[:, places, 0] - self.center
        before, after = x[:, :-1], x[:, 1:]
        moved = before != after
        active = np.ones_like(moved)
        if self.plan.budget is not None:
            earlier = self._earlier(decisions)
            active = earlier[:, None] + np.cumsum(moved, axis=1) - moved < self.plan.budget
        ours, theirs = (self._logs(before, after, *sums) for sums in self.sums)
        with np.errstate(invalid="ignore"):
            steps = np.where(moved, ours[1] - theirs[1], ours[0] - theirs[0])
        # What neither world can do has no ratio; it tells nothing about which of the two it was.
        ratio: Array = np.where(active, np.nan_to_num(steps, nan=0.0, posinf=1e3, neginf=-1e3), 0.0).sum(axis=1)
        return ratio

    def _earlier(self, decisions: Array) -> Array:
        """Return the number of switches before the first coin that can tell."""
        past = decisions[:, : self.first * self.plan.batch + 1, 0]
        count: Array = np.count_nonzero(np.diff(past, axis=1), axis=1)
        return count

    def _logs(self, x: Array, fresh: Array, batch: Array, total: Array) -> tuple[Array, Array]:
        """Return the logarithms of the chance to keep x, and of the chance to switch times the density of `fresh`."""
        plan = self.plan
        deviation = 1 / math.sqrt(plan.beta * plan.lam)
        body = plan.domain.body
        law = Segment(-total / plan.lam, deviation, float(body.lo[0]), float(body.hi[0]))
        log_mass = law.mass(np.zeros_like(total), np.full_like(total, -np.inf), np.full_like(total, np.inf))
        keep = (1 - plan.p) * self._kept(x, batch, law, log_mass)
        with np.errstate(divide="ignore"):
            switch = np.log(np.maximum(1 - keep, 0.0))
            density = -((fresh - law.mean) ** 2) / (2 * deviation**2) - log_mass
            return np.log(keep), switch + density

    def _kept(self, x: Array, batch: Array, law: Segment, log_mass: Array) -> Array:
        """Return the chance that the coin, not forced, keeps x."""
        log_phi = math.log(self.plan.phi)
        tilt = np.broadcast_to(self.plan.beta * batch, x.shape)
        shift = tilt * (law.mean - x) - log_phi
        if self.plan.draws > 1:
            whole = law.mass(tilt, np.full_like(tilt, -np.inf), np.full_like(tilt, np.inf)) - log_mass
            return np.exp(np.clip(whole + shift, -2 * log_phi, 0.0))
        # The exponent is tilt (y - x): in order of it, y below `cuts[0]` is clipped from below, beyond `cuts[1]` above.
        with np.errstate(divide="ignore", invalid="ignore"):
            near, far = x - log_phi / np.abs(tilt), x + log_phi / np.abs(tilt)
        none, edge = np.zeros_like(tilt), np.full_like(tilt, np.inf)
        middle = np.exp(law.mass(tilt, near, far) + shift - log_mass)
        left, right = np.exp(law.mass(none, -edge, near) - log_mass), np.exp(law.mass(none, far, edge) - log_mass)
        clipped = np.where(tilt > 0, left * math.exp(-2 * log_phi) + right, right * math.exp(-2 * log_phi) + left)
        chance: Array = np.where(tilt == 0, math.exp(-log_phi), middle + clipped)
        return np.clip(chance, math.exp(-2 * log_phi), 1.0)


def known(plan: BasePlan, loss: Loss) -> TypeGuard[Plan]:
    """Say whether the likelihood is known: P-COMW, linear losses on an interval, a box or a ball of one dimension."""
    return isinstance(plan, Plan) and isinstance(loss, Linear) and plan.domain.dim == 1 and bool(plan.domain.body.box)


# A score learnt from runs: logistic regression on what decisions show around a changed round.
_NEXT = 4  # coins after the special one whose outcomes are features of their own
_PENALTY = 1e-4  # on squared weights of standardised features, beside the mean log loss
_FEW = 3  # dimensions up to which products of coordinates are features


def features(decisions: Array, changed: int, batch: int) -> Array:
    """Return one row of features for each run of `(runs, rounds + 1, dim)` decisions.

    The sum of all fresh decisions after the change (for normal laws it holds all that draws tell), how many there are,
    what the coin of the changed batch did, the decisions before and after it, and the coins that follow.
    """
    _, places, dim = decisions.shape
    coin = (changed // batch + 1) * batch  # the decision of this round, from 0, is the first that may know
    moved = (decisions[:, 1:] != decisions[:, :-1]).any(axis=2)  # at [t]: between rounds t and t + 1
    later = moved[:, changed:]
    count = later.sum(axis=1, keepdims=True).astype(np.float64)
    total = np.einsum("rt,rtd->rd", later, decisions[:, changed + 1 :])
    columns = [count, total, total / np.sqrt(np.maximum(count, 1.0)), decisions[:, -1]]
    if coin < places:
        before, after = decisions[:, coin - 1], decisions[:, coin]
        special = moved[:, coin - 1 : coin].astype(np.float64)
        step = after - before
        columns += [special, (1 - special) * before, special * before, special * after, total - special * after]
        columns += [special * np.sign(step) * np.sqrt(np.abs(step))]
        if dim <= _FEW:
            columns += [special * before * after, special * step**2, special * step**3]
        for place in range(coin + batch, min(places, coin + (_NEXT + 1) * batch), batch):
            columns.append(moved[:, place - 1 : place].astype(np.float64))
    return np.concatenate(columns, axis=1)


class Trained(NamedTuple):
    """A linear score of standardised features."""

    middle: Array
    scale: Array
    weights: Array

    def __call__(self, rows: Array) -> Array:
        """Return the score of each row of features: the larger, the more it looks like the first world."""
        score: Array = (rows - self.middle) / self.scale @ self.weights
        return score


def train(ours: Array, theirs: Array) -> Trained:
    """Return the score that tells rows of the first world from those of the second, by penalised logistic regression.

    >>> rng = np.random.default_rng(1)
    >>> score = train(rng.normal(1.0, 1.0, (500, 1)), rng.normal(0.0, 1.0, (500, 1)))
    >>> bool(score(np.ones((1, 1))) > score(np.zeros((1, 1))))
    True
    """
    rows = np.concatenate([ours, theirs])
    signs = np.concatenate([np.ones(len(ours)), -np.ones(len(theirs))])
    middle, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 1e-12 * (1 + np.abs(middle)), scale, np.inf)  # columns that never change weigh nothing
    z = (rows - middle) / scale

    def cost(parameters: Array) -> tuple[float, Array]:
        weights, level = parameters[:-1], parameters[-1]
        margin = signs * (z @ weights + level)
        pull = -signs * scipy.special.expit(-margin) / signs.size
        value = float(np.logaddexp(0.0, -margin).mean() + _PENALTY * weights @ weights / 2)
        return value, np.append(z.T @ pull + _PENALTY * weights, pull.sum())

    found: Any = scipy.optimize.minimize(cost, np.zeros(z.shape[1] + 1), jac=True, method="L-BFGS-B")
    return Trained(middle, scale, found.x[:-1])


# The audit: a lower bound on epsilon that runs of the learner prove, to hold against its certificate.
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
