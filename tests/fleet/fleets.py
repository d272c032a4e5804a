"""Specifications and streams that the tests of fleets share, and what single learners make of them."""

import numpy as np

import reticent as rt
from reticent.fleet import Spec

BOX = rt.Box([-1.0, 0.0, -2.0], [1.0, 3.0, 2.0])
SHORT = {"epsilon": 8.0, "delta": 1e-4}  # a large epsilon makes short blocks, and so many of them

SPECS = {
    "filtered, interval": Spec(rt.private_learner, rt.Pinball(0.9), rt.Interval(0.0, 60.0), **SHORT),
    "filtered, ball": Spec(rt.private_learner, rt.Logistic(), rt.Ball(3, 2.0), **SHORT),
    "filtered, box": Spec(rt.private_learner, rt.Absolute(), BOX, neighbors="zero-out", **SHORT),
    "filtered, simplex": Spec(rt.private_learner, rt.Linear(), rt.Simplex(4), **SHORT),
    "filtered, horizon": Spec(rt.private_learner, rt.Hinge(), rt.Ball(2), horizon=5_000, max_switches=200, **SHORT),
    "filtered, wide": Spec(rt.private_learner, rt.Huber(), rt.Ball(70), **SHORT),
    "descent": Spec(rt.make, rt.planning.plan_descent(rt.Ball(2), None, 1.0, **SHORT), rt.Logistic(), on_steep="clip"),
    "descent, horizon": Spec(
        rt.make, rt.planning.plan_descent(rt.Interval(-1.0, 2.0), 4_000, 1.0, **SHORT), rt.Squared(), on_steep="clip"
    ),
    "quantile": Spec(rt.PrivateQuantile, 0.9, 0.0, 60.0, epsilon=4.0),
    "quantile, zero-out": Spec(rt.PrivateQuantile, 0.5, 0.0, 60.0, 4.0, window=7, cells=50, neighbors="zero-out"),
    "quantile, long": Spec(rt.PrivateQuantile, 0.5, 0.0, 60.0, epsilon=2.0, window=300, cells=20),
    "mean": Spec(rt.PrivateMean, 0.0, 60.0, epsilon=4.0, window=11),
    "mean, zero-out": Spec(rt.PrivateMean, -3.0, 60.0, epsilon=4.0, window=5, neighbors="zero-out"),
    "quantiles": Spec(rt.PrivateQuantiles, (0.1, 0.5, 0.9), 0.0, 60.0, epsilon=4.0, window=40),
    "lazy": Spec(rt.lazy_learner, rt.Pinball(0.5), rt.Interval(0.0, 60.0), max_switches=30),
}
AT_ONCE = [name for name in SPECS if name != "lazy"]
"""Those that are held in arrays over keys."""


def made_up(spec, count, rng):
    """Return columns of rounds, some of them hostile, for a specification."""
    if spec.loss is None:
        values = rng.exponential(10.0, count)
        if spec.plan.neighbors == "zero-out":
            values[rng.random(count) < 0.1] = np.nan
        return (values,)
    dim = spec.plan.domain.dim
    features = rng.normal(size=(count, dim)) * rng.choice([1.0, 1e-3, 50.0], size=(count, 1), p=[0.9, 0.05, 0.05])
    features[rng.random(count) < 0.05] = 0.0
    if isinstance(spec.loss, rt.Linear):
        return (features,)
    if isinstance(spec.loss, rt.Logistic | rt.Hinge):
        return features, rng.choice([-1.0, 1.0], count)
    return features, rng.normal(5.0, 10.0, count)


def alone(fleet, key, columns):
    """Return the single learner of a key after all its rounds."""
    single = fleet.spec.new(fleet.seed_of(key))
    if len(columns[0]):
        (single.update_many if fleet.spec.loss is None else single.observe_many)(*columns)
    return single


def same_as_alone(fleet, rows):
    """Check every key of a fleet, against single learners; return how many changes there were."""
    for key, columns in rows.items():
        single = alone(fleet, key, columns)
        found = fleet.decision(key)
        assert np.array_equal(np.asarray(single.decision), np.asarray(found)), key
        assert fleet.versions([key])[0] == single.switches, key
        assert fleet.rounds([key])[0] == single.rounds, key
        assert fleet.spent(key) == single.spent() if fleet.plan.private else True
        rounds, points = fleet.history(key)
        assert len(rounds) == single.switches
        assert not len(rounds) or np.array_equal(points[-1], np.asarray(single.decision))
    return int(fleet.versions(list(rows)).sum())


class Stream:
    """Random rows of some keys, in batches, and what of it each key has had."""

    def __init__(self, spec, keys, rng):
        self.spec, self.keys, self.rng = spec, keys, rng
        self.parts = {key: [] for key in keys}

    def batch(self, count, lean=0.0):
        """Return the keys and columns of the next batch; with a lean, a few keys have most of the rows."""
        chances = np.exp(-lean * np.arange(len(self.keys)))
        codes = self.rng.choice(len(self.keys), size=count, p=chances / chances.sum())
        columns = made_up(self.spec, count, self.rng)
        for i, key in enumerate(self.keys):
            mine = codes == i
            if mine.any():
                self.parts[key].append(tuple(column[mine] for column in columns))
        return [self.keys[code] for code in codes], columns

    def rows(self):
        """Return the columns of every key so far."""
        empty = tuple(column[:0] for column in made_up(self.spec, 1, np.random.default_rng(0)))
        return {
            key: tuple(np.concatenate([part[j] for part in [empty, *parts]]) for j in range(len(empty)))
            for key, parts in self.parts.items()
        }
