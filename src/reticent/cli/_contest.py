"""What a comparison is made of: what it reads, who takes part, the table of results, and where ours loses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reticent._core import _names
from reticent.cli._goal import exact, goal_of
from reticent.cli._run_source import check_stream, flows, is_file

if TYPE_CHECKING:
    from reticent.cli._columns import Columns
    from reticent.cli._run_source import FileSource
    from reticent.lab import Best, Study
    from reticent.lab._compare import Contest, Entry
    from reticent.lab.pictures._groups import Spread
    from reticent.lab.streams import Stream
    from reticent.planning import Goal


@dataclass(frozen=True)
class Pass:
    """One pass over the rounds of a file, from any process."""

    path: str
    columns: Columns
    loss: str
    skip: bool

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        """Go through the file, from its first row on."""
        from contextlib import closing

        from reticent.systems._texts import loss_of

        with closing(_open(self.path, self.columns, self.skip)) as source:
            source.bind(loss_of(self.loss))
            for piece in source.again():
                yield piece.block


@dataclass(frozen=True)
class Ground:
    """A stream to compare on, what has to be known of it, and how many of its rounds are scaled down."""

    stream: Stream
    notes: tuple[str, ...] = ()
    steep: int = 0


def ground_of(
    source: str,
    columns: Columns,
    bad_rows: str,
    loss: str | None,
    domain: str | None,
    lipschitz: float | None,
    rounds: int | None,
    private: bool,
) -> Ground:
    """Return the stream to compare on: its first `rounds` rounds, or all."""
    from contextlib import closing

    from reticent.cli._run_check import look, refuse
    from reticent.cli._run_source import SKIPPING, file_problem, left_out, scaled_down, stream_problem
    from reticent.cli._specs import choice_of

    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    if not is_file(source):
        check_stream(source)
        columns.check_none(source)
        if domain is not None or lipschitz is not None:
            raise ValueError(f"{source} has its own domain and slope; leave --domain and --lipschitz out")
        stream = stream_problem(source, domain, loss, lipschitz).stream(None)
        return Ground(stream if rounds is None else stream.head(rounds))
    if flows(source):
        raise ValueError(f"a comparison reads its rounds many times, and {source!r} can be read once; give a file")
    columns = columns.settled(source, once=False)
    with closing(_open(source, columns, skip)) as file:
        problem = file_problem(file, domain, loss, lipschitz)
        assert loss is not None  # file_problem refuses a file without one
        found = look(problem, rounds)
        if not skip:
            refuse(problem, found, columns, "nothing was compared")
        if found.rows == 0:
            raise ValueError(f"{source} has no rows to compare on")
        if rounds is not None and rounds > found.rows:
            raise ValueError(f"rounds must be at most {found.rows:,}, all that {source} has, got {rounds:,}")
        stream = replace(problem.stream(rounds or found.rows), pieces=Pass(source, columns, loss, skip))
    steep = 0 if problem.certain else sum(int(problem.steep(block)[0].sum()) for block in stream.blocks())
    notes = problem.notes + ([SKIPPING] if skip and private else []) + left_out(found.bad)
    return Ground(stream, (*notes, *scaled_down(steep, stream.rounds, stream.lipschitz)), steep)


def _open(path: str, columns: Columns, skip: bool) -> FileSource:
    from reticent.cli._run_source import FileSource

    return FileSource(path, columns, skip)


# What a comparison is made of: who takes part, the table of results, and where P-COMW loses.

USUAL_PRIVATE = (
    *(_names.FILTERED, _names.PCOMW, _names.NOISY_DESCENT, _names.L2P, _names.OBJECTIVE, _names.DP_FTRL),
    *(_names.DP_FTRL_LINEAR, _names.DP_FTRL_TREE, _names.PRIVATE_DARTBOARD, _names.DRAWN_LEADER),
    _names.NOISY_WEIGHTS,
)
USUAL_LAZY = (_names.BUDGETED, _names.PCOMW_LAZY, _names.SHERMAN_KOREN, _names.FLL, _names.DARTBOARD)
OURS = (_names.FILTERED, _names.BUDGETED, _names.PCOMW, _names.PCOMW_LAZY)
"""What verdicts are about: the first of these that takes part."""
Refusal = tuple[str, str, str]  # a system, why it does not take part, and the goal it was asked for


@dataclass(frozen=True)
class Field:
    """Who takes part: entries of every goal, baselines, and those that were asked for and cannot."""

    ground: Ground
    epsilons: tuple[float, ...]
    delta: float | None
    switches: tuple[int, ...]
    entries: list[Entry]
    refusals: list[Refusal]

    @property
    def stream(self) -> Stream:
        """The stream that all run on."""
        return self.ground.stream

    def contest(self, best: Best) -> Contest:
        """Return the contest of all entries."""
        from reticent.lab._compare import Contest

        return Contest(self.stream, self.entries, best)


def enter(
    ground: Ground,
    epsilons: tuple[float, ...],
    delta: float | None,
    switches: tuple[int, ...],
    neighbors: str,
    adversary: str,
    systems: str,
) -> Field:
    """Plan with every system that is asked for, for every goal; keep reasons where one does not apply."""
    from reticent.lab._compare import Entry
    from reticent.planning import NotApplicable
    from reticent.systems._choice import SYSTEMS

    stream = ground.stream
    by_name = {system.name: system for system in SYSTEMS}
    size = stream.domain, stream.rounds, stream.lipschitz, stream.loss
    entries: list[Entry] = []
    refusals: list[Refusal] = []
    # All goals are checked before the first is planned for: planning takes a while.
    goals = [
        goal_of(
            *size,
            epsilon=epsilon,
            delta=None if epsilon is None else delta,
            max_switches=most,
            neighbors=neighbors,
            adversary=adversary,
        )
        for epsilon in (epsilons or (None,))
        for most in (switches or (None,))
    ]
    for goal in goals:
        for name in _wanted(goal, systems):
            try:
                entries.append(Entry(name, by_name[name].answer(goal), label(goal)))
            except NotApplicable as why:
                if systems != "usual":
                    refusals.append((name, str(why), label(goal)))
    if refusals and not entries:
        reasons = "; ".join(dict.fromkeys(f"{name} {reason}" for name, reason, _ in refusals))
        raise ValueError(f"none of the systems asked for can run: {reasons}; `reticent plan --all` shows which can")
    base = _names.HEDGE if stream.domain.finite else _names.DESCENT
    for most in (*(switches if base == _names.DESCENT else ()), None):
        plan = by_name[base].answer(goal_of(*size, max_switches=most))
        entries.append(Entry(base, plan, "" if most is None else f"{most:,} switches"))
    return Field(ground, epsilons, delta, switches, entries, refusals)


def _wanted(goal: Goal, systems: str) -> Iterator[str]:
    """Yield the names of the systems to ask for a goal, each once."""
    from reticent.systems._choice import SYSTEMS

    if systems == "usual":
        yield from USUAL_PRIVATE if goal.epsilon is not None else USUAL_LAZY
    elif systems == "all":
        private, finite = goal.epsilon is not None, goal.domain.finite
        fits = [one for one in SYSTEMS if one.experts == finite and one.private == private and (private or one.lazy)]
        yield from (one.name for one in fits if one.name != _names.DESCENT)
    else:
        names = dict.fromkeys(exact(goal, part) for part in systems.split(","))
        yield from (name for name in names if name != _names.DESCENT)  # it takes part anyway


def label(goal: Goal) -> str:
    """Return a goal in a few words."""
    parts = [] if goal.epsilon is None else [f"epsilon {goal.epsilon:g}"]
    parts += [] if goal.max_switches is None else [f"{goal.max_switches:,} switches"]
    return ", ".join(parts)


@dataclass(frozen=True)
class Row:
    """One entry's results over its seeds; a round's regret and loss."""

    system: str
    label: str
    private: bool
    share: float | None
    """How far it came from never moving (0) to the best fixed decision (1)."""
    regret: Spread
    bound: float | None
    vacuous: bool
    switches: Spread
    expected: float | None
    loss: Spread
    accuracy: Spread | None
    seconds: float
    seeds: int


def results(contest: Contest) -> list[Row]:
    """Return the results goal by goal, the lowest regret first, baselines without a goal last."""
    from reticent.lab.pictures._groups import spread

    found = []
    for place, entry in enumerate(contest.entries):
        runs = contest.runs.get(place, [])
        if not runs:
            continue
        T = contest.stream.rounds
        accuracy = None
        if runs[0].correct is not None:
            accuracy = spread([(run.correct or 0) / T for run in runs])
        found.append(
            Row(
                system=entry.system,
                label=entry.label,
                private=runs[0].private,
                share=_share(contest.best, [run.total for run in runs]),
                regret=spread([(run.regret or 0.0) / T for run in runs]),
                bound=None if runs[0].bound is None else runs[0].bound / T,
                vacuous=bool(runs[0].plan["vacuous"]) or _says_nothing(contest.best, runs[0].bound),
                switches=spread([run.switches for run in runs]),
                expected=runs[0].plan["expected_switches"],
                loss=spread([run.total / T for run in runs]),
                accuracy=accuracy,
                seconds=min(run.seconds for run in runs),
                seeds=len(runs),
            )
        )
    order = list(dict.fromkeys(entry.label for entry in contest.entries if entry.label))
    return sorted(found, key=lambda row: (order.index(row.label) if row.label else len(order), row.regret.mean))


def _says_nothing(best: Best | None, bound: float | None) -> bool:
    """Say whether never moving keeps a promise of so much regret on this data."""
    return best is not None and best.idle is not None and bound is not None and bound >= best.idle - best.value


def _share(best: Best | None, totals: list[float]) -> float | None:
    return None if best is None else best.share(sum(totals) / len(totals))


def of_the_way(row: Row) -> str:
    """Return the share of the way in words."""
    return "" if row.share is None else f"{row.share:.0%}"


def show(field: Field, contest: Contest) -> None:
    """Print the table: the best of every goal stands out, and baselines without privacy are marked."""
    from reticent.cli._run_source import scaled_down
    from reticent.cli._show import table

    found = results(contest)
    heads = ["goal", "system", "of the way", "regret", "certified", "changes", "loss"]
    judged = any(row.accuracy is not None for row in found)
    if judged:
        heads.append("right")
    cells, bold, seen = [], [], set[str]()
    for place, row in enumerate(found):
        # With privacy as the goal, what is not private cannot be the best.
        if row.label and row.label not in seen and (row.private or not field.epsilons):
            bold.append(place)
            seen.add(row.label)
        mark = "" if row.private else " (not private)"
        again = place > 0 and found[place - 1].label == row.label
        line = [
            "" if again else row.label or "none",
            row.system + mark,
            of_the_way(row),
            with_spread(row.regret),
            certified(row),
            f"{row.switches.mean:,.0f}",
            f"{row.loss.mean:.4f}",
        ]
        if judged:
            line.append("" if row.accuracy is None else f"{row.accuracy.mean:.1%}")
        cells.append(line)
    stream = field.stream
    goal = "" if field.delta is None else f", delta {field.delta:g}"
    seeds = max((row.seeds for row in found), default=0)
    title = f"{stream.title}: {stream.rounds:,} rounds, {stream.loss!r} on {stream.domain!r}{goal}"
    spread = "" if seeds == 1 else " and standard deviation"
    caption = (
        f"{contest.best.beside() if contest.best else ''} Of the way: from never moving to the best fixed decision. "
        f"Mean{spread} over {seeds} seed{'' if seeds == 1 else 's'}; regret (a round) against the best fixed decision. "
        "Computed from the data: not private."
    )
    if any(row.vacuous for row in found):
        caption += " Vacuous: never moving keeps what is certified, too."
    if field.ground.steep:
        caption += " " + scaled_down(field.ground.steep, stream.rounds, stream.lipschitz)[0] + "."
    table(heads, cells, title=title, caption=caption, left=(0, 1), bold=bold)


def certified(row: Row) -> str:
    """Return the certified regret of a round in words."""
    if row.bound is None:
        return "none"
    return f"{row.bound:.4f}" + (" (vacuous)" if row.vacuous else "")


def with_spread(found: Spread) -> str:
    """Return a mean with its standard deviation, where there is one."""
    return f"{found.mean:.4f}" + (f" ± {found.sd:.4f}" if found.runs > 1 else "")


def describe(field: Field, contest: Contest) -> list[str]:
    """Say goal by goal where ours loses (that for ordinary data, else P-COMW), and who did not run."""
    found = results(contest)
    lines = []
    for goal in dict.fromkeys(row.label for row in found if row.label):
        among = [row for row in found if row.label == goal and (row.private or not field.epsilons)]
        mine = next((row for name in OURS for row in among if row.system == name), None)
        if mine is not None:
            lines.append(_verdict(goal, mine, [row for row in among if row is not mine]))
    lines += [f"{one['system']} did not run: {one['reason']}." for one in all_refusals(field, contest)]
    return lines


def _verdict(goal: str, mine: Row, others: list[Row]) -> str:
    better = [row for row in others if row.regret.mean < mine.regret.mean]
    if not others:
        return f"{goal}: nothing to hold {mine.system} against."
    if not better:
        return f"{goal}: {mine.system} has the lowest measured regret of {len(others) + 1} systems."
    named = []
    for row in better:
        error = (mine.regret.error**2 + row.regret.error**2) ** 0.5
        near = ", within two standard errors" if mine.regret.mean - row.regret.mean < 2 * error else ""
        named.append(f"{row.system} ({row.regret.mean:.4f} a round, {row.switches.mean:,.0f} switches{near})")
    return (
        f"{goal}: {mine.system} ({mine.regret.mean:.4f} a round, {mine.switches.mean:,.0f} switches) loses to "
        + "; ".join(named)
        + "."
    )


def all_refusals(field: Field, contest: Contest) -> list[dict[str, str]]:
    """Return every system that was to take part and has no result, with the reason and the goals it is about."""
    failed = [(field.entries[place].system, why, field.entries[place].label) for place, why in contest.failures.items()]
    goals: dict[tuple[str, str], list[str]] = {}
    for system, why, goal in (*field.refusals, *failed):
        goals.setdefault((system, why), []).append(goal or "no goal")
    return [{"system": system, "reason": f"{why} ({'; '.join(about)})"} for (system, why), about in goals.items()]


def facts(field: Field, contest: Contest) -> dict[str, Any]:
    """Return the comparison for machines."""
    from dataclasses import asdict

    from reticent.lab import stream_facts

    return {
        "stream": stream_facts(field.stream),
        "goal": _goal(field),
        "systems": [asdict(row) for row in results(contest)],
        "verdicts": describe(field, contest),
        "refusals": all_refusals(field, contest),
        "notes": list(field.ground.notes),
        "scaled_down_rounds": field.ground.steep,
        "not_private": ["systems", "verdicts", "refusals", "notes", "scaled_down_rounds"],
    }


def _goal(field: Field) -> dict[str, Any]:
    return {"epsilon": list(field.epsilons), "delta": field.delta, "max_switches": list(field.switches)}


def study_of(field: Field, contest: Contest, command: str) -> Study:
    """Return everything as a study."""
    from reticent.lab import Study, stream_facts

    return Study(
        title=f"Systems side by side: {field.stream.title}",
        kind="comparison",
        stream=stream_facts(field.stream),
        goal=_goal(field),
        runs=[run for place in sorted(contest.runs) for run in contest.runs[place]],
        best=contest.best,
        refusals=all_refusals(field, contest),
        command=command,
        notes=list(field.ground.notes),
    )
