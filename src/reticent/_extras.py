"""Optional packages: imported where they are used, with a message that says how to get them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """A package that an optional part needs is not installed."""


def need(module: str, extra: str) -> ModuleType:
    """Return a module of an optional package, or say which extra to install.

    >>> need("math", "lab").__name__
    'math'
    >>> need("no_such_package", "lab")
    Traceback (most recent call last):
    reticent._extras.MissingExtra: this needs the package no_such_package; pip install 'reticent[lab]' brings it
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs the package {package}; pip install 'reticent[{extra}]' brings it") from error
