"""Real streams under a hard cap on changes: `rt.lazy_learner` beside what people use, at equal changes.

python bench/lazy_streams.py [--quick] [--out bench/results/lazy_streams.md] [--only SECTION ...]

How its constants were chosen: on 72 synthetic models (thresholds, regressions, scorers; constant, seasonal, jumping,
wandering, daily; seeds of their own) at 10, 30 and 100 changes, on grids of two to five values each: the blocks between
two looks (8, 16 or 32 to a gap), the lag at which memories are judged, how long that is remembered (32 or 128 blocks),
steps (10 or 12), how much of the past a price looks back on, a first change for nothing. Then the streams below were
looked at once. That look showed a fault: judged at one lag, memories fell for daily cycles of that very length. The
lag was replaced by four ages (of two sets, with or without a fading sum), again on synthetic models, with 12 of random
cycles added. The reference of 100 was the best fixed decision at first, which on `waterflow` is hardly better than
never moving; it became the better of that and unlimited descent.
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import reticent as rt
from _report import PICTURES, drawing, facts_markdown, figure, run_sections, say, section_parser, table
from reticent.lab import streams
from reticent.lab.streams._prices import relatives
from reticent.lab.streams._real import table as data_file

CHANGES = (10, 30, 100)
SEEDS = range(3)
OURS, BAND, BAND_5 = "lazy_learner", "dead band, width by hindsight", "dead band, 5% of the range"
COOL, BLOCKED, PCOMW = "cool-down, by hindsight", "blocked descent", "P-COMW, lazy, hard cap"
ENDS = ("best", "unlimited")
RIVALS = (OURS, BAND, BAND_5, COOL, BLOCKED, PCOMW)


@dataclass(frozen=True)
class Task:
    """A stream: what a round costs, where decisions live, and all rounds."""

    name: str
    loss: Any
    domain: Any
    features: np.ndarray
    targets: np.ndarray

    @property
    def lipschitz(self) -> float:
        """How steep a round may be; rows have length at most 1."""
        return rt.systems.budgeted.unit_lipschitz(self.loss)

    def total(self, point: np.ndarray, first: int, last: int) -> float:
        """Return what a decision loses in some rounds."""
        return float(self.loss.values(point, self.features[first:last], self.targets[first:last]).sum())


def threshold(name: str, values: np.ndarray, level: float, low: float, high: float) -> Task:
    """Return the stream of a quantile within a public range."""
    return Task(name, rt.Pinball(level), rt.Interval(low, high), np.ones((len(values), 1)), values)


def calls(seed: int = 5) -> np.ndarray:
    """Return calls in five minutes for five weeks, made up: days, weekends, growth, and some outages elsewhere."""
    rng = np.random.default_rng([2026, seed])
    step = np.arange(5 * 7 * 288)
    day, week = step % 288 / 288, step // 288 % 7
    rate = 15 + 60 * np.maximum(0.0, np.sin(np.pi * np.clip((day - 0.29) / 0.5, 0, 1))) * np.where(week < 5, 1, 0.4)
    rate = rate * (1 + 0.3 * step / step.size)
    for start in rng.choice(step.size, 4, replace=False):
        rate[start : start + 24] *= 2.0
    return rng.poisson(rate).astype(float)


def cluster(seed: int = 7) -> np.ndarray:
    """Return the load of a cluster in cores, made up: jobs come and go, a few of them large."""
    rng = np.random.default_rng([2026, seed])
    rounds = 20_000
    load = np.zeros(rounds)
    for start in np.flatnonzero(rng.random(rounds) < 0.01):
        load[start : start + int(rng.exponential(900))] += rng.pareto(2.5) * 4 + 1
    return np.maximum(load + 3 * rng.standard_normal(rounds), 0.0)


def tasks(quick: bool) -> list[Task]:
    """Return the streams: real ones from other packages' files, and two of operations, which are synthetic."""
    found = []
    names = ["waterflow", "randhie-visits", "temperatures", "trump", "phishing", "fair", "randhie", "shuttle"]
    for name in names[:2] if quick else names:
        stream = streams.get(name)
        features, targets = stream.block()
        found.append(Task(name, stream.loss, stream.domain, features.reshape(len(targets), -1), targets))
    for place in ("seattle", "sf"):
        degrees = data_file("vega_datasets", "_data", f"{place}-temps.csv")["temp"].to_numpy(np.float64)
        found.append(threshold(f"{place} p90", degrees, 0.9, 20.0, 120.0))
    moves = 100 * np.abs(relatives("nyse_n")[2].mean(axis=1) - 1.0)
    found.append(threshold("nyse risk p95", moves, 0.95, 0.0, 20.0))
    found.append(threshold("calls p90 (made up)", calls(), 0.9, 0.0, 300.0))
    found.append(threshold("cluster p95 (made up)", cluster(), 0.95, 0.0, 200.0))
    return found


# The rules that people use


def descent_path(task: Task) -> tuple[np.ndarray, float]:
    """Return the decisions of plain descent before every round, and the loss of the best fixed decision."""
    plan = rt.planning.plan_descent(task.domain, len(task.targets), task.lipschitz)
    trace = rt.make(plan, task.loss, on_steep="clip").observe_many(task.features, task.targets)
    return trace.decisions(), float(trace.total - float(trace.regret()))


def window_path(task: Task, window: int) -> np.ndarray:
    """Return the quantile of the last `window` values before every round, brought up to date 16 times a window."""
    path, level = np.empty((len(task.targets), 1)), getattr(task.loss, "tau", 0.5)
    path[:] = task.domain.center
    every = max(1, window // 16)
    for i in range(every, len(path), every):
        past = np.sort(task.targets[max(0, i - window) : i])
        path[i:, 0] = past[min(past.size - 1, math.ceil(level * past.size) - 1)]
    return np.clip(path, task.domain.center - task.domain.radius, task.domain.center + task.domain.radius)


def dead_band(task: Task, path: np.ndarray, width: float, most: int) -> tuple[float, int]:
    """Return loss and changes of going to where the path is once it is further away than a width."""
    at, x, lost, changes = 0, task.domain.center, 0.0, 0
    while changes < most:
        far = np.linalg.norm(path[at:] - x, axis=1) > width
        far[0] = False
        next_at = at + int(np.argmax(far))
        if next_at == at:
            break
        lost += task.total(x, at, next_at)
        at, x, changes = next_at, path[next_at], changes + 1
    wanted = int(bool((np.linalg.norm(path[at:] - x, axis=1) > width)[1:].any()))
    return lost + task.total(x, at, len(path)), changes + wanted


def cool_down(task: Task, path: np.ndarray, most: int) -> tuple[float, int]:
    """Return loss and changes of going to where the path is every T/(S + 1) rounds."""
    places = np.unique(np.linspace(0, len(path), most + 2).astype(int))
    starts = [task.domain.center, *[path[i] for i in places[1:-1]]]
    parts = zip(starts, places, places[1:], strict=False)
    return sum(task.total(x, a, b) for x, a, b in parts), len(places) - 2


def rules(task: Task, path: np.ndarray, most: int) -> dict[str, tuple[float, int]]:
    """Return the rules of thumb; what they follow is the better of descent and, on a line, the last window."""
    rounds = len(path)
    paths = [path] + ([window_path(task, max(8, rounds // most))] if task.domain.dim == 1 else [])
    size, found = task.domain.diameter, {}
    tuned = [dead_band(task, one, size * 2 ** (-k / 2), most) for one in paths for k in range(2, 22)]
    found[BAND] = min(run for run in tuned if run[1] <= most)
    plain = [dead_band(task, one, 0.05 * size, most) for one in paths]
    found[BAND_5] = min((lost, min(changes, most)) for lost, changes in plain)
    found[COOL] = min(cool_down(task, one, most) for one in paths)
    return found


def played(task: Task, one: Any) -> tuple[float, int, float]:
    """Return loss, changes and microseconds a round of one of our learners."""
    begin = time.perf_counter()
    trace = one.observe_many(task.features, task.targets)
    return trace.total, trace.switches, 1e6 * (time.perf_counter() - begin) / trace.rounds


def contest(quick: bool) -> dict[str, Any]:
    """Run all rules on all streams, at three numbers of changes."""
    rows = []
    for task in tasks(quick):
        T, goal = len(task.targets), (task.domain, len(task.targets), task.lipschitz)
        path, best = descent_path(task)
        never = task.total(task.domain.center, 0, T)
        margins = (path * task.features).sum(axis=1)
        free = float(task.loss.values([1.0], margins[:, None], task.targets).sum())
        for most in CHANGES:
            row: dict[str, Any] = {"stream": task.name, "rounds": T, "cap": most, "never": never / T, "best": best / T}
            row["unlimited"] = free / T
            runs: dict[str, tuple[float, float]] = dict(rules(task, path, most))
            ours = rt.lazy_learner(task.loss, task.domain, max_switches=most, horizon=T)
            lost, changes, micro = played(task, ours)
            runs[OURS], row["microseconds"] = (lost, changes), micro
            blocked = rt.planning.plan_descent(*goal, max_switches=most)
            runs[BLOCKED] = played(task, rt.make(blocked, task.loss, on_steep="clip"))[:2]
            lazy = rt.plan_lazy(*goal, most, hard=True)
            seeds = [played(task, rt.make(lazy, task.loss, s, on_steep="clip"))[:2] for s in SEEDS]
            runs[PCOMW] = tuple(np.mean(seeds, axis=0))
            for name, (lost, changes) in runs.items():
                row[name] = {
                    "regret": (lost - best) / T,
                    "changes": float(changes),
                    "share": 100 * (never - lost) / (never - min(best, free)),
                }
                assert changes <= most, (task.name, name, changes)
            rows.append(row)
            say(task.name, most, {name: round(row[name]["share"], 1) for name in RIVALS}, f"{micro:.1f} us")
    if not quick:
        draw(rows)
    return {"rows": rows}


# The picture and the report


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw calls with the threshold in play, and the mean share of the way at each number of changes."""
    from reticent._core._look import PALETTE, Style, styles
    from reticent._core._names import BUDGETED, INK, MUTED, PCOMW_LAZY

    values = calls()
    one = rt.lazy_learner(rt.Pinball(0.9), rt.Interval(0.0, 300.0), max_switches=50, horizon=values.size)
    trace = one.observe_many(np.ones(values.size), values)
    drawn = styles((BUDGETED, PCOMW_LAZY))
    # The rules of others are no systems of ours: they take the colours that are left.
    looks = {OURS: drawn[BUDGETED], BAND: Style(PALETTE[1], "s", ()), BAND_5: Style(PALETTE[6], "D", ())}
    looks |= {COOL: Style(PALETTE[5], "P", ()), BLOCKED: Style(INK, "v", ()), PCOMW: drawn[PCOMW_LAZY]}
    with drawing(PICTURES / "budget.png", 2, height=2.9) as (top, bottom):
        days = np.arange(values.size) / 288
        top.plot(days, values, ".", color=MUTED, markersize=1, alpha=0.3)
        top.plot([], [], ".", color=MUTED, label="calls in five minutes")
        edges = np.append(trace.starts, values.size) / 288
        words = f"target for nine in ten, {trace.switches} changes (cap 50)"
        top.stairs(trace.points[:, 0], edges, baseline=None, color=looks[OURS].colour, linewidth=1.8, zorder=3)
        top.plot([], [], color=looks[OURS].colour, label=words)
        top.set(xlabel="day", xlim=(0, 35), ylim=(0, 200), title="Five weeks of calls, fifty changes")
        for name, style in looks.items():
            means = [mean_share(rows, name, most) for most in CHANGES]
            width = {"linewidth": 2.2 if name == OURS else 1.2, "color": style.colour}
            bottom.plot(CHANGES, means, **width, **style.dots(), label=name)
        bottom.set(xscale="log", xlabel="changes allowed", title="Mean share of the way over all streams, percent")
        bottom.set_xticks(CHANGES, [str(most) for most in CHANGES])
        bottom.minorticks_off()


def mean_share(rows: list[dict[str, Any]], name: str, most: int) -> float:
    """Return the mean share of the way over all streams, each kept between -100 and 150."""
    return float(np.mean([np.clip(row[name]["share"], -100, 150) for row in rows if row["cap"] == most]))


ABOUT = """
# A budget of changes on real streams

Written by `bench/lazy_streams.py`, whose first lines say how constants were chosen: not on these streams. *Share*: of
the way from never moving (0) to the best fixed decision in hindsight or to plain descent with a change every round,
whichever lost less (100); means are of shares kept between -100 and 150.
No rule makes more changes than the cap. *By hindsight* is what nobody has: of twenty widths of the band the best that
kept the cap, and the better of two signals to follow (plain descent; on a line also the quantile of the last T/S
values). P-COMW's are means of three seeds; nothing else is random. *Unlimited* is plain descent, a change every round.
"""


def report(results: dict[str, Any]) -> str:
    """Return the report."""
    text = [ABOUT, facts_markdown(results["facts"])]
    if found := results.get("contest"):
        rows = found["rows"]
        means = [[str(most), *[figure(mean_share(rows, name, most)) for name in RIVALS]] for most in CHANGES]
        text += ["## Mean share of the way", table(["changes", *RIVALS], means, text=1)]
        shares = [
            [r["stream"], f"{r['rounds']:,}", str(r["cap"]), *[figure(r[name]["share"]) for name in RIVALS]]
            + [figure(100 * (r["never"] - r[name]) / (r["never"] - min(r["best"], r["unlimited"]))) for name in ENDS]
            for r in rows
        ]
        text += ["## Share of the way, in percent", table(["stream", "rounds", "cap", *RIVALS, *ENDS], shares, 3)]
        regrets = [
            [r["stream"], str(r["cap"]), *[figure(r[name]["regret"]) for name in RIVALS]]
            + [figure(x) for x in (r["unlimited"] - r["best"], r["never"] - r["best"], r["best"])]
            for r in rows
        ]
        heads = ["stream", "cap", *RIVALS, "unlimited", "never", "loss of the best fixed"]
        text += ["## Regret a round", table(heads, regrets, 2)]
        used = [
            [r["stream"], str(r["cap"]), *[figure(r[name]["changes"]) for name in RIVALS], figure(r["microseconds"])]
            for r in rows
        ]
        text += ["## Changes made", table(["stream", "cap", *RIVALS, "lazy_learner, us a round"], used, 2)]
    return "\n\n".join(part.strip() for part in text)


SECTIONS = {"contest": (contest, None)}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "few streams, and no picture").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy", "river", "statsmodels"], report)


if __name__ == "__main__":
    main()
