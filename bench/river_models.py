"""Private and lazy logistic regression beside river's own, on Phishing and Bananas, by progressive validation.

python bench/river_models.py [--quick] [--out bench/results/river_models.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import datasets, evaluate, feature_extraction, linear_model, metrics, optim, preprocessing

from _report import facts_markdown, figure, run_sections, say, section_parser, table
from reticent.estimators.river import LazyLogisticRegression, PrivateLogisticRegression

Row = dict[str, Any]
Rows = list[tuple[dict[str, float], bool]]
SEEDS = 5
EPSILONS = (0.5, 1.0, 3.0)
METRICS = ("accuracy", "area", "log loss")


def phishing(quick: bool) -> dict[str, Any]:
    """Score 1,250 pages by nine signs, coded 0, 0.5 and 1."""
    rows = list(datasets.Phishing())
    return _compared(rows, quick, {"features": tuple(rows[0][0]), "bounds": (0.0, 1.0), "radius": 8.0})


def bananas(quick: bool) -> dict[str, Any]:
    """Tell two crescents apart by two coordinates, standardised by the authors of the data."""
    rows = list(datasets.Bananas())
    return _compared(rows, quick, {"features": tuple(rows[0][0]), "bounds": (-3.0, 3.0), "radius": 8.0})


def cubes(quick: bool) -> dict[str, Any]:
    """Tell them apart by their coordinates and the products of two and three of them, clipped alike."""
    extend = feature_extraction.PolynomialExtender(degree=3)
    rows = [(extend.transform_one(x), y) for x, y in datasets.Bananas()]
    return _compared(rows, quick, {"features": tuple(rows[0][0]), "bounds": (-3.0, 3.0), "radius": 8.0})


def _compared(rows: Rows, quick: bool, params: Row) -> dict[str, Any]:
    if quick:
        rows = rows[:300]
    count, seeds = len(rows), range(1 if quick else SEEDS)
    found = []
    for name, epsilon, make in _models(params, count):
        runs = [_scored(make(seed), rows) for seed in (seeds if epsilon != "none, no seed" else [0])]
        row = {"model": name, "epsilon": epsilon.partition(",")[0]}
        for metric in (*METRICS, "changes"):
            values = [run[metric] for run in runs if run[metric] is not None]
            row[metric] = float(np.mean(values)) if values else None
            row[f"{metric}, spread"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        found.append(row)
        say(row)
    share = sum(y for _, y in rows) / count
    return {"rows": found, "count": count, "seeds": len(seeds), "common": max(share, 1 - share)}


def _models(params: Row, count: int) -> Iterator[tuple[str, str, Callable[[int], Any]]]:
    """Yield the models: their names, epsilon, and how to make one from a seed."""
    yield "river, as it comes", "none, no seed", lambda _: linear_model.LogisticRegression()
    yield "river, StandardScaler and SGD(0.1)", "none, no seed", lambda _: _scaled()
    lazy = {**params, "max_switches": count, "horizon": count}
    descent, drawn = {**lazy, "system": "gradient descent"}, {**lazy, "system": "P-COMW"}
    yield "gradient descent", "none, no seed", lambda seed: LazyLogisticRegression(**descent, seed=seed)
    yield "P-COMW, a draw for every row", "none", lambda seed: LazyLogisticRegression(**drawn, seed=seed)
    systems = {
        "filtered gate, no horizon": {"horizon": None},
        "P-COMW": {"horizon": count, "system": "P-COMW"},
        "P-COMW, no horizon": {"horizon": None, "system": "P-COMW"},
        "DP-FTRL": {"horizon": count, "system": "DP-FTRL"},
    }
    for epsilon, (name, more) in itertools.product(reversed(EPSILONS), systems.items()):
        goal = {**params, **more, "epsilon": epsilon}
        yield name, f"{epsilon:g}", lambda seed, goal=goal: PrivateLogisticRegression(**goal, seed=seed)


def _scaled() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optimizer=optim.SGD(0.1))


def _scored(model: Any, rows: Rows) -> Row:
    together = metrics.Accuracy() + metrics.ROCAUC() + metrics.LogLoss()
    evaluate.progressive_val_score(rows, model, together)
    scores = {name: float(metric.get()) for name, metric in zip(METRICS, together.data, strict=True)}
    learner = getattr(model, "learner", None)
    return {**scores, "changes": None if learner is None else learner.switches}


# The report

ABOUT = """
# Logistic regression in river, private and lazy

Written by `bench/river_models.py`: `evaluate.progressive_val_score`, every row predicted before it is learned, in the
order of the file; means and, where there are several seeds, standard deviations over seeds. Features are clipped to
public bounds (declared, not learned) and delta is 1e-6; the weights have length 8 at most. *changes*: how often the
weights changed. The scores are computed from the data and not private; river's own models and gradient descent promise
nothing about it.
"""

TITLES = {
    "phishing": "Phishing: nine signs of a web page",
    "bananas": "Bananas: two coordinates",
    "cubes": "Bananas: products of up to three coordinates",
}


def report(results: dict[str, Any]) -> str:
    """Return the report."""
    text = [ABOUT, facts_markdown(results["facts"])]
    for name, title in TITLES.items():
        if found := results.get(name):
            heads = ["epsilon", "model", "accuracy", "area under the curve", "log loss", "changes"]
            rows = [[row["epsilon"], row["model"], *_cells(row)] for row in found["rows"]]
            about = "{count:,} rows, {seeds} seeds. The more frequent label is right in {common:.1%} of the rows."
            text += [f"## {title}", about.format(**found), table(heads, rows, text=2)]
    return "\n\n".join(part.strip() for part in text)


def _cells(row: Row) -> list[str]:
    cells = []
    for metric in METRICS:
        mean, spread = row[metric], row[f"{metric}, spread"]
        percent = metric == "accuracy"
        shown = f"{100 * mean:.1f}%" if percent else f"{mean:.3f}"
        if spread is not None:
            shown += f" ± {100 * spread:.1f}" if percent else f" ± {spread:.3f}"
        cells.append(shown)
    return [*cells, "every row" if row["changes"] is None else figure(row["changes"])]


SECTIONS = {"phishing": (phishing, None), "bananas": (bananas, None), "cubes": (cubes, None)}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "300 rows and one seed").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy", "numba", "river"], report)


if __name__ == "__main__":
    main()
