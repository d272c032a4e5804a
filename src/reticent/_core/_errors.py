"""Errors that are not about a single wrong argument, and optional packages that are not there."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class WorkLimitError(RuntimeError):
    """A draw was given up: it needed more work than the stated limit, and nothing uncertified is returned."""


# Optional packages: imported where they are used, with a message that says how to get them.


class MissingExtra(ImportError):
    """A package that an optional part needs is not installed."""


def need(module: str, extra: str) -> ModuleType:
    """Return a module of an optional package, or say which extra to install.

    >>> need("math", "lab").__name__
    'math'
    >>> need("no_such_package", "lab")
    Traceback (most recent call last):
    reticent._core._errors.MissingExtra: this needs the package no_such_package; pip install 'reticent[lab]' brings it
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs the package {package}; pip install 'reticent[{extra}]' brings it") from error
