"""What is said at the end of a run: counts, promises, and what was measured on the data (which is not private)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.cli._run_loop import Outcome
    from reticent.cli._run_source import Problem
    from reticent.lab import Best, Recorder
    from reticent.learners import Learner

NOT_PRIVATE = "not private: computed from the data"


def summary(
    learner: Learner,
    system: str,
    problem: Problem,
    outcome: Outcome,
    recorder: Recorder,
    best: Best | None,
    seed: int | None,
    notes: list[str],
) -> dict[str, Any]:
    """Return the numbers of a run by name; those under `not_private` are computed from the data."""
    plan, rounds = learner.plan, recorder.rounds
    measured: dict[str, Any] = {"mean_loss": recorder.total / rounds if rounds else None}
    measured |= {"bad_rows_skipped": outcome.bad, "steep_rounds": outcome.steep}
    measured |= {"seconds": outcome.seconds, "rounds_per_second": rounds / outcome.seconds if outcome.seconds else None}
    if best is not None:
        regret = recorder.total - best.value
        measured |= {"regret_at_least": regret, "regret_at_most": regret + best.gap, "best_fixed_decision": best.point}
    return {
        "source": problem.source.name,
        "system": system,
        "horizon": plan.horizon,
        "lipschitz": plan.lipschitz,
        "rounds": rounds,
        "switches": recorder.switches,
        "expected_switches": plan.expected_switches,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "epsilon_spent": (learner.spent() if learner.rounds else 0.0) if plan.private else None,
        "regret_bound": plan.regret_bound,
        "vacuous": bool(plan.vacuous),
        "decision": outcome.decision.tolist(),
        "ended": _ending(outcome),
        "seed": seed,
        "notes": notes,
        "not_private": measured,
    }


def _ending(outcome: Outcome) -> str:
    if outcome.interrupted:
        return "interrupted"
    return "whole" if outcome.stopped is None else "stopped"


def in_words(found: dict[str, Any], clipped: bool) -> str:
    """Return a summary as lines of text."""
    from reticent.planning._table import labelled

    measured, rounds = found["not_private"], found["rounds"]
    rows = [("system", found["system"]), ("rounds", _rounds(found))]
    expected = found["expected_switches"]
    promised = "" if expected is None else f" (for the whole horizon at most {expected:,.0f} are expected)"
    rows.append(("switches", f"{found['switches']:,}{promised}"))
    if found["epsilon"] is not None:
        spent = "" if found["epsilon_spent"] is None else f"{found['epsilon_spent']:.4g} of "
        rows.append(("privacy", f"epsilon {spent}{found['epsilon']:g} spent at delta {found['delta']:g}"))
    else:
        rows.append(("privacy", "none promised"))
    rows.append(("decision now", ", ".join(f"{x:.6g}" for x in found["decision"][:8])))
    if measured["bad_rows_skipped"]:
        rows.append(("bad rows skipped", f"{measured['bad_rows_skipped']:,} ({NOT_PRIVATE})"))
    if measured["steep_rounds"]:
        what = "scaled down" if clipped else "left out"
        rows.append(("steep rounds", f"{measured['steep_rounds']:,} {what} ({NOT_PRIVATE})"))
    about = f"{NOT_PRIVATE}, of the scaled-down rounds" if clipped and measured["steep_rounds"] else NOT_PRIVATE
    if rounds:
        rows.append(("mean loss", f"{measured['mean_loss']:.6g} ({about})"))
    if "regret_at_most" in measured:
        rows.append(("regret a round", f"{measured['regret_at_most'] / rounds:.4g} ({about}{_certified(found)})"))
    speed = measured["rounds_per_second"]
    rows.append(("time", f"{measured['seconds']:.1f} s" + (f", {speed:,.0f} rounds a second" if speed else "")))
    return labelled(rows)


def _certified(found: dict[str, Any]) -> str:
    """Say what was certified; that is for the whole horizon, wherever the run ended."""
    if found["regret_bound"] is None:
        return ""
    if found["vacuous"]:
        return "; the certificate is vacuous"
    return f"; certified {found['regret_bound'] / found['horizon']:.4g} over the whole horizon"


def _rounds(found: dict[str, Any]) -> str:
    if found["horizon"] is None:
        return f"{found['rounds']:,}, in doubling epochs"
    return f"{found['rounds']:,} of a horizon of {found['horizon']:,}"
