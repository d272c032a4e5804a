"""Private prediction intervals: coverage on drifting rows, its certificate under attack, and whose epsilon counts."""

import copy
import math
import pickle

import numpy as np
import pytest
from dp_accounting import ComposedDpEvent, GaussianDpEvent, NonPrivateDpEvent
from river import linear_model
from sklearn.linear_model import LinearRegression, SGDRegressor

import reticent as rt


class Zero:
    """Predicts 0."""

    def predict(self, rows):
        return np.zeros(len(rows))


class Private:
    """A model with an account of its own."""

    rows = 0

    def predict_one(self, x):
        return 0.0

    def learn_one(self, x, y):
        if not x:
            raise ValueError("refused")
        self.rows += 1

    def spent(self, delta=1e-6):
        return 2.0


def intervals(model=None, **options):
    settings = {"largest": 10.0, "epsilon": 1.0, "seed": 1} | options
    return rt.PrivateIntervals(Zero() if model is None else model, 0.9, **settings)


def missed(found, targets):
    """Feed targets for predictions of 0, a window at a time; return which intervals missed."""
    out, step = [], found.plan.window
    for start in range(0, targets.size, step):
        part = targets[start : start + step]
        out.append(np.abs(part) > found.radius)
        found.update_many(np.zeros((part.size, 1)), part)
    return np.concatenate(out)


def test_coverage_on_drifting_rows():
    rng = np.random.default_rng(0)
    scale = 1.0 + 0.6 * np.sin(np.arange(60_000) / 5_000)
    found = intervals()
    share = missed(found, scale * rng.normal(size=60_000)).mean()
    assert 0.09 < share < 0.11
    assert share < found.miss_bound(60_000) < 0.12
    assert found.spent() == 1.0
    assert found.switches < 60_000 / found.plan.window


def test_hostile_rows_stay_under_the_certificate():
    """Rows that know the radius and miss it whenever it is finite; twenty runs."""
    shares = []
    for seed in range(20):
        found = intervals(seed=seed, window=50)
        count = 0
        for _ in range(100):
            score = 9.0 if math.isinf(found.radius) else found.radius + 5.0
            count += 50 * (score > found.radius)
            found.update_many(np.zeros((50, 1)), np.full(50, score))
        shares.append(count / 5_000)
    assert 0.05 < np.mean(shares) <= found.miss_bound(5_000) < 0.2


def test_without_the_opening_rule_hostile_rows_break_it(monkeypatch):
    from reticent.trackers._intervals import ScoreWindows

    monkeypatch.setattr(ScoreWindows, "shown", property(lambda self: self.memory.shown))
    found = intervals(window=50)
    assert missed(found, np.full(5_000, 20.0)).mean() > 0.9 > found.miss_bound(5_000)


def test_certificate_falls_to_what_may_be_missed():
    found = intervals()
    assert found.miss_bound(found.plan.window - 1) == 0.0
    assert found.miss_bound(10**5) > found.miss_bound(10**6) > found.miss_bound(10**8) > 0.1
    assert found.miss_bound(10**8) < 0.1001


def test_intervals_around_river_and_sklearn():
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(3_000, 2))
    targets = rows @ [1.0, 2.0] + 0.1 * rng.normal(size=3_000)
    line = LinearRegression().fit(rows[:500], targets[:500])
    found = intervals(line, largest=1.0)
    assert found.radius == math.inf
    found.update_many(rows[500:], targets[500:])
    ends = found.predict(rows)
    assert ((ends[:, 0] <= targets) & (targets <= ends[:, 1])).mean() == pytest.approx(0.9, abs=0.05)
    assert found.predict_one(rows[0]) == pytest.approx(tuple(ends[0]))

    class Dictionary:
        def predict_one(self, x):
            return x["a"]

    other = intervals(Dictionary(), largest=1.0)
    other.update({"a": 0.5}, 0.6)
    assert other.rounds == 1
    assert other.predict_one({"a": 2.0}) == (-math.inf, math.inf)


def test_who_learns_is_counted():
    with pytest.raises(ValueError, match="learn=True needs a model that is private itself"):
        intervals(linear_model.LinearRegression(), learn=True)
    openly = intervals(linear_model.LinearRegression(), learn="openly", window=5)
    for k in range(6):
        openly.update({"a": 0.1 * k}, 0.2 * k)
    assert openly.spent() == math.inf
    assert openly.model.weights
    both = intervals(Private(), learn=True, window=5)
    for k in range(20):
        both.update({"a": 0.05 * k}, 0.04 * k)
    assert both.spent() == both.spent(1e-6) == 1.0 + 2.0
    assert both.model.rows == 20
    with pytest.raises(ValueError, match="refused"):
        both.update({}, 0.0)
    assert both.rounds == 20
    batch = intervals(SGDRegressor().fit([[0.0], [1.0]], [0.0, 1.0]), learn="openly")
    batch.update_many(np.zeros((3, 1)), np.zeros(3))
    assert batch.rounds == 3


def test_delta_of_spent_is_heard():
    found = intervals(window=5, delta=0.1)
    found.update_many(np.zeros((10, 1)), np.zeros(10))
    assert found.spent(0.0) == 1.0 > found.spent(1e-3) > found.spent() == found.plan.account(10).epsilon(0.1)
    both = intervals(Private(), learn=True, window=5, delta=0.1)
    for _ in range(10):
        both.update({"a": 0.0}, 0.0)
    assert both.spent(1e-6) == both.spent() == 3.0  # all of delta is the model's


def test_no_epsilon_is_claimed_where_a_model_learns():
    fixed = intervals(window=5)
    assert isinstance(fixed.dp_event(), GaussianDpEvent)
    assert fixed.plan.private
    assert "epsilon 1" in repr(fixed)
    openly = intervals(linear_model.LinearRegression(), learn="openly", window=5)
    assert isinstance(openly.dp_event(), NonPrivateDpEvent)
    for words in (repr(openly).replace("no epsilon", ""), str(openly.plan), openly.plan.explain()):
        assert "epsilon" not in words
    both = intervals(Private(), learn=True, window=5)
    assert "besides the model's" in repr(both)
    for words in (str(both.plan), both.plan.explain()):
        assert "iven the model's releases" in " ".join(words.split())
    for call in (openly.plan.account, both.plan.account, both.plan.dp_event, both.dp_event):
        with pytest.raises(ValueError, match="compose that of the model too"):
            call()
    assert not openly.plan.private
    assert not both.plan.private
    both.model.dp_event = lambda: GaussianDpEvent(3.0)
    assert both.dp_event() == ComposedDpEvent([fixed.dp_event(), GaussianDpEvent(3.0)])


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_prediction_that_is_not_finite_has_the_whole_line(odd):
    """And no score: nothing is missed, and the rows between keep their radius."""

    class Odd:
        def predict_one(self, x):
            return odd if x else 0.0

    found = intervals(Odd(), window=50, epsilon=20.0)
    targets = np.random.default_rng(0).normal(size=2_000)
    for k, y in enumerate(targets):
        if k % 2:
            assert found.predict_one(1) == (-math.inf, math.inf)
        found.update(k % 2, y)
    assert found.predict([1, 1]).tolist() == [[-math.inf, math.inf]] * 2
    assert 0.5 < found.radius < 4.0
    whole = intervals(Odd(), window=50, epsilon=20.0)
    whole.update_many([k % 2 for k in range(2_000)], targets)
    assert whole.radius == found.radius


def test_no_target_lies_between_its_score_and_its_interval():
    """Targets within a few steps of the ends, and near 0 where the ends cancel: a score of at most r is inside."""
    rng = np.random.default_rng(0)
    radius = 0.7
    middles = rng.normal(size=50_000) * 10.0 ** rng.integers(-20, 3, size=50_000)
    middles[::5] = rng.choice([-radius, radius], size=10_000)
    sides = rng.choice([-1.0, 1.0], size=50_000)
    targets = middles + sides * radius
    for _ in range(2):
        targets = np.where(rng.random(50_000) < 0.7, np.nextafter(targets, sides * math.inf), targets)
    targets[::5] += sides[::5] * 10.0 ** rng.integers(-25, -15, size=10_000)

    class Same:
        def predict(self, rows):
            return np.asarray(rows)

    found = intervals(Same())
    found._windows.memory.count, found._windows.memory.shown = 1, radius
    low, high = found.predict(middles).T
    near = np.abs(targets - middles) <= radius
    assert ((targets < middles - radius) | (middles + radius < targets))[near].sum() > 1_000  # plain ends lose these
    assert ((low <= targets) & (targets <= high))[near].all()
    assert (high - low < 2 * radius + 1e-12)[np.abs(middles) < 1].all()


def test_intervals_are_not_copied():
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(intervals())
    assert copy.deepcopy(intervals()).rounds == 0


def test_row_that_is_refused_leaves_no_mark():
    found = intervals()
    for bad in (math.nan, "x"):
        with pytest.raises(ValueError, match="y must be"):
            found.update([0.0], bad)
    with pytest.raises(ValueError, match="one for each of the 2 rows"):
        found.update_many([[0.0], [1.0]], [1.0])
    assert found.rounds == 0


def test_pickled_intervals_go_on():
    targets = np.random.default_rng(0).normal(size=800)
    found = intervals(window=50)
    missed(found, targets[:400])
    other = pickle.loads(pickle.dumps(found))
    for one in (found, other):
        missed(one, targets[400:])
    assert other.radius == found.radius
    assert repr(other) == repr(found)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rt.PrivateIntervals(object(), largest=1.0), "model must have predict_one"),
        (lambda: rt.PrivateIntervals(Zero(), 1.0, largest=1.0), "coverage must lie"),
        (lambda: intervals(learn="yes"), "learn must be"),
        (lambda: intervals(largest=0.0), "largest must be"),
        (lambda: intervals().miss_bound(0), "rounds must be a whole number of at least 1, got 0"),
        (lambda: intervals().miss_bound(10.5), "rounds must be a whole number"),
        (lambda: intervals().update_many([[0.0]], ["secret"]), "targets must be real numbers .* got a list of str"),
    ],
)
def test_bad_goals_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
