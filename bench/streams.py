"""Benchmark of P-COMW beside DP-FTRL and gradient descent on real streams: regret, switches, loss and accuracy.

python bench/streams.py [--quick] [--out bench/results/streams.md] [--only STREAM ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import reticent as rt
from _report import facts_markdown, run_sections, say, section_parser, table
from reticent.lab import Best, hindsight, streams, walk
from reticent.planning import plan_descent, plan_ftrl

Cell = dict[str, Any]

STREAMS = ("randhie", "randhie-visits", "fair", "phishing", "shuttle", "temperatures", "nyse_o")
EPSILONS, DELTA = (0.5, 1.0, 3.0), 1e-6
SEEDS, QUICK_SEEDS, QUICK_ROUNDS = 10, 2, 1000
OURS, BLOCKED = "P-COMW", "gradient descent in blocks"
PLAIN, STILL, BEST = "gradient descent", "never moves", "best fixed decision, in hindsight"
LAZY_FTRL = "DP-FTRL, as few switches"
PRIVATE = (OURS, "DP-FTRL", "DP-FTRL, tree noise", LAZY_FTRL)


# Runs


def contenders(stream: streams.Stream, epsilon: float) -> Iterator[tuple[str, Any]]:
    """Yield systems with their plans; those that change rarely on purpose may change as often as P-COMW expects to."""
    size = stream.domain, stream.rounds, stream.lipschitz
    goal = *size, epsilon, DELTA
    ours = rt.plan_private(*goal)
    changes = max(1, int(ours.expected_switches or 1))
    yield OURS, ours
    yield "DP-FTRL", plan_ftrl(*goal)
    yield "DP-FTRL, tree noise", plan_ftrl(*goal, noise="tree")
    yield LAZY_FTRL, plan_ftrl(*goal, max_switches=changes)
    yield BLOCKED, plan_descent(*size, max_switches=changes)


def row(system: str, epsilon: float | None, plan: Any, seeds: int, stream: streams.Stream, best: Best) -> Cell:
    """Run one system and return what its runs have in common; of a system that gave one up, only how many it did.

    The mean over those that came to an end would be over runs that found it easy.
    """
    runs, bound, rounds = [], plan.regret_bound / stream.rounds, stream.rounds
    for seed in range(seeds):
        with contextlib.suppress(rt.WorkLimitError):
            runs.append(walk(plan, stream, 1000 + seed, system=system))
    if len(runs) < seeds:
        return {"system": system, "epsilon": epsilon, "certificate": bound, "runs": seeds, "gave up": seeds - len(runs)}
    regrets = [one.total - best.value for one in runs]
    correct = [one.correct for one in runs if one.correct is not None]
    return {
        "system": system,
        "epsilon": epsilon,
        "certificate": bound,
        "regret": float(np.mean(regrets)) / rounds,
        "spread": float(np.std(regrets, ddof=1)) / rounds if len(runs) > 1 else None,
        "runs": len(runs),
        "switches": float(np.mean([one.switches for one in runs])),
        "loss": float(np.mean([one.total for one in runs])) / rounds,
        "accuracy": float(np.mean(correct)) / rounds if correct else None,
        "seconds": float(np.mean([one.seconds for one in runs])),
    }


def still(system: str, stream: streams.Stream, point: Any, best: Best) -> Cell:
    """Return what a decision that never changes suffers."""
    block = stream.block()
    losses = stream.loss.values(point, *block)
    accuracy = None  # nor does a decision at 0 have any: it predicts nothing
    if isinstance(stream.loss, rt.Logistic) and np.any(point):
        accuracy = float(np.mean(losses < np.log(2.0)))
    total = float(losses.sum())
    return {
        "system": system,
        "epsilon": None,
        "certificate": None,
        "regret": round((total - best.value) / stream.rounds, 12) + 0.0,  # the best has 0, not a rounding error
        "spread": None,
        "runs": 1,
        "switches": 0.0,
        "loss": total / stream.rounds,
        "accuracy": accuracy,
        "seconds": 0.0,
    }


def frequent(stream: streams.Stream) -> float | None:
    """Return how often the more frequent label is right; None where there are no labels."""
    if not isinstance(stream.loss, rt.Logistic):
        return None
    share = float(np.mean(stream.block()[1] > 0))
    return max(share, 1.0 - share)


def measured(name: str, quick: bool) -> Cell:
    """Run all systems on one stream."""
    stream = streams.get(name)
    stream = stream.head(min(QUICK_ROUNDS, stream.rounds)) if quick else stream
    best = hindsight(stream)
    found = []
    for epsilon in EPSILONS:
        for system, plan in contenders(stream, epsilon):
            # Only noise and draws depend on the seed: descent is the same every time.
            seeds = 1 if system == BLOCKED else QUICK_SEEDS if quick else SEEDS
            found.append(row(system, epsilon, plan, seeds, stream, best))
            say(f"{name}, epsilon {epsilon:g}, {system}: {found[-1].get('seconds', 0.0):.2f} s a run")
    plain = plan_descent(stream.domain, stream.rounds, stream.lipschitz)
    found.append(row(PLAIN, None, plain, 1, stream, best))
    found.append(still(STILL, stream, stream.domain.center, best))
    found.append(still(BEST, stream, best.point, best))
    return {
        "title": stream.title,
        "rounds": stream.rounds,
        "domain": repr(stream.domain),
        "loss": repr(stream.loss),
        "lipschitz": stream.lipschitz,
        "scaling": stream.scaling,
        "source": stream.source,
        "gap": best.gap / stream.rounds,
        "frequent": frequent(stream),
        "rows": found,
    }


# The report

ABOUT = f"""
# P-COMW beside other systems on real streams

Every stream is one of `reticent.lab.streams`, in one fixed order; each private system is planned for the whole of it
(delta = {DELTA:g}, replaced rounds, privacy against adaptive losses) and run with {SEEDS} seeds of its own randomness.
"regret" is per round, against the best fixed decision in hindsight, mean ± standard deviation over these seeds, which
says nothing of how another order of the rows would come out; "certificate" is what the plan promises of its expectation
in the worst case. "accuracy" is that of the decision in play on the next row. "{BLOCKED}" and
"{LAZY_FTRL}" may change as often as P-COMW expects to at that epsilon. Gradient descent, in blocks or
not, and the best fixed decision are not private. "{STILL}" stays at the centre of the domain, which needs no data and
is perfectly private. Losses, regret and accuracy are computed from the data and are NOT private.
""".strip()


def private_rows(found: Cell, epsilon: float) -> dict[str, Cell]:
    """Return the rows of the private systems at an epsilon, by system, without those that gave a run up."""
    rows = [r for r in found["rows"] if r["epsilon"] == epsilon and r["system"] in PRIVATE]
    return {r["system"]: r for r in rows if "regret" in r}


def row_of(found: Cell, system: str, epsilon: float | None = None) -> Cell:
    """Return the one row of a system."""
    return next(r for r in found["rows"] if r["system"] == system and r["epsilon"] == epsilon)


def clearly_below(a: Cell, b: Cell) -> bool:
    """Say whether the mean regret of `a` is below that of `b` by more than two standard errors of the difference."""
    error = np.sqrt(sum((one["spread"] or 0.0) ** 2 / one["runs"] for one in (a, b)))
    return bool(b["regret"] - a["regret"] > 2.0 * error)


def learnt(found: Cell, r: Cell) -> float:
    """Return how much of the way from never moving to the best fixed decision a system has gone, in percent."""
    return 100.0 * (1.0 - r["regret"] / row_of(found, STILL)["regret"])


def verdict(found: Cell, epsilon: float) -> list[str]:
    """Return a row of the summary: who is lowest, and how P-COMW stands beside the others."""
    rows = private_rows(found, epsilon)
    lowest = min(rows.values(), key=lambda r: r["regret"])
    first = [f"{epsilon:g}", lowest["system"], f"{learnt(found, lowest):.0f}%"]
    if OURS not in rows:
        gone = row_of(found, OURS, epsilon)
        return [*first, f"gave {gone['gave up']} of {gone['runs']} runs up", "-", "-"]
    ours = rows.pop(OURS)
    ahead = [name for name, r in rows.items() if clearly_below(r, ours)]
    behind = [name for name, r in rows.items() if clearly_below(ours, r)]
    return [*first, f"{learnt(found, ours):.0f}%", "; ".join(ahead) or "nobody", "; ".join(behind) or "nobody"]


def plainly(results: dict[str, Cell]) -> str:
    """Say in sentences, from the numbers, where P-COMW loses."""
    every = [(name, epsilon) for name in results for epsilon in EPSILONS]
    rows = {cell: private_rows(results[cell[0]], cell[1]) for cell in every}
    cells = [cell for cell in every if OURS in rows[cell]]
    lines = [f"Of {len(cells)} settings (streams times epsilon), by more than two standard errors:", ""]
    for rival in PRIVATE[1:]:
        pairs = [(cell, rows[cell][OURS], rows[cell][rival]) for cell in cells if rival in rows[cell]]
        lost = [cell for cell, ours, theirs in pairs if clearly_below(theirs, ours)]
        won = [cell for cell, ours, theirs in pairs if clearly_below(ours, theirs)]
        behind = np.mean([learnt(results[cell[0]], theirs) - learnt(results[cell[0]], o) for cell, o, theirs in pairs])
        more = np.median([theirs["switches"] / max(1.0, ours["switches"]) for _, ours, theirs in pairs])
        lines.append(
            f"- P-COMW has more regret than {rival} in {len(lost)} and less in {len(won)} ({_listed(won)}). On average "
            f"{rival} goes {behind:+.1f} points further of the way from never moving to the best fixed decision, and "
            f"changes {more:.1f} times as often (median)."
        )
    promise = [c for c in cells if min(rows[c].values(), key=lambda r: r["certificate"])["system"] == OURS]
    blocked = [c for c in cells if clearly_below(row_of(results[c[0]], BLOCKED, c[1]), rows[c][OURS])]
    idle = [c for c in cells if not clearly_below(rows[c][OURS], row_of(results[c[0]], STILL))]
    none = [c for c in every if not any(clearly_below(r, row_of(results[c[0]], STILL)) for r in rows[c].values())]
    gone = [cell for cell in every if OURS not in rows[cell]]
    lines += [
        f"- P-COMW has the lowest certificate of the private systems in {len(promise)}. What is promised in the worst "
        "case and what comes out on these streams are two things.",
        f"- Gradient descent in blocks, which is not private, has less regret with as many changes in {len(blocked)}.",
        f"- P-COMW is no better than a decision that never moves in {len(idle)}: {_listed(idle)}. No private "
        f"system is in {len(none)} of all {len(every)}: {_listed(none)}.",
        f"- P-COMW gave runs up (`WorkLimitError`) in {len(gone)} more, which count nowhere above: {_listed(gone)}.",
    ]
    return "\n".join(lines)


def _listed(cells: list[tuple[str, float]]) -> str:
    by: dict[str, list[str]] = {}
    for name, epsilon in cells:
        by.setdefault(name, []).append(f"{epsilon:g}")
    return "; ".join(f"{name} at {', '.join(found)}" for name, found in by.items()) or "none"


def laid_out(found: Cell) -> str:
    """Return the table of a stream."""
    lines = []
    order = [r for r in found["rows"] if r["epsilon"] is not None] + [r for r in found["rows"] if r["epsilon"] is None]
    seen = None
    for r in order:
        shown = "" if r["epsilon"] == seen else "-" if r["epsilon"] is None else f"{r['epsilon']:g}"
        seen = r["epsilon"]
        bound = "-" if r["certificate"] is None else f"{r['certificate']:.3g}"
        if "regret" not in r:
            lines.append([shown, r["system"], bound, f"gave {r['gave up']} of {r['runs']} runs up", "-", "-", "-"])
            continue
        spread = "" if r["spread"] is None else f" ± {r['spread']:.2g}"
        accuracy = "-" if r["accuracy"] is None else f"{100 * r['accuracy']:.1f}%"
        lines.append(
            [
                shown,
                r["system"],
                bound,
                f"{r['regret']:.4g}{spread}",
                f"{r['switches']:,.0f}",
                f"{r['loss']:.4g}",
                accuracy,
            ]
        )
    heads = ["epsilon", "system", "certificate", "regret", "switches", "mean loss", "accuracy"]
    return table(heads, lines, text=2)


def report(results: Cell) -> str:
    done = {name: results[name] for name in STREAMS if name in results}
    heads = ["stream", "epsilon", "least regret", "goes", "P-COMW goes", "clearly less regret than P-COMW"]
    heads += ["clearly more"]
    lines = []
    for name, found in done.items():
        for i, epsilon in enumerate(EPSILONS):
            lines.append([name if i == 0 else "", *verdict(found, epsilon)])
    parts = [ABOUT, facts_markdown(results["facts"]), "## Where P-COMW loses", plainly(done)]
    parts.append(table(heads, lines, text=len(heads)))
    parts.append('"goes": how much of the way from the loss of never moving to that of the best fixed decision.')
    for name, found in done.items():
        title = found["title"]
        about = (
            f"{title[0].upper()}{title[1:]}: {found['rounds']:,} rounds of `{found['loss']}` on `{found['domain']}`, "
            f"slopes up to {found['lipschitz']:g}. Source: {found['source']}. Scaling: {found['scaling']}. The best "
            f"fixed decision is known to within {found['gap']:.1g} a round."
        )
        if found["frequent"] is not None:
            about += f" The more frequent label is right in {100 * found['frequent']:.1f}% of the rounds."
        parts += [f"## {name}", about, laid_out(found)]
    return "\n\n".join(parts)


SECTIONS: dict[str, tuple[Callable[[bool], Any], Any]] = {name: (partial(measured, name), None) for name in STREAMS}


def main() -> None:
    warnings.simplefilter("ignore")  # plans for short streams are vacuous and say so; here they are measured
    args = section_parser(__doc__ or "", __file__, SECTIONS, f"{QUICK_ROUNDS} rounds and two seeds").parse_args()
    run_sections(args, SECTIONS, ("numpy", "numba", "scipy", "river", "statsmodels", "universal-portfolios"), report)


if __name__ == "__main__":
    main()
