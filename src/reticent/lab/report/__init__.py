"""Reports: a study as one HTML file that works offline, on a phone, without a mouse and without scripts."""

from __future__ import annotations

import os
from pathlib import Path

from reticent.lab._kept import write_whole
from reticent.lab._study import Study
from reticent.lab.report._page import page


def write_report(study: Study, path: str | os.PathLike[str]) -> Path:
    """Write a study as one self-contained HTML file, all of it or nothing, and return the path.

    The report shows losses and regret, which are NOT private.

    >>> import tempfile
    >>> from reticent.lab import Study
    >>> study = Study("Nothing ran", "run", {"name": "none"}, {"epsilon": 1.0}, [])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_report(study, Path(place) / "report.html").read_text().count("<h1>")
    1
    """
    target = Path(path)
    write_whole(target, page(study))
    return target


__all__ = ["write_report"]
