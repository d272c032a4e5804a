"""Benchmark of private learners on ordinary streams: share of the way to the best decision, changes, time a round.

python bench/ordinary.py [--seeds 20] [--slow-seeds 4] [--out bench/results/ordinary.md] [--only STREAM ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from _ordinary import Problem, clipped_leader, correlated
from _report import facts, facts_markdown, say, table, write
from reticent.lab import streams
from reticent.planning import plan_descent, plan_ftrl
from reticent.privacy._losses import largest_mu

SIX = ("randhie", "randhie-visits", "fair", "phishing", "shuttle", "temperatures")
STREAMS = (*SIX, "nyse_o", "latency")
EPSILONS, DELTA = (0.5, 1.0, 3.0), 1e-6
OURS, PCOMW, NOISY, LEADER = "filtered gate (rt.private_learner)", "P-COMW", "noisy descent", "DP-FTRL as planned"
CLIPPED, G7 = "DP-FTRL for half the slope if smooth, half lam (peer)", "G7, fixed constants (peer)"
PRIVATE = (OURS, G7, CLIPPED, LEADER, NOISY, PCOMW)
PLAIN, CONSTANT = "gradient descent, not private", "best constant prediction, in hindsight"
LONG = 200_000  # rounds beyond which what is slow is left out

Play = Callable[[int], tuple[float, int]]


def contenders(problem: Problem, epsilon: float) -> Iterator[tuple[str, bool, Play]]:
    """Yield private systems: name, whether runs are slow, and what runs one with a seed."""
    size = problem.domain, problem.rounds, problem.lipschitz
    mu, goal = largest_mu(epsilon, DELTA), {"epsilon": epsilon, "delta": DELTA}

    def learner(plan: Any) -> Play:
        return lambda seed: problem.run(rt.make(plan, problem.loss, seed, on_steep="clip"))

    def front(seed: int) -> tuple[float, int]:
        scale = problem.lipschitz
        return problem.run(rt.private_learner(problem.loss, problem.domain, lipschitz=scale, seed=seed, **goal))

    leader = plan_ftrl(*size, epsilon, DELTA)
    yield OURS, False, front
    yield G7, False, lambda seed: correlated(problem, mu, np.random.default_rng(seed))
    clip = (0.5 if problem.smooth else 1.0) * problem.lipschitz
    gentle = plan_ftrl(problem.domain, problem.rounds, clip, epsilon, DELTA)
    yield CLIPPED, False, lambda seed: clipped_leader(problem, gentle, np.random.default_rng(seed))
    yield LEADER, False, learner(leader)
    yield NOISY, False, learner(plan_descent(problem.domain, None, problem.lipschitz, **goal))
    if problem.rounds <= LONG:
        yield PCOMW, True, learner(rt.plan_private(*size, epsilon, DELTA))


def measured(name: str, seeds: int, slow_seeds: int, kept: dict[str, Any], again: list[str]) -> dict[str, Any]:
    """Run all systems on one stream, or those named by `again`, where results of the others are `kept`."""
    stream = streams.get(name)
    problem = Problem(name, stream.domain, stream.loss, stream.lipschitz, stream.block())
    rows: list[Any] = []
    for epsilon in EPSILONS:
        for system, slow, play in contenders(problem, epsilon):
            if again and system not in again:
                rows.append(row_of(kept, system, epsilon))
                continue
            count = min(seeds, slow_seeds) if slow or problem.rounds > LONG else seeds
            begin = time.process_time()
            runs = [play(1000 + seed) for seed in range(count)]
            seconds = (time.process_time() - begin) / count
            shares = [problem.share(total) for total, _ in runs]
            rows.append(
                {
                    "system": system,
                    "epsilon": epsilon,
                    "share": float(np.mean(shares)),
                    "error": float(np.std(shares, ddof=1) / np.sqrt(count)) if count > 1 else None,
                    "regret": float(np.mean([total for total, _ in runs]) - problem.best) / problem.rounds,
                    "changes": float(np.mean([changes for _, changes in runs])),
                    "microseconds": 1e6 * seconds / problem.rounds,
                    "runs": count,
                }
            )
            say(f"{name}, epsilon {epsilon:g}, {system}: {rows[-1]['share']:.1f} ({rows[-1]['changes']:.0f})")
    plain = plan_descent(problem.domain, problem.rounds, problem.lipschitz)
    total, changes = problem.run(rt.make(plain, problem.loss, 0, on_steep="clip"))
    return {
        "rounds": problem.rounds,
        "domain": repr(problem.domain),
        "loss": repr(problem.loss),
        "still": problem.still / problem.rounds,
        "best": problem.best / problem.rounds,
        "constant": problem.constant(),
        "plain": {"share": problem.share(total), "changes": changes},
        "rows": rows,
    }


ABOUT = f"""
# Private learners on ordinary streams

Streams of `reticent.lab.streams` in one fixed order, delta = {DELTA:g}, replaced rounds. "Share of the way": how much
of the way from the loss of never moving (0) to that of the best fixed decision in hindsight (100) a run goes; streams
that drift allow more than 100, and means cap each stream at 100. Changes of decision in brackets. The filtered
gate and noisy descent are given no horizon; DP-FTRL and P-COMW are planned for the number of rounds. Peers are written
apart from the library (`bench/_ordinary.py`), with noise in floating point. Constants were chosen on other streams;
`bench/results/constants.md` says how, and how often whole choices were looked at here. "Microseconds": processor time a
round, of a whole run by `observe_many`, first compilations included. What is shown is computed from the data, and is
NOT private.
""".strip()


def row_of(found: dict[str, Any], system: str, epsilon: float) -> dict[str, Any] | None:
    return next((r for r in found["rows"] if r["system"] == system and r["epsilon"] == epsilon), None)


def report(results: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    done = {name: results[name] for name in STREAMS if name in results}
    six = [name for name in SIX if name in done]
    parts = [ABOUT, facts_markdown(results["facts"])]
    heads = ["system", *done, f"mean of {len(six)}, capped", "microseconds"]
    for epsilon in EPSILONS:
        lines = []
        for system in PRIVATE:
            rows = {name: row_of(found, system, epsilon) for name, found in done.items()}
            shown = [f"{r['share']:.1f} ({r['changes']:,.0f})" if r else "-" for r in rows.values()]
            capped = [min(100.0, r["share"]) for name in six if (r := rows[name]) is not None]
            mean = f"{np.mean(capped):.1f}" if capped else "-"
            costs = [r["microseconds"] for name in six if (r := rows[name]) is not None]
            lines.append([system, *shown, mean, f"{np.median(costs):.2f}" if costs else "-"])
        plain = [f"{f['plain']['share']:.1f} ({f['plain']['changes']:,})" for f in done.values()]
        lines.append([PLAIN, *plain, f"{np.mean([min(100, done[n]['plain']['share']) for n in six]):.1f}", "-"])
        still = [f"{f['constant']:.1f} (0)" if f["constant"] is not None else "-" for f in done.values()]
        lines += [[CONSTANT, *still, "-", "-"], ["never moves", *["0.0 (0)"] * len(done), "0.0", "-"]]
        parts += [f"## Epsilon {epsilon:g}", table(heads, lines, text=len(heads))]
    lines = []
    for name, f in done.items():
        seeds = next(r["runs"] for r in f["rows"] if r["system"] == OURS)
        losses = f"{f['still']:.4f}", f"{f['best']:.4f}"
        lines.append([name, f["loss"], f["domain"], f"{f['rounds']:,}", *losses, f"{seeds}"])
    facts_of = ["stream", "loss", "domain", "rounds", "loss of never moving", "of the best fixed", "seeds"]
    return "\n\n".join([*parts, "## The streams", table(facts_of, lines, text=3), "![shares](ordinary.png)"])


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw the shares at epsilon 1 as dots, a line for each stream."""
    from matplotlib.figure import Figure

    done = [name for name in STREAMS if name in results]
    picture = Figure(figsize=(8, 0.5 * len(done) + 1.6), layout="constrained")
    axes = picture.subplots()
    for system, marker in zip(PRIVATE, "oDsv^X", strict=True):
        rows = [row_of(results[name], system, 1.0) for name in done]
        shares = [max(0.0, r["share"]) if r else np.nan for r in rows]
        axes.plot(shares, range(len(done)), marker, label=system, alpha=0.8)
    axes.axvline(100, color="#575f68", linewidth=0.8)
    axes.set_yticks(range(len(done)), done)
    axes.invert_yaxis()
    axes.set_xlabel("share of the way from never moving to the best fixed decision, percent; epsilon 1")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    picture.savefig(path, dpi=130)


def main() -> None:
    warnings.simplefilter("ignore")  # plans for short streams are vacuous and say so; here they are measured
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--slow-seeds", type=int, default=4, help="for P-COMW, and for streams of a million rounds")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ordinary.md")
    parser.add_argument("--only", nargs="+", choices=STREAMS, help="streams to run again; others stay as they are")
    parser.add_argument("--systems", nargs="+", choices=PRIVATE, default=[], help="systems to run again; others stay")
    args = parser.parse_args()
    results: dict[str, Any] = {"facts": facts("numpy", "numba", "scipy")}
    kept = args.out.with_suffix(".json")
    if (args.only or args.systems) and kept.exists():
        results |= {name: found for name, found in json.loads(kept.read_text()).items() if name in STREAMS}
    for name in args.only or STREAMS:
        results[name] = measured(name, args.seeds, args.slow_seeds, results.get(name, {}), args.systems)
        write(args.out, report(results), results)
        draw(results, args.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
