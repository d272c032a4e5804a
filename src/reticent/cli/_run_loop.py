"""The way of a learner through blocks of rounds, until they end, something stops it, or Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reticent._errors import WorkLimitError

if TYPE_CHECKING:
    from reticent.cli._run_source import Piece, Problem
    from reticent.learners import Learner, Trace


@dataclass
class Outcome:
    """How a run went: rounds left out or scaled down because they were too steep, time, and what ended it."""

    steep: int = 0
    seconds: float = 0.0
    stopped: Exception | None = None
    interrupted: bool = False


class Interrupts:
    """Ctrl-C ends a wait for rounds at once, and otherwise waits until a block is taken in whole; twice is at once."""

    def __init__(self) -> None:
        """Start without one."""
        self.asked = False
        self._waiting = False

    def _handle(self, *_: Any) -> None:
        if self.asked or self._waiting:
            raise KeyboardInterrupt
        self.asked = True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Nothing is lost if an interrupt ends this block."""
        self._waiting = True
        try:
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    @contextmanager
    def heard(self) -> Iterator[Interrupts]:
        """Listen; only the main thread of a process may."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)


def go(
    learner: Learner,
    problem: Problem,
    *,
    horizon: int | None,
    most: int,
    on_steep: str,
    skip: bool,
    taken: Callable[[Trace], None],
    step: Callable[[float], None],
) -> Outcome:
    """Send the rounds of a problem through a learner, block by block, and say how that went.

    `taken` sees the trace of every block right after it; whatever stops the run, blocks before have been seen. `step`
    hears how much of the source has been read since the last time.
    """
    outcome, begin, shown = Outcome(), time.perf_counter(), 0.0
    sieve = None if problem.certain else _Steep(problem, on_steep, skip, outcome)
    try:
        with Interrupts().heard() as interrupts, closing(problem.source.pieces(most)) as pieces:
            while True:
                with interrupts.waiting():
                    piece = next(pieces, None)
                if piece is None:
                    break
                room = len(piece) if horizon is None else horizon - learner.rounds
                piece, problem_found = (piece, None) if sieve is None else sieve(piece, room)
                left = min(len(piece), room)
                if left:
                    taken(learner.observe_many(*(piece if left == len(piece) else piece[:left]).block))
                if left < len(piece):
                    raise _beyond(piece, left, horizon)
                if problem_found is not None:
                    raise problem_found
                now = problem.source.done()
                step(now - shown)
                shown = now
    except KeyboardInterrupt:
        outcome.interrupted = True
    except BrokenPipeError:
        raise
    except (ValueError, OSError, WorkLimitError) as error:
        outcome.stopped = error
    outcome.seconds = time.perf_counter() - begin
    return outcome


class _Steep:
    """Finds rounds steeper than the limit: counts those that a learner will scale down, or treats them as bad rows."""

    def __init__(self, problem: Problem, on_steep: str, skip: bool, outcome: Outcome) -> None:
        self.problem, self.on_steep, self.skip, self.outcome = problem, on_steep, skip, outcome

    def __call__(self, piece: Piece, room: int) -> tuple[Piece, Exception | None]:
        """Return the rounds to take in, and what to raise after them; `room` is how many more the horizon allows."""
        import numpy as np

        limit = self.problem.lipschitz
        steep, constants = self.problem.steep(piece.block)
        if not steep.any():
            return piece, None
        if self.on_steep == "clip" or self.skip:
            kept = np.arange(len(piece)) if self.on_steep == "clip" else np.flatnonzero(~steep)
            # Rounds beyond the horizon are nobody's: they are neither taken nor counted.
            stop = len(piece) if len(kept) <= room else int(kept[room])
            self.outcome.steep += int(np.count_nonzero(steep[:stop]))
            return (piece if self.on_steep == "clip" else piece[kept]), None
        first = int(np.argmax(steep))
        return piece[:first], ValueError(
            f"{piece.where(first)}: the round has Lipschitz constant {constants[first]:.6g}, above the limit "
            f"{limit:.6g}; give a larger --lipschitz, --on-steep clip to scale such rounds down, or --bad-rows skip"
        )


def _beyond(piece: Piece, left: int, horizon: int | None) -> ValueError:
    return ValueError(
        f"{piece.where(left)}: more rounds than the horizon of {horizon:,}; those within it were taken and their "
        "decisions are written; what is promised ends there, so run again with a larger --horizon"
    )
