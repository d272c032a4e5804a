"""Results as plain numbers: what learners did on a stream, kept in one JSON file for tables, pictures and reports."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from reticent.lab._environment import facts

VERSION = 1
KIND = "reticent study"


@dataclass(frozen=True)
class Best:
    """The best fixed decision in hindsight: its total loss is within `gap` of the least.

    `curve` is the sum of its losses after the rounds `at` (see `places`). Computed from the data: NOT private.
    """

    point: list[float]
    value: float
    gap: float
    at: list[int]
    curve: list[float]


@dataclass(frozen=True)
class Run:
    """One learner's way through a stream.

    `plan` describes what was promised (see `plan_facts`). `at` are rounds; `losses` is the sum of losses suffered and
    `switched` the number of changes after each of them. The decision `points[k]` was in play from round `starts[k]` on
    (counted from 0); long paths are thinned, and `whole` says whether all of it is there. Of a private learner, only
    `starts`, `points` and `switches` are private; losses and regret are computed from the data.
    """

    system: str
    seed: int | None
    plan: dict[str, Any]
    rounds: int
    switches: int
    total: float
    correct: int | None
    seconds: float
    at: list[int]
    losses: list[float]
    switched: list[int]
    starts: list[int]
    points: list[list[float]]
    whole: bool
    regret: float | None = None

    @property
    def private(self) -> bool:
        """Whether the plan makes a privacy claim."""
        return self.plan["epsilon"] is not None

    @property
    def bound(self) -> float | None:
        """The certified regret, None without a certificate."""
        found = self.plan["regret_bound"]
        return None if found is None else float(found)


@dataclass(frozen=True)
class Study:
    """Runs on one stream with what is needed to understand and repeat them.

    `stream` are facts about the stream (see `stream_facts`), `goal` what was asked, `refusals` the systems that were
    asked for and did not run, with reasons, `best` the best fixed decision in hindsight, where it was looked for.

    >>> study = Study("one run", "run", {"name": "none"}, {"epsilon": 1.0}, [])
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     Study.load(study.save(Path(place) / "study.json")) == study
    True
    """

    title: str
    kind: str  # "run" or "comparison"
    stream: dict[str, Any]
    goal: dict[str, Any]
    runs: list[Run]
    best: Best | None = None
    refusals: list[dict[str, str]] = field(default_factory=list)
    command: str = ""
    environment: dict[str, Any] = field(default_factory=facts)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the study as JSON, all of it or nothing, and return the path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_text(json.dumps({"kind": KIND, "version": VERSION, "study": asdict(self)}))
        draft.replace(target)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study; refuse a file that is none, is damaged or comes from a newer version."""
        try:
            found = json.loads(Path(path).read_text())
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} must be a study written by reticent, got a damaged file ({error})") from None
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError(f"{path} must be a study written with --save by reticent run or compare; it is not one")
        if found.get("version") != VERSION:
            raise ValueError(
                f"{path} is a study of version {found.get('version')!r}, and this reticent reads version {VERSION}; "
                "make it again, or use the reticent that wrote it"
            )
        try:
            inside = found["study"]
            best = None if inside["best"] is None else _made(Best, inside["best"])
            runs = [_made(Run, run) for run in inside["runs"]]
            return cls(**{**_known(cls, inside), "runs": runs, "best": best})
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"{path} must be a whole study; a part of it is missing or wrong ({error}); make it again"
            ) from None


def _known(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind)}


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**_known(kind, values))
