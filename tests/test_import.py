"""Importing the package is quick: nothing heavy is loaded before it is used."""

import subprocess
import sys

HEAVY = ("numba", "scipy.optimize", "matplotlib", "pandas", "statsmodels", "rich", "jax", "sklearn", "river")


def test_import_loads_nothing_optional():
    code = f"import sys, reticent; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there():
    import reticent

    assert all(hasattr(reticent, name) for name in reticent.__all__)
