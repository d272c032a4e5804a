"""What a document from outside must look like, declared as types and held against its values."""

from __future__ import annotations

import math
import types
from dataclasses import is_dataclass
from typing import Annotated, Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

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
    adversary: str | None
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
