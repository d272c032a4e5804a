"""The gate that rounds pass before anything is recorded: blocks are checked whole and cut into parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from reticent._core._tags import saved
from reticent.losses._base import Charted, Loss
from reticent.losses._custom import Custom, Objects
from reticent.losses._limit import check_on_steep

_BLOCK = 1 << 15  # rows prepared together: bounds temporary memory when a block is mapped from disk


@saved("gate")
class Gate:
    """Brings the rounds of one loss over one domain to normal form, or refuses them; it keeps nothing.

    >>> import reticent as rt
    >>> gate = Gate(rt.Ball(2), rt.Linear(), lipschitz=1.0)
    >>> [len(part) for part in gate.prepare(np.zeros((5, 2)))]
    [5]
    """

    def __init__(self, domain: Charted, loss: Loss, lipschitz: float | None, on_steep: str = "raise") -> None:
        """Take the limit on the slope of a round (None: no limit) and what to do with steeper ones."""
        check_on_steep(on_steep)
        self.domain, self.loss, self.lipschitz, self.on_steep = domain, loss, lipschitz, on_steep

    def prepare_one(self, *row: Any) -> list[Any]:
        """Return one round, checked, as `prepare` does."""
        if isinstance(self.loss, Custom):
            row = ([row[0]],) if len(row) == 1 else row
        elif row and np.ndim(row[0]) > 1:
            raise ValueError(f"observe takes one round, got an array of shape {np.shape(row[0])}; use observe_many")
        elif self.domain.dim == 1 and row and np.size(row[0]) != 1:
            raise ValueError(f"observe takes one round, got {np.size(row[0])} numbers; use observe_many")
        return self.prepare(*row)

    def prepare(self, *block: Any) -> list[Any]:
        """Return a block of rounds, checked, in parts; nothing is recorded."""
        if len(block) != len(self.loss.data):
            raise ValueError(
                f"rounds of {self.loss!r} must be given as ({', '.join(self.loss.data)}), got {len(block)} arguments"
            )
        parts: list[Any] = []
        # Whatever the caller has numpy do about underflow: a round is as good as its numbers.
        with np.errstate(all="ignore"):
            for part in self._parts(block):
                parts.append(self._prepared(part, sum(map(len, parts))))
        if isinstance(self.loss, Custom):
            for part in parts:
                self._look(part)
        return parts

    def _prepared(self, part: Sequence[Any], start: int) -> Any:
        try:
            return self.loss.prepare(self.domain, *part, lipschitz=self.lipschitz, on_steep=self.on_steep)
        except ValueError as error:
            if start:
                raise ValueError(f"of the rows from row {start} on, counted from 0 again: {error}") from error
            raise

    def _look(self, rows: Objects) -> None:
        """Look at each object once, at the centre: functions that do not work are found before anything is stored."""
        assert isinstance(self.loss, Custom)
        for item, scale, bound in zip(rows.items, rows.scales, rows.bounds, strict=True):
            self.loss.look(self.domain, self.domain.center, item, float(bound / scale) if scale > 0 else np.inf)

    def _parts(self, block: tuple[Any, ...]) -> Iterator[Sequence[Any]]:
        """Cut a long block of arrays into parts; anything else goes through as it is, to be checked whole."""
        arrays = [a for a in block if isinstance(a, np.ndarray) and a.ndim > 0]
        lengths = {len(a) for a in arrays}
        single = self.domain.dim > 1 and bool(arrays) and arrays[0].ndim == 1
        if len(arrays) != len(block) or len(lengths) != 1 or max(lengths) <= _BLOCK or single:
            return iter([block])
        size = lengths.pop()
        return ([a[i : i + _BLOCK] for a in block] for i in range(0, size, _BLOCK))
