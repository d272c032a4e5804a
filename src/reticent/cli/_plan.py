"""`reticent plan`: a goal in, a certificate out."""

from __future__ import annotations

import textwrap
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._options import GOAL, OUTPUT, PROBLEM
from reticent.cli._specs import horizon_of
from reticent.systems._texts import DOMAINS, LOSSES, count_of, domain_of, loss_of

if TYPE_CHECKING:
    from reticent.cli._columns import Columns
    from reticent.lab.streams import Stream
    from reticent.planning import BasePlan, Comparison, Goal
    from reticent.systems._cost import Cost

EXAMPLES = options.examples(
    "reticent plan --domain ball:10 --horizon 1e6 --epsilon 1 --delta 1e-6",
    "reticent plan --domain interval:0:20 --horizon 1e5 --max-switches 1000 --hard",
    "reticent plan --domain ball:3 --horizon 1e4 --loss logistic --epsilon 1 --all",
    "reticent plan --domain interval:0:1 --horizon 1e6 --loss squared --strong-convexity 1 --smoothness 1 "
    "--max-switches 200 --all",
    "reticent plan --domain ball:3 --horizon unknown --epsilon 1 --system filtered --max-rows 5 --window 10000",
    "reticent plan --domain ball:7:4 --horizon 500 --epsilon 1 --like randhie:rounds=500",
)


def plan(
    domain: Annotated[str, typer.Option(help=f"Where decisions live: {DOMAINS}.", rich_help_panel=PROBLEM)],
    horizon: Annotated[
        str, typer.Option(help="Rounds, such as 1e6; unknown runs doubling epochs.", rich_help_panel=PROBLEM)
    ],
    loss: Annotated[
        str | None,
        typer.Option(help=f"What a round charges: {LOSSES}; any convex loss unless given.", rich_help_panel=PROBLEM),
    ] = None,
    lipschitz: options.Lipschitz = 1.0,
    smoothness: options.Smoothness = None,
    strong_convexity: options.StrongConvexity = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    max_switches: options.MaxSwitches = None,
    hard: Annotated[
        bool, typer.Option("--hard", help="Never more switches, not only in expectation.", rich_help_panel=GOAL)
    ] = False,
    max_rows: options.MaxRows = None,
    window: options.Window = None,
    neighbors: options.Neighbors = "replace",
    adversary: options.Adversary = "adaptive",
    max_operations: options.MaxOperations = None,
    system: Annotated[
        str | None,
        typer.Option(help="A system by a part of its name, or best; P-COMW unless given.", rich_help_panel=GOAL),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="Public data (a stream, or a CSV or Parquet file) to choose by, never the private stream itself.",
            rich_help_panel=GOAL,
        ),
    ] = None,
    features: options.Features = "",
    target: options.Target = None,
    bounds: options.Bounds = "",
    labels: options.Labels = None,
    positive: options.Positive = None,
    categories: options.Categories = "",
    fill: options.Fill = "",
    unit_rows: options.UnitRows = False,
    everything: Annotated[
        bool, typer.Option("--all", help="The certificates of all systems as a table.", rich_help_panel=OUTPUT)
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say in plain words what is promised.", rich_help_panel=OUTPUT)
    ] = False,
    json: options.Json = False,
) -> None:
    """Turn a goal (privacy, few changes, or both) into parameters and a certificate."""
    from reticent._core._names import PCOMW
    from reticent.cli._columns import Columns
    from reticent.cli._goal import BEST, planned
    from reticent.cli._show import busy, print_json

    if everything and (hard or explain or system is not None):
        raise ValueError("--all shows every system, so leave --system, --hard and --explain out of it")
    if epsilon is None and max_switches is None and not everything:
        raise ValueError(
            "a plan needs a goal: give --epsilon for privacy (with --delta, 1e-6 unless given), --max-switches for few "
            "changes, or both; --all without them compares the systems that promise neither"
        )
    units = _units(max_rows, window, everything or like is not None)
    claim = options.claim(epsilon, delta)
    switches = None if max_switches is None else count_of(max_switches, "max-switches", least=0)
    body = domain_of(domain)
    wanted: dict[str, Any] = {
        "domain": body,
        "horizon": horizon_of(horizon),
        "lipschitz": lipschitz,
        "loss": loss_of(loss or ("linear" if body.finite else "hinge")),
        "epsilon": claim[0],
        "delta": claim[1],
        "max_switches": switches,
        "neighbors": neighbors,
        "adversary": adversary,
        "smoothness": smoothness,
        "strong_convexity": strong_convexity,
    }
    wanted |= {} if max_operations is None else {"max_operations": None if max_operations == inf else max_operations}
    aim: dict[str, Any] = {}
    if like is not None:
        if system is not None or hard:
            raise ValueError("--like chooses among all systems, so leave --system and --hard out of it")
        aim = {
            "aim": "ordinary",
            "like": _public(
                like, Columns(features, target, False, bounds, labels, positive, categories, fill, unit_rows), loss
            ),
        }
        wanted["loss"] = aim["like"].loss
    if everything or like is not None:
        with busy(
            "planning with every system" + ("" if like is None else ", and trying all of them on the public data")
        ):
            found = _compared(wanted, aim)
        print_json(_offers(found)) if json else _print_all(found, loss is None and like is None)
        return
    name = system or (BEST if body.finite else PCOMW)
    _refuse_unused(name, max_operations, strong_convexity)
    with busy("planning"):
        chosen = planned(wanted, name, hard, units)
    if json:
        print_json(_certificate(chosen))
    else:
        print(chosen.explain() if explain else chosen)


def _refuse_unused(system: str, max_operations: float | None, strong_convexity: float | None) -> None:
    """Refuse what one named system, or P-COMW, would pass over in silence."""
    from reticent._core._names import PCOMW, PCOMW_LAZY
    from reticent.cli._goal import BEST
    from reticent.cli._specs import system_of

    if system == BEST:
        return
    if max_operations is not None:
        raise ValueError(
            f"--max-operations {max_operations:g} says what --system best may choose, got {system}; give --system best "
            "or --all, or leave it out"
        )
    if strong_convexity is not None and system_of(system) in (PCOMW, PCOMW_LAZY):
        raise ValueError(
            f"--strong-convexity {strong_convexity:g} is for systems that use it, and {system} does not; give --system "
            "best, or --all to see which do"
        )


def _units(max_rows: str | None, window: str | None, several: bool) -> dict[str, int | None]:
    """Return who is protected; refuse that where systems are compared, whose promises are to one row."""
    if window is not None and max_rows is None:
        raise ValueError(f"--window {window} is not enough; give --max-rows K, the rows of one person that count in it")
    if max_rows is not None and several:
        raise ValueError("systems are compared by promises to one row; leave --max-rows out, or name a --system")
    rows = None if max_rows is None else count_of(max_rows, "max-rows")
    return {"max_rows": rows, "window": None if window is None else count_of(window, "window"), "clock": None}


def _public(source: str, columns: Columns, loss: str | None) -> Stream:
    """Return public data as a stream, of a file or by name."""
    from reticent.cli._contest import ground_of
    from reticent.cli._run_source import is_file

    file = is_file(source)
    return ground_of(source, columns, "stop", loss if file else None, None, None, None, private=False).stream


def _compared(wanted: dict[str, Any], aim: dict[str, Any]) -> Comparison:
    from reticent.cli._goal import compared, goal_of

    if wanted["horizon"] is None:
        raise ValueError(
            "--all compares certificates over a number of rounds, got --horizon unknown; give a number, or name one "
            "system: P-COMW, filtered and noisy-descent (private) or budgeted (lazy) do without"
        )
    return compared(goal_of(**wanted), **aim)


def _print_all(found: Comparison, assumed: bool) -> None:
    from reticent.cli._show import out, table
    from reticent.systems._cost import in_short
    from reticent.systems._likeness import SEEDS

    goal = found.goal
    rows: list[list[str]] = []
    for offer in found:
        assert offer.plan is not None
        vacuous = " (vacuous)" if offer.plan.vacuous else " (not certified)" if offer.plan.regret_bound is None else ""
        dear = " (fewer switches)" if offer.fewer else "" if found.affordable(offer) else " (too many)"
        certified = f"{offer.regret_bound / goal.horizon:.5g}{vacuous}"
        if found.resting is not None:
            tried = ["", ""] if offer.tried is None else [f"{offer.tried.loss:.5g}", f"{offer.tried.switches:,.0f}"]
            rows.append([offer.system, *tried, certified])
            continue
        switches = f"{offer.plan.expected_switches or 0:,.0f}"
        work, memory = in_short(offer.plan.cost(goal.loss), goal.horizon)
        rows.append([offer.system, certified, switches, f"{work}{dear}", memory, offer.assumes])
    kind = "convex losses (hinge; --loss tells more)" if assumed and not goal.domain.finite else repr(goal.loss)
    title = f"{goal.horizon:,} rounds of {kind} on {goal.domain!r}: {_asked(goal)}"
    if found.resting is None:
        heads = ("system", "regret a round", "switches", "ops a round", "memory", "assumes")
        table(heads, rows, title=title, left=(0, 5), bold=(0,), whole=(0,))
    else:
        caption = f"On the public data never moving costs {found.resting:.5g} a round; every plan ran {SEEDS} times."
        heads_there = ("system", "loss there", "changes there", "certified regret a round")
        table(heads_there, rows, title=title, caption=caption, bold=(0,))
    grouped: dict[str, list[str]] = {}
    for refusal in found.refusals:
        grouped.setdefault(refusal.reason, []).append(refusal.system)
    if grouped:
        print("Do not apply:")
    for reason, systems in grouped.items():
        text = f"{reason}: {'; '.join(systems)}"
        print(textwrap.fill(text, out().width - 2, initial_indent="  ", subsequent_indent="    "))


def _asked(goal: Goal) -> str:
    parts = [] if goal.epsilon is None else [f"epsilon {goal.epsilon:g}, delta {goal.delta:g}"]
    parts += [] if goal.max_switches is None else [f"at most {goal.max_switches:,} switches"]
    return ", ".join(parts) or "neither private nor lazy"


def _certificate(plan: BasePlan) -> dict[str, Any]:
    """Return a plan for machines: parameters, certificate and the words that go with it."""
    from reticent.cli._goal import parameters
    from reticent.lab import plan_facts

    facts = plan_facts(plan)
    words = {name: facts.pop(name) for name in ("text", "explain")}
    return {"system": facts.pop("system"), "parameters": parameters(plan), "certificate": facts, "words": words}


def _cost(cost: Cost, rounds: int) -> dict[str, Any]:
    return cost._asdict() | {"operations_a_round": cost.operations / rounds}


def _offers(found: Comparison) -> dict[str, Any]:
    goal = {one.name: getattr(found.goal, one.name) for one in fields(found.goal)}
    offers = [
        {
            "system": offer.system,
            "certified": offer.plan.regret_bound is not None,
            "regret_bound": offer.plan.certified_regret,
            "regret_bound_of_its_theorem": offer.plan.regret_bound,
            "expected_switches": offer.plan.expected_switches,
            "assumes": offer.assumes,
            "vacuous": offer.plan.vacuous,
            "fewer_switches": offer.fewer,
            "cost": _cost(offer.plan.cost(found.goal.loss), found.goal.horizon),
            "tried": None if offer.tried is None else offer.tried._asdict(),
        }
        for offer in found
        if offer.plan is not None
    ]
    refusals = [{"system": refusal.system, "reason": refusal.reason} for refusal in found.refusals]
    text = {name: goal[name] if isinstance(goal[name], int | float | str | None) else repr(goal[name]) for name in goal}
    return {"goal": text, "offers": offers, "refusals": refusals}
