"""How long `compare_plans` takes, once compiled, for goals of different kinds: below three seconds each is wanted.

python bench/choice.py [--out bench/results/choice.md]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import time
from pathlib import Path
from typing import Any

import reticent as rt
from _report import facts, facts_markdown, say, table, write

WANTED = 3.0  # seconds
PRIVATE = {"epsilon": 1.0, "delta": 1e-6}
GOALS: list[tuple[rt.domains.Domain, int, rt.losses.Loss, dict[str, Any]]] = [
    (rt.Ball(10), 10**6, rt.Hinge(), PRIVATE),
    (rt.Ball(10), 10**6, rt.Logistic(), PRIVATE | {"adversary": "oblivious"}),
    (rt.Ball(3), 10**5, rt.Linear(), PRIVATE | {"neighbors": "zero-out"}),
    (rt.Ball(1), 10**5, rt.Linear(), {"epsilon": 10.0, "delta": 1e-6, "max_switches": 316}),
    (rt.Interval(0.0, 1.0), 10**6, rt.Pinball(0.95), {"epsilon": 0.1, "delta": 1e-8}),
    (rt.Box([-1.0] * 5, [1.0] * 5), 10**4, rt.Squared(), PRIVATE),
    (rt.Interval(0.0, 1.0), 10**6, rt.Squared(), {"max_switches": 200, "strong_convexity": 0.9, "smoothness": 1.0}),
    (rt.Simplex(4), 10**4, rt.Linear(), {"max_switches": 100}),
    (rt.Simplex(4), 10**6, rt.Linear(), {"epsilon": 10.0, "delta": 1e-6, "adversary": "oblivious"}),
    (rt.Simplex(6), 2_700_000, rt.Hinge(), PRIVATE | {"neighbors": "zero-out", "adversary": "oblivious"}),
    (rt.Ball(100), 10**6, rt.Logistic(), {"max_switches": 1000}),
    (rt.Ball(100), 10**5, rt.Logistic(), PRIVATE | {"max_switches": 3000, "adversary": "oblivious"}),
    (rt.Experts(10), 10**6, rt.Linear(), PRIVATE),
    (rt.Experts(3), 10**5, rt.Linear(), {"max_switches": 500}),
]


def measure() -> list[dict[str, Any]]:
    """Return, for every goal, the seconds of a second comparison that finds nothing planned before but kernels."""
    found = []
    for domain, horizon, loss, goal in GOALS:
        rt.compare_plans(domain, horizon, 1.0, loss, **goal)
        start, busy = time.perf_counter(), time.process_time()
        # Another slope is another goal for every search and cache, and no harder.
        compared = rt.compare_plans(domain, horizon, 1.01, loss, **goal)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        best = compared.offers[0]
        words = ", ".join(f"{name} {value}" for name, value in goal.items())
        said = f"{horizon:,} rounds of {loss!r} on {domain!r}: {words}"
        times = {"seconds": seconds, "busy": busy}
        found.append({"goal": said, "offers": len(compared.offers), "best": best.system} | times)
        say(f"{seconds:6.2f} s ({busy:.2f} busy)  {found[-1]['goal']}")
    return found


def main() -> None:
    """Measure, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "choice.md")
    out = parser.parse_args().out
    found = measure()
    slow = sum(one["busy"] > WANTED for one in found)
    rows = [
        [one["goal"], f"{one['seconds']:.2f}", f"{one['busy']:.2f}", str(one["offers"]), one["best"]] for one in found
    ]
    said = f"{len(found) - slow} of {len(found)} goals take {WANTED:g} seconds of one core or less, kernels compiled."
    page = [
        "# Choosing a plan",
        "",
        said,
        "",
        table(["goal", "seconds", "of one core", "offers", "lowest certificate"], rows),
        "",
    ]
    about = facts("numpy", "scipy")
    write(out, "\n".join([*page, facts_markdown(about)]), {"goals": found, "facts": about})


if __name__ == "__main__":
    main()
