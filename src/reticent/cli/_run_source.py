"""What `reticent run` reads: a file, standard input or a named stream, as one problem with blocks of rounds."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.cli._units import Marks, Units, Watch, marks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.cli._columns import Columns
    from reticent.domains import Domain
    from reticent.lab.files import Column, Part, Rounds, Table
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


# Some rounds on their way to a learner, and what was passed over before each of them.


@dataclass(frozen=True)
class Piece:
    """Some rounds, as `observe_many` takes them, and where each stands in its source.

    Before round i there are `bad[i]` bad rows that were left out and `steep[i]` rounds that were too steep, from the
    first row of the source on; the last entry of both is for the round that comes next. `marks` say whose rounds are,
    and when they came, where that was asked for.

    >>> piece = Piece((np.arange(4.0),), lambda i: f"line {i + 2}", np.zeros(5, dtype=int), np.array([0, 0, 1, 1, 2]))
    >>> less = piece.only(np.array([0, 2]))
    >>> less.block[0].tolist(), less.where(1), less.steep.tolist()
    ([0.0, 2.0], 'line 4', [0, 1, 2])
    """

    block: tuple[Any, ...]
    where: Callable[[int], str]
    bad: NDArray[np.int64]
    steep: NDArray[np.int64]
    marks: Marks = field(default_factory=Marks)

    def __len__(self) -> int:
        """Return the number of rounds."""
        return len(self.block[0])

    def first(self, count: int) -> Piece:
        """Return the first rounds."""
        if count == len(self):
            return self
        block = tuple(part[:count] for part in self.block)
        return Piece(block, self.where, self.bad[: count + 1], self.steep[: count + 1], self.marks[:count])

    def between(self, begin: int, stop: int) -> Piece:
        """Return the rounds from one place to another."""
        if begin == 0:
            return self.first(stop)
        block = tuple(part[begin:stop] for part in self.block)
        bad, steep = self.bad[begin : stop + 1], self.steep[begin : stop + 1]
        return Piece(block, lambda i: self.where(begin + i), bad, steep, self.marks[begin:stop])

    def only(self, places: NDArray[np.int64]) -> Piece:
        """Return the rounds at these places, which are in order."""
        block, ends = tuple(part[places] for part in self.block), np.append(places, len(self))
        return Piece(block, lambda i: self.where(int(places[i])), self.bad[ends], self.steep[ends], self.marks[places])

    def given(self) -> dict[str, Any]:
        """Return what `observe_many` is told beside the rounds: whose they are, where persons are protected."""
        return {} if self.marks.persons is None else {"persons": self.marks.persons}


# Which rows of a source are rounds: those that are too steep are counted, left out, or end it.

CLIP, SKIP, STOP = "clip", "skip", "stop"
"""What happens to a round that is too steep: the learner scales it down, it is left out, or the run ends there."""


def sifted(
    pieces: Generator[Piece, None, None],
    measure: Callable[..., tuple[Any, Any]],
    complaint: Callable[[float], str],
    policy: str,
) -> Generator[Piece, None, None]:
    """Give the rounds that a learner takes; `measure` says of a block which are too steep, and how steep each is.

    `complaint` says in words what is wrong with one of them.
    """
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
                raise ValueError(f"{piece.where(first)}: {complaint(float(constants[first]))}")


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

    def __init__(self, path: str, columns: Columns, skip: bool, units: Units | None = None) -> None:
        """Open the file and read the names of its columns."""
        self._path, self._columns, self._skip = path, columns, skip
        self._units = units or Units()
        self.clock = self._units.clock()
        self._table: Table = self.opened()
        self._done = 0.0
        self.name, self.rounds = self._table.name, None
        self.bound: Rounds

    def opened(self) -> Table:
        """Open the file for one more pass, from its first row on."""
        from reticent.lab.files import open_table

        return open_table(self._path, **self._columns.form)

    def bind(self, loss: Loss) -> Rounds:
        """Choose the columns for a loss."""
        self.bound = self._columns.layout().bind(self._table, loss)
        self.marked()
        return self.bound

    @property
    def protected(self) -> str | None:
        """Who is protected, in words, where that is not one row among others."""
        return self._units.in_words() if self._units.named else None

    def marked(self) -> tuple[Column, ...]:
        """Return the columns that say whose rows are and when they came, with nothing read yet."""
        return self._units.columns(self._table, self.bound)

    @property
    def live(self) -> bool:
        """Whether rows flow in, and can be read once."""
        return self._table.live

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
        signs, beside, width = Signs(table.name, self.bound), self.marked(), len(self.bound.columns)
        watch = None if self.clock is None else Watch(self.clock)
        for part in table.parts((*self.bound.columns, *beside), skip=self._skip, most=most):
            values, where = part.values[:, :width], places_of(table, part)
            signs.see(values)
            marks = marks_of(beside, part.values[:, width:], self.clock)
            if watch is not None and marks.blocks is not None:
                watch.see(marks.blocks, where)
            yield Piece(self.bound.block(values), where, part.bad, np.zeros_like(part.bad), marks), table.done()

    def again(self) -> Generator[Piece, None, None]:
        """Go through the rounds once more; not possible for standard input."""
        with self.opened() as table:
            for piece, _ in self._made(table, _MOST):
                yield piece

    def done(self) -> float:
        """Return the share of the file that has been read."""
        return self._done

    def close(self) -> None:
        """Close the file."""
        self._table.close()


class Signs:
    """Sees to it that labels which are numbers are two: 1 and 0, or 1 and -1."""

    def __init__(self, name: str, rounds: Rounds) -> None:
        """Start without any; `name` is that of the file."""
        self._name, self._column = name, rounds.columns[-1]
        self._seen: set[float] = set()

    def see(self, values: NDArray[np.float64]) -> None:
        """Take rows of the table; refuse a third label."""
        if self._column.kind != "label":
            return
        self._seen |= {sign for sign in (0.0, -1.0) if (values[:, -1] == sign).any()}
        if len(self._seen) == 2:
            raise ValueError(
                f"{self._name}: column {self._column.name!r} has 0 and -1 where one of them is expected beside 1; name "
                "the two labels that count, such as --labels 0,1 (rows with any other are bad ones)"
            )


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
    unit_rows: bool = False

    def pieces(self, most: int) -> Generator[Piece, None, None]:
        """Go through the rounds for a learner, in pieces of at most `most`."""
        return self._rounds(self.source.pieces(most))

    def again(self) -> Iterator[tuple[Any, ...]]:
        """Go through the blocks of the same rounds once more from the first."""
        with closing(self._rounds(self.source.again())) as pieces:
            for piece in pieces:
                yield piece.block

    def _rounds(self, pieces: Generator[Piece, None, None]) -> Generator[Piece, None, None]:
        return pieces if self.certain else sifted(pieces, self.steep, self.complaint, self.policy)

    def complaint(self, constant: float) -> str:
        """Say what is wrong with a round that is too steep, or with a row that is too long."""
        if self.unit_rows:
            return (
                f"the row has length {constant:.6g}, and --unit-rows says that none is longer than 1; give public "
                "--bounds in its place, which scale rows"
            )
        return (
            f"the round has Lipschitz constant {constant:.6g}, above the limit {self.lipschitz:.6g}; give a larger "
            "--lipschitz, or --on-steep clip to scale such rounds down"
        )

    def steep(self, block: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return which rounds of a block are steeper than the limit (longer than 1), and how steep (long) each is."""
        from reticent.losses._limit import SLACK

        if self.unit_rows:
            # The intercept's 1 has its own half of what rows are divided by.
            rows = block[0][:, :-1] * np.sqrt(2.0) if self.decision[-1] == "intercept" else block[0]
            lengths = np.linalg.norm(rows, axis=1)
            return lengths > 1 + SLACK, lengths
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
    asked = None if domain is None else domain_of(domain)
    if asked is not None and asked.finite and not rounds.linear:
        raise ValueError(f"experts go with --loss linear, got {loss}; give another --domain, such as ball:{rounds.dim}")
    if not rounds.known and lipschitz is None:
        raise _unbounded(rounds, source.name)
    notes: list[str] = []
    body = _default_domain(rounds, source.name, loss, notes) if asked is None else asked
    _check_dimension(body, rounds.decision, source.name)
    implied = rounds.steepest(body, kind)
    limit = implied if lipschitz is None else lipschitz
    if limit is None:
        target = rounds.columns[-1].name
        raise ValueError(
            f"how steep a round of {source.name} can be is not known without bounds of its target; give --bounds "
            f"{target}=LOW:HIGH, public limits of it, or --lipschitz"
        )
    if lipschitz is None:
        notes.append(f"lipschitz {limit:.6g}, as loss, bounds and domain imply")
    certain = implied is not None and implied <= limit and not rounds.unit_rows
    return Problem(
        source, body, kind, limit, certain, rounds.decision, rounds.scaling, notes, unit_rows=rounds.unit_rows
    )


def _unbounded(rounds: Rounds, name: str) -> ValueError:
    """Refuse features of which nothing is known: they would be scaled down until nothing can be learned."""
    asked = ",".join(f"{column.name}=LOW:HIGH" for column in rounds.features[:3])
    more = ",..." if len(rounds.features) > 3 else ""
    length = "" if rounds.linear else ", --unit-rows if all rows have length 1 at most"
    return ValueError(
        f"nothing is known of the features of {name}; give public bounds, --bounds {asked}{more} (and --categories "
        f"COLUMN=TEXT|TEXT for texts){length}, or --lipschitz to have steeper rounds scaled down; none of them may be "
        "computed from the data"
    )


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


_ODDS = 8.0  # log odds: from one in three thousand to all but one in three thousand


def _default_domain(rounds: Rounds, name: str, loss: str, notes: list[str]) -> Domain:
    """Return a body that suits scoring, and note what it allows."""
    from math import sqrt

    from reticent.domains import Ball, Interval

    label = not rounds.linear and rounds.columns[-1].kind != "number"
    what = "log odds" if loss == "logistic" else "margins"
    if not rounds.features:
        if label:
            notes.append(f"domain interval:-{_ODDS:g}:{_ODDS:g}: {what} up to {_ODDS:g} (--domain gives another)")
            return Interval(-_ODDS, _ODDS)
        if rounds.target_bounds is None:
            raise ValueError(
                f"a domain must be given for {name} without features; give --domain interval:LOW:HIGH, or --bounds "
                f"{rounds.columns[-1].name}=LOW:HIGH"
            )
        return Interval(*rounds.target_bounds)
    if rounds.linear:
        notes.append(f"domain ball:{rounds.dim}: decisions of length 1 at most (--domain gives another)")
        return Ball(rounds.dim)
    if label:
        notes.append(f"domain ball:{rounds.dim}:{_ODDS:g}: {what} of a row up to {_ODDS:g} (--domain gives another)")
        return Ball(rounds.dim, _ODDS)
    if rounds.target_bounds is None:
        target = rounds.columns[-1].name
        raise ValueError(
            f"how far predictions for {name} may go is not known without bounds of the target; give --bounds "
            f"{target}=LOW:HIGH, or --domain ball:{rounds.dim}:RADIUS"
        )
    # Long enough that the intercept, or any one feature, can by itself lead to every target.
    most = max(map(abs, rounds.target_bounds))
    radius = float(f"{most * sqrt(rounds.dim):.3g}")
    notes.append(f"domain ball:{rounds.dim}:{radius:g}: predictions up to {radius:g} (--domain gives another)")
    return Ball(rounds.dim, radius)


def _check_dimension(body: Domain, decision: tuple[str, ...], name: str) -> None:
    if body.dim != len(decision):
        raise ValueError(
            f"the domain must have one coordinate for each of the {len(decision)} features of {name} "
            f"({', '.join(decision)}), got {body!r} with {body.dim}"
        )


def places_of(table: Table, part: Part) -> Callable[[int], str]:
    """Return where each row of a part stands, in words."""
    return lambda i: f"{table.name}, {table.place} {part.line(i)}"
