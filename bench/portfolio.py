"""Benchmark of the lazy portfolio: wealth net of costs on nyse_o beside what needs no learner and universal portfolios.

python bench/portfolio.py [--quick] [--out bench/results/portfolio.md] [--only SECTION ...] [--picture PNG]

The peers are in universal-portfolios, which needs six but does not say so.
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from _report import facts_markdown, figure, run_sections, say, section_parser, table
from reticent.lab import portfolio as pf
from reticent.lab.streams import relatives

Cell = dict[str, Any]

COSTS = (0, 10, 50)  # basis points
SWITCHES = (10, 30, 100, 300, 1000)
FEW = 5  # assets of the small setting: the first columns of the file, so that no hindsight chooses them
# The limit on a day's slope, chosen with these data in view (prices are public): few days are steeper. Moves of 4
# percent against each other, of 36 shares, make 0.24.
SLOPE = 0.25
CONCAVITY = (
    0.4  # 1 / 1.58^2: no residual of a round is beyond that once moves are cut at 30 percent and slopes at SLOPE
)
YEAR = 5651 / 22  # trading days, as in these data
DESCENT, LEADER, NEWTON = "online gradient descent", "FTRL", "online Newton step"
PCOMW, LAZY_LEADER, ONE_STOCK = (
    "P-COMW, lazy",
    "lazy perturbed leader (Sherman, Koren)",
    "follow the lazy leader (FLL)",
)


# Measuring


def market(assets: int, quick: bool) -> np.ndarray:
    """Return the price relatives of the first assets."""
    return relatives("nyse_o")[2][: 500 if quick else None, :assets]


def row(name: str, moves: np.ndarray, targets: Sequence[Any], rebalance: Sequence[str | int], **facts: Any) -> Cell:
    """Return the final wealth at all costs of each list of targets (one for each seed), rebalanced in these ways."""
    found: Cell = {"name": name, "runs": len(targets), **facts}
    for way in rebalance:
        outcomes = [[pf.wealth(moves, one, cost, way) for cost in COSTS] for one in targets]
        found[str(way)] = {
            "final": [[outcome.final for outcome in over] for over in zip(*outcomes, strict=True)],
            "trades": [over[0].trades for over in outcomes],
            "turnover": [over[0].turnover for over in outcomes],
        }
    say(f"  {name} {facts.get('S', '')}: {[figure(float(np.median(x))) for x in found[str(rebalance[0])]['final']]}")
    return found


def references(moves: np.ndarray) -> list[Cell]:
    """Return what needs no learner."""
    best, uniform = pf.best_constant(moves), np.full(moves.shape[1], 1 / moves.shape[1])
    stock = np.eye(moves.shape[1])[np.argmax(np.log(moves).sum(axis=0))]
    return [
        row("uniform, rebalanced daily", moves, [uniform], ["daily"]),
        *[row(f"uniform, rebalanced every {k} days", moves, [uniform], [k]) for k in (5, 21, 63, 252)],
        row("uniform, bought and held", moves, [uniform], ["on change"]),
        row("best stock (hindsight)", moves, [stock], ["on change"]),
        row("best constant portfolio, daily (hindsight)", moves, [best.portfolio], ["daily"], gap=best.gap),
    ]


def learned(moves: np.ndarray, system: str, S: int | None, slope: float, seeds: int, linear: bool = False) -> Cell:
    """Run one system of the library with several seeds."""
    T, assets = moves.shape
    loss = rt.Linear() if linear else rt.Squared()
    features, targets = pf.rounds(moves)
    data = (-features,) if linear else (features, targets)
    offers = rt.compare_plans(
        rt.Simplex(assets), T, slope, loss, max_switches=S, exp_concavity=None if linear else CONCAVITY
    )
    plan = offers[system].plan
    assert plan is not None, f"{system}: {offers[system].reason}"
    begin = time.perf_counter()
    traces = [rt.make(plan, loss, seed=seed, on_steep="clip").observe_many(*data) for seed in range(seeds)]
    return row(
        system,
        moves,
        traces,
        ["on change", "daily"],
        S=S,
        slope=slope,
        loss="linear" if linear else "squared",
        bound=plan.regret_bound,
        switches=[trace.switches for trace in traces],
        spread=[float(np.mean(1 / np.square(trace.points).sum(axis=1))) for trace in traces],
        seconds=(time.perf_counter() - begin) / seeds,
    )


def learners(moves: np.ndarray, seeds: int) -> list[Cell]:
    """Run all systems that apply, lazy ones for every number of changes."""
    full = pf.lipschitz(moves.shape[1])
    return [
        *[learned(moves, PCOMW, S, SLOPE, seeds) for S in SWITCHES],
        learned(moves, PCOMW, 100, full, seeds),
        *[learned(moves, DESCENT, S, SLOPE, 1) for S in SWITCHES],
        learned(moves, DESCENT, 100, full, 1),
        *[learned(moves, LAZY_LEADER, S, SLOPE, 4 * seeds, linear=True) for S in SWITCHES],
        *[learned(moves, ONE_STOCK, S, SLOPE, 4 * seeds, linear=True) for S in (30, 300)],
        *[learned(moves, system, None, SLOPE, 1) for system in (DESCENT, LEADER, NEWTON)],
    ]


def clipped(moves: np.ndarray) -> float:
    """Return the part of the days that the limit SLOPE scales down."""
    # As the library measures slopes: margins bounded by the ball around the simplex.
    features, _ = pf.rounds(moves)
    middle = features.mean(axis=1)
    size = np.linalg.norm(features - middle[:, None], axis=1)
    return float(np.mean(size * (np.abs(middle - 1) + size * rt.Simplex(moves.shape[1]).radius) > SLOPE))


def years_needed(moves: np.ndarray, advantage: float) -> float:
    """Return a number of years after which the certificate of daily gradient descent is still above an advantage."""
    days = 1000
    while rt.planning.plan_descent(rt.Simplex(moves.shape[1]), days, SLOPE).regret_bound > advantage * days:
        days *= 2
    return days / 2 / YEAR


def run_setting(assets: int, seeds: int, quick: bool) -> Cell:
    """Return everything about one market."""
    moves = market(assets, quick)
    uniform, best = float(np.log(moves.mean(axis=1)).sum()), pf.best_constant(moves).log_wealth
    return {
        "assets": assets,
        "days": len(moves),
        "clipped": clipped(moves),
        "log uniform": uniform,
        "log best": best,
        "years": years_needed(moves, (best - uniform) / len(moves)),
        "full slope": pf.lipschitz(assets),
        "references": references(moves),
        "learners": learners(moves, seeds),
    }


def run_all(quick: bool) -> Cell:
    """Measure on all 36 shares."""
    return run_setting(36, 2 if quick else 5, quick)


def run_few(quick: bool) -> Cell:
    """Measure on the first few shares."""
    return run_setting(FEW, 2 if quick else 5, quick)


def run_peers(quick: bool) -> list[Cell]:
    """Take the weights of universal-portfolios' algorithms, every day, at their default settings."""
    import pandas as pd
    from universal import algos

    moves = market(36, quick)
    frame = pd.DataFrame(moves)
    found = []
    for name, algorithm, seeds in (
        ("UP (Cover), 10 000 sampled portfolios", algos.UP(eval_points=10_000), 1 if quick else 3),
        ("EG (Helmbold et al.), eta 0.05", algos.EG(), 1),
        ("ONS (Agarwal et al.)", algos.ONS(), 1),
        ("Anticor (Borodin et al.), window 30", algos.Anticor(30, c_version=False), 1),
        ("PAMR (Li et al.)", algos.PAMR(), 1),
    ):
        begin = time.perf_counter()
        weights = []
        for seed in range(seeds):
            np.random.seed(seed)  # noqa: NPY002 (the package draws from numpy's global generator)
            more = {} if "Anticor" in name else {"log_progress": False}
            made = np.maximum(np.asarray(algorithm.weights(frame, **more), dtype=float), 0.0)  # solvers leave -1e-9
            weights.append(made / made.sum(axis=1, keepdims=True))
        seconds = (time.perf_counter() - begin) / seeds
        found.append(row(name, moves, weights, ["daily"], seconds=seconds))
    return found


# Reporting


def spread(values: Sequence[float]) -> str:
    """Return the median of the seeds, with the range where there are several."""
    middle = figure(float(np.median(values)))
    return middle if len(values) == 1 else f"{middle} ({figure(min(values))} to {figure(max(values))})"


def outcome(cell: Cell, way: str) -> list[str]:
    """Return traded days, turnover and the final wealths of a row."""
    found = cell[way]
    trades, turnover = float(np.median(found["trades"])), float(np.median(found["turnover"]))
    return [figure(trades), figure(turnover), *[spread(values) for values in found["final"]]]


HEADS = ["days with a trade", "turnover", *[f"{cost} bp" for cost in COSTS]]


def ways(cell: Cell) -> list[str]:
    """Return the ways of rebalancing that were measured."""
    return [way for way, value in cell.items() if isinstance(value, dict) and "final" in value]


def plain_table(cells: list[Cell]) -> str:
    """Return the table of portfolios without a certificate."""
    return table(["portfolio", *HEADS], [[c["name"], *outcome(c, ways(c)[0])] for c in cells], text=1)


def learner_table(cells: list[Cell], way: str) -> str:
    """Return the table of the library's systems under one reading of their decisions."""
    heads = ["system", "loss", "slope", "S", "certificate", "changes", "assets held", *HEADS]
    rows = [
        [c["name"], c["loss"], figure(c["slope"]), "any" if c["S"] is None else figure(c["S"]), figure(c["bound"]),
         figure(float(np.mean(c["switches"]))), figure(float(np.mean(c["spread"]))), *outcome(c, way)]
        for c in cells
    ]  # fmt: skip
    return table(heads, rows, text=2)


def final(cells: list[Cell], name: str, cost: int) -> float:
    """Return the median final wealth of the row of this name."""
    cell = next(c for c in cells if c["name"] == name)
    return float(np.median(cell[ways(cell)[0]]["final"][COSTS.index(cost)]))


def count_above(cells: list[Cell], system: str, cost: int, level: float) -> str:
    """Say how many rows of a lazy system, traded on change, end above a level."""
    mine = [c for c in cells if c["name"] == system and c["S"] is not None and c["slope"] == SLOPE]
    better = [c for c in mine if np.median(c["on change"]["final"][COSTS.index(cost)]) > level]
    return f"{len(better)} of {len(mine)}"


def setting_markdown(found: Cell) -> str:
    """Return the section of one market."""
    plain, cells = found["references"], found["learners"]
    daily = {cost: final(plain, "uniform, rebalanced daily", cost) for cost in COSTS}
    held = {cost: final(plain, "uniform, bought and held", cost) for cost in COSTS}
    verdicts = "\n".join(
        f"- {system}, traded on change: above daily rebalancing of the uniform portfolio in"
        + ",".join(f" {count_above(cells, system, cost, daily[cost])} settings at {cost} bp" for cost in COSTS)
        + "; above buy and hold in"
        + ",".join(f" {count_above(cells, system, cost, held[cost])} at {cost} bp" for cost in COSTS)
        + "."
        for system in (PCOMW, DESCENT, LAZY_LEADER)
    )
    return f"""## {found["assets"]} shares, {figure(found["days"])} days

{plain_table(plain)}

Learners, trading only **when the decision changes** (holdings drift in between):

{learner_table(cells, "on change")}

The same decisions, **rebalanced daily**, which is what the certificate is about (at 0 bp):

{learner_table(cells, "daily")}

{verdicts}

{certificates(found)}
"""


def certificates(found: Cell) -> str:
    """Say what the certificates are worth here."""
    ahead, cells = found["log best"] - found["log uniform"], [c for c in found["learners"] if c["loss"] == "squared"]
    lowest = min(cells, key=lambda c: c["bound"])
    regrets = [found["log best"] - float(np.median(np.log(c["daily"]["final"][0]))) for c in cells]
    idle = "**a portfolio that never learns meets them all**" if lowest["bound"] >= ahead else "below that"
    return (
        "Certificates are in units of the log of wealth, for daily rebalancing and no costs; those of P-COMW and of "
        "the leaders hold in expectation, for markets that do not react. The best constant portfolio is ahead of the "
        f"uniform one by {figure(ahead)} in all, and the lowest certificate for the squared loss is "
        f"{figure(lowest['bound'])} ({lowest['name']}): {idle}. The log of the wealth of those "
        "learners, rebalanced daily, is behind the best by "
        f"{figure(min(regrets))} to {figure(max(regrets))}. Even for gradient descent that changes daily it would take "
        f"more than {figure(found['years'], 2)} years of such days until the certificate is below that lead. With "
        f"slope {figure(SLOPE)}, {figure(100 * found['clipped'], 2)} percent of the days are scaled down in the loss; "
        f"with {figure(found['full slope'])} none are."
    )


ABOUT = """One unit of money, final wealth. Costs are in basis points of what is bought and of what is sold, paid out
of the portfolio exactly, the first purchase included; nothing is sold at the end. Turnover is what was bought and sold
after the first purchase, as multiples of the wealth, without costs. Several seeds: median (least to greatest); rows
without a range are deterministic, and say nothing about luck. *Assets held* is 1 / (sum of squared shares), the mean
over decisions. *S* is the number of changes asked for, in expectation; *any* may change daily. Hindsight rows chose
with all of 1962 to 1984 in view, without costs. The 36 shares are those that survived to be in the file: no promise
for anything. The squared loss is minus the log of the growth to second order; the linear one is minus the return, so
its certificate is about the sum of returns, not about wealth."""

READING = """## What it shows (36 shares)

- **Nothing of ours learns enough here to pay.** Traded on change, no lazy system has a median above daily rebalancing
  of the uniform portfolio at 0 or 10 bp. At 50 bp gradient descent in blocks is above it in 4 of 5 settings, mostly by
  little, and P-COMW in 1 of 5 (S = 10, within the spread of its seeds).
- **The changes that P-COMW saves in number it spends in size.** From S = 30 on every change draws a new portfolio from
  a measure that is still wide after 22 years, and trades about 0.9 of the wealth. At 50 bp S = 300 ends at 4.9 and
  S = 1000 at 0.3. With S = 10 the certified measure is so narrow that the portfolio is nearly the uniform one.
- **Gradient descent in blocks is, with the certified step, nearly the uniform portfolio rebalanced now and then.** The
  rows *uniform, rebalanced every k days*, which learn nothing, end at 19.0 to 22.0 at 50 bp, gradient descent at 19.3
  to 24.5. What it earns at S = 10 depends on ten dates, and is one path. So at 50 bp it is trading little that pays; at
  0 and 10 bp drifting gives up what daily rebalancing earns.
- **The lazy perturbed leader** holds six to thirteen shares; which ones is chance: 7 to 49 at S = 10.
- **ONS of universal-portfolios is better than all of ours at 0 and 10 bp** (109 and 81) and as good as the best of ours
  at 50 bp (24.2), at its package's default step, for which we have no certificate. UP and EG are nearly the uniform
  portfolio. Anticor and PAMR make fortunes without costs, and lose nearly everything at 50 bp.
- P-COMW's draws on 36 shares are exact and never hit a work limit, but take about 0.1 s each on this busy machine."""


def report(results: dict[str, Any]) -> str:
    """Return the whole report."""
    parts = ["# The lazy portfolio", facts_markdown(results["facts"]), ABOUT]
    if results["quick"]:
        parts.append("**A quick run on 500 days with 2 seeds: not the benchmark.**")
    elif "all" in results:
        parts.append(READING)
    if "all" in results:
        parts.append(setting_markdown(results["all"]))
    if "peers" in results:
        slow = max(c["seconds"] for c in results["peers"])
        parts.append(
            "## Universal portfolios (36 shares)\n\nWeights of every day from universal-portfolios at its default "
            f"settings, wealth with the costs above, rebalanced daily. The slowest took {figure(slow)} s.\n\n"
            + plain_table(results["peers"])
        )
    if "few" in results:
        parts.append(setting_markdown(results["few"]))
    return "\n\n".join(parts)


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw final wealth against days with a trade, one panel for each level of costs."""
    from reticent._core._look import Style, blank, legend, logarithmic, look, styles
    from reticent._core._names import INK, ORANGE

    names = {PCOMW: "P-COMW", DESCENT: "gradient descent in blocks", LAZY_LEADER: "lazy perturbed leader"}
    look_of = styles(names)
    often_style = Style(ORANGE, "X", ())
    cells, plain = results["all"]["learners"], results["all"]["references"]
    with look():
        drawn, axes = blank(len(COSTS), height=2.4 * len(COSTS), width=4.6)
        for k, cost in enumerate(COSTS):
            axis = axes[k, 0]
            for system, label in names.items():
                mine = [c["on change"] for c in cells if c["name"] == system and c["S"] and c["slope"] == SLOPE]
                x = [max(1.0, float(np.median(c["trades"]))) for c in mine]
                finals = [c["final"][k] for c in mine]
                middle = [float(np.median(f)) for f in finals]
                low = [m - min(f) for m, f in zip(middle, finals, strict=True)]
                high = [max(f) - m for m, f in zip(middle, finals, strict=True)]
                style = look_of[system]
                axis.errorbar(x, middle, yerr=[low, high], **style.line(), **style.dots(), elinewidth=1, label=label)
            often = [c for c in plain if c["name"].startswith("uniform, rebalanced")]
            axis.plot(
                [c[ways(c)[0]]["trades"][0] for c in often],
                [c[ways(c)[0]]["final"][k][0] for c in often],
                **often_style.solid(),
                **often_style.dots(),
                label="uniform, every 252 to 1 days",
            )
            for name, label, dash in (
                ("best constant portfolio, daily (hindsight)", "best constant portfolio, daily (hindsight)", (1, 1)),
                ("best stock (hindsight)", "best stock (hindsight)", (4, 1, 1, 1)),
                ("uniform, bought and held", "bought and held", (5, 2)),
            ):
                axis.axhline(final(plain, name, cost), color=INK, linewidth=1, dashes=dash, label=label)
            axis.set_title(f"final wealth, costs of {cost} basis points")
            axis.set_ylim(0.1, 400.0)
            logarithmic(axis.xaxis)
            logarithmic(axis.yaxis)
        axes[-1, 0].set_xlabel("days with a trade, of 5,651")
        legend(drawn, list(axes[:, 0]))
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, format="png", dpi=160, metadata={"Software": None}, facecolor="white")


SECTIONS = {"all": (run_all, None), "peers": (run_peers, None), "few": (run_few, None)}


def main() -> None:
    """Run the sections, write the report, draw the picture."""
    parser = section_parser(__doc__ or "", __file__, SECTIONS, "500 days and 2 seeds, a minute")
    parser.add_argument("--picture", type=Path, help="where to draw wealth against trades (PNG)")
    args = parser.parse_args()
    run_sections(args, SECTIONS, ("reticent", "numpy", "scipy", "numba", "universal-portfolios"), report)
    if args.picture:
        draw(json.loads(args.out.with_suffix(".json").read_text()), args.picture)


if __name__ == "__main__":
    main()
