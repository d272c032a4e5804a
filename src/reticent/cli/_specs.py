"""Words of the command line turned into domains, losses, numbers and names of systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from reticent._core._names import NICKS

if TYPE_CHECKING:
    from reticent.domains import Domain
    from reticent.losses import Loss

T = TypeVar("T")
DOMAINS = "ball:DIM[:RADIUS], interval:LOW:HIGH, box:LOW:HIGH:DIM, simplex:DIM, experts:N"
LARGEST = 10_000_000  # coordinates: beyond this a single decision does not fit anything that is done with it
LONGEST = 1 << 53  # rounds: beyond this they cannot be counted in double precision
LOSSES = "linear, logistic, hinge, squared, absolute, pinball:LEVEL, huber[:WIDTH]"


def domain_of(spec: str) -> Domain:
    """Return the domain of a text such as "ball:10", "ball:3:2.5", "interval:0:20", "box:-1:1:4", "experts:7".

    >>> domain_of("ball:3:2.5"), domain_of("interval:-1:20")
    (Ball(3, 2.5), Interval(-1.0, 20.0))
    >>> domain_of("ball:3:1:2")
    Traceback (most recent call last):
    ValueError: domain must be written as ball:DIM[:RADIUS], got 'ball:3:1:2'
    """
    from reticent.domains import Ball, Box, Experts, Interval, Simplex

    def box(low: str, high: str, dim: str) -> Domain:
        size = _dimension(dim)
        return Box([_number("LOW", low)] * size, [_number("HIGH", high)] * size)

    kinds: dict[str, tuple[Callable[..., Domain], tuple[int, ...]]] = {
        "ball": (lambda dim, radius="1": Ball(_dimension(dim), _number("RADIUS", radius)), (1, 2)),
        "interval": (lambda low, high: Interval(_number("LOW", low), _number("HIGH", high)), (2,)),
        "box": (box, (3,)),
        "simplex": (lambda dim: Simplex(_dimension(dim)), (1,)),
        "experts": (lambda count: Experts(_dimension(count)), (1,)),
    }
    return _build("domain", spec, kinds, DOMAINS)


def loss_of(spec: str) -> Loss:
    """Return the loss of a text such as "logistic", "pinball:0.9" or "huber:1".

    >>> loss_of("pinball:0.9"), loss_of("huber")
    (Pinball(tau=0.9), Huber(width=1.0))
    """
    from reticent.losses import Absolute, Hinge, Huber, Linear, Logistic, Pinball, Squared

    kinds: dict[str, tuple[Callable[..., Loss], tuple[int, ...]]] = {
        "linear": (Linear, (0,)),
        "logistic": (Logistic, (0,)),
        "hinge": (Hinge, (0,)),
        "squared": (Squared, (0,)),
        "absolute": (Absolute, (0,)),
        "pinball": (lambda level: Pinball(_number("LEVEL", level)), (1,)),
        "huber": (lambda width="1": Huber(_number("WIDTH", width)), (0, 1)),
    }
    return _build("loss", spec, kinds, LOSSES)


def count_of(text: str, name: str = "count", least: int = 1, most: int | None = None) -> int:
    """Return a whole number written as 1000000, 1e6, 1_000_000 or 1,000,000.

    >>> count_of("1e6"), count_of("20,190")
    (1000000, 20190)
    >>> count_of("0", "horizon")
    Traceback (most recent call last):
    ValueError: horizon must be a whole number of at least 1, such as 1000 or 1e6, got '0'
    """
    plain = text.strip().replace(",", "").replace("_", "")
    try:
        value = int(plain)
    except ValueError:
        try:
            number = float(plain)
            value = int(number) if number == int(number) else least - 1
        except (ValueError, OverflowError):
            value = least - 1
    if value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, such as 1000 or 1e6, got {text!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most:,}, got {text!r}")
    return value


def horizon_of(text: str) -> int | None:
    """Return the rounds that are planned for, None for an unknown number.

    >>> horizon_of("1e6"), horizon_of("unknown")
    (1000000, None)
    >>> horizon_of("1e300")
    Traceback (most recent call last):
    ValueError: horizon must be at most 9,007,199,254,740,992, got '1e300'; --horizon unknown has no end
    """
    if text == "unknown":
        return None
    try:
        return count_of(text, "horizon", most=LONGEST)
    except ValueError as error:
        raise ValueError(f"{error}; --horizon unknown has no end") from None


def floats_of(text: str, name: str = "numbers") -> tuple[float, ...]:
    """Return the numbers of a text such as "0.5,1,3", each once.

    >>> floats_of("0.5,1,3,1.0")
    (0.5, 1.0, 3.0)
    """
    return tuple(dict.fromkeys(_number(name, part) for part in _parts(text, name)))


def counts_of(text: str, name: str = "counts") -> tuple[int, ...]:
    """Return the whole numbers of a text such as "100,1e4", each once.

    >>> counts_of("100,1e4,1e2")
    (100, 10000)
    """
    return tuple(dict.fromkeys(count_of(part, name, least=0) for part in _parts(text, name)))


def system_names() -> tuple[str, ...]:
    """Return the names of all systems, as tables have them."""
    from reticent.systems._choice import SYSTEMS

    return tuple(system.name for system in SYSTEMS)


def system_of(text: str, among: Sequence[str] | None = None) -> str:
    """Return the exact name of a system from a short or partial one; case, spaces and punctuation do not matter.

    An exact name wins, then the only name that begins with the text, then the only one that contains it.

    >>> system_of("pcomw"), system_of("dp-ftrl-tree"), system_of("ogd"), system_of("objective")
    ('P-COMW', 'DP-FTRL, tree noise', 'online gradient descent', 'objective perturbation (Agarwal et al.)')
    """
    names = system_names() if among is None else tuple(among)
    wanted = _bare(text)
    for name in names:
        if wanted == _bare(name) or NICKS.get(wanted) == name:
            return name
    found = [name for name in names if wanted and _bare(name).startswith(wanted)]
    found = found or [name for name in names if wanted and wanted in _bare(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"system must be the name of one system, got {text!r}, which may be {_listed(found)}")
    near = _nearest(wanted, {_bare(name): name for name in names} | NICKS)
    raise ValueError(f"system must be one of {_listed(names)}, got {text!r}{near}")


def choice_of(name: str, text: str, allowed: Sequence[str]) -> str:
    """Return a text that must be one of a few words.

    >>> choice_of("neighbors", "replace", ("replace", "zero-out"))
    'replace'
    """
    if text not in allowed:
        near = _nearest(text, {word: word for word in allowed})
        raise ValueError(f"{name} must be {' or '.join(allowed)}, got {text!r}{near}")
    return text


def _build(name: str, spec: str, kinds: dict[str, tuple[Callable[..., T], tuple[int, ...]]], forms: str) -> T:
    kind, *settings = spec.strip().split(":")
    if kind.lower() not in kinds:
        raise ValueError(f"{name} must be one of {forms}, got {spec!r}{_nearest(kind, {k: k for k in kinds})}")
    build, sizes = kinds[kind.lower()]
    if len(settings) not in sizes or any(not part for part in settings):
        form = next(form for form in forms.split(", ") if form.startswith(kind.lower()))
        raise ValueError(f"{name} must be written as {form}, got {spec!r}")
    try:
        return build(*settings)
    except ValueError as error:
        raise ValueError(f"{name} {spec!r} is none: {error}") from None


def _parts(text: str, name: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{name} must be numbers with commas between them, such as 0.5,1,3, got {text!r}")
    return parts


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {text!r}")
    return value


def _dimension(text: str) -> int:
    try:
        size = count_of(text)
    except ValueError:
        raise ValueError(f"a dimension must be a whole number of at least 1, got {text!r}") from None
    if size > LARGEST:
        raise ValueError(f"a dimension must be at most {LARGEST:,}, got {text!r}")
    return size


def _bare(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter == "*")


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names)


def _nearest(text: str, names: dict[str, str]) -> str:
    near = get_close_matches(text.lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""
