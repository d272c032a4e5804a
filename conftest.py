"""What pytest leaves out where an optional package is not installed, and what examples in docstrings find there."""

import signal
from importlib.util import find_spec

import pytest

_NEEDS = {
    "src/reticent/losses/_from_jax.py": "jax",
    "src/reticent/losses/_from_torch.py": "torch",
    "src/reticent/estimators/river": "river",
    "src/reticent/estimators/sklearn": "sklearn",
    "src/reticent/ledger": "sqlalchemy",
    "src/reticent/service": "fastapi",
    "src/reticent/client/openfeature.py": "openfeature",
}
collect_ignore = [path for path, package in _NEEDS.items() if find_spec(package) is None]
collect_ignore.append("src/reticent/service/migrations")  # what only Alembic can import

# A shell has what it starts in the background ignore Ctrl-C, and tests send it to themselves and to their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _studies(doctest_namespace):
    """A small made-up study, for the examples of pictures and reports."""
    from example import small_study

    doctest_namespace["small_study"] = small_study
