"""Private quantiles, means and intervals of streams, beside what they replace and what has no privacy.

python bench/trackers.py [--quick] [--out bench/results/trackers.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import importlib.util
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import reticent as rt
from _report import facts_markdown, figure, run_sections, say, section_parser, table
from reticent.lab import streams
from reticent.trackers import _memory, _quantile

Row = dict[str, Any]

DELTA = 1e-6
LOW, HIGH = 0.0, 1000.0
LEVELS = (0.5, 0.95, 0.99)
EPSILONS = (0.3, 1.0, 3.0)
SEEDS = range(5)


def pinball(shown: Any, values: np.ndarray, level: float) -> np.ndarray:
    """Return the loss of what was published, value by value."""
    over = values - shown
    found: np.ndarray = np.where(over > 0, level * over, (level - 1) * over)
    return found


def published(tracker: Any, values: np.ndarray, step: int, place: int | None = None) -> np.ndarray:
    """Return what a tracker published in every round (number `place` of several); it can change every `step` only."""
    shown = np.empty(values.size)
    for start in range(0, values.size, step):
        shown[start : start + step] = tracker.value if place is None else tracker.value[place]
        tracker.update_many(values[start : start + step])
    return shown


# A million latencies


def latency(quick: bool) -> dict[str, Any]:
    """Follow three quantiles of the stream `latency`, at three levels of privacy."""
    rounds = 20_000 if quick else 1_000_000
    values = streams.get(f"latency:rounds={rounds}").block()[1]
    rows: list[Row] = []
    for level in LEVELS:
        best = float(np.quantile(values, level))
        least = float(pinball(best, values, level).mean())

        def add(system: str, epsilon: float | None, runs: list[tuple[float, float]], level: float = level) -> None:
            regret, changes = np.mean(runs, axis=0)
            spread = float(np.ptp([run[0] for run in runs]))
            row = {"level": level, "epsilon": epsilon, "system": system, "regret": float(regret), "spread": spread}
            rows.append(row | {"changes": float(changes), "seeds": len(runs)})
            say(rows[-1])

        def regret(shown: Any, level: float = level, least: float = least) -> float:
            return float(pinball(shown, values, level).mean()) - least

        add("never moving (500)", None, [(regret(500.0), 0)])
        add("constant in hindsight", None, [(0.0, 0)])
        add("no privacy: quantile of the last 350", None, [_open(values, level, 350, regret)])
        for epsilon in EPSILONS:
            runs = []
            for seed in SEEDS:
                tracker = rt.PrivateQuantile(level, LOW, HIGH, epsilon, seed=seed)
                runs.append((regret(published(tracker, values, tracker.plan.window)), tracker.switches))
            add("windows of ranks", epsilon, runs)
            runs = []
            for seed in SEEDS:
                several = rt.PrivateQuantiles(LEVELS, LOW, HIGH, epsilon, seed=seed)
                shown = published(several, values, several.plan.window, LEVELS.index(level))
                runs.append((regret(shown), float((np.diff(shown) != 0).sum())))
            add("three levels from one epsilon", epsilon, runs)
            runs = [_lone(values, level, epsilon, seed, regret) for seed in SEEDS]
            add("the draws alone, windows of 1,000 (G4)", epsilon, runs)
            for system in ("DP-FTRL", "P-COMW"):
                if system == "P-COMW" and epsilon != 1.0 and not quick:
                    continue  # in bench/results/guides.md; minutes each
                plan = _quantile._plan(
                    system, rt.Interval(LOW, HIGH), rounds, rt.Pinball(level), epsilon, DELTA, "replace"
                )
                trace = rt.make(plan, rt.Pinball(level), seed=0).observe_many(np.ones(rounds), values)
                add(f"{system}, with a horizon", epsilon, [(float(trace.total) / rounds - least, trace.switches)])
            for name, drawn in _libraries(level, epsilon).items():
                add(name, epsilon, [_per_window(drawn, values, regret)])
    return {"rounds": rounds, "rows": rows, "missing": [n for n in LIBRARIES if importlib.util.find_spec(n) is None]}


def _open(values: np.ndarray, level: float, window: int, regret: Callable[[Any], float]) -> tuple[float, float]:
    """Publish the quantile of the last window, without privacy."""
    shown = np.full(values.size, 500.0)
    for start in range(window, values.size, window):
        shown[start : start + window] = np.quantile(values[start - window : start], level)
    return regret(shown), float((np.diff(shown) != 0).sum())


def _lone(
    values: np.ndarray, level: float, epsilon: float, seed: int, regret: Callable[[Any], float]
) -> tuple[float, float]:
    """Publish each draw as it is, from windows of 1,000: the mechanism without a memory."""
    tracker = rt.PrivateQuantile(level, LOW, HIGH, epsilon, window=1_000, seed=seed)
    shown = np.full(values.size, 500.0)
    for start in range(0, values.size - 1_000, 1_000):
        tracker.update_many(values[start : start + 1_000])
        shown[start + 1_000 : start + 2_000] = tracker.learner.memory.releases[-1]
    return regret(shown), float((np.diff(shown) != 0).sum())


LIBRARIES = ("diffprivlib", "opendp")
CANDIDATES = 1001  # whole milliseconds, that the score of OpenDP is computed for


def _libraries(level: float, epsilon: float) -> dict[str, Callable[[np.ndarray], float]]:
    """Return quantiles of one window by other libraries, where they are installed."""
    found: dict[str, Callable[[np.ndarray], float]] = {}
    if importlib.util.find_spec("diffprivlib") is not None:
        from diffprivlib.tools import quantile

        found["diffprivlib, windows of 1,000"] = lambda part: float(
            quantile(part, level, epsilon=epsilon, bounds=(LOW, HIGH))
        )
    if importlib.util.find_spec("opendp") is not None:
        found["OpenDP, windows of 1,000"] = _opendp(level, epsilon)
    return found


def _opendp(level: float, epsilon: float) -> Callable[[np.ndarray], float]:
    """Return OpenDP's quantile of 1,000 values: the exponential mechanism on scores of public candidates."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    candidates = np.linspace(LOW, HIGH, CANDIDATES)
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=1_000), dp.symmetric_distance()
    scores = space >> dp.t.then_quantile_score_candidates(candidates.tolist(), level)

    def drawn(scale: float) -> Any:
        return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True)

    # One value replaced is two steps of their distance; the rest of the scale is what they say that costs.
    measurement = drawn(drawn(1.0).map(2) / epsilon * (1 + 1e-9))
    assert measurement.map(2) <= epsilon
    return lambda part: float(candidates[measurement(part.tolist())])


def _per_window(
    drawn: Callable[[np.ndarray], float], values: np.ndarray, regret: Callable[[Any], float]
) -> tuple[float, float]:
    shown = np.full(values.size, 500.0)
    for start in range(0, values.size - 1_000, 1_000):
        shown[start + 1_000 : start + 2_000] = drawn(values[start : start + 1_000])
    return regret(shown), float((np.diff(shown) != 0).sum())


# The made-up streams on which constants were chosen


def models(quick: bool) -> dict[str, Any]:
    """Vary the constants of windows and memory on made-up streams: the loss in parts of the best constant's."""
    rounds, seeds = (60_000, 1) if quick else (300_000, 2)
    tail, more, far, worth = _quantile._TAIL, _quantile._MORE, _memory._FAR, _memory._WORTH
    rows = []
    try:
        for name, change in (
            ("as it is", {}),
            ("windows half as long", {"tail": tail / 2, "more": more / 2}),
            ("windows twice as long", {"tail": 2 * tail, "more": 2 * more}),
            ("news from 2 errors on", {"far": 2.0}),
            ("news from 6 errors on", {"far": 6.0}),
            ("no change too small", {"worth": 0.0}),
            ("changes of 1.5 errors", {"worth": 1.5}),
        ):
            _quantile._TAIL, _quantile._MORE = change.get("tail", tail), change.get("more", more)
            _memory._FAR, _memory._WORTH = change.get("far", far), change.get("worth", worth)
            for level, epsilon in ((0.5, 1.0), (0.95, 1.0), (0.95, 0.3), (0.99, 1.0)):
                found = [_relative(values, level, epsilon, s) for s in range(seeds) for values in made_up(rounds, s)]
                loss, changes, window = np.mean(found, axis=0)
                rows.append({"setting": name, "level": level, "epsilon": epsilon, "loss": float(loss)})
                rows[-1] |= {"changes": float(changes), "window": float(window)}
                say(rows[-1])
    finally:
        _quantile._TAIL, _quantile._MORE, _memory._FAR, _memory._WORTH = tail, more, far, worth
    return {"rounds": rounds, "rows": rows}


def _relative(values: np.ndarray, level: float, epsilon: float, seed: int) -> tuple[float, float, float]:
    tracker = rt.PrivateQuantile(level, LOW, HIGH, epsilon, seed=seed)
    shown = published(tracker, values, tracker.plan.window)
    best = pinball(np.quantile(values, level), values, level).mean()
    return float(pinball(shown, values, level).mean() / best), tracker.switches, tracker.plan.window


def made_up(rounds: int, seed: int) -> Iterator[np.ndarray]:
    """Yield streams: of one law (two), waves (two), jumps, a walk, bursts."""
    rng, t = np.random.default_rng(seed), np.arange(rounds)

    def around(scale: Any) -> np.ndarray:
        found: np.ndarray = 150.0 * scale * np.exp(0.6 * rng.standard_normal(rounds))
        return found

    yield around(1.0)
    yield 400.0 + 80.0 * rng.standard_normal(rounds)
    yield around(1.0 + 0.4 * np.sin(2.0 * np.pi * t / 200_000))
    yield around(1.0 + 0.4 * np.sin(2.0 * np.pi * t / 30_000))
    yield around(np.exp(0.5 * rng.standard_normal(rounds // 40_000 + 1))[t // 40_000])
    walk = np.cumsum(0.01 * rng.standard_normal(rounds // 100 + 1))
    yield around(np.exp(walk - walk.mean())[t // 100])
    scale = np.ones(rounds)
    for start in range(0, rounds, 25_000):
        begin = start + rng.integers(0, 20_000)
        scale[begin : begin + rng.integers(500, 5_000)] *= rng.uniform(1.5, 4.0)
    yield around(scale)


# Intervals


def intervals(quick: bool) -> dict[str, Any]:
    """Cover targets of drifting streams: private intervals beside conformal ones without privacy."""
    rounds = 10_000 if quick else 100_000
    rows = []
    for name in ("one law", "waves", "jumps"):
        rng = np.random.default_rng(1)
        t = np.arange(rounds)
        scale = {
            "one law": np.ones(rounds),
            "waves": 1.0 + 0.7 * np.sin(2.0 * np.pi * t / 30_000),
            "jumps": np.exp(0.6 * rng.standard_normal(rounds // 10_000 + 1))[t // 10_000],
        }[name]
        features = rng.uniform(-1.0, 1.0, size=(rounds, 3))
        targets = features @ np.array([1.0, -2.0, 0.5]) + scale * rng.standard_t(5, size=rounds)
        model = _Fixed()
        scores = np.abs(targets - model.predict(features))
        for system, radii in (
            ("split conformal on the first 5,000, no privacy", _split(scores)),
            *_mapie(model, features, targets),
            ("adaptive conformal, last 1,000, no privacy", _adaptive(scores)),
            *((f"private, epsilon {e:g}", _private(model, features, targets, e)) for e in EPSILONS),
        ):
            late = slice(rounds // 10, None)
            missed, finite = scores > radii, np.isfinite(radii[late])
            blocks = missed[late][: missed[late].size // 1_000 * 1_000].reshape(-1, 1_000).mean(axis=1)
            rows.append({"stream": name, "system": system, "coverage": 1 - float(missed[late].mean())})
            rows[-1] |= {"width": 2 * float(radii[late][finite].mean()), "worst": 1 - float(blocks.max())}
            rows[-1] |= {"infinite": 1 - float(finite.mean())}
            say(rows[-1])
    bound = rt.PrivateIntervals(_Fixed(), 0.9, largest=20.0, epsilon=1.0)
    return {"rounds": rounds, "rows": rows, "bound": 1 - bound.miss_bound(rounds), "window": bound.plan.window}


class _Fixed:
    """The model that made the targets, with a wrong weight: trained elsewhere, on public rows."""

    is_fitted = True

    def fit(self, rows: np.ndarray, targets: np.ndarray) -> _Fixed:
        """Be as it is: peers ask for a model that can be fitted."""
        return self

    def predict(self, rows: np.ndarray) -> np.ndarray:
        found: np.ndarray = rows @ np.array([1.0, -1.8, 0.5])
        return found


def _split(scores: np.ndarray, first: int = 5_000) -> np.ndarray:
    first = min(first, scores.size // 10)
    return np.where(np.arange(scores.size) < first, np.inf, np.quantile(scores[:first], 0.9))


def _mapie(model: Any, features: np.ndarray, targets: np.ndarray, first: int = 5_000) -> list[tuple[str, np.ndarray]]:
    """Return half the widths of MAPIE's split conformal intervals around the same model, where it is installed."""
    if importlib.util.find_spec("mapie") is None:
        return []
    from mapie.regression import SplitConformalRegressor

    first = min(first, targets.size // 10)
    regressor = SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
    regressor.conformalize(features[:first], targets[:first])
    bounds = regressor.predict_interval(features)[1].reshape(-1, 2)
    radii = np.where(np.arange(targets.size) < first, np.inf, (bounds[:, 1] - bounds[:, 0]) / 2)
    return [("MAPIE, split conformal on the first 5,000, no privacy", radii)]


def _adaptive(scores: np.ndarray, step: float = 0.005, last: int = 1_000) -> np.ndarray:
    """Adaptive conformal inference (Gibbs and Candes 2021) on the scores of the last rounds."""
    kept: deque[float] = deque(maxlen=last)
    radii, aim, ranked = np.empty(scores.size), 0.1, np.zeros(0)
    for t, score in enumerate(scores.tolist()):
        if t % 25 == 0 and kept:
            ranked = np.sort(kept)
        place = int(np.ceil((1 - aim) * (ranked.size + 1))) - 1
        radii[t] = np.inf if place >= ranked.size else ranked[max(place, 0)] if aim < 1 else 0.0
        aim += step * (0.1 - (score > radii[t]))
        kept.append(score)
    return radii


def _private(model: Any, features: np.ndarray, targets: np.ndarray, epsilon: float) -> np.ndarray:
    found = rt.PrivateIntervals(model, 0.9, largest=20.0, epsilon=epsilon, seed=1)
    radii, step = np.empty(targets.size), found.plan.window
    for start in range(0, targets.size, step):
        part = slice(start, start + step)
        radii[part] = found.radius
        found.update_many(features[part], targets[part])
    return radii


# Several numbers, the mean, and time


def others(quick: bool) -> dict[str, Any]:
    """Measure errors of several quantiles and of means on values of one law, and the time a value takes."""
    rows = []
    for rounds in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
        values = np.random.default_rng(0).beta(2.0, 5.0, size=rounds)
        true = np.quantile(values, [0.5, 0.9, 0.99])
        several, mean, average, before = [], [], [], []
        for seed in SEEDS:
            tracker: Any = rt.PrivateQuantiles((0.5, 0.9, 0.99), 0.0, 1.0, 1.0, seed=seed)
            tracker.update_many(values)
            several.append(np.array(tracker.value) - true)
            tracker = rt.PrivateMean(0.0, 1.0, 1.0, seed=seed)
            tracker.update_many(values)
            mean.append(tracker.value - values.mean())
            average.append(tracker.average - values.mean())
            tracker = rt.PrivateMean(0.0, 1.0, rounds, 1.0, DELTA, seed=seed)
            tracker.update_many(values)
            before.append(tracker.value - values.mean())
        rms = np.sqrt(np.mean(np.square(several), axis=0)).tolist()
        errors = [float(np.sqrt(np.mean(np.square(part)))) for part in (mean, average, before)]
        rows.append({"rounds": rounds, "errors": [*rms, *errors]})
        say(rows[-1])
    return {"rows": rows, "times": [_time(level) for level in LEVELS]}


def _time(level: float) -> Row:
    values = np.random.default_rng(0).lognormal(4.6, 0.5, size=200_000)
    one, many = (rt.PrivateQuantile(level, LOW, HIGH, 1.0, seed=0) for _ in range(2))
    each = values.tolist()
    begin = time.perf_counter()
    for value in each:
        one.update(value)
    middle = time.perf_counter()
    many.update_many(values)
    end = time.perf_counter()
    return {"level": level, "update": (middle - begin) * 1e6 / values.size, "many": (end - middle) * 1e6 / values.size}


# The report

ABOUT = "# Trackers\n\nWritten by `bench/trackers.py`."

LATENCY = """
## A million latencies

{rounds:,} rounds of the stream `latency`, published numbers in [0, 1000] ms. Regret, in ms a round, is against the best
constant in hindsight: below 0 is better than any. *Windows of ranks* is `rt.PrivateQuantile(level, 0, 1000, epsilon)`
as it comes: pure, without a horizon; *three levels*: `rt.PrivateQuantiles` at 0.5, 0.95 and 0.99. The systems with a
horizon have delta = 1e-6. *spread* is from the lowest to the highest of the seeds. Not installed here, and left out:
{left_out}.

The constants of the tracker were chosen on the streams of the next section, where each is near the best. This stream
was looked at several times on the way, to see whether goals set for it were met: with windows of 20/(epsilon m) p99 had
-0.3, whereupon bursts were added to those streams, windows of extreme levels made shorter and news published at once.
"""

MODELS = """
## Made-up streams

Seven streams of {rounds:,} values (of one law, waves, jumps, a walk, bursts; `made_up` in the script), two
seeds. *loss* is in parts of the best constant's, the start included.
"""

INTERVALS = """
## Prediction intervals

{rounds:,} rows, a linear model that is slightly wrong, errors of Student's t with 5 degrees whose scale drifts; 0.9 is
asked for. *worst*: the lowest coverage of a thousand consecutive rows; the first tenth is left out. Certified at
epsilon 1 for any rows (`1 - miss_bound`): {bound:.4f}, with windows of {window} rows. MAPIE stands
there if it is installed; adaptive conformal inference is written out.
"""

OTHERS = """
## Several quantiles, and means

Root mean square errors over five seeds in parts of the width, epsilon 1, values of a beta(2, 5) law on [0, 1]. *with a
horizon*: `PrivateMean` as it was, delta 1e-6.
"""


def report(results: dict[str, Any]) -> str:
    """Return the report."""
    text = [ABOUT, facts_markdown(results["facts"])]
    if found := results.get("latency"):
        rows = [[f"{r['level']}", _level(r["epsilon"]), r["system"], *_measured(r)] for r in found["rows"]]
        heads = ["level", "epsilon", "system", "regret", "spread", "changes", "seeds"]
        left_out = ", ".join(found["missing"]) or "nothing"
        text += [LATENCY.format(**found, left_out=left_out), table(heads, rows, text=3)]
    if found := results.get("models"):
        rows = [
            [r["setting"], f"{r['level']}", f"{r['epsilon']:g}", f"{r['loss']:.4f}", r["changes"], r["window"]]
            for r in found["rows"]
        ]
        heads = ["setting", "level", "epsilon", "loss", "changes", "window"]
        text += [MODELS.format(**found), table(heads, rows, text=3)]
    if found := results.get("intervals"):
        rows = [
            [r["stream"], r["system"], *(f"{r[name]:.3f}" for name in ("coverage", "worst", "width", "infinite"))]
            for r in found["rows"]
        ]
        heads = ["stream", "system", "coverage", "worst", "mean width", "share of infinite ones"]
        text += [INTERVALS.format(**found), table(heads, rows, text=2)]
    if found := results.get("others"):
        heads = ["values", "0.5", "0.9", "0.99", "mean", "its average", "with a horizon"]
        rows = [[f"{r['rounds']:,}", *(f"{error:.2g}" for error in r["errors"])] for r in found["rows"]]
        times = [[f"{r['level']}", r["update"], r["many"]] for r in found["times"]]
        text += [OTHERS, table(heads, rows), "Microseconds a value, epsilon 1:"]
        text += [table(["level", "update", "update_many"], times)]
    return "\n\n".join(part.strip() for part in text)


def _level(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:g}"


def _measured(row: Row) -> list[str]:
    return [f"{row['regret']:.2f}", f"{row['spread']:.2f}", figure(row["changes"]), figure(row["seeds"])]


SECTIONS = {
    "latency": (latency, None),
    "models": (models, None),
    "intervals": (intervals, None),
    "others": (others, None),
}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "short streams").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy"], report)


if __name__ == "__main__":
    main()
