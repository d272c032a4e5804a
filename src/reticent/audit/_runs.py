"""Two neighbouring streams, and many runs of a learner on them, over all cores, reduced to one row of numbers each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from reticent._core._check import Array
from reticent.learners import Learner, make

if TYPE_CHECKING:
    from reticent.domains import Domain
    from reticent.losses import Loss
    from reticent.planning import BasePlan, Plan
    from reticent.systems._decider import Places


Block = tuple[Any, ...]
"""The rounds of a stream as `observe_many` takes them."""


def worst_case(plan: Plan) -> tuple[Array, Array]:
    """Return two neighbouring streams of gradients, for `Linear`, that a run of `plan` tells apart about best.

    They differ in the first round: `lipschitz` along a line against the opposite ("replace") or 0 ("zero-out"). With
    p = 1 all other gradients are 0 and draws in the two worlds are normal laws s apart, as far as the certificate
    allows (docs/theory, Q1), if the domain is wide beside 1/sqrt(beta lam). With coins, later gradients go to and
    fro, batch by batch: so every coin tells of the change and the measure stays away from the walls. Nothing proves
    that this is worst where there are coins, and losses that react to decisions are not among them.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Interval(-9.0, 9.0), 4, 1.0, beta=1.0, lam=1.0, p=1.0, phi=1.0)
    >>> [stream.ravel().round(6).tolist() for stream in worst_case(plan)]
    [[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]
    """
    horizon = rounds_of(plan)
    G = plan.lipschitz * (1 - 1e-12)  # a rounding error may not make it steeper than allowed
    along = np.zeros(plan.domain.chart_dim)
    along[0] = 1.0
    direction = plan.domain.from_chart(along) - plan.domain.from_chart(np.zeros_like(along))
    sizes = np.zeros(horizon)
    if plan.p < 1 and horizon > plan.batch:
        # The mean of the measure goes out and back by the batch's sum / lam: half of the way to the walls at most.
        swing = min(G, plan.domain.radius * plan.lam / (2 * plan.batch))
        sizes = swing * np.where((np.arange(horizon) // plan.batch) % 2 == 1, 1.0, -1.0)
        sizes[: plan.batch] = 0.0
    stream, neighbour = np.outer(sizes, direction), np.outer(sizes, direction)
    stream[0] = G * direction
    neighbour[0] = -G * direction if plan.neighbors == "replace" else 0.0
    return stream, neighbour


def rounds_of(plan: BasePlan) -> int:
    """Return the horizon of a plan; refuse one without."""
    if plan.horizon is None:
        if not hasattr(plan, "epoch"):
            raise ValueError("a plan with horizon=None has no last round to audit up to: audit one with a horizon")
        raise ValueError(
            "a plan with horizon=None runs epochs, each with an account of its own: audit plan.epoch(k); plan.epoch(0) "
            "is the first"
        )
    return plan.horizon


def block(name: str, stream: Any) -> Block:
    """Return a stream as the arguments of `observe_many`: one array of gradients, or a tuple (features, targets).

    A list is a block of objects, as `Custom` takes them.
    """
    parts = stream if isinstance(stream, tuple) else (stream,)
    if not parts or any(not hasattr(part, "__len__") for part in parts):
        raise ValueError(f"{name} must be an array of gradients or a tuple (features, targets), got {stream!r}")
    lengths = [len(part) for part in parts]
    if len(set(lengths)) != 1 or lengths[0] == 0:
        raise ValueError(f"{name} must have parts of one length, at least 1, got lengths {lengths}")
    return parts


def changed_round(plan: BasePlan, one: Block, two: Block) -> int:
    """Return the one round (from 0) in which two streams differ; refuse streams that are not neighbours."""
    horizon = rounds_of(plan)
    if len(one) != len(two):
        raise ValueError(f"stream and neighbour must have the same parts, got {len(one)} and {len(two)}")
    for name, parts in (("stream", one), ("neighbour", two)):
        if len(parts[0]) > horizon:
            raise ValueError(
                f"{name} must have at most as many rounds as the plan's horizon of {horizon}, got {len(parts[0])}; "
                "cut it, or plan a longer horizon"
            )
    if len(one[0]) != len(two[0]):
        raise ValueError(
            f"stream and neighbour must have the same number of rounds, got {len(one[0])} and {len(two[0])}; "
            "neighbours differ in what one round says, not in whether it is there"
        )
    rounds = range(len(one[0]))
    changed = [t for t in rounds if any(not _same(a[t], b[t]) for a, b in zip(one, two, strict=True))]
    if len(changed) != 1:
        raise ValueError(
            f"stream and neighbour must differ in exactly one round, got {len(changed)} that differ; "
            "worst_case(plan) makes such a pair for linear losses"
        )
    return changed[0]


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    except ValueError:  # ragged objects
        return bool(a == b)


# Many runs of a learner on two streams, over all cores, reduced to one row of numbers each.

Factory = Callable[[np.random.Generator], Any]
Reduce = Callable[[Array], Array]

_CHUNK = 500  # runs that share a generator: the same for any number of cores, so that a seed means the same
_MEMORY = 1 << 25  # numbers held by a chunk, about


@dataclass(frozen=True)
class Honest:
    """The factory of the learner that a plan is for."""

    plan: BasePlan
    loss: Loss

    @cached_property
    def parameters(self) -> BasePlan:
        """The plan without its claim: the same learner, that need not do the accounts again for every run."""
        plan: BasePlan = replace(cast(Any, self.plan), epsilon=None, delta=None)
        return plan

    def __call__(self, rng: np.random.Generator) -> Any:
        """Return a learner at its beginning."""
        return make(self.parameters, self.loss, rng)

    def released(self, decisions: Array) -> Array:
        """Return decisions as they are released: without a claim the learner puts them on no grid."""
        domain = self.plan.domain
        return domain.from_chart(self.plan.released(domain.to_chart(decisions))) if self.plan.on_grid else decisions


def play(factory: Factory, domain: Domain, stream: Block, count: int, rng: np.random.Generator) -> Array:
    """Return the decisions of `count` runs, (runs, rounds + 1, dim): that of every round and the one after them."""
    rounds = len(stream[0])
    decisions = np.empty((count, rounds + 1, domain.dim))
    prepared: list[Any] | None = None
    for run in range(count):
        learner = factory(rng)
        if isinstance(learner, Learner):
            # What observe_many does, without checking the same rounds again and again, and without a trace.
            prepared = learner._gate.prepare(*stream) if prepared is None else prepared
            begin = learner.decision
            changes = learner._take(prepared)
            points = domain.from_chart(changes.points(domain.chart_dim))
            _fill(decisions[run], changes.places(), begin, points)
        else:
            _listen(decisions[run], learner, stream)
        if isinstance(factory, Honest):
            decisions[run] = factory.released(decisions[run])
    return decisions


def _fill(out: Array, places: Places, begin: Array, points: Array) -> None:
    """Lay decisions in run-length form out round by round."""
    lengths = np.diff(np.concatenate([[0], places, [len(out)]]))
    out[:] = np.repeat(np.concatenate([begin[None], points]), lengths, axis=0)


def _listen(out: Array, learner: Any, stream: Block) -> None:
    """Hand the rounds over to any learner, one by one, and write down its decisions."""
    for t in range(len(out) - 1):
        out[t] = learner.decision
        learner.observe_many(*(part[t : t + 1] for part in stream))
    out[-1] = learner.decision


def _chunk(factory: Factory, domain: Domain, stream: Block, count: int, seed: tuple[int, ...], reduce: Reduce) -> Array:
    decisions = play(factory, domain, stream, count, np.random.default_rng(list(seed)))
    found = np.asarray(reduce(decisions), dtype=np.float64)
    if len(found) != count or not np.isfinite(found).all():
        raise ValueError(
            f"a score must give one finite number for each of the {count} runs, got {found!r}; it is called with all "
            "decisions, an array (runs, rounds + 1, dim)"
        )
    return found.reshape(count, -1)


def collect(
    factory: Factory,
    domain: Domain,
    streams: tuple[Block, Block],
    runs: int,
    seed: int,
    reduce: Reduce,
    jobs: int | None,
    progress: bool,
) -> tuple[Array, Array]:
    """Return what `reduce` makes of the decisions of `runs` runs on each of two streams."""
    size = max(1, min(_CHUNK, _MEMORY // ((len(streams[0][0]) + 1) * domain.dim)))
    sizes = [min(size, runs - start) for start in range(0, runs, size)]
    tasks = [
        (factory, domain, stream, count, (seed, world, number), reduce)
        for world, stream in enumerate(streams)
        for number, count in enumerate(sizes)
    ]
    found: list[Array] = []
    with _meter(len(tasks), progress) as step:
        for part in _results(tasks, jobs):
            found.append(part)
            step()
    half = len(sizes)
    return np.concatenate(found[:half]), np.concatenate(found[half:])


def _results(tasks: list[Any], jobs: int | None) -> Iterable[Array]:
    if jobs == 1:
        return (_chunk(*task) for task in tasks)
    import joblib

    # None: all cores, or whatever a joblib.parallel_config around this call says (a Dask or Ray cluster, say).
    workers = joblib.Parallel(n_jobs=-1 if jobs is None else jobs, return_as="generator")
    results: Iterable[Array] = workers(joblib.delayed(_chunk)(*task) for task in tasks)
    return results


@contextmanager
def _meter(total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """Show progress on a terminal if rich is there; say nothing otherwise."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("audit", total=total)
        yield lambda: bar.advance(task)
