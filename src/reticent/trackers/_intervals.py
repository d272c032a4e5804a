"""Prediction intervals around any regressor, from private quantiles of its errors, with a certificate of coverage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from reticent._core._bits import Bits
from reticent._core._check import Array, integer, positive, real
from reticent._core._random import Seed
from reticent.privacy._pure import PureAccount
from reticent.trackers._exact import two_sided_geometric
from reticent.trackers._memory import Memory
from reticent.trackers._quantile import needed
from reticent.trackers._ranks import CELLS, Cells, drawn_cell, level_of
from reticent.trackers._tracker import given_numbers
from reticent.trackers._windows import WindowPlan, Windows, window_plan

_COUNTED = 4  # one part in so many of epsilon is for the number of misses, the rest for the quantile
_STEP = 2  # of the level, in parts of what may be missed: a window that misses everything opens the interval
_BEYOND = 1e-6  # levels nearer to 0 or 1 are taken to be so far from them


@dataclass(frozen=True, kw_only=True)
class IntervalsPlan(WindowPlan):
    """What is promised of radii: as of other windows, if the model is not trained on the same rows (`learn` is False).

    Otherwise radii have no account by themselves: scores are computed from predictions, and these from earlier rows.
    """

    learn: bool | str = False

    @property
    def private(self) -> bool:
        """Whether the radii by themselves are private: not if the model learns."""
        return not self.learn

    def account(self, rounds: int | None = None, method: str = "pld") -> PureAccount:
        """Return what the first `rounds` rounds (any number, unless given) can reveal about any one of them."""
        self._check_alone()
        return super().account(rounds, method)

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds what the radii reveal: nothing private of an open model."""
        from dp_accounting import dp_event as events

        if self.learn == "openly":
            return events.NonPrivateDpEvent()
        self._check_alone()
        return super().dp_event()

    def _check_alone(self) -> None:
        if self.learn:
            raise ValueError(
                f"learn must be False for radii to be private by themselves, got {self.learn!r}: they are so given the "
                "model's releases at most. Ask intervals.spent(delta), which counts both; for an event compose that of "
                "the model too, as intervals.dp_event() does if the model has dp_event()"
            )

    def rows(self) -> list[tuple[str, str]]:
        """Return the plan as labels and texts, for a table."""
        found = dict(super().rows()) | {"quality": "expected misses at most miss_bound(rounds), whatever rows come"}
        if self.learn == "openly":
            found["privacy"] = "none: the model learns openly, and carries each row into all later scores"
            del found["attacker"]
        elif self.learn:
            found["privacy"] += ", given the model's releases: its own epsilon comes on top"
        return list(found.items())

    def explain(self) -> str:
        """Say in plain words what is promised."""
        if self.learn == "openly":
            return "Nothing is promised about any row: the model learns openly, and moves all later scores and radii."
        said = super().explain()
        return f"Given the model's releases, whose own epsilon comes on top: {said}" if self.learn else said


class ScoreWindows(Windows):
    """Releases of every window how many scores were above the radius in play, and a quantile of the scores.

    The level of the quantile is one less what may be missed, moved by the released misses (adaptive conformal
    inference, Gibbs and Candes 2021): all from releases (docs/theory, R11f).
    """

    def __init__(self, plan: WindowPlan, missed: float, cells: Cells, seed: Seed) -> None:
        """Let nothing be missed until there is a release."""
        super().__init__(plan, seed)
        self.missed, self.cells = missed, cells  # the share that may be missed
        self.aim = missed  # the share that the next quantile is to leave out
        self.step = _STEP * missed
        self.memory = Memory(plan.high)

    @property
    def shown(self) -> float:
        """The radius in play: infinite before the first release, and while the released misses ask for it."""
        if not self.memory.count or self.aim <= 0:
            return math.inf
        return 0.0 if self.aim >= 1 else self.memory.shown

    def _release(self, values: Array) -> bool:
        before, there = self.shown, values[values == values]
        source = Bits(self._rng)
        misses = int((there > before).sum()) + two_sided_geometric(source, self.budget / _COUNTED)
        self.aim += self.step * (self.missed - misses / self.plan.window)
        level = level_of(min(max(1 - self.aim, _BEYOND), 1 - _BEYOND))
        counts = self.cells.counts(np.minimum(there, self.plan.high))
        cell = drawn_cell(counts, level, self.budget * (_COUNTED - 1) / _COUNTED, self._rng, self.plan.neighbors)
        # The far end of the cell: rather too wide by a cell than too narrow.
        self.memory.take(self.cells.middle(cell) + (self.plan.high - self.plan.low) / (2 * self.cells.count))
        return self.shown != before


class PrivateIntervals:
    """Intervals around the predictions of a regressor that miss about a share 1 - `coverage` of the targets.

    The interval at features x is `model`'s prediction, give and take `radius`, or the whole line where the prediction
    is not finite. Scores, the distances of targets from predictions, are taken in windows; of each the number of misses
    and a quantile of the scores are released, once and with exact noise, and the radius is computed from these
    releases: if the model does not learn from the same rows, the sequence of radii is `epsilon`-private (delta 0) in
    any one row, for any number of rows. Whatever rows come, the expected share of misses is at most
    `miss_bound(rounds)`, which falls to 1 - `coverage` (docs/theory, R11f). `largest` is a public bound up to which
    scores are told apart.

    `model` is a regressor of river (`predict_one`) or scikit-learn (`predict`). It must predict each row by itself: one
    whose prediction depends on the other rows of a batch carries a row into several scores, and no claim covers that.
    **Predictions come from the model, and no radius protects what the model has learned.** So it is not trained here,
    unless `learn` is True and it is private itself (has `spent`, as the models of `reticent.estimators`): then radii
    are `epsilon`-private given the model's releases only, and `spent()` counts both, the model's under the model's own
    neighbours, which must be those given here. With `learn="openly"` any model learns, and nothing is claimed:
    `spent()` is infinite. A `seed` is for tests.

    >>> import numpy as np
    >>> import reticent as rt
    >>> class Line:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["speed"]
    >>> intervals = rt.PrivateIntervals(Line(), coverage=0.9, largest=10.0, epsilon=1.0, seed=1)
    >>> rng = np.random.default_rng(0)
    >>> for speed in rng.uniform(size=5_000):
    ...     intervals.update({"speed": speed}, 2.0 * speed + rng.normal())
    >>> 1.4 < intervals.radius < 2.2, intervals.spent()
    (True, 1.0)
    >>> low, high = intervals.predict_one({"speed": 0.5})
    >>> low < 1.0 < high
    True
    """

    def __init__(
        self,
        model: Any,
        coverage: float = 0.9,
        *,
        largest: float,
        epsilon: float = 1.0,
        delta: float = 0.0,
        window: int | None = None,
        traffic: float | None = None,
        cells: int = CELLS,
        learn: bool | str = False,
        neighbors: str = "replace",
        seed: Seed = None,
    ) -> None:
        """Start with intervals that miss nothing: they are infinite until the first window is over."""
        if not hasattr(model, "predict_one") and not hasattr(model, "predict"):
            raise ValueError(
                f"model must have predict_one (river) or predict (scikit-learn), got {type(model).__name__}"
            )
        if not 0 < real("coverage", coverage) < 1:
            raise ValueError(f"coverage must lie strictly between 0 and 1, got {coverage!r}; 0.9 misses one in ten")
        if learn not in (True, False, "openly"):
            raise ValueError(f'learn must be True, False or "openly", got {learn!r}')
        if learn is True and not callable(getattr(model, "spent", None)):
            raise ValueError(
                f"learn=True needs a model that is private itself (it has spent()), got {type(model).__name__}: its "
                "predictions would carry each row into all later scores. Train it on public rows and leave learn out, "
                'take one of reticent.estimators, or learn="openly", which claims nothing'
            )
        self.model, self.learn, self.coverage = model, learn, float(coverage)
        goal = f"intervals of coverage {self.coverage:g}", 0.0, positive("largest", largest), epsilon, delta
        plan = window_plan(*goal, needed(self.coverage) * _COUNTED / (_COUNTED - 1), window, traffic, neighbors)
        self._windows = ScoreWindows(plan, 1 - self.coverage, Cells(0.0, plan.high, cells), seed)

    @property
    def radius(self) -> float:
        """How far intervals reach to either side of a prediction; private."""
        return self._windows.shown

    @property
    def rounds(self) -> int:
        """The number of rows taken in."""
        return self._windows.rounds

    @property
    def switches(self) -> int:
        """How often the radius has changed."""
        return self._windows.switches

    @property
    def plan(self) -> IntervalsPlan:
        """What is promised of the radii; `print(intervals.plan)` lays it out."""
        return IntervalsPlan(**vars(self._windows.plan), learn=self.learn)

    def predict_one(self, x: Any) -> tuple[float, float]:
        """Return the interval at one row of features, as its two ends."""
        low, high = self._ends(np.array([self._prediction(x)]))[0].tolist()
        return low, high

    def predict(self, rows: Any) -> Array:
        """Return the intervals at rows of features, shape `(n, 2)`."""
        return self._ends(self._predictions(rows))

    def _ends(self, middles: Array) -> Array:
        # A target y at a rounded distance of at most r from p is at a true one of at most r+, the next number after r,
        # so p - r+ <= y <= p + r+; rounding keeps order and y as it is: y lies between the rounded ends.
        reach = np.where(np.isfinite(middles), math.nextafter(self.radius, math.inf), math.inf)
        centers = np.where(np.isfinite(middles), middles, 0.0)
        with np.errstate(over="ignore"):
            ends: Array = np.stack([centers - reach, centers + reach], axis=1)
        return ends

    def update(self, x: Any, y: float) -> None:
        """Take in the features and the target of one row."""
        score = _scores(np.array([real("y", y)]), np.array([self._prediction(x)]))
        self._teach(x, y)  # a row that the model refuses leaves no mark here
        self._windows.take(float(score[0]))

    def update_many(self, rows: Any, targets: ArrayLike) -> None:
        """Take in rows one after the other; if any is refused, none, unless the model is trained here.

        After an interrupt nobody knows how many were taken in, and the intervals refuse to go on (as trackers do).
        """
        goals = given_numbers("targets", targets)
        if goals.ndim != 1 or len(rows) != goals.size or not np.isfinite(goals).all():
            raise ValueError(f"targets must be finite, one for each of the {len(rows)} rows, got shape {goals.shape}")
        if self.learn:
            for x, y in zip(rows, goals.tolist(), strict=True):
                self.update(x, y)
            return
        self._windows.take_many(_scores(goals, self._predictions(rows)))

    observe, observe_many = update, update_many

    def _prediction(self, x: Any) -> float:
        if hasattr(self.model, "predict_one"):
            return float(self.model.predict_one(x))
        return float(np.asarray(self.model.predict([x])).reshape(-1)[0])

    def _predictions(self, rows: Any) -> Array:
        if hasattr(self.model, "predict_one"):
            return np.array([self._prediction(x) for x in rows])
        return np.asarray(self.model.predict(rows), dtype=np.float64).reshape(-1)

    def _teach(self, x: Any, y: float) -> None:
        if not self.learn:
            return
        if hasattr(self.model, "learn_one"):
            self.model.learn_one(x, y)
        else:
            self.model.partial_fit([x], [y])

    def spent(self, delta: float | None = None) -> float:
        """Return the epsilon that the rows so far may have cost one of them, that of a model trained here included.

        `delta` is that of the plan unless given. A model trained here has all of it, its own unless given, and its
        epsilon is under the model's neighbours.
        """
        if self.learn == "openly":
            return math.inf if self.rounds else 0.0
        if not self.learn:
            return self._windows.spent(delta)
        return self._windows.spent(0.0) + float(self.model.spent() if delta is None else self.model.spent(delta))

    def dp_event(self) -> Any:
        """Return an event of dp_accounting that bounds a run, for composing with others under the default relation.

        For a model trained here it holds the model's event too, and is refused if the model has no `dp_event()`.
        """
        if self.learn is not True or not callable(getattr(self.model, "dp_event", None)):
            return self.plan.dp_event()
        from dp_accounting import dp_event as events

        return events.ComposedDpEvent([self._windows.plan.dp_event(), self.model.dp_event()])

    def miss_bound(self, rounds: int) -> float:
        """Return what the expected share of misses among the first `rounds` rows is at most, whatever they are.

        Rows may be chosen after seeing all that was published (docs/theory, R11f). It is above 1 - coverage by a number
        that falls like one over the windows.
        """
        window, missed, step = self.plan.window, self._windows.missed, self._windows.step
        full, rest = divmod(integer("rounds", rounds, least=1), window)
        rate = self.plan.epsilon / _COUNTED
        # The noise in a share of misses: two-sided geometric, over the window.
        variance = 2 * math.exp(-rate) / (math.expm1(-rate) * window) ** 2
        windows = full * missed + missed / step + 1 + missed / 2 + variance / (2 * missed)
        # Before the first release nothing can be missed.
        return min(1.0, (windows * window + rest) / rounds) if full else 0.0

    def __copy__(self) -> NoReturn:
        """Refuse: two would share one open window; of intervals and their deep copy only one may go on."""
        raise TypeError("intervals cannot be copied, only moved: pickle them, and resume one of the two")

    def __repr__(self) -> str:
        """Say where the intervals stand."""
        own = "no epsilon" if self.learn == "openly" else f"epsilon {self.plan.epsilon:g}"
        more = " besides the model's" if self.learn is True else ""
        at = f"radius {self.radius:.6g} after {self.rounds} rounds, {own}{more}"
        return f"<PrivateIntervals of {type(self.model).__name__}, coverage {self.coverage:g}: {at}>"


def _scores(targets: Array, middles: Array) -> Array:
    """Return distances; none (NaN) where the prediction is not finite: the interval there is the whole line."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Array = np.where(np.isfinite(middles), np.abs(targets - middles), np.nan)
    return scores
