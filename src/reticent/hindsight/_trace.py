"""What a learner did over a block of rounds: decisions in run-length form, losses suffered, and regret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent._core._check import Array, integer, matrix, positive, real, vector
from reticent._core._html import NOT_PRIVATE, card, numbers
from reticent.domains import Domain
from reticent.hindsight._comparator import Hindsight, best_fixed
from reticent.losses import Custom, GeneralisedLinear, Loss, Objects, Rows
from reticent.losses._limit import check_on_steep

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = 1 << 15  # rows prepared together

Starts = NDArray[np.int64]


def suffered(loss: Loss, domain: Domain, rows: Rows | Objects, starts: Starts, chart_points: Array) -> Array:
    """Return the loss of each prepared row at the decision in play: run k has `chart_points[k]` from `starts[k]` on.

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> rows = Absolute().prepare(Interval(-1, 1), [[1.0], [1.0], [1.0]], [0.0, 0.0, 0.0])
    >>> suffered(Absolute(), Interval(-1, 1), rows, np.array([0, 2]), np.array([[0.5], [-0.25]]))
    array([0.5 , 0.5 , 0.25])
    """
    if isinstance(rows, Objects):
        return _asked(loss, domain, rows, starts, chart_points)
    steps = _steps(rows, starts, chart_points)
    return loss.phi(steps + rows.offsets) if isinstance(loss, GeneralisedLinear) else steps + rows.offsets


def risen(loss: Loss, domain: Domain, rows: Rows | Objects, starts: Starts, chart_points: Array) -> Array:
    """Return by how much the loss of each prepared row, at the decision in play, exceeds that at the centre.

    Sums of these have digits of their own, however large one loss is (docs/theory, Q12).

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> rows = Absolute().prepare(Interval(-1, 1), [[1.0], [1.0]], [0.0, 1e20])
    >>> risen(Absolute(), Interval(-1, 1), rows, np.array([0]), np.array([[0.5]]))
    array([ 0.5, -0.5])
    """
    if isinstance(rows, Objects):
        centre = np.zeros((1, chart_points.shape[1]))
        played = _asked(loss, domain, rows, starts, chart_points)
        return played - _asked(loss, domain, rows, np.zeros(1, dtype=np.int64), centre)
    steps = _steps(rows, starts, chart_points)
    return loss.rise(rows.offsets, steps) if isinstance(loss, GeneralisedLinear) else steps


def _asked(loss: Loss, domain: Domain, rows: Objects, starts: Starts, chart_points: Array) -> Array:
    """Return what a caller's function says of each object at the decision in play."""
    assert isinstance(loss, Custom)
    stops = np.append(starts[1:], len(rows)).tolist()
    out = np.empty(len(rows))
    for start, stop, x in zip(starts.tolist(), stops, domain.from_chart(chart_points), strict=True):
        for i in range(start, stop):
            out[i] = rows.scales[i] * real("the value of a custom loss", loss.value(x, rows.items[i]))
    return out


def _steps(rows: Rows, starts: Starts, chart_points: Array) -> Array:
    """Return by how much the margin of each row, at the decision in play, exceeds that at the centre."""
    # Row by row, as a matrix product is not: a round's loss does not depend on those beside it, to the last bit.
    played = np.repeat(chart_points, np.diff(starts, append=len(rows)), axis=0)
    steps: Array = np.einsum("ij,ij->i", np.ascontiguousarray(rows.vectors), played)
    return steps


def runs_within(starts: Starts, first: int, stop: int) -> tuple[Starts, slice]:
    """Return the starts, from `first`, of the runs that rows `first` to `stop` lie in, and which runs these are.

    >>> runs_within(np.array([0, 4, 9]), 5, 10)
    (array([0, 4]), slice(1, 3, None))
    """
    low, high = int(np.searchsorted(starts, first, "right")) - 1, int(np.searchsorted(starts, stop, "left"))
    return np.maximum(starts[low:high] - first, 0), slice(low, high)


def prepared(
    domain: Domain, loss: Loss, lipschitz: float, on_steep: str, data: Sequence[tuple[Any, ...]]
) -> Iterator[Any]:
    """Make prepared rows of a caller's blocks again: in parts of 2**15 at most, small blocks joined."""
    waiting: list[Any] = []
    count = 0
    for block in data:
        for part in _parts(domain, loss, block):
            rows = loss.prepare(domain, *part, lipschitz=lipschitz, on_steep=on_steep)
            if count + len(rows) > PART and waiting:
                yield _joined(waiting)
                waiting, count = [], 0
            waiting.append(rows)
            count += len(rows)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else type(parts[0]).join(parts)


def _parts(domain: Domain, loss: Loss, block: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Cut a long block of arrays, or of custom objects, into parts; anything else goes through as it is."""
    sizes = {len(part) if isinstance(part, Sequence) or np.ndim(part) > 0 else 1 for part in block}
    single = not isinstance(loss, Custom) and domain.dim > 1 and np.ndim(block[0]) == 1
    if single or len(sizes) != 1 or max(sizes) <= PART:
        yield block
        return
    for first in range(0, sizes.pop(), PART):
        yield tuple(part[first : first + PART] for part in block)


# What a learner did over a block of rounds: decisions in run-length form, losses suffered, and regret.

_HELD = 1 << 28  # bytes of prepared rows kept between the passes of a comparator; more are made again for each pass


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regret:
    """How much more a learner suffered than the best fixed decision in hindsight.

    The regret lies in `[value, value + gap]`: `value` is against the decision `comparator.point`, and the best one may
    have suffered `gap` less than that. `float(regret)` is the safe side, `value + gap`.

    >>> Regret(2.0, 0.5, Hindsight(np.zeros(1), 8.0, 0.5, 3))
    Regret(2 to 2.5)
    """

    value: float
    gap: float
    comparator: Hindsight

    def __float__(self) -> float:
        """Return `value + gap`."""
        return self.value + self.gap

    def __repr__(self) -> str:
        """Show the range."""
        return f"Regret({self.value:.6g} to {self.value + self.gap:.6g})"


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False)
class Trace:
    """The decisions and losses of consecutive rounds.

    Run k has the decision `points[k]` in play from round `starts[k]` of this trace on (counted from 0); `final` is the
    decision in play after its last round. `first` rounds came before this trace. A change of decision right at the end
    (`final` is not the last of `points`) counts among `switches` and `switch_times`.

    **What is private**: of a private learner, `points`, `starts`, `final` and what follows from them (`switches`,
    `switch_times`, `decisions()`). `losses`, `total`, `regret()` and `curve()` are computed from the data itself and
    are NOT private; neither is a pickled trace, which holds the data.

    Decisions lie in `domain`; `comparators` is the body whose best fixed decision `regret()` is against: the domain,
    but for plans whose decisions may leave it.

    `data` refers to the blocks as the caller gave them, without a copy: leave those arrays as they are for as long as
    you want to ask for the regret. Consecutive traces add: `a + b`, or `Trace.join([...])` for many.

    >>> from reticent.domains import Interval
    >>> from reticent.losses import Absolute
    >>> data = (np.ones((3, 1)), np.array([1.0, 1.0, 0.0]))
    >>> decisions = [0, 2], [[0.0], [1.0]], [1.0]
    >>> trace = Trace(Interval(0, 1), Absolute(), 1.0, "raise", 0, *decisions, [1.0, 1.0, 1.0], (data,))
    >>> trace
    <Trace: rounds 1 to 3, 1 switch, total loss 3>
    >>> trace.switch_times, trace.decisions().ravel()
    (array([2]), array([0., 0., 1.]))
    >>> round(trace.regret().value, 9), trace.curve().round(9) + 0.0
    (2.0, array([1., 2., 2.]))
    """

    domain: Domain
    loss: Loss
    lipschitz: float
    on_steep: str
    first: int
    starts: Starts
    points: Array
    final: Array
    losses: Array
    data: tuple[tuple[Any, ...], ...]
    comparators: Domain

    def __init__(
        self,
        domain: Domain,
        loss: Loss,
        lipschitz: float,
        on_steep: str,
        first: int,
        starts: ArrayLike,
        points: ArrayLike,
        final: ArrayLike,
        losses: ArrayLike,
        data: Sequence[tuple[Any, ...]],
        comparators: Domain | None = None,
    ) -> None:
        """Take the parts of a trace; work grows with the number of runs only.

        `comparators` is the domain unless given; it has the domain's centre and chart.
        """
        check_on_steep(on_steep)
        begun = np.asarray(starts, dtype=np.int64)
        played = matrix("points", points, domain.dim)
        lost = np.asarray(losses, dtype=np.float64)
        if lost.ndim != 1 or lost.size == 0:
            raise ValueError(f"losses must be one number for each of at least one round, got shape {lost.shape}")
        if begun.shape != (len(played),) or begun[0] != 0 or begun[-1] >= lost.size or (np.diff(begun) <= 0).any():
            raise ValueError(
                f"starts must rise from 0 to less than the {lost.size} rounds, one for each of {len(played)} points, "
                f"got {begun}"
            )
        same = np.flatnonzero((played[1:] == played[:-1]).all(axis=1))
        if same.size:
            raise ValueError(
                f"consecutive points must differ, got {played[same[0]]} twice from run {same[0]} on; merge these runs"
            )
        fields = {
            "domain": domain,
            "loss": loss,
            "lipschitz": positive("lipschitz", lipschitz),
            "on_steep": on_steep,
            "first": integer("first", first, least=0),
            "starts": _sealed(begun),
            "points": _sealed(played),
            "final": _sealed(vector("final", final, domain.dim)),
            "losses": _sealed(lost),
            "data": tuple(data),
            "comparators": domain if comparators is None else _alike(domain, comparators),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def record(
        cls,
        domain: Domain,
        loss: Loss,
        *,
        lipschitz: float,
        on_steep: str,
        first: int,
        starts: Starts,
        chart_points: Array,
        points: Array,
        final: Array,
        parts: Sequence[Any],
        data: tuple[Any, ...],
        comparators: Domain | None = None,
    ) -> Trace:
        """Make the trace of one block `data`, whose rounds are prepared in `parts`; the losses are read off them.

        A run that no round saw (another begins at the same round, or it begins after the last) leaves no mark, and runs
        of one decision are merged.
        """
        stops = np.cumsum([len(part) for part in parts])
        rounds = int(stops[-1])
        seen = np.append(starts[1:], rounds) > starts
        starts, chart_points, points = starts[seen], chart_points[seen], points[seen]
        new = np.append(True, (points[1:] != points[:-1]).any(axis=1))
        starts, chart_points, points = starts[new], chart_points[new], points[new]
        losses = np.empty(rounds)
        for part, stop in zip(parts, stops.tolist(), strict=True):
            inner, runs = runs_within(starts, stop - len(part), stop)
            losses[stop - len(part) : stop] = suffered(loss, domain, part, inner, chart_points[runs])
        return cls(domain, loss, lipschitz, on_steep, first, starts, points, final, losses, (data,), comparators)

    @classmethod
    def join(cls, traces: Iterable[Trace]) -> Trace:
        """Return consecutive traces of one learner as one; the work is linear in their total size.

        A decision that stays at a seam makes one run.
        """
        listed = list(traces)
        if not listed:
            raise ValueError("traces must hold at least one trace, got none; join what observe_many returned")
        for a, b in pairwise(listed):
            _check_follows(a, b)
        if len(listed) == 1:
            return listed[0]
        head = listed[0]
        starts, points = [head.starts], [head.points]
        for a, b in pairwise(listed):
            goes_on = int(np.array_equal(a.points[-1], b.points[0]))
            starts.append(b.starts[goes_on:] + (b.first - head.first))
            points.append(b.points[goes_on:])
        return cls(
            head.domain,
            head.loss,
            head.lipschitz,
            head.on_steep,
            head.first,
            np.concatenate(starts),
            np.concatenate(points),
            listed[-1].final,
            np.concatenate([trace.losses for trace in listed]),
            tuple(block for trace in listed for block in trace.data),
            head.comparators,
        )

    def __add__(self, other: Trace) -> Trace:
        """Return this trace and the one that follows it as one."""
        if not isinstance(other, Trace):
            return NotImplemented
        return Trace.join([self, other])

    def __len__(self) -> int:
        """Return the number of rounds."""
        return self.losses.size

    def __repr__(self) -> str:
        """Say which rounds, how many switches and how much loss."""
        switches = f"{self.switches} switch{'' if self.switches == 1 else 'es'}"
        return f"<Trace: rounds {self.first + 1} to {self.first + len(self)}, {switches}, total loss {self.total:.6g}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what `repr` says, and the decision at the end; losses are marked."""
        rows = [
            ("rounds", f"{self.first + 1:,} to {self.first + len(self):,}"),
            ("switches", f"{self.switches:,}"),
            ("decision at the end", numbers(self.final)),
            (f"total loss ({NOT_PRIVATE})", f"{self.total:.6g}"),
            (f"mean loss ({NOT_PRIVATE})", f"{self.total / len(self):.6g}"),
        ]
        note = "Of a private learner, decisions and their changes are private; losses are computed from the data."
        return card(f"Trace of {self.loss!r} on {self.domain!r}", rows, note=note)

    def plot(self, coordinate: int = 0, *, system: str | None = None, baselines: bool = True) -> Figure:
        """Draw the decision over time, and what it cost so far, beside never moving and the best fixed decision.

        The second panel and the best fixed decision are computed from the data: **not private**. Finding that decision
        takes as long as `regret()`; `baselines=False` leaves it out. `system` (as in `plan.system`) gives the colour.
        Needs matplotlib (`pip install 'reticent[lab]'`); the figure belongs to no window: `figure.savefig("run.png")`.

        >>> import reticent as rt
        >>> learner = rt.lazy_learner(rt.Absolute(), rt.Interval(0.0, 1.0), max_switches=5, horizon=100)
        >>> figure = learner.observe_many(np.ones(100), np.linspace(0.0, 1.0, 100)).plot()
        >>> [axis.get_ylabel() for axis in figure.axes]
        ['decision', 'mean loss so far\\n(not private)']
        """
        from reticent.hindsight._picture import picture

        return picture(self, coordinate, system, baselines)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.losses.size

    @property
    def switches(self) -> int:
        """How often the decision changed, a change after the last round included."""
        return len(self.starts) - 1 + int(self._ends_with_switch)

    @property
    def switch_times(self) -> Starts:
        """The rounds, counted from the learner's first as 1, after which the decision changed."""
        last = [self.first + len(self)] if self._ends_with_switch else []
        return np.append(self.starts[1:] + self.first, np.array(last, dtype=np.int64))

    @property
    def _ends_with_switch(self) -> bool:
        return not np.array_equal(self.points[-1], self.final)

    @property
    def total(self) -> float:
        """The sum of the losses suffered (not private)."""
        return float(self.losses.sum())

    def decisions(self) -> Array:
        """Return the decision of every round, shape `(rounds, dim)`."""
        return np.repeat(self.points, np.diff(np.append(self.starts, len(self))), axis=0)

    def regret(self, gap: float | None = None) -> Regret:
        """Return the regret against the best fixed decision for these rounds, to a certified gap (not private).

        `gap` is how close the comparator should come, `1e-6 * lipschitz * diameter * rounds` unless given.
        """
        rows = self._again
        if 8 * len(self) * (self.domain.chart_dim + 1) <= _HELD:
            held = list(rows())
            played = self._checked(held)
            best = best_fixed(self.comparators, self.loss, held, self.lipschitz, gap=gap)
        else:
            played = self._checked(rows())
            best = best_fixed(self.comparators, self.loss, rows, self.lipschitz, gap=gap)
        assert best.rise is not None
        assert best.rise_gap is not None
        return Regret(played - best.rise, best.rise_gap, best)

    def curve(self, comparator: Hindsight | None = None) -> Array:
        """Return the regret after each round against one fixed decision, `(rounds,)` (not private).

        That decision is the best one for all the rounds, or the `comparator` given (say, `regret().comparator`).
        """
        best = self.regret().comparator if comparator is None else comparator
        played, fixed = self.domain.to_chart(self.points), self.domain.to_chart(best.point)[None]
        start, parts = 0, []
        for part in self._again():
            inner, runs = runs_within(self.starts, start, start + len(part))
            start += len(part)
            theirs = risen(self.loss, self.domain, part, np.zeros(1, dtype=np.int64), fixed)
            parts.append(risen(self.loss, self.domain, part, inner, played[runs]) - theirs)
        return np.cumsum(np.concatenate(parts))

    def losses_of(self, point: ArrayLike) -> Array:
        """Return the losses that one fixed decision would have suffered, `(rounds,)` (not private).

        >>> import reticent as rt
        >>> learner = rt.lazy_learner(rt.Absolute(), rt.Interval(0.0, 1.0), max_switches=5, horizon=100)
        >>> learner.observe_many(np.ones(3), np.array([0.0, 0.5, 1.0])).losses_of([0.5])
        array([0.5, 0. , 0.5])
        """
        chart = self.domain.to_chart(vector("point", point, self.domain.dim))[None]
        theirs = [suffered(self.loss, self.domain, part, np.zeros(1, dtype=np.int64), chart) for part in self._again()]
        return np.concatenate(theirs)

    def _again(self) -> Iterator[Any]:
        return prepared(self.domain, self.loss, self.lipschitz, self.on_steep, self.data)

    def _checked(self, parts: Iterable[Any]) -> float:
        """Return by how much the total exceeds that at the centre; refuse data that has changed since.

        Its losses would no longer be those suffered.
        """
        points = self.domain.to_chart(self.points)
        # Points made the way to user coordinates and back: room for the rounding of that.
        room = self.lipschitz * (1e-9 * self.domain.diameter + 1e-14 * float(np.linalg.norm(self.domain.center)))
        stop, rise = 0, 0.0
        for part in parts:
            start, stop = stop, stop + len(part)
            if stop <= len(self):
                inner, runs = runs_within(self.starts, start, stop)
                now = suffered(self.loss, self.domain, part, inner, points[runs])
                off = np.flatnonzero(~(np.abs(now - self.losses[start:stop]) <= room + 1e-9 * np.abs(now)))
                if off.size:
                    row = start + int(off[0])
                    raise ValueError(
                        f"data must be as it was when it was observed, got a round {row} whose loss is now "
                        f"{now[off[0]]:.6g} and was {self.losses[row]:.6g}; do not change or reuse arrays given to "
                        "observe_many, or give it copies"
                    )
                rise += float(risen(self.loss, self.domain, part, inner, points[runs]).sum())
        if stop != len(self):
            raise ValueError(f"data must hold the {len(self)} rounds of the losses, got {stop}; give all blocks")
        return rise


def _alike(domain: Domain, comparators: Domain) -> Domain:
    """Return the comparators, or refuse a body whose chart is another than the domain's: rows are read in that."""
    if comparators == domain:
        return comparators
    flat = comparators.chart_dim == comparators.dim == domain.dim == domain.chart_dim
    if not flat or not np.array_equal(comparators.center, domain.center):
        raise ValueError(f"comparators must be a body with an inside and the centre of {domain!r}, got {comparators!r}")
    return comparators


def _sealed(array: Any) -> Any:
    view = array.view()
    view.setflags(write=False)
    return view


def _check_follows(a: Trace, b: Trace) -> None:
    for name in ("domain", "loss", "lipschitz", "on_steep", "comparators"):
        if getattr(a, name) != getattr(b, name):
            raise ValueError(
                f"traces to join must have one {name}, got {getattr(a, name)!r} and {getattr(b, name)!r}; "
                "join traces of one learner only"
            )
    if b.first != a.first + len(a):
        raise ValueError(
            f"traces to join must follow each other: after round {a.first + len(a)} comes one that starts after round "
            f"{b.first}; join all traces of a learner in the order they came"
        )
    if not np.array_equal(a.final, b.points[0]):
        raise ValueError(
            f"traces to join must follow each other: one ends with the decision {a.final}, the next begins with "
            f"{b.points[0]}; join traces of one learner only"
        )
