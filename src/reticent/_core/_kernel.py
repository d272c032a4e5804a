"""How kernels are compiled: cached on disk, and never from an older version of another module.

numba checks the file that a cached kernel is written in, but not the files of the kernels that it calls. A change in
one module would leave stale code inside the kernels of others, so the cache of the whole package is dropped when
any source that compiled code can come from has changed: those that speak of kernels, because they hold some or because
kernels read their constants and types.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.extending import overload

from reticent._core._waiting import told

try:
    from reticent._core import _parts
except ImportError:  # a numba of another shape inside: its own way will do
    PARTS: Any = None
else:
    # The switch is there to compare the two ways, and for whoever meets a numba that only looks the same.
    PARTS = None if os.environ.get("RETICENT_PARTS") == "0" else _parts

_PACKAGE = Path(__file__).parent.parent
_MARK = _PACKAGE / "__pycache__" / "kernels.sha256"
_HALLS = ("reticent", "systems", "core")  # rooms that say nothing about a kernel


def _compiled(source: Path) -> bool:
    return "kernel" in source.read_text()


def _fingerprint() -> str:
    """Return a hash of the names, sizes and times of all sources that kernels are compiled from."""
    digest = hashlib.sha256()
    for source in filter(_compiled, sorted(_PACKAGE.rglob("*.py"))):
        facts = source.stat()
        digest.update(f"{source.relative_to(_PACKAGE)} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def drop_stale_cache() -> bool:
    """Remove cached kernels if any source has changed since they were written; say whether it did."""
    now = _fingerprint()
    # Where the package cannot be written to, neither it nor a cache inside it changes under our feet.
    with suppress(OSError):
        if _MARK.exists() and _MARK.read_text() == now:
            return False
        for cached in _PACKAGE.rglob("__pycache__/*.nb[ic]"):
            cached.unlink(missing_ok=True)
        _MARK.parent.mkdir(exist_ok=True)
        _MARK.write_text(now)
    return True


drop_stale_cache()


_OPTIONS: dict[str, Any] = {"error_model": "numpy"}  # division by zero gives infinities as in numpy


@contextmanager
def _compiling(name: str) -> Iterator[None]:
    """Tell of a compilation, and let Python collect no garbage meanwhile: it finds none, for an eighth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with told(name):
            yield
    finally:
        if collecting:
            gc.enable()


class Kernel:
    """A function that numba compiles on first use, for good: called from Python, or from another kernel.

    >>> @kernel
    ... def half(x):
    ...     return x / 2
    >>> half.py_func(3.0), half.name
    (1.5, 'half')
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        rooms = [room for room in function.__module__.split(".") if room[0] != "_" and room not in _HALLS]
        self.name = ".".join([*rooms, function.__name__])
        self._entry: Any = None  # made when Python first calls: most kernels are parts of others only
        self._part = njit(pipeline_class=PARTS.PartCompiler, **_OPTIONS)(function) if PARTS else self._entered()

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return (self._entry or self._entered())(*args)

    def _entered(self) -> Any:
        """Return what Python calls: a dispatcher of numba that keeps on disk what it has compiled."""
        name, plain = self.name, PARTS is None

        class Compiler(_plain_compiler() if plain else PARTS.entry_compiler(self._part)):  # type: ignore[misc]
            def compile_extra(self, function: Any) -> Any:
                with _compiling(name):
                    return super().compile_extra(function)

        self._entry = njit(cache=True, pipeline_class=Compiler, **_OPTIONS)(self.py_func)
        return self._entry

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for in another kernel."""
        return types.Dispatcher(self._part)


def _plain_compiler() -> Any:
    from numba.core.compiler import Compiler

    return Compiler


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function with numba on first use, for good; division by zero gives infinities as in numpy."""
    return Kernel(function)


def choice(function: Callable[..., Any]) -> Any:
    """Let kernels that call this Python function call another kernel, chosen by the types of the arguments.

    What is decorated takes these types and returns a function of the arguments that calls the kernel chosen.
    """
    options: Any = {"pipeline_class": PARTS.PartCompiler} if PARTS else {}
    return overload(function, jit_options=options)
