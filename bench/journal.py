"""What a journal costs: rounds per second with and without one, and what this disk takes to sync.

python bench/journal.py [FOLDER]      # the disk to measure, that of this script unless given
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

import json
import platform
import sqlite3
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reticent as rt

RESULTS = Path(__file__).parent / "results"
DIM, HORIZON, BATCH, LARGE = 10, 1_000_000, 1000, 10_000
REPEATS = 3
WAYS = {
    "rows": (60_000, f"`observe`, batch={BATCH}"),
    "prompt": (20_000, f"`observe`, batch={BATCH}, prompt"),
    "blocks": (200_000, f"`observe_many`, blocks of {BATCH}"),
    "large": (200_000, f"`observe_many`, blocks of {LARGE:,}"),
}


def streams():
    rng = np.random.default_rng(0)
    features = rng.uniform(-0.3, 0.3, size=(max(rounds for rounds, _ in WAYS.values()), DIM))
    labels = np.where(features[:, 0] + 0.1 * rng.normal(size=len(features)) > 0, 1.0, -1.0)
    slopes = features / np.linalg.norm(features, axis=1)[:, None]
    return {"logistic": (rt.Logistic(), (features, labels)), "linear": (rt.Linear(), (slopes,))}


def in_blocks(learner, data, rounds, size):
    for start in range(0, rounds, size):
        learner.observe_many(*(part[start : start + size] for part in data))


def in_rows(learner, data, rounds, size):
    for row in zip(*(part[:rounds] for part in data), strict=True):
        learner.observe(*row)


def timed(work, *given):
    begin = time.perf_counter()
    work(*given)
    return time.perf_counter() - begin


def sync_cost(folder):
    """Seconds for writing 100 kilobytes over others and syncing them, the median and the least of 200."""
    times = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        block = os.urandom(100_000)
        for _ in range(200):
            os.pwrite(file.fileno(), block, 0)
            times.append(timed(os.fdatasync, file.fileno()))
    return float(np.median(times)), min(times)


def measure(folder, loss, data, way):
    plan = rt.plan_private(rt.Ball(DIM), horizon=HORIZON, lipschitz=1.0, epsilon=1.0, delta=1e-6)
    rounds, _ = WAYS[way]
    work = in_rows if way in ("rows", "prompt") else in_blocks
    size = LARGE if way == "large" else BATCH
    bare, kept = [], []
    for repeat in range(REPEATS):
        learner = rt.PCOMW(plan, loss, seed=repeat)
        bare.append(timed(work, learner, data, rounds, size))
        with tempfile.TemporaryDirectory(dir=folder) as place:
            with rt.Journal(Path(place) / "journal", batch=BATCH, prompt=way == "prompt") as journal:
                durable = journal.start(plan, loss, seed=repeat)

                def run(durable=durable):
                    work(durable, data, rounds, size)
                    durable.flush()

                kept.append(timed(run))
                records = journal._store.head.records
                assert journal.acknowledged == rounds
            with rt.Journal(Path(place) / "journal") as journal:
                resumed = journal.resume()
                assert np.array_equal(resumed.decision, learner.decision)
            held = (Path(place) / "journal").stat().st_size
    ratios = [a / b for a, b in zip(bare, kept, strict=True)]
    return {
        "way": way,
        "rounds": rounds,
        "bare_per_second": rounds / float(np.median(bare)),
        "journal_per_second": rounds / float(np.median(kept)),
        "ratio": float(np.median(ratios)),
        "ratio_range": [min(ratios), max(ratios)],
        "records": records,
        "bytes_per_round": held / rounds,
    }


def one_by_one(folder, loss, data, rounds=2000):
    """A batch of 1: every round is synced by itself."""
    plan = rt.plan_private(rt.Ball(DIM), horizon=HORIZON, lipschitz=1.0, epsilon=1.0, delta=1e-6)
    with tempfile.TemporaryDirectory(dir=folder) as place, rt.Journal(Path(place) / "journal") as journal:
        durable = journal.start(plan, loss, seed=0)
        return rounds / timed(in_rows, durable, data, rounds, 1)


def table(found):
    lines = [
        "# What a journal costs",
        "",
        f"`python bench/journal.py`, P-COMW, private plan on the unit ball, d = {DIM}, horizon {HORIZON:,}, epsilon 1; "
        f"the median of {REPEATS} runs, rounds per second. The load of the machine was {found['load']:.1f} on "
        f"{found['cores']} cores.",
        "",
        f"The disk syncs 100 kB in {1e3 * found['sync_median']:.2f} ms (median; at best "
        f"{1e3 * found['sync_least']:.2f} ms): a commit costs one such sync, so this number decides.",
        "",
        "| loss | how rounds come | without | with a journal | ratio | lowest, highest | rounds per commit "
        "| bytes per round |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        low, high = row["ratio_range"]
        lines.append(
            f"| {row['loss']} | {WAYS[row['way']][1]} | {row['bare_per_second']:,.0f} | "
            f"{row['journal_per_second']:,.0f} | {row['ratio']:.0%} | {low:.0%}, {high:.0%} | "
            f"{row['rounds'] / row['records']:.0f} | "
            f"{row['bytes_per_round']:.0f} |"
        )
    lines += [
        "",
        f"With batch=1, a sync for each round: {found['one_by_one']:,.0f} rounds per second (logistic).",
        "",
        "A batch is written when it is full, and the decision stays until then; with `prompt=True` also where the "
        "decision may change, every hundred rounds or so here. Blocks of a linear loss are so cheap without a journal "
        "(a microsecond a round) that one sync for 1,000 rounds costs more than the rounds themselves.",
        "",
    ]
    return "\n".join(lines)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent
    median, least = sync_cost(folder)
    found = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "sync_median": median,
        "sync_least": least,
        "rows": [],
    }
    known = streams()
    for name, (loss, data) in known.items():
        rt.PCOMW(rt.plan_lazy(rt.Ball(DIM), 4000, 1.0, 400), loss, seed=0).observe_many(
            *(p[:3000] for p in data)
        )  # compile
        for way in WAYS:
            row = {"loss": name, **measure(folder, loss, data, way)}
            print(row, flush=True)
            found["rows"].append(row)
    found["one_by_one"] = one_by_one(folder, *known["logistic"])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "journal.json").write_text(json.dumps(found, indent=2) + "\n")
    (RESULTS / "journal.md").write_text(table(found))
    print(table(found))


if __name__ == "__main__":
    main()
