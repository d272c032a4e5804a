"""How kernels are compiled: cached on disk, and never from an older version of another module.

numba checks the file that a cached kernel is written in, but not the files of the kernels that it calls. A change in
one module would leave stale code inside the kernels of others, so the cache of the whole package is dropped when
any source that compiled code can come from has changed: those that speak of kernels, because they hold some or because
kernels read their constants and types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import njit

_PACKAGE = Path(__file__).parent.parent
_MARK = _PACKAGE / "__pycache__" / "kernels.sha256"


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


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with numba on first use, for good; division by zero gives infinities as in numpy."""
    compiled: Callable[..., Any] = njit(cache=True, error_model="numpy")(function)
    return compiled
