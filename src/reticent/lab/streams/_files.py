"""Data files inside other packages: found without importing the package, read once."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

from reticent._extras import need

EXTRAS = {"river": "streams", "universal": "streams", "vega_datasets": "streams", "statsmodels": "lab"}
"""Which extra brings a package that has data."""


def located(package: str, *parts: str) -> Path:
    """Return the path of a file inside a package, which is not imported; say which extra to install if it is missing.

    >>> located("json", "decoder.py").name
    'decoder.py'
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        need(package, EXTRAS[package])  # the message of every missing extra
        raise ValueError(f"{package} must be an installed package with data files, got a module without any")
    path = Path(spec.submodule_search_locations[0]).joinpath(*parts)
    if not path.is_file():
        raise ValueError(
            f"the installed package {package} must have the file {'/'.join(parts)}, which it does not; "
            f"pip install --upgrade 'reticent[{EXTRAS.get(package, 'streams')}]' brings a version that does"
        )
    return path


@cache
def table(package: str, *parts: str) -> Any:
    """Return a table of numbers and words from a file of comma-separated values, compressed or not, as a data frame."""
    path = located(package, *parts)
    return need("pandas", EXTRAS.get(package, "streams")).read_csv(path)
