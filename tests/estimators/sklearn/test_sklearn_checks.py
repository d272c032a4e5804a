"""scikit-learn's own suite, in full: no check is expected to fail (one skips itself: arrays of other libraries)."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from reticent.estimators.sklearn import PrivateOnlineClassifier, PrivateOnlineRegressor

WIDE = (-10.0, 10.0)  # without bounds, values beyond -1 and 1 are refused, as nobody said what they may be
OTHERS = [
    PrivateOnlineClassifier(epsilon=3.0, bounds=(-10.0, 10.0), fit_intercept=False, average=False, horizon=5_000),
    *(
        PrivateOnlineRegressor(loss, bounds=WIDE, target_bounds=(-1.0, 3.0))
        for loss in ("huber", "squared", "quantile")
    ),
]


@parametrize_with_checks(
    [PrivateOnlineClassifier(bounds=WIDE), PrivateOnlineRegressor(bounds=WIDE, target_bounds=WIDE)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_scikit_learn_checks_with_other_settings(estimator, check):
    check(estimator)
