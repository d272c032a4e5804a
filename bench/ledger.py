"""What a ledger costs: an entry, and the standing of ten thousand of them; beside it, composing them one by one.

python bench/ledger.py [--quick]
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import reticent as rt
from _report import facts, facts_markdown, say, table, write
from reticent.privacy import Cost

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "ledger"))
from test_ledger import filled

RESULTS = Path(__file__).parent / "results" / "ledger.md"
SIZES = (100, 1000, 10_000)


def few(rng, count):
    return [(Cost(epsilon=0.01), Cost(mu=0.02), Cost(epsilon=0.02), Cost(mu=0.015))[k % 4] for k in range(count)]


def gaussian(rng, count):
    return [Cost(mu=float(mu)) for mu in rng.uniform(0.001, 0.02, count)]


def different(rng, count):
    return [Cost(epsilon=float(epsilon)) for epsilon in rng.uniform(0.001, 0.02, count)]


KINDS = {
    "four kinds, pure and Gaussian": few,
    "Gaussian, all different": gaussian,
    "pure, all different": different,
}


def seconds(work, repeats=3):
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def one_by_one(costs):
    """Compose privacy loss distributions of single releases, as they come: what a naive ledger does."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = pld.identity()
    begin = time.perf_counter()
    for cost in costs:
        if cost.mu:
            part = pld.from_gaussian_mechanism(1 / cost.mu)
        else:
            part = pld.from_randomized_response(2 / (1 + np.exp(cost.epsilon)), 2)
        whole = whole.compose(part)
    whole.get_epsilon_for_delta(1e-6)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer entries, nothing written")
    quick = parser.parse_args().quick
    rng = np.random.default_rng(0)
    rows, data = [], {"facts": facts()}
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in KINDS.items():
            for size in SIZES[:2] if quick else SIZES:
                costs = kind(rng, size)
                ledger = filled(Path(folder) / f"{len(rows)}.db", costs)
                standing = ledger.standing("people")
                took = seconds(lambda ledger=ledger: ledger.standing("people"))
                naive = one_by_one(costs) if size == SIZES[0] else None
                verified = seconds(ledger.verify, 1)
                total = standing.total
                rows.append((name, size, took, total.compositions, total.epsilon, verified, naive))
                say(*rows[-1])
        ledger = rt.Ledger(Path(folder) / "fresh.db")
        ledger.add("people", 3.0, 1e-6)
        ledger.spend("people", Cost(mu=0.001))
        spend = float(np.median([seconds(lambda: ledger.spend("people", Cost(mu=0.001)), 1) for _ in range(50)]))
        last = filled(Path(folder) / "long.db", few(rng, SIZES[-1]))
        long = float(np.median([seconds(lambda: last.spend("people", Cost(mu=0.001)), 1) for _ in range(50)]))
    data |= {"standing": rows, "spend": spend, "spend_after_10000": long}
    heads = ["entries", "number", "standing, s", "compositions", "total epsilon", "verify, s", "one by one, s"]
    text = (
        "# What a ledger costs\n\n"
        f"`python bench/ledger.py`. {facts_markdown(data['facts'])}\n\n"
        "`standing` reads all entries from the disk and composes them (best of 3); `verify` goes through the chain. "
        '"One by one" composes the privacy loss distribution of every entry with those before it, as they come.\n\n'
        + table(heads, rows, text=1)
        + f"\n\nAn entry (`spend`, SQLite, on disk when it returns): {1000 * spend:.1f} ms in a new ledger, "
        f"{1000 * long:.1f} ms after 10,000 entries (medians of 50): most of it is the disk.\n"
    )
    if quick:
        print(text)
    else:
        write(RESULTS, text, data)


if __name__ == "__main__":
    main()
