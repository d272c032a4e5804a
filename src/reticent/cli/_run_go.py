"""Rounds on their way through a learner, piece by piece; with a journal, from where an earlier run stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent._core._errors import WorkLimitError

if TYPE_CHECKING:
    from reticent._core._check import Array
    from reticent.cli._interrupts import Interrupts
    from reticent.cli._run_source import Piece, Problem
    from reticent.cli._units import Clock
    from reticent.journal import Reader
    from reticent.journal._learner import JournaledLearner
    from reticent.learners import Learner, Trace


@dataclass
class Outcome:
    """How a run went: the decision after the last block, bad rows left out, rounds left out or scaled down, the end.

    `nobody` are rounds without a person, `blocks` those that the clock has closed. `seconds` is what rounds took,
    `ready` what the learner took before (compiling, and the first round).
    """

    decision: Array
    bad: int = 0
    steep: int = 0
    nobody: int = 0
    blocks: int = 0
    seconds: float = 0.0
    ready: float = 0.0
    timed: int = 0
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
    past: Past | None = None,
    strokes: Strokes | None = None,
) -> Outcome:
    """Send the rounds of a problem through a learner, piece by piece, and say how that went.

    `taken` sees the trace of every piece right after it; whatever stops the run, pieces before have been seen. `step`
    hears how much of the source has been read since the last time. Rounds of the `past` are not taken in again. With
    `strokes` blocks end when the clock strikes.
    """
    outcome, begin, shown = Outcome(learner.decision), time.perf_counter(), 0.0
    try:
        with closing(_first_alone(problem.pieces(most))) as pieces:
            while True:
                with interrupts.waiting():
                    piece = next(pieces, None)
                if piece is None:
                    break
                old = 0 if past is None else past.pass_over(piece, taken)
                left = len(piece) if horizon is None else min(len(piece), old + horizon - learner.rounds)
                if left > old:
                    rest = piece.between(old, left)
                    for part in [rest] if strokes is None else strokes.cut(rest):
                        now = time.perf_counter()
                        trace = _observed(learner, part)
                        _clock(outcome, time.perf_counter() - now, len(part))
                        outcome.decision = trace.final
                        taken(trace)
                outcome.bad, outcome.steep = int(piece.bad[left]), int(piece.steep[left])
                outcome.nobody += piece.marks[:left].nobody
                if left < len(piece):
                    raise _beyond(piece, left, horizon)
                done = problem.source.done()
                step(done - shown)
                shown = done
        if past is not None:
            past.finish()
        if strokes is not None:
            strokes.finish()
    except KeyboardInterrupt:
        outcome.interrupted = True
    except (ValueError, OSError, WorkLimitError) as error:
        outcome.stopped = error
    if strokes is not None:
        outcome.decision, outcome.blocks = learner.decision, strokes.closed
    outcome.seconds = time.perf_counter() - begin - outcome.ready
    return outcome


def _observed(learner: Learner, part: Piece) -> Trace:
    """Take rounds in; those of nobody are empty ones, which are told at the end, and not one by one."""
    import warnings

    from reticent.learners import EmptyRoundWarning

    with warnings.catch_warnings():
        if part.marks.persons is not None:
            warnings.simplefilter("ignore", EmptyRoundWarning)
        return learner.observe_many(*part.block, **part.given())


class Strokes:
    """Closes blocks of a learner when the clock strikes, whatever came, and also where nothing did.

    `told` hears from when on a decision is in play, as the beginning of a block.
    """

    def __init__(self, learner: Learner, clock: Clock, told: Callable[[str, Array], None]) -> None:
        """Begin before the first row; with the clock, where it is said when that starts."""
        self._learner, self._clock, self._told = learner, clock, told
        self._open: int | None = None
        self.closed = 0
        if clock.start is not None:
            self._begin(clock.start)

    def _begin(self, block: int) -> None:
        self._open = block
        self._told(self._clock.text(block), self._learner.decision)

    def cut(self, piece: Piece) -> Iterator[Piece]:
        """Give the rounds of a piece block by block, each after the strokes before it."""
        blocks = piece.marks.blocks
        assert blocks is not None  # every file with a clock has them
        ends = [*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(piece)]
        begin = 0
        for end in ends:
            self._reach(int(blocks[begin]))
            yield piece.between(begin, end)
            begin = end

    def _reach(self, block: int) -> None:
        """Close all blocks before this one."""
        if self._open is None:
            self._begin(block)
            return
        while self._open < block:
            self._open += 1
            self.closed += 1
            if self._learner.close_block():
                self._told(self._clock.text(self._open), self._learner.decision)

    def finish(self) -> None:
        """Close the block of the last row, and all until the clock ends, where it is said when."""
        if self._open is not None:
            self._reach(self._open + 1 if self._clock.until is None else self._clock.until)


def _first_alone(pieces: Generator[Piece, None, None]) -> Generator[Piece, None, None]:
    """Give the first round by itself: what is compiled is compiled for it, and the rates of the others leave that out.

    Where blocks are cut does not change a decision.
    """
    with closing(pieces):
        for piece in pieces:
            if len(piece) > 1:
                yield piece.first(1)
                piece = piece.between(1, len(piece))
            yield piece
            break
        yield from pieces


def _clock(outcome: Outcome, seconds: float, rounds: int) -> None:
    if outcome.ready == 0.0:
        outcome.ready = seconds
    else:
        outcome.timed += rounds


def _beyond(piece: Piece, left: int, horizon: int | None) -> ValueError:
    return ValueError(
        f"{piece.where(left)}: more rounds than the horizon of {horizon:,}; those within it were taken and their "
        "decisions are written; what is promised ends there, so run again with a larger --horizon"
    )


# The rounds that a journal holds already: they are compared with those of the source, and not taken in again.


class Past:
    """What a journal holds of a run, gone through once more beside the source that it came from."""

    def __init__(self, reader: Reader, problem: Problem, on_steep: str, learner: JournaledLearner) -> None:
        """Begin with the first round; the learner knows the hashes of keys."""
        self._learner, self._owners, self._whose = learner, reader.owners(), np.empty(0, dtype=np.int64)
        self.rounds, self._name = reader.rounds, reader.path
        self.first: Array = reader.facts["decision"]
        self._traces = reader.traces(problem.loss, on_steep)
        self._waiting: list[tuple[Array, ...]] = []
        self._seen = 0

    def pass_over(self, piece: Piece, taken: Callable[[Trace], None]) -> int:
        """Return how many of the first rounds of a piece are those of the journal, whose traces are handed on.

        Refuse a source whose rounds are others: what the journal says of them would not hold.
        """
        count = min(len(piece), self.rounds - self._seen)
        if not count:
            return 0
        while sum(len(block[0]) for block in self._waiting) < count:
            trace = next(self._traces)
            self._waiting += trace.data
            taken(trace)
        held = tuple(np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        for mine, theirs in zip(held, piece.block, strict=True):
            given = np.asarray(theirs[:count], dtype=np.float64).reshape(mine[:count].shape)
            if not np.array_equal(mine[:count], given):
                at = int(np.argmax((mine[:count] != given).reshape(count, -1).any(axis=1)))
                raise ValueError(
                    f"{piece.where(at)}: this is not round {self._seen + at + 1:,} of the journal {self._name}; resume "
                    "with the file and the options that the run was started with"
                )
        self._compare_owners(piece, count)
        self._waiting = [tuple(part[count:] for part in held)]
        self._seen += count
        return count

    def _compare_owners(self, piece: Piece, count: int) -> None:
        """Refuse rounds that are other persons' than in the journal: what counts of them would be another's."""
        if piece.marks.persons is None:
            return
        while self._whose.size < count:
            self._whose = np.concatenate([self._whose, next(self._owners)])
        given = self._learner.hashes(piece.marks.persons[:count])
        if not np.array_equal(self._whose[:count], given):
            at = int(np.argmax(self._whose[:count] != given))
            raise ValueError(
                f"{piece.where(at)}: this row is not of the person of round {self._seen + at + 1:,} of the journal "
                f"{self._name}; resume with the file and the --person column that the run was started with"
            )
        self._whose = self._whose[count:]

    def close(self) -> None:
        """Leave the journal."""
        self._owners.close()
        self._traces.close()

    def finish(self) -> None:
        """Refuse a source that ends before the journal does."""
        if self._seen < self.rounds:
            raise ValueError(
                f"the journal {self._name} has {self.rounds:,} rounds, and here are only {self._seen:,}; resume with "
                "the file that the run was started with"
            )
