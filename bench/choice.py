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
PRIVATE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
OBLIVIOUS = PRIVATE | {"adversary": "oblivious"}
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
    # Those that took longest among hundreds of goals at random.
    (rt.Box([-1.0] * 8, [1.0] * 8), 217, rt.Squared(), OBLIVIOUS | {"max_switches": 6, "smoothness": 1.0}),
    (rt.Ball(1), 5_900_000, rt.Hinge(), OBLIVIOUS | {"max_switches": 2}),
    (rt.Ball(300), 10**9, rt.Logistic(), OBLIVIOUS | {"max_switches": 1000}),
    # Those where failures of draws take most of delta.
    (rt.Simplex(3), 11_347_206, rt.Linear(), {"epsilon": 0.0267, "delta": 4.73e-12, "adversary": "oblivious"}),
    (rt.Simplex(20), 10**5, rt.Linear(), {"epsilon": 20.0, "delta": 1e-10, "adversary": "oblivious"}),
]


def measure() -> list[dict[str, Any]]:
    """Return, for every goal, the seconds of its first comparison in a process that has answered one much like it."""
    found = []
    for domain, horizon, loss, goal in GOALS:
        rt.compare_plans(domain, horizon, 1.0, loss, **goal)
        # Plans of the same goal are kept: a little more epsilon, or another slope, is a goal never asked before.
        slope, asked = (1.0, goal | {"epsilon": goal["epsilon"] * 1.0001}) if "epsilon" in goal else (1.01, goal)
        start, busy = time.perf_counter(), time.process_time()
        compared = rt.compare_plans(domain, horizon, slope, loss, **asked)
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
    said = (
        f"{len(found) - slow} of {len(found)} goals take {WANTED:g} seconds of one core or less when asked for the "
        "first time, kernels compiled."
    )
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
