"""The numbers and pictures of the guides: a private quantile of latencies, and a private logistic scorer.

python bench/guides.py [--quick] [--out bench/results/guides.md] [--only SECTION ...]
python bench/guides.py --redraw
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import json
import math
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from _report import PICTURES, drawing, facts_markdown, figure, run_sections, say, section_parser, table
from reticent._core._look import Style
from reticent._core._names import BUDGETED, DP_FTRL, FILTERED, INK, MUTED, NOISY_DESCENT, OBJECTIVE, PCOMW
from reticent.domains import Domain
from reticent.lab import demo, streams
from reticent.systems.filtered import clip_for

Row = dict[str, Any]
Plans = dict[str, Callable[[float], Any]]

DELTA = 1e-6
SEEDS = range(5)


# The first page


def first(quick: bool) -> dict[str, Any]:
    """Run the demonstration on doctor visits, for the picture and the numbers of the first page."""
    stream = demo.streams(2_000 if quick else None)[0]
    study = demo.study_of(demo.play(stream, say))
    assert study.best is not None
    losses: dict[str, list[float]] = {}
    changes: dict[str, list[int]] = {}
    for run in study.runs:
        losses.setdefault(run.system, []).append(run.total / run.rounds)
        changes.setdefault(run.system, []).append(run.switches)
    rows = [
        {"system": name, "changes": float(np.mean(changes[name])), "loss": float(np.mean(losses[name]))}
        for name in losses
    ]
    rows.append({"system": "never moving", "changes": 0, "loss": study.best.idle / stream.rounds})
    rows.append({"system": "best fixed decision", "changes": 0, "loss": study.best.value / stream.rounds})
    if not quick:
        from reticent._core._look import look

        with look():
            picture = demo.picture([study], (FILTERED, BUDGETED))
            picture.savefig(PICTURES / "first.png", dpi=160, metadata={"Software": None}, facecolor="white")
    return {"rounds": stream.rounds, "rows": rows}


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
    from reticent._core._look import counts, logarithmic, styles

    drawn = styles(("P-COMW", "DP-FTRL"))
    with drawing(PICTURES / "quantile.png", 3) as (top, middle, bottom):
        every = np.unique(np.geomspace(1_000, paths["P-COMW"].rounds, 1_500).astype(int)) - 1
        for axis, name in ((top, "P-COMW"), (middle, "DP-FTRL")):
            path = paths[name].decisions()[:, 0]
            axis.plot(every + 1, path[every], color=drawn[name].colour, linewidth=0.8)
            axis.axhline(true, color=MUTED, linewidth=1, dashes=(1, 2), label="the true p95")
            axis.set(ylim=(150, 650), title=f"{name}: published p95 in ms, epsilon 1")
            logarithmic(axis.xaxis)
        sums = np.append(0.0, np.cumsum(paths["P-COMW"].decisions()[:, 0]))
        since = (every + 1) // 2
        mean = (sums[every + 1] - sums[since]) / (every + 1 - since)
        top.plot(every + 1, mean, color=INK, linewidth=1.4, label="mean of its decisions, last half so far")
        middle.set_xlabel("rounds")
        for name, style in drawn.items():
            some = [row for row in rows if row["system"] == name and row["tau"] == 0.95]
            levels = [row["epsilon"] for row in some]
            bottom.plot(levels, [row["regret"] for row in some], **style.solid(), **style.dots(), label=name)
            bottom.plot(levels, [row["certified"] for row in some], **_promised(style))
        bottom.plot([], [], **_promised(Style(MUTED, "o", ())), label="certified (hollow)")
        bottom.axhline(0.0, color=MUTED, linewidth=0.8)
        bottom.set(xscale="log", xlabel="epsilon", title="Regret in ms a round, means of five seeds")
        bottom.set_xticks([0.3, 1, 3], ["0.3", "1", "3"])
        bottom.minorticks_off()
        counts(bottom.yaxis)


def _promised(style: Any) -> dict[str, Any]:
    return {"color": style.colour, "linewidth": 1, "dashes": (2, 2), **style.dots(hollow=True)}


def redraw() -> None:
    """Draw the pictures again from the numbers that are kept; two runs give the paths of the quantile."""
    kept = json.loads((Path(__file__).parent / "results" / "guides.json").read_text())
    _draw_scorer(kept["scorer"]["rows"], kept["scorer"]["best"], kept["scorer"]["constant"])
    stream = streams.get(f"latency:rounds={kept['quantile']['rounds']},level=0.95")
    data, rows = stream.block()[1], kept["quantile"]["rows"]
    plans = _trackers(stream.domain, stream.rounds, 0.95, 1.0)
    paths = {
        name: rt.make(plans[name], rt.Pinball(0.95), seed=0).observe_many(np.ones(data.size), data)
        for name in ("P-COMW", "DP-FTRL")
    }
    _draw_quantile(rows, paths, float(rows[0]["true"]))


def redraw_landscapes() -> None:
    """Draw the maps of the best certificates again, for a phone, from the numbers of `reticent tables`."""
    from reticent._core._look import look, narrow
    from reticent.lab import pictures

    found = json.loads((Path(__file__).parent / "results" / "tables.json").read_text())["landscape"]
    for kind in ("convex", "smooth"):
        with narrow(), look():
            drawn = pictures.landscape(found[kind])
            path = PICTURES / f"landscape-{kind}.png"
            drawn.savefig(path, format="png", dpi=200, metadata={"Software": None}, facecolor="white")


# A scorer


def scorer(quick: bool) -> dict[str, Any]:
    """Score people by five private systems at three levels of privacy, and without privacy."""
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
        NOISY_DESCENT: lambda e: rt.planning.plan_noisy_descent(*goal, e, DELTA),
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
    share = float((labels > 0).mean())
    constant = -share * math.log(share) - (1 - share) * math.log(1 - share)
    if not quick:
        _draw_scorer(rows, best, constant)
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


def _draw_scorer(rows: list[Row], best: Row, constant: float) -> None:
    from reticent._core._look import styles

    names = {name: name for name in (FILTERED, NOISY_DESCENT, PCOMW, DP_FTRL)} | {"objective perturbation": OBJECTIVE}
    drawn = styles(names.values())
    with drawing(PICTURES / "scorer.png", 2, height=2.7) as (top, bottom):
        for name, system in names.items():
            some, style = [row for row in rows if row["system"] == name], drawn[system]
            levels = [row["epsilon"] for row in some]
            top.plot(levels, [row["loss"] for row in some], **style.solid(), **style.dots(), label=name)
            bottom.plot(levels, [row["auc"] for row in some], **style.solid(), **style.dots())
            bottom.plot(levels, [row["mean auc"] for row in some], **_promised(style))
        bottom.plot([], [], **_promised(Style(MUTED, "o", ())), label="by the mean decision (hollow)")
        for axis, still, fixed in ((top, np.log(2.0), best["loss"]), (bottom, 0.5, best["auc"])):
            axis.axhline(still, color=MUTED, linewidth=1, dashes=(1, 2), label="never moving: always a half")
            axis.axhline(fixed, color=INK, linewidth=1, dashes=(4, 2), label="best fixed weights, in hindsight")
            axis.set(xscale="log", xlabel="epsilon")
            axis.set_xticks([0.5, 1, 3], ["0.5", "1", "3"])
            axis.minorticks_off()
        top.axhline(constant, color=MUTED, linewidth=1, dashes=(5, 1, 1, 1), label="best constant prediction")
        top.set_title("Mean logistic loss while learning (lower is better)")
        bottom.set_title("Area under the curve, second half (higher is better)")


# The report

ABOUT = "# The guides\n\nWritten by `bench/guides.py`; means over five seeds."

FIRST = """
## The first page

{rounds:,} rounds of the stream `randhie-visits` (the RAND health insurance experiment in file order): a threshold that
nine of ten people stay below, at epsilon 1 and delta 1e-6, or with at most 200 changes. Means over three seeds. Losses
are computed from the data, and are NOT private.
"""

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
    if found := results.get("first"):
        rows = [[r["system"], *_cells(r, ("changes", "loss"))] for r in found["rows"]]
        text += [FIRST.format(**found), table(["system", "changes", "loss"], rows, text=1)]
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


SECTIONS = {"first": (first, None), "quantile": (quantile, None), "scorer": (scorer, None)}


def main() -> None:
    parser = section_parser(__doc__ or "", __file__, SECTIONS, "short streams, and no pictures")
    parser.add_argument(
        "--redraw", choices=("maps", "all"), help="only draw again, from the numbers kept: maps of certificates, or all"
    )
    args = parser.parse_args()
    if args.redraw:
        redraw_landscapes()
        if args.redraw == "all":
            redraw()
        return
    run_sections(args, SECTIONS, ["reticent", "numpy", "numba", "statsmodels"], report)


if __name__ == "__main__":
    main()
