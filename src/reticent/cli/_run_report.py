"""What a run tells: decisions as they change, and at the end counts, promises, and what was measured on the data."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from reticent.lab._kept import about

if TYPE_CHECKING:
    from reticent._core._check import Array
    from reticent.cli._run_go import Outcome
    from reticent.cli._run_source import Problem
    from reticent.lab import Best, Recorder
    from reticent.lab.files import Scorer
    from reticent.learners import Learner, Trace

# Decisions as they change, as CSV or JSON lines: of a private run, exactly what may be published.


def as_json(out: Path | None, wanted: bool) -> bool:
    """Say whether decisions go out as JSON lines: by the end of a file's name, or where it has none, as was asked.

    >>> as_json(Path("d.csv"), True), as_json(Path("d.jsonl"), False), as_json(None, True)
    (False, True, True)
    """
    ending = "" if out is None else out.suffix.lower()
    return ending in (".json", ".jsonl", ".ndjson") or (wanted and ending not in (".csv", ".tsv", ".txt"))


def harmless(text: str) -> str:
    """Return a text as a spreadsheet shows it: one that would be a formula gets an apostrophe in front.

    >>> harmless("=1+1"), harmless("-0.5"), harmless("age")
    ("'=1+1", '-0.5', 'age')
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def plain_name(text: str) -> str:
    """Return a text as it was before `harmless`.

    >>> plain_name(harmless("=x")), plain_name("age")
    ('=x', 'age')
    """
    return text[1:] if text.startswith("'") and harmless(text[1:]) == text else text


class Decisions:
    """Writes each decision with the first round in which it is in play; rounds are counted from 1."""

    def __init__(self, file: IO[str], name: str, names: Sequence[str], as_json: bool, since: str = "round") -> None:
        """Begin a file, whose name is for messages; CSV starts with a line of names, `since` the first of them."""
        self._file, self._name, self._json, self._since = file, name, as_json, since
        self._csv = csv.writer(file, lineterminator="\n")
        self._last: Any = None
        if not as_json:
            self._csv.writerow([since, *map(harmless, names)])

    def first(self, point: Array) -> None:
        """Write the decision that is in play before any data."""
        self._write([1], point[None])

    def since(self, when: str, point: Array) -> None:
        """Write a decision that is in play from a stroke of the clock on."""
        self._write([when], point[None])

    def add(self, trace: Trace) -> None:
        """Write the changes of a block, one right after its last round included, and pass them on at once."""
        import numpy as np

        goes_on = int(np.array_equal(trace.points[0], self._last))
        starts, points = trace.starts[goes_on:] + (trace.first + 1), trace.points[goes_on:]
        if not np.array_equal(trace.points[-1], trace.final):
            starts = np.append(starts, trace.first + trace.rounds + 1)
            points = np.concatenate([points, trace.final[None]])
        if len(starts):
            self._write(starts.tolist(), points)

    def _write(self, rounds: Sequence[int | str], points: Array) -> None:
        rows = points.tolist()
        with about(self._name):
            if self._json:
                lines = (json.dumps({self._since: t, "decision": row}) for t, row in zip(rounds, rows, strict=True))
                self._file.write("".join(line + "\n" for line in lines))
            else:
                self._csv.writerows([t, *row] for t, row in zip(rounds, rows, strict=True))
            self._file.flush()
        self._last = points[-1]


# What is said at the end of a run: counts, promises, and what was measured on the data (which is not private).

NOT_PRIVATE = "not private: computed from the data"


def scorer_of(learner: Learner, problem: Problem, decision: Sequence[float], rounds: int) -> Scorer | None:
    """Return the decision as a score in the units of a file's columns; None where it is none."""
    from reticent.cli._run_source import FileSource
    from reticent.lab.files import Scorer

    if not isinstance(problem.source, FileSource):
        return None
    plan = learner.plan
    promise = {"system": plan.system, "rounds": rounds, "epsilon": plan.epsilon, "delta": plan.delta}
    if plan.clock:
        del promise["rounds"]  # how many rows came is not public there
    if plan.max_rows is not None:
        promise["unit"] = plan.unit
    return Scorer.of(problem.source.bound, problem.loss, decision, promise)


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
    from reticent.cli._run_source import FileSource
    from reticent.privacy._meaning import guessed

    plan, rounds, source = learner.plan, recorder.rounds, problem.source
    measured: dict[str, Any] = {"mean_loss": recorder.total / rounds if rounds else None}
    measured |= {"bad_rows_skipped": outcome.bad, "steep_rounds": outcome.steep}
    rate = outcome.timed / outcome.seconds if outcome.timed and outcome.seconds > 0 else None
    measured |= {"seconds": outcome.seconds, "seconds_to_get_ready": outcome.ready, "rounds_per_second": rate}
    if plan.max_rows is not None:
        measured |= {"rows_left_out": learner.left_out - outcome.nobody, "rows_of_nobody": outcome.nobody}
    if plan.clock:
        measured["rows"] = rounds
    if best is not None:
        regret = recorder.total - best.value
        measured |= {"regret_at_least": regret, "regret_at_most": regret + best.gap, "best_fixed_decision": best.point}
    scorer = scorer_of(learner, problem, outcome.decision.tolist(), rounds)
    return {
        "source": problem.source.name,
        "system": system,
        "horizon": plan.horizon,
        "lipschitz": plan.lipschitz,
        "rounds": None if plan.clock else rounds,
        "blocks": outcome.blocks if plan.clock else None,
        "switches": learner.switches if plan.clock else recorder.switches,
        "expected_switches": plan.expected_switches,
        "max_switches": plan.max_switches,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "epsilon_spent": (learner.spent() if learner.rounds else 0.0) if plan.private else None,
        "protected": source.protected if plan.private and isinstance(source, FileSource) else None,
        "attacker": guessed(plan, "row" if plan.max_rows is None else "person") if plan.private else None,
        "regret_bound": plan.certified_regret,
        "vacuous": bool(plan.vacuous),
        "decision": outcome.decision.tolist(),
        "score": None if scorer is None else scorer.formula(),
        "score_limits": None if scorer is None else scorer.limits(),
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
    from reticent.systems._words import labelled

    measured = found["not_private"]
    rounds = measured.get("rows", found["rounds"])
    rows = [("system", found["system"]), ("rounds", _rounds(found)), ("switches", _switches(found))]
    if found["epsilon"] is not None:
        spent = "" if found["epsilon_spent"] is None else f"{found['epsilon_spent']:.4g} of "
        rows.append(("privacy", f"epsilon {spent}{found['epsilon']:g} spent at delta {found['delta']:g}"))
        if found["protected"]:
            rows.append(("protected", found["protected"]))
        rows.append(("attacker", found["attacker"]))
    else:
        rows.append(("privacy", "none promised"))
    rows.append(("decision now", _shown(found["decision"])))
    if found["score"]:
        rows.append(("as a score", found["score"]))
        if found["score_limits"]:
            rows.append(("", found["score_limits"]))
    if "rows_left_out" in measured:
        more, nobody = measured["rows_left_out"], measured["rows_of_nobody"]
        rows.append(("rows left out", f"{more:,} of persons with more, {nobody:,} of nobody ({NOT_PRIVATE})"))
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
    rows.append(("time", _time(measured)))
    return labelled(rows)


def _shown(decision: list[float]) -> str:
    more = f", ... ({len(decision)} in all)" if len(decision) > 8 else ""
    return ", ".join(f"{x:.6g}" for x in decision[:8]) + more


def _switches(found: dict[str, Any]) -> str:
    """Return the number of changes beside what is promised of it: never more, or a mean over runs."""
    if found["max_switches"] is not None:
        return f"{found['switches']:,} (never more than {found['max_switches']:,})"
    if found["expected_switches"] is None:
        return f"{found['switches']:,}"
    mean = f"{found['expected_switches']:,.0f}"
    return f"{found['switches']:,} (over the whole horizon {mean} at most on average; single runs may have more)"


def _time(measured: dict[str, Any]) -> str:
    ready, rate = measured["seconds_to_get_ready"], measured["rounds_per_second"]
    text = f"{measured['seconds']:.1f} s"
    if rate is not None:
        text += f", {rate:,.0f} rounds a second" if rate >= 10 else f", {rate:.2g} rounds a second"
    return text + (f", after {ready:.1f} s to get ready" if ready >= 0.5 else "")


def _certified(found: dict[str, Any]) -> str:
    """Say what was certified; that is for the whole horizon, wherever the run ended."""
    if found["regret_bound"] is None:
        return ""
    if found["vacuous"]:
        return "; the certificate is vacuous"
    return f"; certified {found['regret_bound'] / found['horizon']:.4g} over the whole horizon"


def _rounds(found: dict[str, Any]) -> str:
    if found["blocks"] is not None:
        return f"{found['blocks']:,} blocks of the clock; {found['not_private']['rows']:,} rows ({NOT_PRIVATE})"
    if found["horizon"] is None:
        return f"{found['rounds']:,}, without an end"
    return f"{found['rounds']:,} of a horizon of {found['horizon']:,}"


def ended(rounds: int, outcome: Outcome) -> list[str]:
    """Return a note for a run that did not come to the end of its rounds."""
    from reticent.cli._main import sentence

    if outcome.interrupted:
        return [f"interrupted after {rounds:,} rounds"]
    return [] if outcome.stopped is None else [f"stopped after {rounds:,} rounds: {sentence(outcome.stopped)}"]
