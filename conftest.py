"""What pytest leaves out where an optional package is not installed."""

from importlib.util import find_spec

_NEEDS = {
    "src/reticent/losses/_from_jax.py": "jax",
    "src/reticent/losses/_from_torch.py": "torch",
    "src/reticent/estimators/river": "river",
    "src/reticent/estimators/sklearn": "sklearn",
}
collect_ignore = [path for path, package in _NEEDS.items() if find_spec(package) is None]
