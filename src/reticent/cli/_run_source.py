"""What `reticent run` reads: a file, standard input or a named stream, as one problem with blocks of rounds."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.domains import Domain
    from reticent.lab.files import Layout, Part, Rounds, Table
    from reticent.lab.streams import Stream
    from reticent.losses import Loss


STDIN = "-"


def is_file(source: str) -> bool:
    """Say whether a source is a file: one that is there, or a name that looks like one."""
    looks = os.sep in source or source.lower().endswith((".csv", ".gz", ".tsv", ".txt", ".parquet", ".pq"))
    return source == STDIN or os.path.exists(source) or looks


def check_stream(source: str) -> None:
    """Refuse a name that is neither a file nor a stream.

    >>> check_stream("shuttel")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: neither a file nor a stream is called 'shuttel'; did you mean shuttle? there are ...
    """
    from reticent.lab.streams import names
    from reticent.lab.streams._stream import nearest

    name = source.partition(":")[0].strip()
    if name not in names():
        raise ValueError(f"neither a file nor a stream is called {name!r}{nearest(name, dict.fromkeys(names()))}")


def flows(source: str) -> bool:
    """Say whether a source is standard input or a named pipe, which can be read once."""
    return source == STDIN or (os.path.exists(source) and not os.path.isfile(source))


def columns_of(text: str) -> tuple[str, ...]:
    """Return the columns of a text such as "age,income"."""
    parts = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    if not all(parts):
        raise ValueError(f"features must be columns with commas between them, such as age,income, got {text!r}")
    return parts


def limits_of(text: str) -> dict[str, tuple[float, float]]:
    """Return the bounds of a text such as "age=0:120,income=0:1e6"."""
    found = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, limits = part.rpartition("=")
        low, colon, high = limits.partition(":")
        column = name.strip()
        try:
            if not (equals and colon and column):
                raise ValueError
            limit = float(low), float(high)
        except ValueError:
            raise ValueError(
                f"bounds must be COLUMN=LOW:HIGH with commas between them, such as age=0:120, got {part!r}"
            ) from None
        if column in found:
            raise ValueError(f"bounds must be given once for a column, got {column!r} twice in {text!r}; leave one out")
        found[column] = limit
    return found


# Some rounds on their way to a learner, and what was passed over before each of them.


@dataclass(frozen=True)
class Piece:
    """Some rounds, as `observe_many` takes them, and where each stands in its source.

    Before round i there are `bad[i]` bad rows that were left out and `steep[i]` rounds that were too steep, from the
    first row of the source on; the last entry of both is for the round that comes next.

    >>> piece = Piece((np.arange(4.0),), lambda i: f"line {i + 2}", np.zeros(5, dtype=int), np.array([0, 0, 1, 1, 2]))
    >>> less = piece.only(np.array([0, 2]))
    >>> less.block[0].tolist(), less.where(1), less.steep.tolist()
    ([0.0, 2.0], 'line 4', [0, 1, 2])
    """

    block: tuple[Any, ...]
    where: Callable[[int], str]
    bad: NDArray[np.int64]
    steep: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.block[0])

    def first(self, count: int) -> Piece:
        """Return the first rounds."""
        if count == len(self):
            return self
        block = tuple(part[:count] for part in self.block)
        return Piece(block, self.where, self.bad[: count + 1], self.steep[: count + 1])

    def only(self, places: NDArray[np.int64]) -> Piece:
        """Return the rounds at these places, which are in order."""
        block, ends = tuple(part[places] for part in self.block), np.append(places, len(self))
        return Piece(block, lambda i: self.where(int(places[i])), self.bad[ends], self.steep[ends])


# Which rows of a source are rounds: those that are too steep are counted, left out, or end it.

CLIP, SKIP, STOP = "clip", "skip", "stop"
"""What happens to a round that is too steep: the learner scales it down, it is left out, or the run ends there."""


def sifted(
    pieces: Generator[Piece, None, None], measure: Callable[..., tuple[Any, Any]], limit: float, policy: str
) -> Generator[Piece, None, None]:
    """Give the rounds that a learner takes; `measure` says of a block which are too steep, and how steep each is."""
    seen = 0
    with closing(pieces):
        for piece in pieces:
            steep, constants = measure(piece.block)
            counted = replace(piece, steep=seen + np.append(0, np.cumsum(steep)))
            seen = int(counted.steep[-1])
            if policy == CLIP or not steep.any():
                yield counted
            elif policy == SKIP:
                yield counted.only(np.flatnonzero(~steep))
            else:
                first = int(np.argmax(steep))
                yield counted.first(first)
                raise ValueError(
                    f"{piece.where(first)}: the round has Lipschitz constant {constants[first]:.6g}, above the limit "
                    f"{limit:.6g}; give a larger --lipschitz, --on-steep clip to scale such rounds down, or --bad-rows "
                    "skip"
                )


# What `reticent run` reads: a file, standard input or a named stream, as one problem with blocks of rounds.


_MOST = 65536  # rounds of a piece where nobody says otherwise


class Source(ABC):
    """Where rounds come from, as often as somebody goes through them."""

    name: str
    rounds: int | None
    """The number of rounds, as far as it is known before they are read."""

    @abstractmethod
    def pieces(self, most: int) -> Generator[Piece, None, None]:
        """Go through the rounds in pieces of at most `most`."""

    @abstractmethod
    def again(self) -> Generator[Piece, None, None]:
        """Go through the rounds once more from the first."""

    @abstractmethod
    def done(self) -> float:
        """Return the share that has been read, 0 where nobody knows."""

    def close(self) -> None:  # noqa: B027 (most have nothing open)
        """Close what is open."""


class FileSource(Source):
    """A CSV or Parquet file, or standard input."""

    def __init__(self, path: str, layout: Layout, separator: str, header: bool, skip: bool) -> None:
        """Open the file and read the names of its columns."""
        self._path, self._layout, self._skip = path, layout, skip
        self._form = {"separator": separator, "header": header}
        self._table: Table = self._open()
        self._done = 0.0
        self.name, self.rounds = self._table.name, None
        self.bound: Rounds

    def _open(self) -> Table:
        from reticent.lab.files import open_table

        return open_table(self._path, **self._form)  # type: ignore[arg-type]

    def bind(self, loss: Loss) -> Rounds:
        """Choose the columns for a loss."""
        self.bound = self._layout.bind(self._table, loss)
        return self.bound

    def count(self) -> int:
        """Return the number of rows, from a first pass over the file."""
        from reticent.lab.files import count_rows

        self.rounds = count_rows(self._path, **self._form)  # type: ignore[arg-type]
        return self.rounds

    def pieces(self, most: int) -> Generator[Piece, None, None]:
        """Go through the rounds; a bad row ends this with `BadRow` after the rounds before it, or is left out."""
        from reticent.lab.files import ahead

        made = self._made(self._table, most)
        # What flows is taken as it comes: a thread that waits for it could not be stopped.
        with closing(made if self._table.live else ahead(made)) as found:
            for piece, done in found:
                self._done = done
                yield piece

    def _made(self, table: Table, most: int) -> Generator[tuple[Piece, float], None, None]:
        """Make pieces, each with the share of the file up to there."""
        for part in table.parts(self.bound.columns, skip=self._skip, most=most):
            block = self.bound.block(part.values)
            yield Piece(block, _places(table, part), part.bad, np.zeros_like(part.bad)), table.done()

    def again(self) -> Generator[Piece, None, None]:
        """Go through the rounds once more; not possible for standard input."""
        with self._open() as table:
            for piece, _ in self._made(table, _MOST):
                yield piece

    def done(self) -> float:
        """Return the share of the file that has been read."""
        return self._done

    def close(self) -> None:
        """Close the file."""
        self._table.close()


class StreamSource(Source):
    """A named stream."""

    def __init__(self, stream: Stream) -> None:
        """Take a stream."""
        self.stream, self.name, self.rounds = stream, stream.name, stream.rounds
        self._read = 0

    def pieces(self, most: int) -> Generator[Piece, None, None]:
        """Go through the rounds."""
        self._read = 0
        for block in self.stream.blocks(most):
            first, self._read = self._read, self._read + len(block[0])
            none = np.zeros(len(block[0]) + 1, dtype=np.int64)
            yield Piece(block, lambda i, first=first: f"round {first + i + 1}", none, none)  # type: ignore[misc]

    def again(self) -> Generator[Piece, None, None]:
        """Go through the rounds once more."""
        return self.pieces(_MOST)

    def done(self) -> float:
        """Return the share of the rounds that have been read."""
        return self._read / self.stream.rounds


@dataclass
class Problem:
    """Rounds with all that a learner has to know of them; `certain` if no round can be steeper than `lipschitz`.

    `policy` says what becomes of a steeper one, the same in the run and in every pass over the rounds after it.
    """

    source: Source
    domain: Domain
    loss: Loss
    lipschitz: float
    certain: bool
    decision: tuple[str, ...]
    scaling: str
    notes: list[str]
    policy: str = CLIP

    def pieces(self, most: int) -> Generator[Piece, None, None]:
        """Go through the rounds for a learner, in pieces of at most `most`."""
        return self._rounds(self.source.pieces(most))

    def again(self) -> Iterator[tuple[Any, ...]]:
        """Go through the blocks of the same rounds once more from the first."""
        with closing(self._rounds(self.source.again())) as pieces:
            for piece in pieces:
                yield piece.block

    def _rounds(self, pieces: Generator[Piece, None, None]) -> Generator[Piece, None, None]:
        return pieces if self.certain else sifted(pieces, self.steep, self.lipschitz, self.policy)

    def steep(self, block: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return which rounds of a block are steeper than the limit, and how steep each is."""
        from reticent.losses._limit import SLACK

        constants = self.loss.lipschitz(self.domain, *block)
        return constants > self.lipschitz * (1 + SLACK), constants

    def stream(self, rounds: int | None) -> Stream:
        """Return the first rounds (all of a named stream for None) as a stream, for hindsight and for a report."""
        from dataclasses import replace

        from reticent.lab.streams import Stream

        if isinstance(self.source, StreamSource):
            whole = self.source.stream
            if self.policy == SKIP and rounds is not None:
                cut = replace(whole, rounds=rounds, pieces=self.again)
            else:
                cut = whole if rounds is None else whole.head(rounds)
            return replace(cut, domain=self.domain, loss=self.loss, lipschitz=self.lipschitz)
        assert rounds is not None  # a file is counted first
        return Stream(
            name=os.path.basename(self.source.name),
            title=f"rows of {os.path.basename(self.source.name)}",
            why="",
            source=self.source.name,
            domain=self.domain,
            loss=self.loss,
            lipschitz=self.lipschitz,
            rounds=rounds,
            decision=self.decision,
            scaling=self.scaling,
            best_for="private",
            pieces=self.again,
        )


def stream_problem(name: str, domain: str | None, loss: str | None, lipschitz: float | None) -> Problem:
    """Return the problem of a named stream, with another domain or limit where they are given."""
    from reticent.lab.streams import get
    from reticent.systems._texts import domain_of

    stream = get(name)
    if loss is not None:
        raise ValueError(f"a named stream has its own loss, {stream.loss!r} for {name}; leave --loss out")
    body = stream.domain if domain is None else domain_of(domain)
    _check_dimension(body, stream.decision, f"stream {name}")
    own = domain is None and lipschitz is None
    limit = stream.lipschitz if lipschitz is None else lipschitz
    return Problem(StreamSource(stream), body, stream.loss, limit, own, stream.decision, stream.scaling, notes=[])


def file_problem(source: FileSource, domain: str | None, loss: str | None, lipschitz: float | None) -> Problem:
    """Return the problem of a file: its loss must be named, the rest may follow from public bounds."""
    from reticent.systems._texts import LOSSES, domain_of, loss_of

    if loss is None:
        raise ValueError(f"a loss must be named for {source.name}; give --loss, one of {LOSSES}")
    kind = loss_of(loss)
    rounds = source.bind(kind)
    notes: list[str] = []
    body = _default_domain(rounds, source.name) if domain is None else domain_of(domain)
    if body.finite and not rounds.linear:
        raise ValueError(f"experts go with --loss linear, got {loss}; give another --domain, such as ball:{rounds.dim}")
    _check_dimension(body, rounds.decision, source.name)
    implied = rounds.steepest(body, kind)
    limit = lipschitz
    if limit is None and implied is None:
        limit = 1.0
        notes.append(
            "lipschitz 1, for want of --lipschitz or --bounds: steeper rounds count as that steep; public --bounds of "
            "every column make better decisions"
        )
    elif limit is None:
        limit = implied
        notes.append(f"lipschitz {implied:.6g}, as loss, bounds and domain imply")
    assert limit is not None
    certain = implied is not None and implied <= limit
    return Problem(source, body, kind, limit, certain, rounds.decision, rounds.scaling, notes)


SKIPPING = "--bad-rows skip: which rows are left out depends on the data, and is outside the promise of epsilon"


def scaled_down(steep: int, rounds: int, lipschitz: float) -> list[str]:
    """Return a note for rounds that count as less steep than they are, if there are any.

    >>> scaled_down(3, 1000, 1.0)
    ['3 of 1,000 rounds were steeper than lipschitz 1: losses and regret are those of the scaled-down rounds']
    """
    if not steep:
        return []
    return [
        f"{steep:,} of {rounds:,} rounds were steeper than lipschitz {lipschitz:.6g}: losses and regret are those of "
        "the scaled-down rounds"
    ]


def left_out(bad: int) -> list[str]:
    """Return a note for bad rows that are no rounds, if there are any.

    >>> left_out(1), left_out(0)
    (['1 bad row left out: counts, losses and regret are those of the others'], [])
    """
    rows = "row" if bad == 1 else "rows"
    return [f"{bad:,} bad {rows} left out: counts, losses and regret are those of the others"] if bad else []


def _default_domain(rounds: Rounds, name: str) -> Domain:
    from reticent.domains import Ball, Interval

    if rounds.features:
        return Ball(rounds.dim)
    if rounds.target_bounds is None:
        raise ValueError(
            f"a domain must be given for {name} without features; give --domain interval:LOW:HIGH, or --bounds "
            f"{rounds.columns[-1].name}=LOW:HIGH"
        )
    return Interval(*rounds.target_bounds)


def _check_dimension(body: Domain, decision: tuple[str, ...], name: str) -> None:
    if body.dim != len(decision):
        raise ValueError(
            f"the domain must have one coordinate for each of the {len(decision)} features of {name} "
            f"({', '.join(decision)}), got {body!r} with {body.dim}"
        )


def _places(table: Table, part: Part) -> Callable[[int], str]:
    return lambda i: f"{table.name}, {table.place} {part.line(i)}"
