"""What a result depends on beside the code: date, machine and versions."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, TypedDict

Machine = TypedDict(
    "Machine", {"cpu": str, "cores": int | None, "system": str, "load at start": float | None}, total=False
)


class Environment(TypedDict, total=False):
    """What is read of these facts."""

    date: str
    machine: Machine
    versions: dict[str, str]


PACKAGES = ("reticent", "numpy", "scipy", "numba", "dp-accounting")


def facts(*packages: str) -> dict[str, Any]:
    """Return the date, the machine, and the versions of Python and of installed packages (those of the engine first).

    >>> sorted(facts())
    ['date', 'machine', 'versions']
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "system": platform.system(), "load at start": load},
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in (*PACKAGES, *packages)},
    }


def in_words(found: dict[str, Any]) -> str:
    """Return facts as one line of text.

    >>> in_words({"date": "today", "machine": {"cpu": "a fast one", "cores": 2, "load at start": 0.25}, "versions": {}})
    'today; a fast one, 2 cores, load 0.2 at the start.'
    """
    machine = found.get("machine", {})
    forms = {"cpu": "{}", "cores": "{} cores", "system": "{}", "load at start": "load {:.1f} at the start"}
    parts = [form.format(machine[name]) for name, form in forms.items() if machine.get(name) is not None]
    versions = [f"{name} {version}" for name, version in found.get("versions", {}).items()]
    return "; ".join(part for part in (found.get("date"), ", ".join(parts), ", ".join(versions)) if part) + "."


def _cpu() -> str:
    """Return the name of the processor as the system gives it."""
    source = Path("/proc/cpuinfo")
    lines = source.read_text().splitlines() if source.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
