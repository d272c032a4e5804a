"""Results as plain numbers: what learners did on a stream, kept in one JSON file for tables, pictures and reports."""

from __future__ import annotations

import json
import math
import os
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from reticent.lab._environment import Environment, facts
from reticent.lab._kept import write_whole

Bound = Annotated[float, "may be infinite"]


def wrong(value: Any, kind: Any, where: str = "it") -> str | None:
    """Return what is wrong with a value of JSON, None if it is what the type says.

    Data classes and typed dictionaries are objects that hold their names, and may hold others.

    >>> wrong({"at": [1, 2]}, dict[str, list[int]]), wrong({"at": [1, "2"]}, dict[str, list[int]], "curve")
    (None, "curve['at'][1] is '2'")
    >>> wrong(float("inf"), float), wrong(float("inf"), Bound)
    ('it is inf', None)
    """
    simple = f"{where} is {_short(value)}"
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return None
    if origin in (Union, types.UnionType):
        found = [wrong(value, one, where) for one in inside]
        # The choice that goes furthest before it fails is the one that was meant.
        return None if None in found else max((one for one in found if one), key=len)
    if origin is Annotated:
        return None if _is_number(value) and not math.isnan(value) else simple
    if origin is list:
        parts = enumerate(value) if isinstance(value, list) else None
        return simple if parts is None else _first(wrong(one, inside[0], f"{where}[{k}]") for k, one in parts)
    if origin is dict:
        if not isinstance(value, dict):
            return simple
        return _first(wrong(one, inside[1], f"{where}[{name!r}]") for name, one in value.items())
    if is_typeddict(kind) or is_dataclass(kind):
        return _wrong_object(value, kind, where)
    if kind is None or kind is types.NoneType:
        return None if value is None else simple
    if kind is float:
        return None if _is_number(value) and math.isfinite(value) else simple
    return None if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else simple


def _wrong_object(value: Any, kind: Any, where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where} is {_short(value)}"
    hints = get_type_hints(kind, include_extras=True)
    optional: frozenset[str] = getattr(kind, "__optional_keys__", frozenset())
    if is_dataclass(kind):  # what has a default may be missing in files of earlier versions
        optional = frozenset(one.name for one in fields(kind) if one.default is not MISSING)
    missing = [name for name in hints if name not in value and name not in optional]
    if missing:
        return f"{where} has no {missing[0]!r}"
    return _first(wrong(value[name], hint, f"{where}[{name!r}]") for name, hint in hints.items() if name in value)


def _first(found: Any) -> str | None:
    return next((one for one in found if one is not None), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


class Promise(TypedDict):
    """What is read of a plan (`plan_facts`)."""

    system: str
    horizon: int | None
    regret_bound: Bound | None
    expected_switches: Bound | None
    max_switches: float | None
    epsilon: float | None
    delta: float | None
    neighbors: str | None
    text: str
    explain: str
    vacuous: bool
    spent_at: list[int] | None
    spent: list[Bound] | None


class Place(TypedDict, total=False):
    """What is read of a stream (`stream_facts`)."""

    name: str
    title: str
    rounds: int
    decision: list[str]


class Wish(TypedDict, total=False):
    """What is read of a goal."""

    epsilon: float | list[float] | None
    delta: float | None
    max_switches: float | list[float] | None


class Refusal(TypedDict):
    """A system that did not run."""

    system: str
    reason: str


# Results as plain numbers: what learners did on a stream, kept in one JSON file for tables, pictures and reports.

VERSION = 1
KIND = "reticent study"


@dataclass(frozen=True)
class Best:
    """The best fixed decision in hindsight: its total loss is within `gap` of the least.

    `curve` is the sum of its losses after the rounds `at` (see `places`). Beside it stand what everything is measured
    against: the total loss of never moving from the centre, that of the best constant prediction, and the share of
    labels of the commoner kind. Computed from the data: NOT private.
    """

    point: list[float]
    value: float
    gap: float
    at: list[int]
    curve: list[float]
    idle: float | None = None
    constant: float | None = None
    majority: float | None = None

    def share(self, total: float) -> float | None:
        """Return how far a total loss lies on the way from never moving (0) to the best fixed decision (1).

        None where that is no way at all. A decision that follows a stream can go beyond 1.

        >>> Best([0.0], 50.0, 0.0, [100], [50.0], idle=100.0).share(60.0)
        0.8
        """
        if self.idle is None or not self.idle - self.value > self.gap:
            return None
        return (self.idle - total) / (self.idle - self.value)

    def beside(self) -> str:
        """Return what everything is measured against, in a sentence: mean losses of a round.

        >>> Best([0.0], 50.0, 0.0, [100], [50.0], idle=100.0).beside()
        'Never moving has a mean loss of 1.0000, the best fixed decision in hindsight 0.5000.'
        """
        rounds, parts = self.at[-1], []
        if self.idle is not None:
            parts.append(f"never moving has a mean loss of {self.idle / rounds:.4f}")
        if self.constant is not None:
            right = "" if self.majority is None else f" (the majority class is right in {self.majority:.1%})"
            parts.append(f"the best constant prediction {self.constant / rounds:.4f}{right}")
        parts.append(f"the best fixed decision in hindsight {self.value / rounds:.4f}")
        text = ", ".join(parts)
        return f"{text[0].upper()}{text[1:]}."


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
    asked for and did not run, with reasons, `best` the best fixed decision in hindsight, where it was looked for, and
    `notes` what a reader of the numbers has to know.

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
    notes: list[str] = field(default_factory=list)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the study as JSON, all of it or nothing, and return the path."""
        target = Path(path)
        write_whole(target, json.dumps({"kind": KIND, "version": VERSION, "study": asdict(self)}))
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Read a study; refuse a file that is none, is damaged or comes from a newer version."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"{path} must be a study written by reticent, got a damaged file ({error})") from None
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError(f"{path} must be a study written with --save by reticent run or compare; it is not one")
        if found.get("version") != VERSION:
            raise ValueError(
                f"{path} is a study of version {found.get('version')!r}, and this reticent reads version {VERSION}; "
                "make it again, or use the reticent that wrote it"
            )
        inside: Any = found.get("study")
        if isinstance(inside, dict):
            inside.setdefault("notes", [])  # a field that version 1 did not have at first
        reason = wrong(inside, _Document, "study") or _uneven(inside)
        if reason is not None:
            raise ValueError(
                f"{path} must be a whole study; a part of it is missing or wrong ({reason}); make it again"
            )
        best = None if inside["best"] is None else _made(Best, inside["best"])
        return cls(**{**_known(cls, inside), "runs": [_made(Run, run) for run in inside["runs"]], "best": best})


class _Document(TypedDict):
    """A study as its file has it."""

    title: str
    kind: str
    stream: Place
    goal: Wish
    runs: list[Run]
    best: Best | None
    refusals: list[Refusal]
    command: str
    environment: Environment
    notes: list[str]


def _uneven(inside: Mapping[str, Any]) -> str | None:
    """Return which curves, paths or counts of a study do not go together, in words; None if all do."""
    best = inside["best"]
    sizes = {len(point) for run in inside["runs"] for point in run["points"]}
    sizes |= set() if best is None else {len(best["point"])}
    if len(sizes) > 1 or 0 in sizes:
        return "decisions differ in their number of coordinates"
    if best is not None and not _curves(best["at"], best["curve"]):
        return "the curve of the best fixed decision does not go with its rounds"
    for k, run in enumerate(inside["runs"]):
        where, plan = f"study['runs'][{k}]", run["plan"]
        reason = wrong(plan, Promise, f"{where}['plan']")
        if reason is not None:
            return reason
        if run["rounds"] < 1 or not _curves(run["at"], run["losses"], run["switched"]) or run["at"][-1] > run["rounds"]:
            return f"the curves of {where} do not go with its rounds"
        if (
            not _rising(run["starts"], 0)
            or len(run["starts"]) != len(run["points"])
            or run["starts"][-1] >= run["rounds"]
        ):
            return f"the decisions of {where} do not go with their rounds"
        if plan["spent"] and len(plan["spent"]) != len(plan["spent_at"] or []):
            return f"the privacy spent of {where} does not go with its rounds"
        if plan["horizon"] is not None and plan["horizon"] < 1:
            return f"the horizon of {where} is {plan['horizon']}"
    return None


def _curves(at: list[int], *curves: list[float]) -> bool:
    return _rising(at, 1) and all(len(curve) == len(at) for curve in curves)


def _rising(at: list[int], first: int) -> bool:
    """Whether these are rounds, each after the one before."""
    return bool(at) and at[0] >= first and all(a < b for a, b in pairwise(at))


def _known(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind)}


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**_known(kind, values))
