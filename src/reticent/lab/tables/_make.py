"""Make the tables: all cells in parallel, kept as they finish, then the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.lab._environment import facts
from reticent.lab._kept import PLANNING, SOURCES
from reticent.lab._work import run_all
from reticent.lab.tables import _curves, _landscape
from reticent.lab.tables._cell import cell
from reticent.lab.tables._grid import all_tasks
from reticent.lab.tables._regimes import TABLES
from reticent.lab.tables._rows import rows_of

SECTIONS = (*TABLES, "landscape", "curves")


@dataclass(frozen=True)
class Workers:
    """Who does the work, where results are kept, and who is told."""

    cache: Path | None = None
    jobs: int = -1
    backend: str = "loky"
    scheduler: str | None = None
    report: Callable[[str], None] | None = None

    def do(
        self,
        function: Callable[..., Any],
        tasks: Sequence[dict[str, Any]],
        title: str,
        sources: Sequence[str] = SOURCES,
    ) -> list[Any]:
        """Do all tasks, those that take longest first, and return the results in the order of the tasks."""
        order = sorted(range(len(tasks)), key=lambda i: -tasks[i]["rounds"] * (1 + tasks[i].get("seeds", 0)))
        shown = [title + ": " + _words(tasks[i]) for i in order]
        found = run_all(
            function,
            [tasks[i] for i in order],
            cache=self.cache,
            jobs=self.jobs,
            backend=self.backend,
            scheduler=self.scheduler,
            report=None if self.report is None else lambda i, _: self.report(shown[i]),  # type: ignore[misc]
            sources=sources,
        )
        placed = dict(zip(order, found, strict=True))
        return [placed[i] for i in range(len(tasks))]


def _words(task: dict[str, Any]) -> str:
    return f"{task.get('system', 'all systems')}, {task['rounds']:.0e} rounds, d = {task['dim']}"


def count(quick: bool, sections: Sequence[str] = SECTIONS) -> int:
    """Return the number of pieces of work.

    >>> count(True, ["landscape"])
    8
    """
    sizes = {name: len(all_tasks(name, quick)) for name in TABLES if name in sections}
    if "landscape" in sections:
        sizes["landscape"] = len(_landscape.tasks(quick))
    if "curves" in sections:
        sizes["curves"] = sum(len(_curves.tasks(variable, quick)) for variable in ("epsilon", "S"))
    return sum(sizes.values())


def make(quick: bool, workers: Workers, sections: Sequence[str] = SECTIONS) -> dict[str, Any]:
    """Return all results as plain data: cells and rows of both tables, the landscape, the curves.

    `seconds` is what this call took; `work` is what the cells of the tables took when they were made, on one core each.
    """
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise ValueError(f"sections must be among {', '.join(SECTIONS)}, got {unknown[0]!r}")
    begin = time.perf_counter()
    results: dict[str, Any] = {"quick": quick, "environment": facts("joblib"), "work": 0.0}
    for name in TABLES:
        if name in sections:
            places = all_tasks(name, quick)
            found = _cells(workers, [task for _, _, task in places], name)
            cells = [
                {"regime": regime, "scale": scale} | task | one
                for (regime, scale, task), one in zip(places, found, strict=True)
            ]
            results[name] = {"rows": rows_of(cells), "cells": cells}
            results["work"] += sum(one["seconds"] for one in found)
    if "landscape" in sections:
        tasks = _landscape.tasks(quick)
        bounds = workers.do(_landscape.offers, tasks, "landscape", (*PLANNING, "losses"))
        results["landscape"] = {
            "places": [task | {"bounds": one} for task, one in zip(tasks, bounds, strict=True)],
            "convex": _landscape.cells(tasks, bounds, smooth=False),
            "smooth": _landscape.cells(tasks, bounds, smooth=True),
        }
    if "curves" in sections:
        results["curves"] = {
            variable: workers.do(_curves.runs, _curves.tasks(variable, quick), "curves")
            for variable in ("epsilon", "S")
        }
    return results | {"seconds": time.perf_counter() - begin}


def _cells(workers: Workers, tasks: Sequence[dict[str, Any]], title: str) -> list[Any]:
    """Make all cells; those without runs stay good whatever changes in learners and streams."""
    found: dict[int, Any] = {}
    for runs, sources in ((False, PLANNING), (True, SOURCES)):
        chosen = [i for i, task in enumerate(tasks) if bool(task["seeds"]) == runs]
        made = workers.do(cell, [tasks[i] for i in chosen], title, sources)
        found |= dict(zip(chosen, made, strict=True))
    return [found[i] for i in range(len(tasks))]
