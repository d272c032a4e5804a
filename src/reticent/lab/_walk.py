"""Send a learner through a stream and keep what it did as a `Run`; memory does not grow with the rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reticent.domains import Interval
from reticent.hindsight._comparator import best_fixed
from reticent.hindsight._trace import prepared, suffered
from reticent.lab._study import Best, Run
from reticent.learners import make
from reticent.losses import GeneralisedLinear
from reticent.losses._label import Label
from reticent.losses._residual import Residual
from reticent.privacy import spent as spent_after

if TYPE_CHECKING:
    from reticent.lab.streams._stream import Stream
    from reticent.learners import Learner, Trace
    from reticent.losses import Loss
    from reticent.planning import BasePlan

_RATIO = 1.03  # between the rounds at which curves are kept: some 500 for a run of 1e8
_PATH = 2000  # runs of one decision that are kept of a path
_SURE = 30.0  # log odds beyond all that data can say
_SPENT = 16  # rounds at which the privacy spent is asked for


class TooSlow(RuntimeError):
    """A run that was given up because it took longer than it was given."""


def _all_places() -> NDArray[np.int64]:
    found = [1]
    while found[-1] < 1 << 53:
        found.append(max(found[-1] + 1, int(found[-1] * _RATIO)))
    return np.array(found, dtype=np.int64)


_PLACES = _all_places()


def places(rounds: int) -> NDArray[np.int64]:
    """Return the rounds after which curves are kept: all of the first, then a few percent apart, and the last.

    >>> places(5), places(10**6).size < 500
    (array([1, 2, 3, 4, 5]), True)
    """
    return np.append(_PLACES[: np.searchsorted(_PLACES, rounds)], rounds)


class Recorder:
    """Takes the traces of consecutive blocks and keeps what a `Run` needs."""

    def __init__(self, loss: Loss) -> None:
        """Start before the first round."""
        self.rounds = self.switches = 0
        self.total = 0.0
        self._even = None  # the loss of a margin of 0: below it the sign of the prediction is that of the label
        if isinstance(loss, Label):
            assert isinstance(loss, GeneralisedLinear)
            self._even = float(loss.phi(np.zeros(1))[0])
        self._correct = 0
        self._at: list[int] = []
        self._losses: list[float] = []
        self._switched: list[int] = []
        self._starts: list[int] = []
        self._points: list[list[float]] = []
        self._last: Any = None
        self._final: Any = None
        self._stride, self._seen = 1, 0

    def add(self, trace: Trace) -> None:
        """Take the trace of the next block."""
        first, stop = self.rounds, self.rounds + trace.rounds
        # Where a clock ends blocks, the decision changes between two traces.
        self.switches += int(self._final is not None and not np.array_equal(self._final, trace.points[0]))
        inside = _PLACES[np.searchsorted(_PLACES, first, "right") : np.searchsorted(_PLACES, stop, "right")]
        sums = self.total + np.cumsum(trace.losses)
        self._at += inside.tolist()
        self._losses += sums[inside - first - 1].tolist()
        changes = trace.switch_times - trace.first
        self._switched += (self.switches + np.searchsorted(changes, inside - first, "right")).tolist()
        self.rounds, self.total = stop, float(sums[-1])
        self.switches += trace.switches
        if self._even is not None:
            self._correct += int(np.count_nonzero(trace.losses < self._even))
        goes_on = int(self._last is not None and np.array_equal(self._last, trace.points[0]))
        for start, point in zip(trace.starts[goes_on:], trace.points[goes_on:], strict=True):
            self._visit(first + int(start), point)
        self._last, self._final = trace.points[-1], trace.final

    def _visit(self, start: int, point: Any) -> None:
        if self._seen % self._stride == 0:
            self._starts.append(start)
            self._points.append([float(x) for x in point])
        self._seen += 1
        if len(self._starts) > 2 * _PATH:
            del self._starts[1::2], self._points[1::2]
            self._stride *= 2

    def run(self, system: str, seed: int | None, plan: dict[str, Any], seconds: float) -> Run:
        """Return what was kept."""
        ends = [] if self._at and self._at[-1] == self.rounds else [self.rounds]
        return Run(
            system=system,
            seed=seed,
            plan=plan,
            rounds=self.rounds,
            switches=self.switches,
            total=self.total,
            correct=None if self._even is None else self._correct,
            seconds=seconds,
            at=self._at + ends,
            losses=self._losses + [self.total] * len(ends),
            switched=self._switched + [self.switches] * len(ends),
            starts=self._starts,
            points=self._points,
            whole=self._stride == 1,
        )


def walk(
    plan: BasePlan,
    stream: Stream,
    seed: int | None = None,
    *,
    system: str = "",
    best: Best | None = None,
    described: dict[str, Any] | None = None,
    patience: float | None = None,
    on_block: Callable[[Learner, Trace], None] | None = None,
) -> Run:
    """Run the learner of a plan over a stream; `seconds` counts the learner's work only.

    `described` is `plan_facts(plan)` where it is known already. After `patience` seconds the run is given up
    (`TooSlow`). `on_block` sees every block's trace.

    >>> from reticent.lab import streams
    >>> from reticent.planning import plan_descent
    >>> stream = streams.get("alternating:rounds=500,dim=2")
    >>> found = walk(plan_descent(stream.domain, 500, stream.lipschitz), stream)
    >>> found.rounds, found.at[-1], len(found.losses) == len(found.at)
    (500, 500, True)
    """
    learner = make(plan, stream.loss, seed, on_steep="clip")
    recorder = Recorder(stream.loss)
    seconds = 0.0
    for block in stream.blocks():
        begin = time.perf_counter()
        trace = learner.observe_many(*block)
        seconds += time.perf_counter() - begin
        recorder.add(trace)
        if on_block is not None:
            on_block(learner, trace)
        if patience is not None and seconds > patience:
            raise TooSlow(f"gave up after {seconds:.0f} s and {recorder.rounds:,} of {stream.rounds:,} rounds")
    run = recorder.run(system or plan.system, seed, described or plan_facts(plan), seconds)
    return run if best is None else replace(run, regret=run.total - best.value + best.gap)


def hindsight(stream: Stream) -> Best:
    """Return the best fixed decision of a stream, with its curve; passes over the stream as often as needed.

    >>> from reticent.lab import streams
    >>> found = hindsight(streams.get("alternating:rounds=200,dim=2"))
    >>> found.gap < 0.1, found.at[-1]
    (True, 200)
    """

    def rows() -> Any:
        return prepared(stream.domain, stream.loss, stream.lipschitz, "clip", stream.blocks())  # type: ignore[arg-type]

    found = best_fixed(stream.domain, stream.loss, rows, stream.lipschitz)
    point, centre = stream.domain.to_chart(found.point)[None], np.zeros((1, stream.domain.chart_dim))
    at, curve, total, idle, done = places(stream.rounds), [], 0.0, 0.0, 0
    first = np.zeros(1, dtype=np.int64)
    for part in rows():
        sums = total + np.cumsum(suffered(stream.loss, stream.domain, part, first, point))
        inside = at[(at > done) & (at <= done + sums.size)]
        curve += sums[inside - done - 1].tolist()
        total, done = float(sums[-1]), done + sums.size
        idle += float(suffered(stream.loss, stream.domain, part, first, centre).sum())
    constant, majority = _constant(stream)
    place = [float(x) for x in found.point]
    return Best(place, found.value, found.gap, at.tolist(), curve, idle, constant, majority)


def _constant(stream: Stream) -> tuple[float | None, float | None]:
    """Return the total loss of the best constant prediction, and the share of the commoner label, where there are."""
    loss = stream.loss
    if not isinstance(loss, Label | Residual):
        return None, None
    targets = np.concatenate([np.asarray(block[-1], dtype=np.float64) for block in stream.blocks()])
    reach = _SURE if isinstance(loss, Label) else max(float(np.abs(targets).max()), 1e-9)
    line = Interval(-reach, reach)
    found = best_fixed(line, loss, [loss.prepare(line, np.ones((targets.size, 1)), targets)], 1.0)
    ones = float((targets == 1).mean())
    return found.value, max(ones, 1.0 - ones) if isinstance(loss, Label) else None


def plan_facts(plan: BasePlan, *, spent: bool = False) -> dict[str, Any]:
    """Return what a plan promises as plain data; with `spent` also the epsilon spent on the way, which takes a while.

    `regret_bound` is what is certified, `plan.certified_regret`.

    >>> from reticent.domains import Ball
    >>> from reticent.planning import plan_descent
    >>> found = plan_facts(plan_descent(Ball(2), 100, 1.0))
    >>> found["system"], found["epsilon"], found["horizon"]
    ('online gradient descent', None, 100)
    """
    names = ("horizon", "lipschitz", "expected_switches", "epsilon", "delta", "neighbors")
    found: dict[str, Any] = {name: getattr(plan, name) for name in names}
    # What is certified is never above what any decisions suffer; the system's own theorem may say more.
    found |= {"regret_bound": plan.certified_regret, "regret_bound_of_its_theorem": plan.regret_bound}
    found["max_switches"] = plan.max_switches
    # For whom privacy and regret hold may differ: studies of earlier versions have one "adversary", of either.
    found["adaptive_privacy"] = bool(plan.private and plan.adaptive_privacy)
    found["adaptive_regret"] = bool(plan.adaptive_regret)
    found |= {"system": plan.system, "domain": repr(plan.domain), "text": str(plan), "explain": plan.explain()}
    found |= {"vacuous": bool(plan.vacuous), "spent_at": None, "spent": None}
    if spent and plan.epsilon is not None and plan.delta is not None and plan.horizon is not None:
        at = np.unique(np.linspace(1, plan.horizon, _SPENT).astype(np.int64)).tolist()
        found["spent_at"] = at
        found["spent"] = [float(spent_after(plan, t).epsilon(plan.delta)) for t in at]
    return found


def stream_facts(stream: Stream) -> dict[str, Any]:
    """Return what a stream is, as plain data for a `Study`."""
    found: dict[str, Any] = {
        name: getattr(stream, name) for name in ("name", "title", "why", "source", "lipschitz", "rounds", "scaling")
    }
    return found | {
        "dim": stream.domain.dim,
        "domain": repr(stream.domain),
        "loss": repr(stream.loss),
        "decision": list(stream.decision),
    }
