"""Decisions as they change, as CSV or JSON lines: of a private run, exactly what may be published."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from reticent.lab._about import about

if TYPE_CHECKING:
    from reticent._check import Array
    from reticent.learners import Trace


class Decisions:
    """Writes each decision with the first round in which it is in play; rounds are counted from 1."""

    def __init__(self, file: IO[str], name: str, names: Sequence[str], as_json: bool) -> None:
        """Begin a file, whose name is for messages; CSV starts with a line of names."""
        self._file, self._name, self._json = file, name, as_json
        self._csv = csv.writer(file, lineterminator="\n")
        self._last: Any = None
        if not as_json:
            self._csv.writerow(["round", *names])

    def first(self, point: Array) -> None:
        """Write the decision that is in play before any data."""
        self._write([1], point[None])

    def add(self, trace: Trace) -> None:
        """Write the changes of a block, one right after its last round included, and pass them on at once."""
        import numpy as np

        goes_on = int(np.array_equal(trace.points[0], self._last))
        starts, points = trace.starts[goes_on:] + (trace.first + 1), trace.points[goes_on:]
        if not np.array_equal(trace.points[-1], trace.final):
            starts = np.append(starts, trace.first + trace.rounds + 1)
            points = np.concatenate([points, trace.final[None]])
        if len(starts):
            self._write(starts.tolist(), points)

    def _write(self, rounds: list[int], points: Array) -> None:
        rows = points.tolist()
        with about(self._name):
            if self._json:
                lines = (json.dumps({"round": t, "decision": row}) for t, row in zip(rounds, rows, strict=True))
                self._file.write("".join(line + "\n" for line in lines))
            else:
                self._csv.writerows([t, *row] for t, row in zip(rounds, rows, strict=True))
            self._file.flush()
        self._last = points[-1]
