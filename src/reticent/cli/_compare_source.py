"""What `reticent compare` reads: a named stream, or a file that can be read again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reticent.cli._sources import check_stream, columns_of, flows, is_file, limits_of

if TYPE_CHECKING:
    from reticent.cli._run_source import FileSource
    from reticent.lab.files import Layout
    from reticent.lab.streams import Stream


@dataclass(frozen=True)
class Columns:
    """The options about columns, as they were typed."""

    features: str
    target: str | None
    intercept: bool
    bounds: str
    positive: str | None
    separator: str
    no_header: bool

    def layout(self) -> Layout:
        """Return what makes a round."""
        from reticent.lab.files import Layout

        return Layout(columns_of(self.features), self.target, self.intercept, limits_of(self.bounds), self.positive)


@dataclass(frozen=True)
class Pass:
    """One pass over the rounds of a file, from any process."""

    path: str
    columns: Columns
    loss: str
    skip: bool

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        """Go through the file, from its first row on."""
        from contextlib import closing

        from reticent.cli._specs import loss_of

        with closing(_open(self.path, self.columns, self.skip)) as source:
            source.bind(loss_of(self.loss))
            for piece in source.again():
                yield piece.block


@dataclass(frozen=True)
class Ground:
    """A stream to compare on, what has to be known of it, and how many of its rounds are scaled down."""

    stream: Stream
    notes: tuple[str, ...] = ()
    steep: int = 0


def ground_of(
    source: str,
    columns: Columns,
    bad_rows: str,
    loss: str | None,
    domain: str | None,
    lipschitz: float | None,
    rounds: int | None,
    private: bool,
) -> Ground:
    """Return the stream to compare on: its first `rounds` rounds, or all."""
    from contextlib import closing

    from reticent.cli._run_source import SKIPPING, file_problem, left_out, scaled_down, stream_problem
    from reticent.cli._specs import choice_of
    from reticent.lab.files import Layout

    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    if not is_file(source):
        check_stream(source)
        if columns.layout() != Layout():
            raise ValueError(f"a named stream has its own columns; leave the options of columns out for {source!r}")
        if domain is not None or lipschitz is not None:
            raise ValueError(f"{source} has its own domain and slope; leave --domain and --lipschitz out")
        stream = stream_problem(source, domain, loss, lipschitz).stream(None)
        return Ground(stream if rounds is None else stream.head(rounds))
    if flows(source):
        raise ValueError(f"a comparison reads its rounds many times, and {source!r} can be read once; give a file")
    with closing(_open(source, columns, skip)) as file:
        problem = file_problem(file, domain, loss, lipschitz)
        assert loss is not None  # file_problem refuses a file without one
        # Bad rows are known only after a look at all of them.
        count, bad = _counted(file, rounds) if skip else (file.count(), 0)
        if count == 0:
            raise ValueError(f"{source} has no rows to compare on")
        if rounds is not None and rounds > count:
            raise ValueError(f"rounds must be at most {count:,}, all that {source} has, got {rounds:,}")
        stream = replace(problem.stream(rounds or count), pieces=Pass(source, columns, loss, skip))
    steep = 0 if problem.certain else sum(int(problem.steep(block)[0].sum()) for block in stream.blocks())
    notes = problem.notes + ([SKIPPING] if skip and private else []) + left_out(bad)
    return Ground(stream, (*notes, *scaled_down(steep, stream.rounds, stream.lipschitz)), steep)


def _counted(file: FileSource, most: int | None) -> tuple[int, int]:
    """Return the number of good rows, and of the bad ones up to the end of the first `most`."""
    count = bad = 0
    for piece in file.again():
        if most is None or count < most:
            bad = int(piece.bad[len(piece) if most is None else min(len(piece), most - count)])
        count += len(piece)
    return count, bad


def _open(path: str, columns: Columns, skip: bool) -> FileSource:
    from reticent.cli._run_source import FileSource

    return FileSource(path, columns.layout(), columns.separator, not columns.no_header, skip)
