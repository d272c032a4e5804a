"""Several plans on one stream over several seeds, in parallel, with what was finished kept whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from reticent._core._errors import WorkLimitError
from reticent.lab._study import Best, Run
from reticent.lab._walk import TooSlow, plan_facts, walk
from reticent.lab._work import run_all
from reticent.lab.streams._stream import Stream
from reticent.planning import BudgetedPlan, DescentPlan, LeaderPlan, NewtonPlan

if TYPE_CHECKING:
    from reticent.planning import BasePlan

_FINE = 2048  # rounds between two looks at the clock


@dataclass(frozen=True)
class Entry:
    """A system that takes part, with its plan; `label` says which goal it is to meet."""

    system: str
    plan: BasePlan
    label: str = ""


@dataclass
class Contest:
    """Runs of all entries on a stream; `runs` and `failures` grow while it goes on, by the place of the entry.

    >>> from reticent.planning import plan_descent
    >>> from reticent.lab.streams import get
    >>> stream = get("alternating:rounds=300,dim=2")
    >>> contest = Contest(stream, [Entry("online gradient descent", plan_descent(stream.domain, 300, 1.0))])
    >>> contest.go([0, 1], jobs=1)
    >>> [run.rounds for run in contest.runs[0]]  # the same decisions for any seed: one run is enough
    [300]
    """

    stream: Stream
    entries: Sequence[Entry]
    best: Best | None = None
    runs: dict[int, list[Run]] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)

    def pieces(self, seeds: Sequence[int]) -> int:
        """Return how many runs there will be if none fails."""
        return sum(len(self._seeds(place, seeds)) for place in range(len(self.entries)))

    def go(
        self,
        seeds: Sequence[int],
        *,
        patience: float | None = None,
        jobs: int = -1,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Run every entry with every seed; one that fails with the first seed is not tried with others.

        A run that takes longer than `patience` seconds, or needs more work than its sampler allows, is a failure with
        its reason. `report` is told the name of the system after every run.
        """
        described = [plan_facts(entry.plan, spent=True) for entry in self.entries]

        def tasks(among: Callable[[list[int]], list[int]]) -> list[tuple[int, dict[str, Any]]]:
            return [
                (place, self._task(place, described[place], seed, patience))
                for place in range(len(self.entries))
                if place not in self.failures
                for seed in among(self._seeds(place, seeds))
            ]

        for among in (lambda found: found[:1], lambda found: found[1:]):
            todo = tasks(among)

            def take(index: int, found: dict[str, Any], todo: list[tuple[int, dict[str, Any]]] = todo) -> None:
                self._take(todo[index][0], found, report)

            run_all(_run, [task for _, task in todo], jobs=min(jobs, len(todo)) or 1, report=take)

    def _seeds(self, place: int, seeds: Sequence[int]) -> list[int]:
        certain = isinstance(self.entries[place].plan, DescentPlan | LeaderPlan | NewtonPlan | BudgetedPlan)
        return list(seeds[:1] if certain else seeds)

    def _task(self, place: int, described: dict[str, Any], seed: int, patience: float | None) -> dict[str, Any]:
        entry = self.entries[place]
        return {
            "stream": self.stream,
            "plan": entry.plan,
            "system": entry.system,
            "seed": seed,
            "best": self.best,
            "described": described,
            "patience": patience,
        }

    def _take(self, place: int, found: dict[str, Any], report: Callable[[str], None] | None) -> None:
        if "reason" in found:
            self.failures[place] = found["reason"]
        else:
            self.runs.setdefault(place, []).append(Run(**found))
            self.runs[place].sort(key=lambda run: run.seed or 0)
        if report is not None:
            report(self.entries[place].system)


class _Fine(Stream):
    """A stream in short blocks, so that a slow run is noticed in time."""

    def blocks(self, size: int = _FINE) -> Iterator[Any]:
        return super().blocks(size)


def _run(*, stream: Stream, **options: Any) -> dict[str, Any]:
    """Do one run, in any process."""
    plan, seed = options.pop("plan"), options.pop("seed")
    try:
        fine = _Fine(**{one.name: getattr(stream, one.name) for one in fields(stream)})
        return asdict(walk(plan, fine, seed, **options))
    except (TooSlow, WorkLimitError, ValueError) as error:
        return {"reason": str(error)}
