"""Benchmark of compilation: CPU seconds by kind of learner, from an empty cache, as parts and in numba's own way.

python bench/warm.py [--out bench/results/warm.md] [--only KIND ...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _report import facts, facts_markdown, figure, say, table, write
from reticent.warming import KINDS

# In a process of its own for each kind, as someone meets it who uses that kind alone.
_CODE = """
import json, sys, time
from numba.core import event

class Clock(event.Listener):
    depth, total, count = 0, 0.0, 0
    def on_start(self, event):
        if self.depth == 0:
            self.begin = time.process_time()
        self.depth += 1
        self.count += 1
    def on_end(self, event):
        self.depth -= 1
        if self.depth == 0:
            self.total += time.process_time() - self.begin

clock = Clock()
event.register("numba:compile", clock)
import reticent as rt
rt.warm([sys.argv[1]])
print(json.dumps([clock.total, clock.count]))
"""


def seconds(kind: str, parts: bool) -> tuple[float, int]:
    """Return CPU seconds and functions compiled for one kind, from an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"NUMBA_CACHE_DIR": cache, "RETICENT_PARTS": "1" if parts else "0"}
        words = [sys.executable, "-c", _CODE, kind]
        done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True, text=True)
    total, count = json.loads(done.stdout)
    return total, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "warm.md")
    parser.add_argument("--only", nargs="+", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    rows, found = [], {}
    for kind in args.only:
        say(kind)
        own, count = seconds(kind, parts=True)
        plain, plain_count = seconds(kind, parts=False)
        found[kind] = {"seconds": own, "functions": count, "plain_seconds": plain, "plain_functions": plain_count}
        rows.append([KINDS[kind].title, f"`{kind}`", f"{own:.1f}", f"{plain:.1f}", figure(own / plain, 2)])
    known = facts("reticent", "numpy", "numba")
    text = f"""# What is compiled on first use

`python bench/warm.py`. {facts_markdown(known)}

CPU seconds that one kind of learner takes to compile from an empty cache, in a process of its own: every kernel lowered
once as a part and optimised where Python calls it, and, for comparison, in numba's own way (`RETICENT_PARTS=0`), which
optimises and translates every function with all that it calls. What is compiled is kept on disk.

{table(["learner", "kind", "seconds", "numba's own way", "ratio"], rows, text=2)}
"""
    write(args.out, text, {"facts": known, "kinds": found})


if __name__ == "__main__":
    main()
