"""Many runs of a learner on two streams, over all cores, reduced to one row of numbers each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._check import Array
from reticent.privacy._audit_streams import Block

if TYPE_CHECKING:
    from reticent.domains import Domain
    from reticent.learners._changes import Places
    from reticent.losses import Loss
    from reticent.planning._goal import AnyPlan

Factory = Callable[[np.random.Generator], Any]
Reduce = Callable[[Array], Array]

_CHUNK = 500  # runs that share a generator: the same for any number of cores, so that a seed means the same
_MEMORY = 1 << 25  # numbers held by a chunk, about


@dataclass(frozen=True)
class Honest:
    """The factory of the learner that a plan is for."""

    plan: AnyPlan
    loss: Loss

    @cached_property
    def parameters(self) -> AnyPlan:
        """The plan without its claim: the same learner, that need not do the accounts again for every run."""
        return replace(self.plan, epsilon=None, delta=None)

    def __call__(self, rng: np.random.Generator) -> Any:
        """Return a learner at its beginning."""
        from reticent.learners import make  # this package must not need the learners

        return make(self.parameters, self.loss, rng)


def play(factory: Factory, domain: Domain, stream: Block, count: int, rng: np.random.Generator) -> Array:
    """Return the decisions of `count` runs, (runs, rounds + 1, dim): that of every round and the one after them."""
    from reticent.learners import Learner

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
