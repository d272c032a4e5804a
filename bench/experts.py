"""Private experts: doubling blocks beside the dartboard and DP-FTRL, on independent losses and on chosen ones.

python bench/experts.py [--quick] [--out bench/results/experts.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from typing import Any

import numpy as np

import reticent as rt
from _report import PICTURES, drawing, facts_markdown, figure, run_sections, say, section_parser, table

EXPERTS, DELTA, SEEDS = 10, 1e-6, range(10)
DOUBLING, DARTBOARD, DRAWN, STILL = "doubling experts", "private dartboard", "drawn from DP-FTRL", "one for ever"
SYSTEMS = (DOUBLING, DARTBOARD, DRAWN, STILL)


def independent(gap: float, rounds: int, seed: int) -> np.ndarray:
    """Return losses of 0 or 1, independent: one expert, drawn too, is better than the others by `gap`."""
    rng = np.random.default_rng([31, seed])
    chances = np.full(EXPERTS, 0.5)
    chances[rng.integers(EXPERTS)] -= gap
    return (rng.random((rounds, EXPERTS)) < chances).astype(float)


def against_blocks(rounds: int) -> np.ndarray:
    """Return losses made against doubling blocks: whoever was good in one is bad in the next."""
    block = np.log2(np.arange(1, rounds + 1)).astype(int)
    losses = np.zeros((rounds, EXPERTS))
    losses[:, ::2], losses[:, 1::2] = (block % 2 == 0)[:, None], (block % 2 == 1)[:, None]
    return losses


def turning(rounds: int, seed: int) -> np.ndarray:
    """Return independent losses whose best expert changes at 20 random times."""
    rng = np.random.default_rng([32, seed])
    starts = np.append(0, np.sort(rng.choice(rounds, 20, replace=False)))
    best = rng.integers(EXPERTS, size=21)[np.searchsorted(starts, np.arange(rounds), "right") - 1]
    chances = np.full((rounds, EXPERTS), 0.5)
    chances[np.arange(rounds), best] = 0.3
    return (rng.random((rounds, EXPERTS)) < chances).astype(float)


def contest(quick: bool) -> dict[str, Any]:
    """Run the systems on all streams."""
    rounds = 10_000 if quick else 100_000
    streams = {
        "independent, gap 0.3": lambda s: independent(0.3, rounds, s),
        "independent, gap 0.1": lambda s: independent(0.1, rounds, s),
        "independent, gap 0.02": lambda s: independent(0.02, rounds, s),
        "20 turns": lambda s: turning(rounds, s),
        "against the blocks": lambda _: against_blocks(rounds),
    }
    rows = []
    for epsilon in (0.3, 1.0, 3.0):
        goal = rt.Experts(EXPERTS), rounds, 1.0, epsilon
        plans = {
            DOUBLING: rt.planning.plan_doubling(rt.Experts(EXPERTS), None, 1.0, epsilon),
            DARTBOARD: rt.planning.plan_private_dartboard(*goal, DELTA),
            DRAWN: rt.planning.plan_drawn_leader(*goal, DELTA),
        }
        for name, make in streams.items():
            row: dict[str, Any] = {"stream": name, "epsilon": epsilon, "rounds": rounds}
            for system, plan in plans.items():
                runs = [rt.make(plan, rt.Linear(), s).observe_many(make(s)) for s in SEEDS]
                regrets = [float(run.regret()) for run in runs]
                changes = float(np.mean([run.switches for run in runs]))
                error = float(np.std(regrets, ddof=1) / len(regrets) ** 0.5)
                row[system] = {"regret": float(np.mean(regrets)), "error": error, "changes": changes}
            still = [float(losses[:, 0].sum() - losses.sum(axis=0).min()) for losses in map(make, SEEDS)]
            row[STILL] = {"regret": float(np.mean(still)), "changes": 0.0}
            rows.append(row)
            say(epsilon, name, {system: round(row[system]["regret"]) for system in SYSTEMS})
    if not quick:
        draw(rounds)
    return {"rounds": rounds, "rows": rows}


def draw(rounds: int) -> None:
    """Draw regret as rounds come, on independent losses and on those made against the blocks, at epsilon 1."""
    from reticent._core._look import counts, logarithmic, styles

    goal = rt.Experts(EXPERTS), rounds, 1.0, 1.0
    plans = {
        DOUBLING: rt.planning.plan_doubling(rt.Experts(EXPERTS), None, 1.0, 1.0),
        DARTBOARD: rt.planning.plan_private_dartboard(*goal, DELTA),
        DRAWN: rt.planning.plan_drawn_leader(*goal, DELTA),
    }
    drawn = styles(plan.system for plan in plans.values())
    places = np.unique(np.geomspace(1, rounds, 300).astype(int)) - 1
    cases = (("independent losses, gap 0.1", lambda s: independent(0.1, rounds, s)),)
    cases += (("losses made against the blocks", lambda _: against_blocks(rounds)),)
    with drawing(PICTURES / "experts.png", 2) as axes:
        for axis, (title, make) in zip(axes, cases, strict=True):
            for name, plan in plans.items():
                curves = []
                for seed in SEEDS:
                    losses = make(seed)
                    run = rt.make(plan, rt.Linear(), seed).observe_many(losses)
                    best = losses[:, int(losses.sum(axis=0).argmin())]
                    curves.append(np.cumsum(run.losses - best)[places])
                axis.plot(places + 1, np.mean(curves, axis=0), **drawn[plan.system].line(), label=name)
            axis.set_title(f"regret, mean of ten runs: {title}")
            logarithmic(axis.xaxis)
            counts(axis.yaxis)
        axes[-1].set_xlabel("rounds")


ABOUT = """
# Private experts

Written by `bench/experts.py`: {rounds:,} rounds, ten experts, losses 0 or 1, means of ten seeds (standard errors in the
numbers file). Doubling experts are pure (delta = 0) and know no horizon; the others have delta = 1e-6 and were planned
for this one. *One for ever* is the first expert, never another. Losses of the last stream are made against doubling
blocks.
"""


def report(results: dict[str, Any]) -> str:
    """Return the report."""
    found = results["contest"]
    rows = [
        [f"{r['epsilon']:g}", r["stream"], *[figure(r[name]["regret"]) for name in SYSTEMS]]
        + [figure(r[name]["changes"]) for name in SYSTEMS[:-1]]
        for r in found["rows"]
    ]
    heads = ["epsilon", "stream", *[f"regret, {name}" for name in SYSTEMS], *[f"changes, {n}" for n in SYSTEMS[:-1]]]
    parts = [ABOUT.format(**found), facts_markdown(results["facts"]), table(heads, rows, text=2)]
    return "\n\n".join(part.strip() for part in parts)


SECTIONS = {"contest": (contest, None)}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "short streams, and no picture").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy", "numba"], report)


if __name__ == "__main__":
    main()
