"""The scikit-learn models: what they learn, what they promise, and what they say to a new user's mistakes."""

import copy
import logging
import pickle
import sys
from datetime import date

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import reticent as rt
from reticent._core._errors import MissingExtra
from reticent.estimators.sklearn import PrivateOnlineClassifier, PrivateOnlineRegressor
from reticent.privacy import account

WEIGHTS = np.array([3.0, -2.0, 0.5])


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0.0, -5.0, 100.0], [1.0, 5.0, 200.0], size=(count, 3))
    margin = ((X - [0.5, 0.0, 150.0]) / [0.5, 5.0, 50.0]) @ WEIGHTS
    return X, margin


BOUNDS = ([0.0, -5.0, 100.0], [1.0, 5.0, 200.0])


def labelled(count):
    X, margin = rows(count)
    return X, np.where(margin > 0, "yes", "no")


def classifier(**options):
    return PrivateOnlineClassifier(**{"epsilon": 3.0, "bounds": BOUNDS, "random_state": 0} | options)


def regressor(loss="absolute", **options):
    return PrivateOnlineRegressor(
        loss, **{"epsilon": 3.0, "bounds": BOUNDS, "target_bounds": (-10.0, 10.0), "random_state": 0} | options
    )


def test_classifier_learns_and_keeps_its_promise():
    X, y = labelled(4_000)
    model = classifier().fit(X, y)
    assert model.score(X, y) > 0.9
    assert list(model.classes_) == ["no", "yes"]
    assert model.learner_.plan.epsilon == 3.0
    assert model.learner_.plan.horizon is None
    assert 2.5 < model.spent() <= 3.0 < model.spent(1e-9)


@pytest.mark.parametrize("system", ["P-COMW", "DP-FTRL"])
def test_other_systems_can_be_asked_for(system):
    X, y = labelled(4_000)
    model = classifier(system=system).fit(X, y)
    assert model.score(X, y) > 0.85
    assert (model.learner_.plan.system, model.learner_.plan.horizon) == (system, 4_000)
    with pytest.raises(ValueError, match="system must be 'filtered gate'"):
        classifier(system="best").fit(X, y)


@pytest.mark.parametrize(("loss", "least"), [("absolute", 0.7), ("huber", 0.7), ("quantile", 0.7), ("squared", 0.0)])
def test_regressor_learns(loss, least):
    X, y = rows(4_000)
    model = regressor(loss).fit(X, y)
    assert model.score(X, y) > least
    predictions = model.predict(X)
    assert predictions.min() >= -10
    assert predictions.max() <= 10
    assert 0 < model.spent() <= 3.0


def test_quantile_is_a_quantile():
    X, y = rows(4_000)
    noisy = y + np.random.default_rng(1).uniform(-3, 3, size=y.size)
    shares = [np.mean(noisy <= regressor("quantile", quantile=q).fit(X, noisy).predict(X)) for q in (0.2, 0.8)]
    assert shares[0] < 0.4 < 0.6 < shares[1]


def test_weights_are_for_the_columns_as_they_come():
    X, y = labelled(500)
    model = classifier().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_)
    far = np.array([[9.0, -99.0, 0.0]])
    np.testing.assert_allclose(model.decision_function(far), [[1.0, -5.0, 100.0]] @ model.coef_[0] + model.intercept_)


def test_mean_of_decisions_is_that_of_the_learner():
    X, y = labelled(300)
    model = classifier(horizon=300, average=True).partial_fit(X[:100], y[:100], classes=["no", "yes"])
    model.partial_fit(X[100:], y[100:])
    signs = np.where(y == "yes", 1.0, -1.0)
    learner = rt.make(model.learner_.plan, rt.Logistic(), seed=0, on_steep="clip")
    decisions = learner.observe_many(model._scaling.rows(X), signs).decisions()
    margins = model._scaling.rows(X) @ decisions.mean(axis=0)
    np.testing.assert_allclose(model.decision_function(X), margins, atol=1e-12)
    last = classifier(average=False).fit(X, y)
    np.testing.assert_allclose(last.decision_function(X), model._scaling.rows(X) @ last.learner_.decision, atol=1e-12)


def test_rows_are_never_longer_than_one():
    X, _ = rows(50)
    for intercept in (True, False):
        model = classifier(fit_intercept=intercept).fit(X, labelled(50)[1])
        lengths = np.linalg.norm(model._scaling.rows(10 * X - 5), axis=1)
        assert lengths.max() <= 1 + 1e-12
        assert model.learner_.plan.domain.dim == 3 + intercept


def test_partial_fit_without_a_horizon_runs_epochs():
    X, y = labelled(1_500)
    model = classifier(system="P-COMW")
    for part in np.array_split(np.arange(1_500), 7):
        model.partial_fit(X[part], y[part], classes=["no", "yes"])
    assert model.learner_.plan.horizon is None
    assert model.learner_.epoch == 1


def test_rows_after_fit_are_a_run_of_their_own():
    X, y = labelled(400)
    model = classifier(system="P-COMW").fit(X[:300], y[:300])
    first, before = model.learner_.plan, model.spent()
    model.partial_fit(X[300:], y[300:])
    assert model.learner_.plan.horizon is None
    assert model.spent() == before == account(first).epsilon(1e-6)
    twice = [classifier(system="P-COMW").fit(X[:300], y[:300]).partial_fit(X[300:], y[300:]).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*twice)


def test_horizon_is_kept():
    X, y = labelled(100)
    with pytest.raises(ValueError, match="100 more rows were given, but this model has seen 0 of the horizon=60"):
        classifier(horizon=60).fit(X, y)
    model = classifier(horizon=60).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="has seen 50 of the horizon=60"):
        model.partial_fit(X[:20], y[:20])
    assert model.partial_fit(X[50:60], y[50:60]).learner_.rounds == 60


def test_randomness_is_cryptographic_unless_asked():
    X, y = labelled(200)
    free = [classifier(random_state=None).fit(X, y).coef_ for _ in range(2)]
    assert not np.array_equal(*free)
    for state in (7, np.int64(7)):
        same = [classifier(random_state=state).fit(X, y).coef_ for _ in range(2)]
        np.testing.assert_array_equal(*same)
    fixed = [classifier(random_state=np.random.RandomState(3)).fit(X, y).coef_ for _ in range(2)]
    np.testing.assert_array_equal(*fixed)
    with pytest.raises(ValueError, match=r"random_state must be None \(a cryptographic"):
        classifier(random_state="now").fit(X, y)


def test_pipeline_search_and_pickle():
    X, y = labelled(300)
    halves = make_pipeline(FunctionTransformer(lambda X: X / 2), classifier(bounds=tuple(np.array(BOUNDS) / 2)))
    assert halves.fit(X, y).predict(X).shape == (300,)
    search = GridSearchCV(classifier(), {"radius": [1.0, 4.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.learner_.rounds == 300
    assert cross_val_score(regressor("huber"), X, rows(300)[1], cv=2).shape == (2,)
    model = classifier().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "learner_")
    deep = copy.deepcopy(model).partial_fit(X, y)
    np.testing.assert_array_equal(deep.coef_, again.partial_fit(X, y).coef_)
    with pytest.raises(TypeError, match="a model cannot be copied, only cloned"):
        copy.copy(model)


def test_many_classes_through_one_against_the_rest():
    X, margin = rows(300)
    y = np.digitize(margin, [-1.0, 1.0])
    with pytest.raises(ValueError, match=r"Only binary .* multiclass, with the classes \[0 1 2\]; OneVsRestClassifier"):
        classifier().fit(X, y)
    assert OneVsRestClassifier(classifier()).fit(X, y).predict(X).shape == (300,)


def test_labels_outside_the_set():
    X, y = labelled(100)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        classifier().partial_fit(X, y)
    model = classifier(classes=("no", "yes")).partial_fit(X[:1], y[:1])
    before = model.learner_.rounds
    with pytest.raises(ValueError, match=r"y must hold the labels \['no' 'yes'\] only, got 'maybe'"):
        model.partial_fit(X[:2], ["yes", "maybe"])
    with pytest.raises(ValueError, match=r"classes must be .* as in the first call"):
        model.partial_fit(X[:1], y[:1], classes=["a", "b"])
    assert model.learner_.rounds == before
    with pytest.raises(ValueError, match="two classes, got the one class"):
        classifier().fit(X, ["yes"] * 100)
    assert classifier(classes=("no", "yes")).fit(X, ["yes"] * 100).predict(X).shape == (100,)
    with pytest.raises(NotFittedError):
        classifier().predict(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": 3.0}, r"bounds must be public bounds \(low, high\)"),
        ({"bounds": (0.0, [1.0, 2.0])}, "a vector of 3 numbers"),
        ({"bounds": (1.0, 0.0)}, "with low below high"),
        ({"bounds": (0.0, 1e-320)}, "with low below high by 1e-100 at least"),
        ({"bounds": {0: 1, 1: 2}}, r"bounds must be public bounds \(low, high\), .* got \{0: 1, 1: 2\}"),
        ({"bounds": {0.0, 1.0}}, "bounds must be public bounds"),
        ({"bounds": (-np.inf, np.inf)}, "bounds must be from -1e100 to 1e100"),
        ({"bounds": (0.0, np.nan)}, "bounds must be from -1e100 to 1e100"),
        ({"target_bounds": (0.0, 5e-324)}, "with low below high by 1e-100 at least"),
        ({"bounds": (0.0, np.inf)}, "bounds must be from -1e100 to 1e100"),
        ({"radius": 0.0}, "radius must be greater than 0"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": None}, "epsilon must be"),
        ({"delta": None}, "delta must be"),
        ({"delta": 1.5}, "delta must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"target_bounds": (2.0, 1.0)}, "target_bounds must be from -1e100 to 1e100, with low below high"),
        ({"target_bounds": None}, r"outside of \[-1, 1\], and target_bounds were not given"),
        ({"bounds": None}, r"in column 1, outside of \[-1, 1\], and bounds were not given"),
        ({"bounds": None, "fill": {0: 0.5}}, "outside of .* bounds were not given"),
        ({"fill": {7: 0.5}}, "fill must be for features, got 7"),
        ({"fill": {0: "half"}}, "must be a number, got 'half'"),
        ({"fill": 0.5}, "fill must be a dictionary of public values"),
        ({"loss": "cubic"}, "loss must be one of 'absolute'"),
        ({"loss": "huber", "width": 0.0}, "width must be greater than 0"),
        ({"loss": "quantile", "quantile": 1}, "quantile must lie strictly between 0 and 1, got 1; 0.5 is the median"),
        ({"loss": "quantile", "quantile": "0.5"}, "quantile must be a real number"),
    ],
)
def test_bad_settings_are_refused(options, words):
    X, y = rows(30)
    with pytest.raises(ValueError, match=words):
        regressor(**options).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 10}, "60 more rows were given"),
        ({"bounds": (0.0, 1e-200)}, "bounds must be"),
        ({"bounds": (0.0, 1.0), "target_bounds": (3.0, 1.0)}, "target_bounds must be"),
        ({"target_bounds": (100.0, 200.0), "epsilon": 0.0}, "epsilon must be"),
        ({"target_bounds": (100.0, 200.0), "random_state": "now"}, "random_state must be"),
    ],
)
def test_a_refused_fit_of_a_regressor_changes_nothing(change, words):
    X, y = rows(60)
    model = regressor("huber").fit(X, y)
    kept, expected, spent = model.get_params(), model.predict(X), model.spent()
    with pytest.raises(ValueError, match=words):
        model.set_params(**change).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.spent() == spent
    again = regressor("huber").fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(model.set_params(**kept).partial_fit(X, y).coef_, again.coef_)


def test_a_refused_fit_of_a_classifier_changes_nothing():
    X, y = labelled(60)
    model = classifier().fit(X, y)
    expected = model.predict(X)
    for labels in (np.arange(60) % 3, np.zeros(60), np.full(60, np.nan)):
        with pytest.raises(ValueError, match=r"class|NaN"):
            model.fit(X[:, :2], labels)
        np.testing.assert_array_equal(model.predict(X), expected)
    fresh = classifier(epsilon=0.0, bounds=(-200.0, 200.0))
    for call in (lambda: fresh.fit(X, y), lambda: fresh.partial_fit(X, y, classes=("no", "yes"))):
        with pytest.raises(ValueError, match="epsilon must be"):
            call()
        with pytest.raises(NotFittedError):
            fresh.predict(X)
    assert fresh.set_params(epsilon=3.0).partial_fit(X[:, :2], y, classes=("no", "yes")).n_features_in_ == 2


@pytest.mark.parametrize("ends", [(1075003.2662960542, 1075082.011191996), (1000.0, 1000.001), (1e15, 1e15 + 1)])
def test_rows_and_targets_stay_in_their_units_whatever_the_bounds(ends):
    X, y = np.array([ends] * 2 + [ends[::-1]] * 2).T, np.array(ends)
    model = regressor("squared", bounds=ends, target_bounds=ends).fit(X, y)
    assert np.abs(model._scaled(y)).max() == 1.0
    assert np.linalg.norm(model._scaling.rows(X), axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    "given", [("a", None), ("a", 0), "ab", ("a",), 3, {"a": 1, "b": 2}.values(), (c for c in "ab")]
)
def test_classes_that_are_not_two_labels_are_refused(given):
    X, _ = rows(4)
    for call in (classifier(classes=given).fit, lambda X, y: classifier().partial_fit(X, y, classes=given)):
        with pytest.raises(ValueError, match="classes must be two labels, both numbers or both text, got"):
            call(X, ["a", "b", "a", "b"])


def test_classes_may_be_a_set_and_must_agree():
    X, y = labelled(10)
    np.testing.assert_array_equal(classifier(classes={"yes", "no"}).fit(X, y).classes_, ["no", "yes"])
    model = classifier(classes=("no", "yes"))
    with pytest.raises(ValueError, match=r"classes must be \['no' 'yes'\] as at construction, got \['no' 'other'\]"):
        model.partial_fit(X, y, classes=("no", "other"))
    assert model.partial_fit(X, y, classes=["yes", "no"]).learner_.rounds == 10


def test_weights_of_rows_are_refused():
    X, y = labelled(30)
    with pytest.raises(TypeError, match="sample_weight"):
        classifier().fit(X, y, sample_weight=np.ones(30))


def test_forgotten_bounds_are_told_in_the_log(caplog):
    X, y = labelled(40)
    with caplog.at_level(logging.WARNING, logger="reticent"):
        classifier().fit(X, y)
        assert not caplog.messages
        classifier(bounds=(-1.0, 1.0)).fit(X, y)
        assert "all 40 values of column 2 lie beyond bounds" in caplog.messages[0]
        regressor().fit(X, np.full(40, 11.0))
        assert "lie beyond target_bounds" in caplog.messages[1]


def test_missing_scikit_learn_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("reticent.estimators.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'reticent\[sklearn\]'"):
        import reticent.estimators.sklearn  # noqa: F401


def people(count):
    """Rows with an age, a city and a date, as a frame, whose labels depend on all of them."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    age, city = rng.uniform(0, 100, count), rng.choice(["Paris", "Lyon", "Rome", "Oslo"], count)
    day = rng.integers(0, 1000, count)
    frame = pd.DataFrame({"age": age, "city": city, "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(day, "D")})
    margin = (age - 50) / 20 + np.where(city == "Paris", 1.5, np.where(city == "Lyon", -1.5, 0)) + (day - 500) / 300
    return frame, np.where(margin > 0, "yes", "no")


KNOWN = {"age": (0, 100), "city": ("Paris", "Lyon", "other"), "since": (date(2024, 1, 1), date(2026, 9, 27))}


def test_categories_and_dates_are_learned_by_public_encodings():
    X, y = people(6_000)
    model = classifier(bounds=KNOWN).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.get_weight_names() == ["age", "city=Paris", "city=Lyon", "city=other", "since"]
    weights = dict(zip(model.get_weight_names(), model.coef_[0], strict=True))
    assert weights["city=Paris"] > 0.3 > -0.3 > weights["city=Lyon"]
    assert weights["age"] > 0
    # One row alone is encoded as in a block: nothing is learned from what stands beside it.
    assert model.decision_function(X.iloc[:1])[0] == pytest.approx(model.decision_function(X)[0], rel=1e-12)
    assert (classifier(bounds=KNOWN).fit(X.iloc[::-1], y[::-1])._scaling.low == model._scaling.low).all()


def test_missing_values_have_a_public_fill_or_are_refused():
    X, y = people(200)
    X.loc[3, "age"], X.loc[5, "city"] = np.nan, None
    with pytest.raises(ValueError, match=r"column 'age' of X contains NaN .* give fill=\{'age': value\}"):
        classifier(bounds=KNOWN).fit(X, y)
    model = classifier(bounds=KNOWN, fill={"age": 40, "city": "other"}).fit(X, y)
    filled = X.fillna({"age": 40, "city": "other"})
    assert (model.decision_function(X) == model.decision_function(filled)).all()
    assert (model.coef_ == classifier(bounds=KNOWN).fit(filled, y).coef_).all()


def test_a_category_that_nobody_named_is_refused_without_other():
    X, y = people(50)
    with pytest.raises(ValueError, match=r"column 'city' of X has '(Rome|Oslo)' where one of 'Paris', 'Lyon' is"):
        classifier(bounds=KNOWN | {"city": ("Paris", "Lyon")}).fit(X, y)
