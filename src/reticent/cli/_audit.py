"""`reticent audit`: many runs on two neighbouring streams, held against the certificate."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._options import GOAL, PROBLEM, WORK, number
from reticent.cli._specs import LONGEST
from reticent.systems._texts import DOMAINS, count_of, domain_of

if TYPE_CHECKING:
    from reticent._core._check import Array
    from reticent.planning import BasePlan

VIOLATED = 1
MOST = 100_000_000  # runs: beyond this their scores fill the memory, and no bound gets better by more
EXAMPLES = options.examples(
    "reticent audit --domain interval:0:1 --horizon 100 --epsilon 1 --runs 20000",
    "reticent audit --domain ball:2 --horizon 50 --epsilon 3 --system dp-ftrl",
)


def audit(
    domain: Annotated[str, typer.Option(help=f"Where decisions live: {DOMAINS}.", rich_help_panel=PROBLEM)],
    epsilon: Annotated[
        float, typer.Option(help="The epsilon that the plan promises.", parser=number, rich_help_panel=GOAL)
    ],
    horizon: Annotated[str, typer.Option(help="Rounds of every run.", rich_help_panel=PROBLEM)] = "100",
    delta: Annotated[
        float, typer.Option(help="The delta that goes with it.", parser=number, rich_help_panel=GOAL)
    ] = 1e-5,
    lipschitz: options.Lipschitz = 1.0,
    neighbors: options.Neighbors = "replace",
    adversary: options.Adversary = "adaptive",
    system: Annotated[str, typer.Option(help="A system by a part of its name.", rich_help_panel=GOAL)] = "P-COMW",
    runs: Annotated[str, typer.Option(help="Runs on each of the two streams.", rich_help_panel=WORK)] = "20000",
    at: Annotated[
        float,
        typer.Option(
            "--at", help="The delta to look at: 0.01 needs the fewest runs.", parser=number, rich_help_panel=WORK
        ),
    ] = 0.01,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.", parser=number, rich_help_panel=WORK)] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the runs.", rich_help_panel=WORK)] = 0,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> int:
    """Look for a contradiction: run a learner many times on two streams that differ in one round.

    Prints a lower bound on its true epsilon beside the certificate. Exit code 1 if the bound is above it.
    """
    from reticent import audit
    from reticent.cli._goal import answer, goal_of
    from reticent.cli._show import busy, print_json
    from reticent.losses import Linear

    count = count_of(runs, "runs", least=100, most=MOST)
    workers = options.workers(jobs)
    goal = goal_of(
        domain_of(domain),
        count_of(horizon, "horizon", most=LONGEST),
        lipschitz,
        Linear(),
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        adversary=adversary,
    )
    with busy("planning"):
        plan = answer(goal, system)
    found = audit.audit(
        plan,
        Linear(),
        *neighbours(plan),
        runs=count,
        delta=at,
        confidence=confidence,
        jobs=None if workers == -1 else workers,
        seed=seed,
    )
    if json:
        facts: dict[str, Any] = asdict(found) | {"violated": found.violated, "ratio": found.ratio}
        print_json(facts | {"system": system, "plan": str(plan)})
    else:
        print(found)
        print(
            "A bound below the certificate contradicts nothing, and proves nothing either: other streams may tell more."
        )
    return VIOLATED if found.violated else 0


def neighbours(plan: BasePlan) -> tuple[Array, Array]:
    """Return two streams of gradients that differ in the first round as far as they may.

    For P-COMW the worst that is known; for other systems a first gradient against its opposite (or none), then silence.

    >>> from reticent.domains import Interval
    >>> from reticent.planning import plan_ftrl
    >>> one, two = neighbours(plan_ftrl(Interval(-1.0, 1.0), 3, 1.0, 1.0, 1e-6))
    >>> one.ravel().tolist(), two.ravel().tolist()
    ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0])
    """
    import numpy as np

    from reticent.audit import worst_case
    from reticent.planning import Plan

    if isinstance(plan, Plan):
        return worst_case(plan)
    assert plan.horizon is not None  # plans without an end are P-COMW's alone
    stream, neighbour = np.zeros((2, plan.horizon, plan.domain.dim))
    if plan.domain.finite:  # the losses of two experts, exchanged
        stream[0, 0] = plan.lipschitz
        neighbour[0, -1] = plan.lipschitz if plan.neighbors == "replace" else 0.0
        return stream, neighbour
    along = np.eye(plan.domain.chart_dim)[0]
    direction = plan.domain.from_chart(along) - plan.domain.from_chart(np.zeros_like(along))
    stream[0] = plan.lipschitz * direction
    neighbour[0] = -stream[0] if plan.neighbors == "replace" else 0.0
    return stream, neighbour
