"""The demonstration: a lazy and a private learner on a real stream, as one picture and one table."""

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
SEED = 2024
EPSILON, DELTA = 1.0, 1e-6
COLOURS = ("#0072B2", "#56B4E9", "#D55E00", "#999999")


@dataclass
class Problem:
    """A stream of rounds, what its decision means, and the loss of a round."""

    title: str
    axis: str
    domain: rt.Interval | rt.Ball
    loss: rt.Pinball | rt.Logistic
    lipschitz: float
    data: tuple[Array, Array]


@dataclass
class Run:
    """A learner's way through a problem."""

    name: str
    plan: rt.Plan
    trace: rt.Trace
    regret: Any
    curve: Array
    seconds: float


def problems() -> list[Problem]:
    """Return two problems on the 20,190 person-years of the RAND health insurance experiment, in file order.

    Features are scaled by public bounds (the questionnaire's ranges), never by statistics of the data.
    """
    try:
        from statsmodels.datasets import randhie
    except ImportError as error:
        raise SystemExit("the demo needs its extras: pip install 'reticent[lab]'") from error
    table = randhie.load_pandas().data
    visits = np.clip(table["mdvis"].to_numpy(float), 0.0, 80.0)
    ranges = {"lncoins": 5.0, "disea": 60.0, "hlthg": 1.0, "hlthf": 1.0, "hlthp": 1.0, "physlm": 1.0}
    columns = [np.clip(table[name].to_numpy(float) / most, 0.0, 1.0) for name, most in ranges.items()]
    features = np.column_stack([np.ones(len(table)), *columns]) / np.sqrt(1.0 + len(ranges))
    often = np.where(visits > 2, 1.0, -1.0)
    return [
        Problem(
            "doctor visits that 9 of 10 people do not exceed",
            "visits a year",
            rt.Interval(0.0, 20.0),
            rt.Pinball(0.9),
            0.9,
            (np.ones_like(visits), visits),
        ),
        Problem(
            "who sees a doctor more than twice a year",
            "weight of chronic disease",
            rt.Ball(dim=features.shape[1], radius=4.0),
            rt.Logistic(),
            1.0,
            (features, often),
        ),
    ]


def plans(problem: Problem) -> dict[str, rt.Plan]:
    """Return the plans that the demonstration runs on a problem."""
    goal = problem.domain, len(problem.data[0]), problem.lipschitz
    return {
        "lazy, 200 switches": rt.plan_lazy(*goal, max_switches=200),
        "lazy, 2,000 switches": rt.plan_lazy(*goal, max_switches=2000),
        "private": rt.plan_private(*goal, epsilon=EPSILON, delta=DELTA),
        "private, the paper's theorem": rt.theorem_private(*goal, epsilon=EPSILON, delta=DELTA),
    }


def run(problem: Problem) -> list[Run]:
    """Run every learner over the stream."""
    found = []
    for name, plan in plans(problem).items():
        begin = time.perf_counter()
        learner = rt.PCOMW(plan, problem.loss, seed=SEED)
        trace = learner.observe_many(*problem.data)
        seconds = time.perf_counter() - begin
        regret = trace.regret()
        found.append(Run(name, plan, trace, regret, trace.curve(regret.comparator), seconds))
    return found


def draw_picture(runs: dict[str, list[Run]], shown: list[Problem], path: Path) -> None:
    """Draw decisions, switches, mean loss and regret over time, a column for each problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, len(shown), figsize=(6.6 * len(shown), 11.5), sharex="col", layout="constrained")
    for column, problem in zip(axes.T, shown, strict=True):
        for one, colour in zip(runs[problem.title], COLOURS, strict=True):
            _draw_run(column, one, colour)
        best = runs[problem.title][0].regret.comparator
        column[0].axhline(_coordinate(best.point), color="black", linestyle=":", label="best fixed, in hindsight")
        mean = np.cumsum(runs[problem.title][0].trace.losses - np.diff(runs[problem.title][0].curve, prepend=0.0))
        rounds = np.arange(1, mean.size + 1)
        column[2].plot(rounds[100:], (mean / rounds)[100:], color="black", linestyle=":")
        column[0].set_title(problem.title, fontsize=12)
        column[0].set_ylabel(f"decision: {problem.axis}")
        column[1].set_ylabel("switches so far")
        column[1].set_yscale("log")
        column[2].set_ylabel("mean loss so far")
        column[3].set_ylabel("regret so far")
        column[3].set_xlabel("round")
        column[0].legend(fontsize=8, loc="best")
    figure.suptitle(
        f"One decision in play, {len(shown[0].data[0]):,} rounds of the RAND health insurance experiment", fontsize=13
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _coordinate(point: Array) -> float:
    """Return the one number of a decision that is drawn: the only one, or the weight of chronic disease."""
    return float(point[0] if point.size == 1 else point[2])


def _draw_run(column: Any, one: Run, colour: str) -> None:
    trace = one.trace
    ends = np.append(trace.starts, trace.rounds)
    values = np.array([_coordinate(point) for point in trace.points])
    # Decisions that jump about the most go to the back.
    back = 1.0 / (1.0 + np.std(values))
    column[0].step(
        ends,
        np.append(values, values[-1]),
        where="post",
        color=colour,
        linewidth=0.9,
        label=one.name,
        zorder=2.0 + back,
        alpha=0.35 + 0.65 * back,
    )
    times = trace.switch_times
    column[1].step(times, np.arange(1, times.size + 1), where="post", color=colour)
    rounds = np.arange(1, trace.rounds + 1)
    column[2].plot(rounds[100:], (np.cumsum(trace.losses) / rounds)[100:], color=colour)
    column[3].plot(rounds, one.curve, color=colour)


def print_table(runs: dict[str, list[Run]]) -> None:
    """Print what the learners did."""
    from rich.console import Console
    from rich.table import Table

    heads = ("problem and learner", "switches", "expected", "mean loss", "regret a round", "certified", "privacy", "s")
    table = Table(title="Regret against the best fixed decision in hindsight; certified: its bound, in expectation")
    for head in heads:
        table.add_column(head, justify="left" if head in ("problem and learner", "privacy") else "right")
    for title, found in runs.items():
        table.add_row(f"[bold]{title}[/bold]")
        for one in found:
            plan, rounds = one.plan, one.trace.rounds
            bound = plan.regret_bound or 0.0
            table.add_row(
                f"  {one.name}",
                f"{one.trace.switches:,}",
                f"<= {plan.expected_switches or 0.0:,.0f}",
                f"{one.trace.total / rounds:.4f}",
                f"{float(one.regret) / rounds:.4f}",
                f"{bound / rounds:.4f}" + (" (vacuous)" if plan.vacuous else ""),
                f"epsilon {plan.epsilon:g}, delta {plan.delta:g}" if plan.private else "none",
                f"{one.seconds:.1f}",
            )
    Console(width=132).print(table)


def main() -> int:
    """Run the demonstration."""
    print("Compiling kernels and running the learners (the first run takes a minute) ...", flush=True)
    shown = problems()
    runs = {problem.title: run(problem) for problem in shown}
    path = OUT / "demo.png"
    draw_picture(runs, shown, path)
    print_table(runs)
    print(f"Picture: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
