import copy
import importlib
import itertools
import pickle
import sys

import numpy as np
import pytest

pytest.importorskip("river")

import pandas as pd
from river import compose, datasets, evaluate, metrics, multiclass

from reticent._core._errors import MissingExtra
from reticent.estimators.river import (
    LazyLinearRegression,
    LazyLogisticRegression,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateQuantile,
)

NAMES = ("a", "b", "c")
HORIZON = 400


def logistic(**params):
    return PrivateLogisticRegression(**{"features": NAMES, "horizon": HORIZON, "epsilon": 3.0, "seed": 1, **params})


def linear(**params):
    return PrivateLinearRegression(**{"features": NAMES, "horizon": HORIZON, "epsilon": 3.0, "seed": 1, **params})


MODELS = {
    "logistic": logistic,
    "logistic, hashed": lambda **params: logistic(features=5, **params),
    "logistic, FTRL": lambda **params: logistic(system="DP-FTRL", **params),
    "lazy": lambda **params: LazyLogisticRegression(
        **{"features": NAMES, "horizon": HORIZON, "max_switches": 40, "seed": 1, **params}
    ),
    "lazy linear": lambda **params: LazyLinearRegression(
        **{"features": NAMES, "horizon": HORIZON, "max_switches": 40, "seed": 1, **params}
    ),
    "huber": linear,
    "absolute": lambda **params: linear(loss="absolute", **params),
    "squared": lambda **params: linear(loss="squared", **params),
    "quantile": lambda **params: PrivateQuantile(q=0.8, horizon=HORIZON, epsilon=3.0, **{"seed": 1, **params}),
}


def rows(count=HORIZON, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, size=(count, 3)), columns=NAMES, index=range(7, 7 + count))
    return X, pd.Series(np.where(X["a"] + 0.3 * rng.normal(size=count) > 0, 1, 0), index=X.index)


def one_by_one(model, X, y):
    for x, label in zip(X.to_dict("records"), y, strict=True):
        model.learn_one(x, label)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("size", [7, HORIZON])
def test_learn_one_and_learn_many_agree_to_the_last_bit(make, size):
    X, y = rows()
    one, many = make(), make()
    one_by_one(one, X, y)
    for start in range(0, HORIZON, size):
        many.learn_many(X[start : start + size], y[start : start + size])
    assert one.learner.rounds == many.learner.rounds == HORIZON
    assert one.learner.switches == many.learner.switches > 0
    assert one.learner.decision.tobytes() == many.learner.decision.tobytes()


def test_gaps_are_the_same_in_dictionaries_and_frames():
    X, y = rows(100)
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.3).assign(text="ignored")
    one, many = logistic(), logistic()
    for x, label in zip(X.to_dict("records"), y, strict=True):
        one.learn_one({name: value for name, value in x.items() if not pd.isna(value)}, label)
    many.learn_many(X, y)
    assert one.learner.decision.tobytes() == many.learner.decision.tobytes()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_predict_one_and_predict_many_agree_to_the_last_bit(make):
    X, y = rows()
    model = make()
    model.learn_many(X[:300], y[:300])
    found = model.predict_many(X)
    assert list(found.index) == list(X.index)
    assert found.tolist() == [model.predict_one(x) for x in X.to_dict("records")]
    if hasattr(model, "predict_proba_many"):
        chances = model.predict_proba_many(X)
        expected = [model.predict_proba_one(x) for x in X.to_dict("records")]
        assert chances[True].tolist() == [chance[True] for chance in expected]
        assert chances[False].tolist() == [chance[False] for chance in expected]


def test_empty_blocks():
    X, y = rows()
    model = logistic()
    model.learn_many(X[:0], y[:0])
    assert model.learner.rounds == 0
    assert len(model.predict_many(X[:0])) == len(model.predict_proba_many(X[:0])) == 0


def test_it_learns():
    X, y = rows(20_000)
    model = logistic(horizon=20_000, system="DP-FTRL")
    model.learn_many(X, y)
    assert (model.predict_many(X) == (y == 1)).mean() > 0.85
    model = linear(horizon=20_000, target_bounds=(-10.0, 30.0), system="DP-FTRL", loss="squared", radius=2.0)
    model.learn_many(X, 10 * X["a"] + 10)
    assert np.abs(model.predict_many(X) - 10 * X["a"] - 10).mean() < 3.0


def test_quantile_follows_the_targets():
    targets = np.random.default_rng(0).uniform(0, 50, size=5_000)
    model = PrivateQuantile(q=0.9, target_bounds=(0.0, 100.0), horizon=5_000, epsilon=10.0, system="DP-FTRL", seed=1)
    model.learn_many(pd.DataFrame(index=range(5_000)), pd.Series(targets))
    assert 35 < model.predict_one({"anything": "at all"}) < 55
    median = PrivateQuantile(q=0.5, target_bounds=(0.0, 100.0), horizon=5_000, epsilon=10.0, system="DP-FTRL", seed=1)
    median.learn_many(pd.DataFrame(index=range(5_000)), targets)
    assert 15 < median.predict_one({}) < 35


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_beyond_the_horizon_nothing_is_taken_and_nothing_lost(make):
    X, y = rows(HORIZON + 1)
    model = make()
    model.learn_many(X[:390], y[:390])
    before, spent = model.learner.decision.copy(), model.learner.rounds
    with pytest.raises(ValueError, match=r"11 more rows were given, but this model has 10 of its horizon=400 left"):
        model.learn_many(X[390:], y[390:])
    assert (model.learner.decision == before).all()
    assert model.learner.rounds == spent
    one_by_one(model, X[390:HORIZON], y[390:HORIZON])
    with pytest.raises(ValueError, match="nothing was recorded"):
        model.learn_one({"a": 0.0}, True)
    assert model.learner.rounds == HORIZON
    model.predict_one({"a": 0.0})


def test_without_a_horizon_epochs_follow_each_other(planned_once):
    X, y = rows(3_100)
    model = logistic(horizon=None, system="P-COMW")
    model.learn_many(X, y)
    assert model.learner.epoch == 2
    assert 0 < model.spent() <= 3.0
    assert model.plan.horizon is None


def test_without_a_horizon_the_default_has_one_plan_for_ever():
    X, y = rows(3_100)
    model = logistic(horizon=None)
    model.learn_many(X, y)
    assert model.plan.system == "filtered gate"
    assert model.plan.horizon is None
    assert 2.9 < model.spent() <= 3.0


def test_spent_and_plan():
    model = logistic()
    assert model.spent() <= model.plan.epsilon == 3.0
    X, y = rows()
    model.learn_many(X[:200], y[:200])
    half = model.spent()
    model.learn_many(X[200:], y[200:])
    assert half <= model.spent() <= 3.0 < model.spent(1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"delta": None}, "epsilon and delta go together, got epsilon=3.0 and delta=None; give delta as well"),
        (
            {"epsilon": None},
            "epsilon must be a number up to 50, got None; models without privacy are those called Lazy",
        ),
        ({"epsilon": float("inf")}, "epsilon must be a number up to 50, got inf"),
        ({"epsilon": 0.0}, "epsilon must be greater than 0"),
        ({"epsilon": "1"}, "epsilon must be a real number, got '1'"),
        ({"delta": 0.0}, "delta must be from 1e-30 to 0.5, got 0.0"),
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number"),
        ({"radius": 0.0}, "radius must be greater than 0"),
        ({"seed": -1}, "seed must be None"),
        ({"system": "FTRL"}, "system must be 'filtered gate', 'P-COMW' or 'DP-FTRL', got 'FTRL'"),
        ({"system": "DP-FTRL", "horizon": None}, "horizon must be the number of rows to come for system='DP-FTRL'"),
        ({"features": "age"}, "features must be the names"),
        ({"bounds": 3.0}, r"bounds must be \(low, high\)"),
    ],
)
def test_bad_parameters_are_refused_when_a_model_is_made(params, message):
    with pytest.raises(ValueError, match=message):
        logistic(**params)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "loss must be 'absolute', 'huber' or 'squared', got 'hinge'"),
        ({"loss": "absolute", "width": 1.0}, "width must be None unless loss='huber', got 1.0 with loss='absolute'"),
        ({"width": 0.0}, "width must be greater than 0"),
        ({"target_bounds": (3, 2)}, "target_bounds must have its low end below its high end"),
        ({"epsilon": None}, "epsilon must be a number"),
        (
            {"loss": "absolute", "features": 32, "system": "P-COMW"},
            r"features must be at most 20 for Absolute\(\) with system='P-COMW', got 32",
        ),
    ],
)
def test_bad_parameters_of_regressions(params, message):
    with pytest.raises(ValueError, match=message):
        linear(**params)
    with pytest.raises(ValueError, match="max_switches must be a whole number of at least 0, got -1"):
        LazyLinearRegression(max_switches=-1)
    with pytest.raises(ValueError, match="q must lie strictly between 0 and 1, got 1"):
        PrivateQuantile(q=1)


@pytest.mark.parametrize("label", [2, "spam", None, 0.5, float("nan"), np.array([1])])
def test_labels_outside_the_set_are_refused(label):
    model = logistic()
    with pytest.raises(ValueError, match=r"labels must be True or False, 1 or 0, or 1 or -1, got .*OneVsRest"):
        model.learn_one({"a": 0.5}, label)
    with pytest.raises(ValueError, match="labels must be True or False"):
        model.learn_many(pd.DataFrame({"a": [0.1, 0.2]}), [True, label])
    assert model.learner.rounds == 0


def test_labels_of_all_kinds_mean_the_same():
    X, _ = rows(60)
    found = []
    for no, yes in ((False, True), (np.False_, np.True_), (0, 1), (-1, 1), (0.0, np.float32(1.0))):
        model = logistic()
        for i, x in enumerate(X.to_dict("records")):
            model.learn_one(x, yes if i % 3 else no)
        found.append(model.learner.decision.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("target", ["3", None, float("nan"), [1.0]])
def test_targets_that_are_not_numbers_are_refused(target):
    with pytest.raises(ValueError, match="targets must be numbers, got"):
        linear().learn_one({"a": 0.5}, target)


def test_forgotten_bounds():
    with pytest.raises(ValueError, match=r"feature 'a' is 40\.0, outside of \[-1, 1\], and bounds was not given"):
        logistic().learn_one({"a": 40}, True)
    with pytest.raises(ValueError, match=r"feature 'a' is 40\.0"):
        logistic().predict_one({"a": 40})
    with pytest.raises(ValueError, match=r"the target is 40\.0, outside of \[-1, 1\], and target_bounds was not given"):
        linear().learn_one({"a": 0.5}, 40)


def test_lengths_that_differ():
    with pytest.raises(ValueError, match="y must have one value for each of the 2 rows of X, got 1"):
        logistic().learn_many(pd.DataFrame({"a": [0.1, 0.2]}), [True])


NO_NUMBERS = {
    "text": pd.Series(["0.1", "x"]),
    "strings": pd.Series(["0.1", "0.2"], dtype="string"),
    "one text": pd.Series([0.1, "0.2"], dtype=object),
    "categories": pd.Series(["0.1", "0.2"], dtype="category"),
    "times": pd.Series(pd.to_datetime(["2020", "2021"])),
    "times with a zone": pd.Series(pd.to_datetime(["2020", "2021"], utc=True)),
    "lengths of time": pd.Series(pd.to_timedelta([1, 2], "s")),
    "complex": pd.Series([0.1 + 0j, 0.2]),
    "arrow": pd.Series(["0.1", "0.2"]).astype("string[pyarrow]"),
}


@pytest.mark.parametrize("features", [NAMES, 5])
@pytest.mark.parametrize("column", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_blocks_refuse_what_rows_refuse(column, features):
    X = pd.DataFrame({"b": [0.5, 0.5], "a": column})
    model = logistic(features=features)
    for learn in (lambda: one_by_one(model, X[1:], [True]), lambda: model.learn_many(X, [True, False])):
        with pytest.raises(ValueError, match=r"feature 'a' must be a number, got .*OneHotEncoder"):
            learn()
    with pytest.raises(ValueError, match="feature 'a' must be a number"):
        model.predict_many(X)
    assert model.learner.rounds == 0


NUMBERS = {
    "float32": lambda X: X.astype("float32"),
    "whole": lambda X: X.round().astype("int8"),
    "truth values": lambda X: X > 0,
    "nullable": lambda X: X.round().astype("Int64").mask(X > 0.5),
    "nullable truth": lambda X: (X > 0).astype("boolean").mask(X > 0.5),
    "objects": lambda X: X.astype(object).mask(X > 0.5, None),
    "objects with NA": lambda X: X.astype(object).mask(X > 0.5, pd.NA),
    "categories": lambda X: X.round(1).astype("category"),
    "sparse": lambda X: X.astype(pd.SparseDtype(float)),
    "arrow": lambda X: X.astype("float64[pyarrow]").mask(X > 0.5),
    "of all kinds": lambda X: X.assign(a=X["a"] > 0, b=X["b"].round().astype("Int64"), c=X["c"].astype(object)),
}


@pytest.mark.parametrize("features", [NAMES, 5])
@pytest.mark.parametrize("change", NUMBERS.values(), ids=NUMBERS)
def test_blocks_read_what_rows_read(change, features):
    X, y = rows(40)
    X = change(X)
    one, many = logistic(features=features), logistic(features=features)
    for i, label in enumerate(y):
        one.learn_one({name: X[name].iloc[i] for name in NAMES}, label)
    many.learn_many(X, y)
    assert one.learner.decision.tobytes() == many.learner.decision.tobytes()
    many.learn_many(X[:0], y[:0])


@pytest.mark.parametrize("X", [np.zeros((2, 3)), [{"a": 0.1}, {"a": 0.2}], {"a": [0.1]}, None], ids=repr)
def test_what_is_no_dataframe_is_refused(X):
    for model in (logistic(), linear()):
        for call in (lambda m: m.learn_many(X, [True, False]), lambda m: m.predict_many(X)):
            with pytest.raises(ValueError, match="X must be a dataframe with a column for each feature, got"):
                call(model)
    with pytest.raises(ValueError, match="X must be a dataframe"):
        logistic().predict_proba_many(X)


def test_what_is_no_series_is_refused():
    X, y = rows(5)
    for bad, named in (
        (y.to_frame(), r"DataFrame of shape \(5, 1\)"),
        (y.to_numpy()[:, None], r"ndarray of shape \(5, 1\)"),
        ((label for label in y), "generator"),
        (dict(y), "dict"),
        (None, "NoneType"),
    ):
        with pytest.raises(
            ValueError, match=f"y must be a series or a list with one target for each row, got .*{named}"
        ):
            logistic().learn_many(X, bad)


@pytest.mark.parametrize(
    "ends", [(1075003.2662960542, 1075082.011191996), (1000.0, 1000.001), (1e15, 1e15 + 1), (-1 / 3, 1e-9)]
)
@pytest.mark.parametrize("loss", ["absolute", "huber", "squared"])
def test_no_row_is_refused_whatever_the_bounds(ends, loss):
    model = linear(loss=loss, bounds=ends, target_bounds=ends, system="DP-FTRL")
    for y in (*ends, -np.inf, np.inf):
        for x in (*ends, -np.inf, np.inf):
            model.learn_one({"a": x, "b": x, "c": x}, y)
    assert ends[0] <= model.predict_one({"a": ends[1]}) <= ends[1]


def test_new_features_leave_the_plan_as_it_is():
    model, plain = logistic(features=5, bounds=(0.0, 1.0)), logistic(features=5, bounds=(0.0, 1.0))
    X, y = rows(50)
    one_by_one(plain, X, y)
    for i, (x, label) in enumerate(zip(X.to_dict("records"), y, strict=True)):
        model.learn_one({**x, f"new {i}": 1e12, "another": -1.0}, label)
    assert model.plan == plain.plan
    assert model.spent() == plain.spent()
    assert model.learner.decision.shape == (6,)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_pickles_and_deep_copies_go_on_in_the_same_way(make):
    X, y = rows()
    model = make()
    model.learn_many(X[:150], y[:150])
    moved, copied = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    for each in (model, moved, copied):
        each.learn_many(X[150:], y[150:])
    assert model.learner.decision.tobytes() == moved.learner.decision.tobytes() == copied.learner.decision.tobytes()
    with pytest.raises(TypeError, match="a model cannot be copied, only cloned"):
        copy.copy(model)


def test_clones_start_anew_with_randomness_of_their_own():
    X, y = rows(100)
    model = logistic(seed=None, system="P-COMW")
    model.learn_many(X, y)
    clone = model.clone()
    assert clone.learner.rounds == 0
    assert (clone.learner.decision != model.clone().learner.decision).all()
    assert (logistic().learner.decision == logistic().clone().learner.decision).all()
    assert model.clone({"epsilon": 2.0}).plan.epsilon == 2.0
    for each in (model, compose.SelectType(float) | model):
        with pytest.raises(ValueError, match="include_attributes must be False, got True: the clone would go on with"):
            each.clone(include_attributes=True)
    assert "P-COMW" in repr(clone)


def test_pipelines_and_progressive_validation():
    dataset = datasets.Phishing()
    model = compose.SelectType(float, int) | logistic(features=8, bounds=(0.0, 1.0), horizon=1_250, system="DP-FTRL")
    score = evaluate.progressive_val_score(dataset, model, metrics.Accuracy())
    assert 0.6 < score.get() < 0.95
    assert model["PrivateLogisticRegression"].learner.rounds == dataset.n_samples


def test_several_classes_by_one_against_the_rest():
    bounds = (-1_000.0, 1_000.0)
    model = multiclass.OneVsRestClassifier(logistic(features=8, bounds=bounds, horizon=300, system="DP-FTRL"))
    for x, y in itertools.islice(datasets.ImageSegments(), 50):
        model.predict_one(x)
        model.learn_one(x, y)
    assert all(each.spent() <= 3.0 for each in model.classifiers.values())


def test_a_missing_river_is_named(monkeypatch):
    for name in [name for name in sys.modules if name == "river" or name.startswith("reticent.estimators.river")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(MissingExtra, match=r"needs the package river; pip install 'reticent\[river\]' brings it"):
        importlib.import_module("reticent.estimators.river")


def test_categories_dates_and_fills_by_public_encodings():
    from datetime import date, timedelta

    rng = np.random.default_rng(0)
    known = {"age": (0, 100), "city": ("Paris", "Lyon", "other"), "since": (date(2024, 1, 1), date(2026, 9, 27))}
    options = {
        "features": tuple(known),
        "bounds": known,
        "fill": {"age": 50, "city": "other"},
        "epsilon": 3.0,
        "seed": 1,
    }
    one, many = PrivateLogisticRegression(**options), PrivateLogisticRegression(**options)
    cities = rng.choice(["Paris", "Lyon", "Rome", None], 3_000)
    ages = np.where(rng.random(3_000) < 0.1, np.nan, rng.uniform(0, 100, 3_000))
    frame = pd.DataFrame(
        {"age": ages, "city": cities, "since": [date(2024, 1, 1) + timedelta(days=int(i % 900)) for i in range(3_000)]}
    )
    y = pd.Series(
        (np.nan_to_num(ages, nan=50) - 50) / 20 + np.where(cities == "Paris", 2, np.where(cities == "Lyon", -2, 0)) > 0
    )
    for x, label in zip(frame.to_dict("records"), y, strict=True):
        one.learn_one(x, label)
    many.learn_many(frame, y)
    assert (one.learner.decision == many.learner.decision).all()
    assert (many.predict_many(frame) == y).mean() > 0.85
    assert one.clone().fill == options["fill"]
    with pytest.raises(ValueError, match="fill must be None unless features are declared"):
        PrivateLogisticRegression(features=8, fill={"a": 1})
