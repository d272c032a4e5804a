"""The numbers and pictures of the guides: a private quantile of latencies, and a private logistic scorer.

python bench/guides.py [--quick] [--out bench/results/guides.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import math
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from _report import facts_markdown, figure, run_sections, say, section_parser, table
from reticent._core._names import FILTERED
from reticent.domains import Domain
from reticent.lab import streams
from reticent.systems.filtered import clip_for

Row = dict[str, Any]
Plans = dict[str, Callable[[float], Any]]

DELTA = 1e-6
SEEDS = range(5)
PICTURES = Path(__file__).resolve().parent.parent / "docs" / "img"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"  # told apart by colour-blind readers


# A latency threshold


def quantile(quick: bool) -> dict[str, Any]:
    """Track p95 and p99 over a million latencies, at three levels of privacy, with two systems."""
    rounds = 20_000 if quick else 1_000_000
    rows, paths = [], {}
    for tau in (0.95, 0.99):
        stream = streams.get(f"latency:rounds={rounds},level={tau}")
        domain, data = stream.domain, stream.block()[1]
        true = float(np.quantile(data, tau))
        for epsilon in (0.3, 1.0, 3.0):
            for name, plan in _trackers(domain, rounds, tau, epsilon).items():
                runs = [_tracked(plan, tau, data, true, seed) for seed in SEEDS]
                rows.append(
                    {"tau": tau, "true": true, "epsilon": epsilon, "system": name, **_mean([row for row, _ in runs])}
                )
                say(rows[-1])
                if tau == 0.95 and epsilon == 1.0:
                    paths[name] = runs[0][1]
    if not quick:
        _draw_quantile(rows, paths, float(rows[0]["true"]))
    return {"rounds": rounds, "rows": rows}


def _trackers(*goal: Any) -> dict[str, Any]:
    return {
        "P-COMW": rt.plan_private(*goal, DELTA),
        "P-COMW, 1,000 changes": rt.plan_private(*goal, DELTA, max_switches=1000),
        "DP-FTRL": rt.planning.plan_ftrl(*goal, DELTA),
        "DP-FTRL, 1,000 changes": rt.planning.plan_ftrl(*goal, DELTA, max_switches=1000),
    }


def _tracked(plan: Any, tau: float, data: np.ndarray, true: float, seed: int) -> tuple[Row, rt.Trace]:
    trace = rt.make(plan, rt.Pinball(tau), seed=seed).observe_many(np.ones(data.size), data)
    late = trace.decisions()[data.size // 2 :, 0]
    row = {
        "changes": trace.switches,
        "off": float(np.abs(late - true).mean()),
        "mean off": abs(float(late.mean()) - true),
        "share": float((data[data.size // 2 :] <= late).mean()),
        "regret": float(trace.regret()) / data.size,
        "certified": plan.regret_bound / data.size,
    }
    return row, trace


def _mean(rows: list[Row]) -> Row:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _draw_quantile(rows: list[Row], paths: dict[str, rt.Trace], true: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained")
    every = np.unique(np.geomspace(1_000, paths["P-COMW"].rounds, 1_500).astype(int)) - 1
    for name, colour in (("P-COMW", BLUE), ("DP-FTRL", ORANGE)):
        path = paths[name].decisions()[:, 0]
        left.plot(every + 1, path[every], color=colour, linewidth=0.8, alpha=0.8, label=name)
    sums = np.append(0.0, np.cumsum(paths["P-COMW"].decisions()[:, 0]))
    since = (every + 1) // 2
    mean = (sums[every + 1] - sums[since]) / (every + 1 - since)
    left.plot(every + 1, mean, color="black", linewidth=1.4, label="mean of P-COMW's decisions, last half so far")
    left.axhline(true, color=GREY, linestyle="--", label="the true p95")
    left.set(xscale="log", xlabel="round", ylabel="published threshold, ms", ylim=(0, 700), title="p95, epsilon = 1")
    left.legend(fontsize=8)
    for name, colour, mark in (("P-COMW", BLUE, "o"), ("DP-FTRL", ORANGE, "s")):
        some = [row for row in rows if row["system"] == name and row["tau"] == 0.95]
        for kind, line in (("certified", "-"), ("regret", ":")):
            label = f"{name}, {'certified' if kind == 'certified' else 'measured'}"
            style = {"color": colour, "marker": mark, "linestyle": line, "label": label}
            right.plot([row["epsilon"] for row in some], [row[kind] for row in some], **style)
    right.axhline(0.0, color=GREY, linewidth=0.8)
    right.set(xscale="log", xlabel="epsilon", ylabel="regret, ms a round", title="p95, means of five seeds")
    right.set_xticks([0.3, 1, 3], ["0.3", "1", "3"])
    right.minorticks_off()
    right.legend(fontsize=8)
    chosen.savefig(PICTURES / "quantile.png", dpi=120)
    plt.close(chosen)


# A scorer


def scorer(quick: bool) -> dict[str, Any]:
    """Score people by three private systems at three levels of privacy, and without privacy."""
    stream = streams.get("randhie:rounds=2000" if quick else "randhie")
    features, labels = stream.block()
    rounds = stream.rounds
    goal = stream.domain, rounds, stream.lipschitz
    rows = []
    plain = _scored(rt.planning.plan_descent(*goal), features, labels, 0)
    rows.append({"system": "gradient descent", "epsilon": None, **plain})
    clip = clip_for(stream.loss, stream.lipschitz)
    plans: Plans = {
        FILTERED: lambda e: rt.planning.plan_filtered(stream.domain, None, stream.lipschitz, e, DELTA, clip=clip),
        "P-COMW": lambda e: rt.plan_private(*goal, e, DELTA),
        "objective perturbation": lambda e: rt.planning.plan_objective(*goal, e, DELTA, smoothness=0.25),
        "DP-FTRL": lambda e: rt.planning.plan_ftrl(*goal, e, DELTA),
    }
    for epsilon in (0.5, 1.0, 3.0):
        for name, planner in plans.items():
            plan = planner(epsilon)
            runs = [_scored(plan, features, labels, seed) for seed in SEEDS]
            rows.append({"system": name, "epsilon": epsilon, **_mean(runs)})
            say(rows[-1])
    best = _best(features, labels, stream.domain)
    if not quick:
        _draw_scorer(rows, best)
    share = float((labels > 0).mean())
    constant = -share * math.log(share) - (1 - share) * math.log(1 - share)
    return {"rounds": rounds, "rows": rows, "best": best, "positive": share, "constant": constant}


def _scored(plan: Any, features: np.ndarray, labels: np.ndarray, seed: int) -> Row:
    trace = rt.make(plan, rt.Logistic(), seed=seed).observe_many(features, labels)
    decisions = trace.decisions()
    means = np.cumsum(decisions, axis=0) / np.arange(1, len(labels) + 1)[:, None]
    half = slice(len(labels) // 2, None)
    return {
        "changes": trace.switches,
        "loss": trace.total / len(labels),
        "auc": _auc((decisions * features).sum(axis=1)[half], labels[half]),
        "mean auc": _auc((means * features).sum(axis=1)[half], labels[half]),
        "regret": float(trace.regret()) / len(labels),
        "certified": math.nan if plan.regret_bound is None else plan.regret_bound / len(labels),
    }


def _best(features: np.ndarray, labels: np.ndarray, domain: Domain) -> Row:
    plan = rt.planning.plan_descent(domain, len(labels), 1.0)
    point = rt.make(plan, rt.Logistic()).observe_many(features, labels).regret().comparator.point
    half = slice(len(labels) // 2, None)
    loss = float(rt.Logistic().values(point, features, labels).mean())
    return {"loss": loss, "auc": _auc((features @ point)[half], labels[half])}


def _auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the chance that a person with the label scores above one without, ties counted half."""
    from scipy.stats import rankdata

    ranks, yes = rankdata(scores), labels > 0
    pairs = yes.sum() * (~yes).sum()
    return float((ranks[yes].sum() - yes.sum() * (yes.sum() + 1) / 2) / pairs)


def _draw_scorer(rows: list[Row], best: Row) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    chosen, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    marks = (
        (FILTERED, "#56B4E9", "D"),
        ("P-COMW", BLUE, "o"),
        ("objective perturbation", "#009E73", "^"),
        ("DP-FTRL", ORANGE, "s"),
    )
    for name, colour, mark in marks:
        some = [row for row in rows if row["system"] == name]
        levels = [row["epsilon"] for row in some]
        left.plot(levels, [row["loss"] for row in some], color=colour, marker=mark, label=name)
        right.plot(levels, [row["auc"] for row in some], color=colour, marker=mark)
        right.plot(levels, [row["mean auc"] for row in some], color=colour, marker=mark, linestyle=":")
    left.axhline(np.log(2.0), color=GREY, linestyle=":", label="always a half")
    left.axhline(best["loss"], color="black", linestyle="--", label="best fixed weights in hindsight")
    right.axhline(0.5, color=GREY, linestyle=":")
    right.axhline(best["auc"], color="black", linestyle="--")
    left.set(xscale="log", xlabel="epsilon", ylabel="mean logistic loss", title="loss while learning")
    right.set(xscale="log", xlabel="epsilon", ylabel="area under the curve")
    right.set_title("second half (dotted: by the mean decision)")
    for axis in (left, right):
        axis.set_xticks([0.5, 1, 3], ["0.5", "1", "3"])
        axis.minorticks_off()
    left.set_ylim(top=0.725)
    left.legend(fontsize=8, loc="upper center", ncols=2)
    chosen.savefig(PICTURES / "scorer.png", dpi=120)
    plt.close(chosen)


# The report

ABOUT = "# The guides\n\nWritten by `bench/guides.py`; means over five seeds."

QUANTILE = """
## A latency threshold

{rounds:,} rounds of the stream `latency`, decisions in [0, 1000] ms, delta = 1e-6. *off*: mean distance of the
decision in play from the true quantile, over the second half of the run, in ms; *mean off*: distance of the mean of
these decisions; *share*: the part of the requests below the threshold in play. Regret is in ms per round, measured
and certified (in expectation). Only the decisions are private.
"""

SCORER = """
## A scorer

{rounds:,} rounds of the stream `randhie` (the RAND health insurance experiment in file order), {positive:.1%} with
the label; ball of radius 4, features of length at most 1, delta = 1e-6. *loss*: mean logistic loss while learning
(always a half: 0.693; the same for everybody, at best: {constant:.4f}; best fixed weights in hindsight:
{loss:.4f}); *auc*: area under the curve over the second half, each person scored by the decision in play before their
label is seen (best fixed weights: {auc:.4f}); *mean auc*: scored by the mean of all
decisions so far. Regret is per round. Only the decisions are private.
"""


def report(results: dict[str, Any]) -> str:
    """Return the report."""
    text = [ABOUT, facts_markdown(results["facts"])]
    if found := results.get("quantile"):
        names = ("changes", "off", "mean off", "share", "regret", "certified")
        rows = [
            [f"{r['tau']}", figure(r["true"], 4), f"{r['epsilon']:g}", r["system"], *_cells(r, names)]
            for r in found["rows"]
        ]
        text += [QUANTILE.format(**found), table(["level", "true, ms", "epsilon", "system", *names], rows, text=4)]
    if found := results.get("scorer"):
        names = ("changes", "loss", "auc", "mean auc", "regret", "certified")
        rows = [
            ["none" if r["epsilon"] is None else f"{r['epsilon']:g}", r["system"], *_cells(r, names)]
            for r in found["rows"]
        ]
        text += [SCORER.format(**found, **found["best"]), table(["epsilon", "system", *names], rows, text=2)]
    return "\n\n".join(part.strip() for part in text)


def _cells(row: Row, names: tuple[str, ...]) -> list[str]:
    fine = ("loss", "auc", "mean auc", "share")
    return ["none" if math.isnan(row[name]) else figure(row[name], 4 if name in fine else 3) for name in names]


SECTIONS = {"quantile": (quantile, None), "scorer": (scorer, None)}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "short streams, and no pictures").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy", "numba", "statsmodels"], report)


if __name__ == "__main__":
    main()
