"""Losses that hold the caller's functions: a saved file describes them, and the caller gives them again."""

from __future__ import annotations

from typing import Any

from reticent.losses import Custom, Loss
from reticent.losses._differentiated import Differentiated


def is_callers(loss: object) -> bool:
    """Say whether a loss has to be given again when a learner is loaded: it holds functions."""
    return isinstance(loss, Custom)


def described(loss: Loss) -> dict[str, Any]:
    """Return what is known of such a loss: its kind, its functions by name, and the slope that it declares.

    >>> described(Custom(abs, max, lipschitz=2.0))
    {'kind': 'Custom', 'value': 'abs', 'subgradient': 'max', 'lipschitz': 2.0}
    """
    assert isinstance(loss, Custom)
    bound = loss.bound
    found = {
        "kind": type(loss).__name__,
        "value": _name(loss.value),
        "subgradient": _name(loss.subgradient),
        "lipschitz": _name(bound) if callable(bound) else bound,
    }
    if isinstance(loss, Differentiated):
        found |= {"maker": loss.engine.maker, "probe": loss.probe}
    return found


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__)).rpartition(".")[2]


def matching(description: dict[str, Any], given: Loss | None) -> Loss:
    """Return the loss that was given, if it is what a file describes; refuse it otherwise."""
    wanted = ", ".join(f"{name}={value!r}" for name, value in description.items() if name != "kind")
    wanted = f"{description.get('kind')}({wanted})"
    if given is None:
        raise ValueError(
            f"loss must be given to load this learner, got None: its loss {wanted} holds functions, which are not in "
            "the file; write rt.load(path, loss=...) with the loss that it was made with"
        )
    if not is_callers(given) or described(given) != description:
        raise ValueError(
            f"loss must be the one that the learner was made with, {wanted}, got {given!r}; functions are told apart "
            "by their names"
        )
    return given
