"""Events of dp_accounting as plain JSON, in a form that files can rely on: the name of the event and its fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

_MOST = 100  # how deep events may be nested, so that a forged file ends in a sentence


def event_to_plain(event: Any) -> dict[str, Any]:
    """Return an event as a dictionary of plain values.

    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> event_to_plain(SelfComposedDpEvent(GaussianDpEvent(2.0), 3))
    {'event': 'SelfComposedDpEvent', 'count': 3, 'of': {'event': 'GaussianDpEvent', 'noise_multiplier': 2.0}}
    """
    import attr

    kind = type(event)
    if _kinds().get(kind.__name__) is not kind:
        known = ", ".join(sorted(_kinds()))
        raise ValueError(f"an event must be one of dp_accounting's, {known}; got {kind.__name__}")
    inner: dict[str, Any] = {}
    plain: dict[str, Any] = {"event": kind.__name__}
    for field in attr.fields(kind):
        value = getattr(event, field.name)
        if field.name == "event":
            inner["of"] = event_to_plain(value)
        elif field.name == "events":
            inner["of"] = [event_to_plain(part) for part in value]
        else:
            plain[field.name] = _number(field.name, value)
    return plain | inner


def event_from_plain(plain: Any, depth: int = 0) -> Any:
    """Return the event of a dictionary that `event_to_plain` made.

    >>> event_from_plain({"event": "LaplaceDpEvent", "noise_multiplier": 4.0})
    LaplaceDpEvent(noise_multiplier=4.0)
    """
    if not isinstance(plain, Mapping) or plain.get("event") not in _kinds() or depth > _MOST:
        raise ValueError(
            'an event must be written as {"event": "GaussianDpEvent", "noise_multiplier": 2.0}, got '
            f"{json.dumps(plain, default=str)[:80]}"
        )
    fields = {name: _number(name, value) for name, value in plain.items() if name not in ("event", "of")}
    if isinstance(plain.get("of"), list):
        fields["events"] = [event_from_plain(part, depth + 1) for part in plain["of"]]
    elif "of" in plain:
        fields["event"] = event_from_plain(plain["of"], depth + 1)
    try:
        return _kinds()[plain["event"]](**fields)
    except TypeError as error:
        raise ValueError(f"{plain['event']} cannot be made of the fields {sorted(fields)}: {error}") from None


def canonical(value: Any) -> str:
    """Return a value as JSON in the one way that is hashed: names in order, nothing between, ASCII, all digits.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _kinds() -> dict[str, Any]:
    from dp_accounting import dp_event as events

    found = {name: kind for name, kind in vars(events).items() if isinstance(kind, type)}
    return {name: kind for name, kind in found.items() if issubclass(kind, events.DpEvent) and kind != events.DpEvent}


def _number(name: str, value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_number(name, one) for one in value]
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        raise ValueError(f"{name} of an event must be a finite number, got {value!r}")
    return plain
