"""The demonstration: exact draws from two real problems, as one picture and one table."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import reticent as rt
from reticent._check import Array

OUT = Path("out")
DRAWS = 1500


@dataclass
class Problem:
    """A measure over the past of a real stream, and draws from it."""

    title: str
    measure: rt.Gibbs
    points: Array
    draws: list[rt.Draw]
    seconds: float


def load_visits() -> tuple[Array, Array, Array]:
    """Return chronic disease burden, coinsurance and doctor visits of 20,190 people (RAND health insurance experiment).

    Features are scaled by public bounds (the questionnaire's range), never by statistics of the data.
    """
    try:
        from statsmodels.datasets import randhie
    except ImportError as error:
        raise SystemExit("the demo needs its extras: pip install 'reticent[lab]'") from error
    table = randhie.load_pandas().data
    burden = np.clip(table["disea"].to_numpy(float) / 60.0, 0.0, 1.0)
    coinsurance = np.clip(table["lncoins"].to_numpy(float) / 5.0, 0.0, 1.0)
    visits = np.clip(table["mdvis"].to_numpy(float), 0.0, 80.0)
    return burden, coinsurance, visits


def solve(title: str, measure: rt.Gibbs, block: tuple[Array, ...], rng: np.random.Generator) -> Problem:
    """Observe the stream and draw from its measure."""
    measure.observe_many(*block)
    measure.draw(rng)  # compiles kernels and finds the mode
    begin = time.perf_counter()
    draws = [measure.draw(rng) for _ in range(DRAWS)]
    seconds = (time.perf_counter() - begin) / DRAWS
    return Problem(title, measure, np.array([d.point for d in draws]), draws, seconds)


def problems(rng: np.random.Generator) -> list[Problem]:
    """Return the problems of the demonstration."""
    burden, coinsurance, visits = load_visits()
    features = np.column_stack([burden, coinsurance]) / np.sqrt(2.0)
    often = (visits > 2).astype(float)
    scorer = rt.Gibbs(rt.Ball(dim=2), rt.Logistic(), beta=0.02, lam=500.0)
    median = rt.Gibbs(rt.Ball(dim=2), rt.Absolute(), beta=0.02, lam=500.0)
    quantile = rt.Gibbs(rt.Interval(0.0, 20.0), rt.Pinball(0.9), beta=0.02, lam=1.0)
    return [
        solve("who sees a doctor often (logistic, d = 2)", scorer, (features, often), rng),
        solve("visits per year / 10 (absolute, d = 2)", median, (features, visits / 10.0), rng),
        solve("0.9-quantile of visits (pinball, d = 1)", quantile, (np.ones_like(visits), visits), rng),
    ]


def draw_picture(found: list[Problem], path: Path) -> None:
    """Draw each density, as its contours or its curve, with the draws on it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(5.2 * len(found), 4.8), layout="constrained")
    for axis, problem in zip(axes, found, strict=True):
        (_line if problem.points.shape[1] == 1 else _plane)(axis, problem)
        axis.set_title(problem.title, fontsize=11)
    figure.suptitle(
        f"Exact draws from exp(-beta (past losses + lam/2 |x - center|^2)): {found[0].measure.rounds:,} rounds of the "
        "RAND health insurance experiment"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _plane(axis: Any, problem: Problem) -> None:
    points = problem.points
    low, high = points.min(axis=0) - 0.05, points.max(axis=0) + 0.05
    xs, ys = (np.linspace(a, b, 110) for a, b in zip(low, high, strict=True))
    heights = np.array([[problem.measure.log_density([x, y]) for x in xs] for y in ys])
    heights = np.exp(heights - heights.max())
    # Contours that hold 50, 90 and 99 percent of the mass; they end at the edge of the body.
    ordered = np.sort(heights.ravel())[::-1]
    sums = np.cumsum(ordered)
    levels = [float(ordered[np.searchsorted(sums, share * sums[-1])]) for share in (0.99, 0.9, 0.5)]
    heights[heights == 0.0] = np.nan
    axis.scatter(*points.T, s=5, color="#0072B2", alpha=0.45, linewidths=0, label=f"{len(points):,} draws")
    axis.contour(xs, ys, heights, levels=levels, colors="#D55E00", linewidths=1.2)
    angle = np.linspace(0.0, 2.0 * np.pi, 400)
    axis.plot(np.cos(angle), np.sin(angle), color="black", linewidth=1.0, label="the body")
    axis.set_xlim(low[0], high[0])
    axis.set_ylim(low[1], high[1])
    axis.set_xlabel("weight of chronic disease")
    axis.set_ylabel("weight of coinsurance")
    axis.plot([], [], color="#D55E00", label="50, 90, 99% of the measure")
    axis.legend(fontsize=8, loc="best")


def _line(axis: Any, problem: Problem) -> None:
    points = problem.points[:, 0]
    xs = np.linspace(points.min() - 0.1 * np.ptp(points), points.max() + 0.1 * np.ptp(points), 400)
    heights = np.array([problem.measure.log_density([x]) for x in xs])
    heights = np.exp(heights - heights.max())
    heights /= heights.sum() * (xs[1] - xs[0])
    axis.hist(points, bins=40, density=True, color="#0072B2", alpha=0.5, label=f"{len(points):,} draws")
    axis.plot(xs, heights, color="#D55E00", label="the measure")
    axis.set_xlabel("visits per year")
    axis.set_yticks([])
    axis.legend(fontsize=8)


def print_table(found: list[Problem]) -> None:
    """Print what the draws took."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{found[0].measure.rounds:,} past losses, {DRAWS:,} draws each")
    for column in ("problem", "method", "exact", "proposals", "losses read", "microseconds", "mean of the draws"):
        table.add_column(column, justify="left" if column in ("problem", "method") else "right")
    for problem in found:
        table.add_row(
            problem.title,
            problem.draws[0].method,
            "yes" if max(d.distance for d in problem.draws) == 0.0 else "no",
            f"{np.mean([d.proposals for d in problem.draws]):.2f}",
            f"{np.mean([d.losses_read for d in problem.draws]):.2f}",
            f"{1e6 * problem.seconds:.0f}",
            np.array2string(problem.points.mean(axis=0), precision=3),
        )
    Console(width=120).print(table)


def main() -> int:
    """Run the demonstration."""
    print("Compiling kernels and drawing (the first run takes a minute) ...", flush=True)
    found = problems(rt.generator(2024))
    path = OUT / "demo.png"
    draw_picture(found, path)
    print_table(found)
    print(f"Picture: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
