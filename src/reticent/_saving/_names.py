"""What may stand in a saved file by name: classes of reticent, its planners, and known random generators."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

_PACKAGES = ("domains", "losses", "gibbs", "learners", "planning")
_CLASS = re.compile(rf"(?:{'|'.join(_PACKAGES)})(?:\.\w+)*:\w+", re.ASCII)
_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def name_of_class(kind: type) -> str:
    """Return the name of a class of reticent in saved files.

    >>> from reticent.losses import Linear
    >>> name_of_class(Linear)
    'losses._linear:Linear'
    """
    house, _, module = kind.__module__.partition(".")
    here = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    if house != "reticent" or module.split(".")[0] not in _PACKAGES or here is not kind:
        raise ValueError(
            f"only reticent's own classes and plain values (numbers, text, arrays, lists, tuples, sets, dictionaries) "
            f"can be saved, got an object of type {kind.__module__}.{kind.__qualname__}; give such values, or pickle"
        )
    return f"{module}:{kind.__qualname__}"


def class_of_name(name: str) -> type:
    """Return the class of reticent that has this name in saved files."""
    if not _CLASS.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a class of reticent")
    module, _, own = name.partition(":")
    try:
        found = getattr(importlib.import_module(f"reticent.{module}"), own, None)
    except ModuleNotFoundError:
        found = None
    if not isinstance(found, type) or found.__module__ != f"reticent.{module}":
        raise ValueError(f"there is no class {name!r} here")
    return found


def name_of_planner(function: Callable[..., Any]) -> str:
    """Return the name of a planner of `reticent.planning`; other functions cannot be saved."""
    name = getattr(function, "__name__", "")
    if planner_of_name(name) is not function:
        raise ValueError(
            f"functions cannot be saved, only the planners of reticent.planning by name, got {function!r}; write the "
            "plan with one of them as its recipe"
        )
    return name


def planner_of_name(name: str) -> Callable[..., Any] | None:
    """Return the planner of this name; None if there is none."""
    from reticent import planning

    if name not in planning.__all__ or not name.startswith(("plan_", "theorem_")):
        return None
    found = getattr(planning, name)
    return found if isinstance(found, FunctionType) else None


def name_of_bits(bits: Any) -> str:
    """Return the name of the source of random bits inside a generator."""
    kind = type(bits)
    name = kind.__name__
    if name in _BITS and kind is getattr(np.random, name):
        return name
    if name == "ChaCha" and kind.__module__.startswith("randomgen."):
        return name
    raise ValueError(
        f"the state of a {name} generator cannot be saved; take one of {', '.join(_BITS)}, or seed=None for ChaCha20"
    )


def bits_of_name(name: str) -> Any:
    """Return a new source of random bits of this kind, in any state."""
    if name == "ChaCha":
        from randomgen import ChaCha

        return ChaCha(key=0)
    if name not in _BITS:
        raise ValueError(f"{name!r} is not a random generator that can be loaded")
    return getattr(np.random, name)(0)
