"""The way of a learner through pieces of rounds, until they end, something stops it, or Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent._errors import WorkLimitError

if TYPE_CHECKING:
    from reticent._check import Array
    from reticent.cli._interrupts import Interrupts
    from reticent.cli._run_piece import Piece
    from reticent.cli._run_source import Problem
    from reticent.learners import Learner, Trace


@dataclass
class Outcome:
    """How a run went: the decision after the last block, bad rows left out, rounds left out or scaled down, the end."""

    decision: Array
    bad: int = 0
    steep: int = 0
    seconds: float = 0.0
    stopped: Exception | None = None
    interrupted: bool = False

    @property
    def unread(self) -> bool:
        """Whether whoever read the decisions has gone."""
        return isinstance(self.stopped, BrokenPipeError)


def go(
    learner: Learner,
    problem: Problem,
    interrupts: Interrupts,
    *,
    horizon: int | None,
    most: int,
    taken: Callable[[Trace], None],
    step: Callable[[float], None],
) -> Outcome:
    """Send the rounds of a problem through a learner, piece by piece, and say how that went.

    `taken` sees the trace of every piece right after it; whatever stops the run, pieces before have been seen. `step`
    hears how much of the source has been read since the last time.
    """
    outcome, begin, shown = Outcome(learner.decision), time.perf_counter(), 0.0
    try:
        with closing(problem.pieces(most)) as pieces:
            while True:
                with interrupts.waiting():
                    piece = next(pieces, None)
                if piece is None:
                    break
                left = len(piece) if horizon is None else min(len(piece), horizon - learner.rounds)
                trace = learner.observe_many(*piece.first(left).block) if left else None
                outcome.bad, outcome.steep = int(piece.bad[left]), int(piece.steep[left])
                if trace is not None:
                    outcome.decision = trace.final
                    taken(trace)
                if left < len(piece):
                    raise _beyond(piece, left, horizon)
                now = problem.source.done()
                step(now - shown)
                shown = now
    except KeyboardInterrupt:
        outcome.interrupted = True
    except (ValueError, OSError, WorkLimitError) as error:
        outcome.stopped = error
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _beyond(piece: Piece, left: int, horizon: int | None) -> ValueError:
    return ValueError(
        f"{piece.where(left)}: more rounds than the horizon of {horizon:,}; those within it were taken and their "
        "decisions are written; what is promised ends there, so run again with a larger --horizon"
    )
