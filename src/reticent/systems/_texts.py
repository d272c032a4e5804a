"""Domains, losses and numbers written as words: "interval:0:1000", "pinball:0.95", "1e6"; and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from reticent.domains import Domain
    from reticent.losses import Loss

T = TypeVar("T")
DOMAINS = "ball:DIM[:RADIUS], interval:LOW:HIGH, box:LOW:HIGH:DIM, simplex:DIM, experts:N"
LARGEST = 10_000_000  # coordinates: beyond this a single decision does not fit anything that is done with it
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
        return Box([number_of("LOW", low)] * size, [number_of("HIGH", high)] * size)

    kinds: dict[str, tuple[Callable[..., Domain], tuple[int, ...]]] = {
        "ball": (lambda dim, radius="1": Ball(_dimension(dim), number_of("RADIUS", radius)), (1, 2)),
        "interval": (lambda low, high: Interval(number_of("LOW", low), number_of("HIGH", high)), (2,)),
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
        "pinball": (lambda level: Pinball(number_of("LEVEL", level)), (1,)),
        "huber": (lambda width="1": Huber(number_of("WIDTH", width)), (0, 1)),
    }
    return _build("loss", spec, kinds, LOSSES)


def domain_text(domain: Domain) -> str | None:
    """Return the text from which `domain_of` makes an equal domain; None if it has none.

    >>> from reticent.domains import Ball, Box, Interval
    >>> domain_text(Interval(0, 1000)), domain_text(Ball(3)), domain_text(Box([0.0, 1.0], [2.0, 3.0]))
    ('interval:0.0:1000.0', 'ball:3:1.0', None)
    """
    from reticent.domains import Ball, Box, Experts, Interval, Simplex

    match domain:
        case Interval():
            text = f"interval:{float(domain.low[0])!r}:{float(domain.high[0])!r}"
        case Box():
            text = f"box:{float(domain.low[0])!r}:{float(domain.high[0])!r}:{domain.dim}"
        case Ball():
            text = f"ball:{domain.dim}:{float(domain.radius)!r}"
        case Experts():
            text = f"experts:{domain.dim}"
        case Simplex():
            text = f"simplex:{domain.dim}"
        case _:
            return None
    return text if domain_of(text) == domain else None


def loss_text(loss: Loss) -> str | None:
    """Return the text from which `loss_of` makes an equal loss; None if it has none, as a `Custom` one.

    >>> from reticent.losses import Huber, Pinball
    >>> loss_text(Pinball(0.95)), loss_text(Huber())
    ('pinball:0.95', 'huber:1.0')
    """
    from reticent.losses import Huber, Pinball

    name = type(loss).__name__.lower()
    setting = f":{loss.tau!r}" if isinstance(loss, Pinball) else f":{loss.width!r}" if isinstance(loss, Huber) else ""
    return (
        f"{name}{setting}"
        if name in {form.partition(":")[0].partition("[")[0] for form in LOSSES.split(", ")}
        else None
    )


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


def number_of(name: str, text: str) -> float:
    """Return a finite number; `name` is what it is called in the message that refuses another."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {text!r}")
    return value


def _build(name: str, spec: str, kinds: dict[str, tuple[Callable[..., T], tuple[int, ...]]], forms: str) -> T:
    kind, *settings = spec.strip().split(":")
    if kind.lower() not in kinds:
        raise ValueError(f"{name} must be one of {forms}, got {spec!r}{nearest_of(kind, {k: k for k in kinds})}")
    build, sizes = kinds[kind.lower()]
    if len(settings) not in sizes or any(not part for part in settings):
        form = next(form for form in forms.split(", ") if form.startswith(kind.lower()))
        raise ValueError(f"{name} must be written as {form}, got {spec!r}")
    try:
        return build(*settings)
    except ValueError as error:
        raise ValueError(f"{name} {spec!r} is none: {error}") from None


def _dimension(text: str) -> int:
    try:
        size = count_of(text)
    except ValueError:
        raise ValueError(f"a dimension must be a whole number of at least 1, got {text!r}") from None
    if size > LARGEST:
        raise ValueError(f"a dimension must be at most {LARGEST:,}, got {text!r}")
    return size


def nearest_of(text: str, names: dict[str, str]) -> str:
    """Return a question after the name that was perhaps meant, for the end of a message; "" if none is near."""
    near = get_close_matches(text.lower(), names, n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""
