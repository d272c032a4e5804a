"""What shards are worth: the same batches for one fleet, and for fleets on Ray, in SQLite; kills in between.

python bench/fleet_ray.py [--quick]

Every case begins anew, in a process of its own; the clock runs while batches are taken in.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reticent as rt
from _report import facts, facts_markdown, say, table, write
from fleet import SPECS, batches

RESULTS = Path(__file__).parent / "results" / "fleet_ray.md"
CASES = {
    "one fleet": (0, "fleet.db"),
    "1 shard": (1, "fleet.db"),
    "2 shards, one file": (2, "fleet.db"),
    "2 shards, a file each": (2, "fleet-{shard}.db"),
}
KILLED = " | killed"


def measured(case, keys, rows, size):
    """Run one case; return seconds for all batches, the slowest one, and a digest of what came of it."""
    kind = case.removesuffix(KILLED)
    shards, where = CASES[kind]
    spec = SPECS["rt.private_learner"]()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        store = Path(folder) / where
        fleet = rt.Fleet(spec, store, seed=1) if not shards else rt.fleet.on_ray(spec, store, shards=shards, seed=1)
        made, took = time.perf_counter() - begin, []
        for number, (named, values) in enumerate(batches(keys, rows, size)):
            if case != kind and number in (2, 4):
                os.kill(fleet.processes()[number % shards], signal.SIGKILL)
            begin = time.perf_counter()
            fleet.observe(named, np.ones(size), values, batch=("bench", number))
            took.append(time.perf_counter() - begin)
        every = np.arange(keys)
        begin = time.perf_counter()
        points = fleet.decisions(every)
        asked = time.perf_counter() - begin
        parts = (points, fleet.versions(every), fleet.rounds(every))
        digest = [hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in parts]
        fleet.close()
    return {"case": case, "made": made, "wall": sum(took), "slowest": max(took), "asked": asked, "digest": digest}


def in_a_process(case, quick):
    flags = ["--quick"] if quick else []
    ran = [sys.executable, __file__, "--case", case, *flags]
    done = subprocess.run(ran, stdout=subprocess.PIPE, text=True, check=True)
    # Ray tells of actors that were killed on the same stream.
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, nothing written")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    keys, rows, size = (2_000, 100_000, 10_000) if given.quick else (20_000, 2_000_000, 200_000)
    if given.case:
        print(json.dumps(measured(given.case, keys, rows, size)))
        return
    data = {"facts": facts(), "keys": keys, "rows": rows, "batch": size, "cases": []}
    for case in [*CASES, "2 shards, a file each" + KILLED]:
        say(case)
        data["cases"].append(in_a_process(case, given.quick))
    assert len({tuple(one["digest"]) for one in data["cases"]}) == 1, "decisions are not the same"
    text = report(data)
    print(text)
    if not given.quick:
        write(RESULTS, text, data)


def report(data):
    keys, rows, size = data["keys"], data["rows"], data["batch"]
    alone, lines = data["cases"][0]["wall"], []
    for one in data["cases"]:
        name = one["case"].replace(KILLED, ", an actor killed twice")
        speed = rows / one["wall"] / 1e3
        lines.append([name, one["made"], one["wall"], one["slowest"], speed, alone / one["wall"], 1e3 * one["asked"]])
    heads = [
        "",
        "s to begin",
        "s for all rows",
        "slowest batch, s",
        "1,000 rows/s",
        "speed to one fleet",
        "ms for all decisions",
    ]
    return (
        "# What shards are worth\n\n"
        f"`python bench/fleet_ray.py`: {rows:,} rows of {keys:,} keys in batches of {size:,}, by `rt.private_learner`, "
        f"on disk after every batch. {facts_markdown(data['facts'])}\n\n"
        + table(heads, lines, text=1)
        + "\n\nAll cases end with the same decisions, bit for bit. Seconds are by the clock, on a machine of two cores "
        "that others used at the same time. To begin, Ray is started, and the actors; the caller checks and divides "
        "all rows, in one process, before actors work. Writers of one SQLite file wait for one another. An actor that "
        "was killed is found missing by the next batch, which waits until another has opened the shard.\n"
    )


if __name__ == "__main__":
    main()
