"""Learners behind the gate, of many keys at once: states in arrays, sums of rows by key, releases together.

What is computed is what the walks of single learners compute, by the same functions, number by number: the bits are the
same.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from reticent._core._check import Array
from reticent.domains import Box, Domain, Interval
from reticent.fleet._arrays import ArrayHolder, Fields
from reticent.fleet._draws import Draws, States
from reticent.fleet._each import Moves
from reticent.fleet._keys import Key, Places, Root
from reticent.fleet._rows import Wave, alike, ranges, waves
from reticent.fleet._spec import Spec
from reticent.losses import Rows
from reticent.losses._gate import Gate
from reticent.systems.gate import BlockRelease, NoisyDescentPlan
from reticent.systems.gate._normal import rounded_normals_each
from reticent.systems.gate._release import Integers
from reticent.systems.gate._walk import slopes

_DRAWN = 1 << 18  # numbers that are drawn together, at most


class GateHolder(ArrayHolder):
    """How rows go through the gate, for many slots."""

    _grown = (*ArrayHolder._grown, "u", "open")

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        super().__init__(spec, root)
        assert spec.loss is not None
        self.loss, self.domain, self.limit = spec.loss, spec.plan.domain, int(spec._first._last)
        self.gate = Gate(self.domain, self.loss, self.plan.lipschitz, spec.on_steep)
        self.dim: int = self.domain.chart_dim
        self.u = np.zeros((0, self.dim))
        self.open = np.zeros((0, self.dim), dtype=np.int64)  # sums of open blocks: secret

    def prepare(self, columns: tuple[Any, ...]) -> Rows:
        """Return rows in normal form, checked."""
        parts = self.gate.prepare(*(np.asarray(column) for column in columns))
        return parts[0] if len(parts) == 1 else Rows.join(parts)

    def decisions(self, slots: Places) -> Array:
        """Return the decision in play of each slot."""
        found: Array = self.domain._from_chart(self.u[slots])
        return found

    def take(self, slots: Places, rows: Rows, order: Places, bounds: Places) -> Moves:
        """Let each slot take in its rows, in waves; return the changes."""
        found: list[Moves] = []
        # Whatever the caller has numpy do about underflow: an error here would tell of a round, and move others.
        with np.errstate(all="ignore"):
            for wave in waves(order, bounds, lambda keys: self._left(slots[keys])):
                found.extend(self._wave(slots[wave.keys], rows, wave))
        return Moves.joined(found, self.shape)

    def _wave(self, slots: Places, rows: Rows, wave: Wave) -> list[Moves]:
        vectors, offsets, found = rows.vectors[wave.rows], rows.offsets[wave.rows], []
        starts = wave.starts
        for kind, part in alike(self._kinds(slots)):
            mine, counts = slots[part], wave.counts[part]
            first = starts[part]
            if part.size == slots.size:
                some = Rows(vectors, offsets)
            else:
                which = ranges(first, counts)
                some, first = Rows(vectors[which], offsets[which]), np.cumsum(counts) - counts
            grid = self._grid(kind)
            steep = slopes(self.loss, some, np.repeat(self.u[mine], counts, axis=0))
            self.open[mine] += grid.summed_apart(some.vectors, steep, first)
            left = self._left(mine)
            self.done[mine] += counts
            over = mine[counts == left]
            if over.size:
                found.extend(self._released(kind, over))
        return found

    @abstractmethod
    def _left(self, slots: Places) -> Places:
        """Return how many rounds are left of the open block of each slot."""

    @abstractmethod
    def _grid(self, kind: int) -> BlockRelease:
        """Return the grid of a kind."""

    @abstractmethod
    def _released(self, kind: int, slots: Places) -> list[Moves]:
        """Release the open sums of slots of a kind whose block is over, and go where that leads."""

    def _go(self, slots: Places, aims: Array) -> Moves:
        """Put the points of the domain nearest to `aims` in play; return those that differ from what was."""
        before = self.domain._from_chart(self.u[slots])
        u = self.domain._to_chart(_nearest(self.domain, self.domain._from_chart(aims)))
        now = self.domain._from_chart(u)
        self.u[slots] = u
        moved = np.flatnonzero((before != now).any(axis=1))
        self.moved[slots[moved]] += 1
        return Moves(slots[moved], self.done[slots[moved]], now[moved])

    def _normals(self, slots: Places, before: States, count: int, shift: int) -> tuple[Integers, States]:
        """Return noise for each slot, from generators that stand where `before` says; and where they stand after it."""
        each, keys, after, parts = max(1, _DRAWN // (9 * count)), self._keys, np.empty_like(before), []
        for i in range(0, len(slots), each):
            part = slice(i, i + each)
            named = [keys[slot] for slot in slots[part].tolist()]
            at = _Standing(self.draws, before[part], after[part], named)
            parts.append(rounded_normals_each(at, len(named), count, shift))
        return np.concatenate(parts), after


class _Standing:
    """The generators of some keys, for `rounded_normals_each`: where they stood, and where they stand."""

    def __init__(self, draws: Draws, before: States, after: States, keys: list[Key]) -> None:
        self._draws, self._before, self._after, self._keys = draws, before, after, keys

    def use(self, i: int) -> np.random.Generator:
        """Return generator number i, where it stood."""
        return self._draws.put(self._before[i], self._keys[i])

    def keep(self, i: int) -> None:
        """Note where it stands."""
        self._draws.noted(self._after[i])


class DescentHolder(GateHolder):
    """Noisy descent of many keys: as `DualAveraging`, on a sum of releases for each slot."""

    plan: NoisyDescentPlan
    _grown = (*GateHolder._grown, "dual")

    def __init__(self, spec: Spec, root: Root) -> None:
        """Hold nothing yet."""
        super().__init__(spec, root)
        self.release, self.lam = self.plan.release(), self.plan.first_lam
        self.dual = np.zeros((0, self.dim))

    def _left(self, slots: Places) -> Places:
        left: Places = self.plan.batch - self.done[slots] % self.plan.batch
        return left

    def _kinds(self, slots: Places) -> Places:
        return np.zeros(len(slots), dtype=np.int64)

    def _grid(self, kind: int) -> BlockRelease:
        return self.release

    def _released(self, kind: int, slots: Places) -> list[Moves]:
        noise, self.states[slots] = self._normals(slots, self.states[slots], self.dim, self.release.shift)
        self.dual[slots] += self.release.real(self.open[slots] + noise)
        self.open[slots] = 0
        lam = np.full(len(slots), self.lam)
        if self.plan.horizon is None:
            lam = self.lam * np.sqrt(self.done[slots] // self.plan.batch + 1)
        return [self._go(slots, -self.dual[slots] / lam[:, None])]

    def _fields(self, kind: int) -> Fields:
        return [("u", ()), ("open", ()), ("states", ()), ("dual", ())]


def _nearest(domain: Domain, points: Array) -> Array:
    """Return the points of the domain that are nearest to points, each by itself."""
    if isinstance(domain, Box | Interval):
        return domain._project(points)
    return np.array([domain._project(point) for point in points]).reshape(points.shape)
