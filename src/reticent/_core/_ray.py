"""Ray, where it runs already or started on this machine: quiet, small, and without taking over signals."""

from __future__ import annotations

import logging
import os
import signal
import threading
from typing import Any

from reticent._core._errors import need


def ray_at(address: str | None, cpus: int | None, extra: str, memory: int | None = None) -> tuple[Any, bool]:
    """Return the module ray, connected, and whether it was us who did that; `extra` is what the module comes with.

    A Ray that this process uses already is taken; else the cluster at `address` or in RAY_ADDRESS; else one is started
    here, with so many processors (None: all) and bytes for objects that are shared (None: a part of all there are).
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when it is imported
    ray = need("ray", extra)
    if ray.is_initialized():
        return ray, False
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    where = address or os.environ.get("RAY_ADDRESS")
    if not where:
        options |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": memory}
    # Ray puts its own handler in place of that of who called, whose shutdown would not run any more.
    ours = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if ours else None
    try:
        ray.init(address=where, **options)
    except (OSError, ValueError, RuntimeError) as error:
        if not where:
            raise
        raise ValueError(f"no Ray cluster answers at {where}; start one with `ray start --head`") from error
    finally:
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)
    return ray, True
