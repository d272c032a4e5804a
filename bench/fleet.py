"""What a fleet costs: 100,000 keys made and 10 million rows observed, beside a plain NumPy loop over grouped rows.

python bench/fleet.py [--quick]

Every case runs in a process of its own, for its memory; rows come in batches of a million, the same for all.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reticent as rt
from _report import facts, facts_markdown, peak_memory, say, table, write
from reticent.fleet import Fleet, Spec

RESULTS = Path(__file__).parent / "results" / "fleet.md"
LOW, HIGH, LEVEL = 0.0, 60.0, 0.9
SINGLE = 200  # single learners that are timed, for one each of all keys

SPECS = {
    "rt.private_learner": lambda: Spec(
        rt.private_learner, rt.Pinball(LEVEL), rt.Interval(LOW, HIGH), epsilon=1.0, delta=1e-6
    ),
    "noisy descent": lambda: Spec(
        rt.make,
        rt.planning.plan_descent(rt.Interval(LOW, HIGH), None, LEVEL, epsilon=1.0, delta=1e-6),
        rt.Pinball(LEVEL),
    ),
    "rt.PrivateQuantile": lambda: Spec(rt.PrivateQuantile, LEVEL, LOW, HIGH, epsilon=1.0, window=50),
    "rt.PrivateMean": lambda: Spec(rt.PrivateMean, LOW, HIGH, epsilon=1.0, window=50),
}


def batches(keys, rows, size):
    """Yield keys and values, a batch at a time: the same in every process."""
    rng = np.random.default_rng(0)
    scale = rng.uniform(2.0, 10.0, keys)
    for _ in range(0, rows, size):
        named = rng.integers(0, keys, size)
        yield named, rng.exponential(scale[named])


class Plain:
    """Subgradient descent for every key, no privacy: rows are grouped, and a loop goes over the groups."""

    def __init__(self, keys):
        self.points, self.counts = np.full(keys, (LOW + HIGH) / 2), np.zeros(keys)

    def observe(self, named, values):
        order = np.argsort(named, kind="stable")
        ranked, mine = named[order], values[order]
        cuts = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
        for key, rows in zip(ranked[np.r_[0, cuts]].tolist(), np.split(mine, cuts), strict=True):
            slope = (rows < self.points[key]).sum() - LEVEL * len(rows)
            self.counts[key] += len(rows)
            step = (HIGH - LOW) / np.sqrt(self.counts[key]) / len(rows)
            self.points[key] = min(max(self.points[key] - step * slope, LOW), HIGH)


class Grouped(Plain):
    """The same without a loop: sums by np.add.reduceat."""

    def observe(self, named, values):
        order = np.argsort(named, kind="stable")
        ranked, mine = named[order], values[order]
        starts = np.r_[0, np.flatnonzero(ranked[1:] != ranked[:-1]) + 1]
        keys, sizes = ranked[starts], np.diff(np.r_[starts, len(ranked)])
        slopes = np.add.reduceat((mine < self.points[ranked]) - LEVEL, starts)
        self.counts[keys] += sizes
        step = (HIGH - LOW) / np.sqrt(self.counts[keys]) / sizes
        self.points[keys] = np.clip(self.points[keys] - step * slopes, LOW, HIGH)


def measured(case, keys, rows, size):
    """Run one case; return seconds, of the processor too, and memory."""
    kind, _, where = case.partition(" | ")
    started = peak_memory()
    found, making = {"case": case, "made": None, "bytes": None}, 0.0
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "fleet.db" if where == "SQLite" else None
        if kind in SPECS:
            spec = SPECS[kind]()
            begin, used = time.perf_counter(), time.process_time()
            fleet = Fleet(spec, store, resident=keys)
            ones = np.arange(keys)
            columns = (np.full(keys, LEVEL),) if spec.loss is None else (np.ones(keys), np.full(keys, LEVEL))
            fleet.observe(ones, *columns)  # every key is made by its first row
            found["made"], making = time.perf_counter() - begin, time.process_time() - used
            give = (lambda named, y: fleet.observe(named, y)) if spec.loss is None else (
                lambda named, y: fleet.observe(named, np.ones(len(y)), y)
            )  # fmt: skip
        else:
            give = (Plain if kind == "plain loop" else Grouped)(keys).observe
        wall, processor = found["made"] or 0.0, making
        for named, values in batches(keys, rows, size):
            begin, used = time.perf_counter(), time.process_time()
            give(named, values)
            wall, processor = wall + time.perf_counter() - begin, processor + time.process_time() - used
        if store is not None:
            found["bytes"] = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {**found, "wall": wall, "processor": processor, "peak": peak_memory() / 1e6, "start": started / 1e6}


def alone(keys, rows, size):
    """Return the seconds that one object for each key would take, from a few of them."""
    spec = SPECS["rt.private_learner"]()
    learners = {key: spec.new() for key in range(SINGLE)}
    given, took = 0, 0.0
    for named, values in batches(keys, rows, size):
        for key, learner in learners.items():
            mine = values[named == key]
            if mine.size:
                begin = time.perf_counter()
                learner.observe_many(np.ones(mine.size), mine)
                took, given = took + time.perf_counter() - begin, given + mine.size
    return took / given * rows


def in_a_process(case, quick):
    flags = ["--quick"] if quick else []
    done = subprocess.run(
        [sys.executable, __file__, "--case", case, *flags], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the work, nothing written")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    keys, rows, size = (1_000, 100_000, 10_000) if given.quick else (100_000, 10_000_000, 1_000_000)
    if given.case == "alone":
        print(json.dumps({"wall": alone(keys, rows, size)}))
        return
    if given.case:
        print(json.dumps(measured(given.case, keys, rows, size)))
        return
    data = {"facts": facts(), "keys": keys, "rows": rows, "batch": size, "cases": []}
    cases = ["plain loop", "plain, grouped", *(f"{name} | memory" for name in SPECS), "rt.private_learner | SQLite"]
    for case in cases:
        say(case)
        data["cases"].append(in_a_process(case, given.quick))
    say("single learners")
    data["alone"] = in_a_process("alone", given.quick)["wall"]
    text = report(data)
    print(text)
    if not given.quick:
        write(RESULTS, text, data)


def report(data):
    keys, rows, size = data["keys"], data["rows"], data["batch"]
    loop, lines = data["cases"][0], []
    for one in data["cases"]:
        made = None if one["made"] is None else 1e6 * one["made"] / keys
        ratio, grown = one["processor"] / loop["processor"], 1000 * (one["peak"] - one["start"]) / keys
        name = one["case"].replace(" |", ",")
        lines.append([name, made, one["wall"], one["processor"], ratio, one["peak"], grown])
    heads = ["", "us to make a key", "seconds", "of the processor", "ratio to the loop", "peak MB", "KB a key"]
    store = next(one for one in data["cases"] if one["bytes"])
    return (
        "# What a fleet costs\n\n"
        f"`python bench/fleet.py`: {keys:,} keys made and {rows:,} rows observed, in batches of {size:,} rows of "
        f"random keys, each case in a process of its own. {facts_markdown(data['facts'])}\n\n"
        + table(heads, lines, text=1)
        + "\n\nThe plain loop groups the rows of a batch and makes a step of subgradient descent for each key, in a "
        'Python loop over groups, without privacy; "plain, grouped" is the same without a loop. "Seconds" are by the '
        "clock, all keys and rows together, on a machine that others used at the same time; those of the processor, of "
        "which ratios are made, are disturbed less. Memory is that of the whole process, with a batch of rows in it; "
        "per key, what it grew by. Windows of the trackers have 50 values.\n\n"
        f"In SQLite a key takes {store['bytes'] / keys / 1000:.2g} KB with its history, on disk after every batch: "
        f"{rows // size} times the states of nearly all keys. One learner object for each key would take "
        f"{data['alone']:,.0f} s for the same rows in memory, by {SINGLE} of them that were timed.\n"
    )


if __name__ == "__main__":
    main()
