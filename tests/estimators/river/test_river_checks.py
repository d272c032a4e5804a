"""River's own suite, over every estimator, as a model and at the end of a pipeline."""

import pytest

pytest.importorskip("river")

from river import checks, compose

from reticent.estimators import river as estimators

CLASSES = [getattr(estimators, name) for name in estimators.__all__]
MODELS = [
    pytest.param(kind, params, id=f"{kind.__name__}{i}")
    for kind in CLASSES
    for i, params in enumerate(kind._unit_test_params())
]


@pytest.mark.parametrize(("kind", "params"), MODELS)
def test_river_checks(kind, params, planned_once):
    model = kind(**params)
    assert not model._unit_test_skips()
    done = 0
    for check in checks.yield_checks(model):
        check(model.clone())
        done += 1
    assert done >= 28


@pytest.mark.slow  # the models by themselves are tried in every run
@pytest.mark.parametrize("kind", CLASSES)
def test_river_checks_of_a_pipeline(kind):
    """After a transformer that learns nothing: those that do scale a block otherwise than its rows one by one."""
    system = "gradient descent" if kind.__name__.startswith("Lazy") else "DP-FTRL"
    params = {**next(iter(kind._unit_test_params())), "horizon": 5_000, "system": system}
    model = compose.Discard("nothing") | kind(**params)
    for check in checks.yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            check(model.clone())
