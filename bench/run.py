"""`reticent run` on a large CSV file beside reading it with pandas in blocks: time as a ratio, and peak memory."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _report import facts, facts_markdown, say, table, write

MAKE = """
import sys
import numpy as np
import pyarrow as pa
from pyarrow import csv
path, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
with csv.CSVWriter(path, pa.schema([(name, pa.float64()) for name in "abc"] + [("y", pa.int64())])) as file:
    for first in range(0, rows, 1 << 20):
        count = min(1 << 20, rows - first)
        x = rng.uniform(-1, 1, size=(count, 3))
        y = (x @ [1.0, -0.5, 0.25] + 0.5 * rng.normal(size=count) > 0).astype(int)
        file.write_batch(pa.record_batch([*np.ascontiguousarray(x.T), y], names=["a", "b", "c", "y"]))
"""
READ = """
import sys
import pandas as pd
print(sum(len(part) for part in pd.read_csv(sys.argv[1], chunksize=65536)))
"""
SCORER = ["--features", "a,b,c", "--bounds", "a=-1:1,b=-1:1,c=-1:1", "--target", "y", "--loss", "logistic"]
QUANTILE = ["--target", "a", "--bounds", "a=-1:1", "--loss", "pinball:0.9"]
RUNS = {
    "logistic, d = 3, epsilon 1": [*SCORER, "--epsilon", "1"],
    "logistic, d = 3, epsilon 1, ball of radius 5": [*SCORER, "--epsilon", "1", "--domain", "ball:3:5"],
    "logistic, d = 3, 1000 switches": [*SCORER, "--max-switches", "1000"],
    "pinball, d = 1, epsilon 1": [*QUANTILE, "--epsilon", "1"],
    "pinball, d = 1, 1000 switches": [*QUANTILE, "--max-switches", "1000"],
    "logistic, d = 3, gradient descent (a decision a row)": SCORER,
}
LIMIT = 3.0
MEMORY = 1.5e9


def measured(words: list[str]) -> dict[str, float]:
    """Run a command; return its wall time, its processor time and its largest resident size."""
    begin = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    # Not process.wait(): only this call tells what this one child has used.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {said}")
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "bytes": 1024.0 * usage.ru_maxrss}


def pairs(path: Path, words: list[str], repeats: int) -> dict[str, Any]:
    """Run pandas and reticent back to back, some times; the best ratio counts, for others may be at work here."""
    command = [sys.executable, "-m", "reticent.cli", "run", str(path), "--out", os.devnull, "--quiet", *words]
    found = []
    for _ in range(repeats):
        read, run = measured([sys.executable, "-c", READ, str(path)]), measured(command)
        found.append({"pandas": read, "reticent": run})
        say(f"  {run['seconds'] / read['seconds']:.2f} times as long, {run['cpu'] / read['cpu']:.2f} times the work")
    return {
        "pairs": found,
        "ratio": min(pair["reticent"]["seconds"] / pair["pandas"]["seconds"] for pair in found),
        "cpu ratio": min(pair["reticent"]["cpu"] / pair["pandas"]["cpu"] for pair in found),
        "seconds": min(pair["reticent"]["seconds"] for pair in found),
        "pandas seconds": min(pair["pandas"]["seconds"] for pair in found),
        "bytes": max(pair["reticent"]["bytes"] for pair in found),
    }


def report(results: dict[str, Any]) -> str:
    rows = [
        [name, one["seconds"], one["pandas seconds"], one["ratio"], one["cpu ratio"], one["bytes"] / 1e6]
        for name, one in results["runs"].items()
    ]
    heads = ("run", "seconds", "pandas", "ratio", "ratio of processor time", "peak memory, MB")
    lines = [
        "# `reticent run` on a large file",
        facts_markdown(results["facts"]),
        f"A CSV file of {results['rows']:,} rows, 3 features and a label ({results['size'] / 1e6:,.0f} MB), through "
        "`reticent run`, decisions written, beside `pandas.read_csv(chunksize=65536)` on the same file. Both are "
        "processes of their own, their start and imports included, with warm caches; the ratio is the best of "
        f"{results['repeats']} pairs run back to back. Goals: a ratio of at most {LIMIT:g}, and less than "
        f"{MEMORY / 1e6:,.0f} MB.",
        table(heads, rows, text=1),
        "Private runs change their decision some 42,000 times here and look at 15,000 coins more, with 8 auxiliary "
        "draws each, in one compiled loop. Gradient descent writes a decision for every row: that is its time.",
    ]
    return "\n\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200,000 rows, one pair")
    parser.add_argument("--only", nargs="+", choices=RUNS, help="runs to do; others are left out")
    parser.add_argument("--repeats", type=int, default=3, help="pairs of each run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "run.md")
    args = parser.parse_args()
    rows, repeats = (200_000, 1) if args.quick else (5_000_000, args.repeats)
    results: dict[str, Any] = {"facts": facts("numpy", "numba", "pandas", "pyarrow"), "rows": rows, "repeats": repeats}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        subprocess.run([sys.executable, "-c", MAKE, str(path), str(rows)], check=True)
        results |= {"size": path.stat().st_size, "runs": {}}
        for name in args.only or RUNS:
            say(name)
            results["runs"][name] = pairs(path, RUNS[name], repeats)
            write(args.out, report(results), results)


if __name__ == "__main__":
    main()
