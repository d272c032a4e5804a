"""A file is read and checked to its end before the first round: what is in it, what is wrong, and what would help."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.cli._units import Watch, marks_of
from reticent.lab.files import Keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reticent._core._check import Array
    from reticent.cli._columns import Columns
    from reticent.cli._run_source import FileSource, Problem
    from reticent.cli._units import Clock, Marks
    from reticent.lab.files import Column, Rounds

_ENOUGH = 10_000  # bad rows after which nobody wants to know of more
_MANY = 0.1  # of the values beyond their bounds: bounds in other units, more likely than data


@dataclass
class Checked:
    """What a pass over a whole file has found; all of it is computed from the data.

    `rows` can be read, `bad` cannot (`told` has the first of them in words, `empty` counts empty cells by column);
    `steep` are rows that can be read and are steeper, or longer, than was said. `beyond` counts by column the values
    that bounds cut off, `ones` the rows with label 1. `nobody` are rows without a person, `persons` how many there
    are; `blocks` are the first and the last on the clock, and `fullest` the rows of the fullest. Of a file that is
    full of bad rows only the first part was read: then it is not `whole`.
    """

    rows: int = 0
    bad: int = 0
    steep: int = 0
    ones: int = 0
    told: list[str] = field(default_factory=list)
    empty: Counter[str] = field(default_factory=Counter)
    beyond: Counter[str] = field(default_factory=Counter)
    whole: bool = True
    nobody: int = 0
    persons: int = 0
    blocks: tuple[int, int] | None = None
    fullest: int = 0

    @property
    def seen(self) -> int:
        """The number of rows that were looked at."""
        return self.rows + self.bad


def look(problem: Problem, most: int | None = None, step: Callable[[float], None] = lambda _: None) -> Checked:
    """Read all of a file as a run would; bad rows are counted up to the end of the first `most` good ones."""
    from reticent.cli._run_source import CLIP, FileSource, Signs, places_of
    from reticent.lab.files import TooManyBad

    source = problem.source
    assert isinstance(source, FileSource)
    found, bound, shown = Checked(), source.bound, 0.0
    crowd, beside, width = _Crowd(source.clock), source.marked(), len(source.bound.columns)
    with source.opened() as table:
        signs, table.enough = Signs(table.name, bound), _ENOUGH
        try:
            for part in table.parts((*bound.columns, *beside), skip=True):
                values = part.values[:, :width]
                signs.see(values)
                crowd.see(marks_of(beside, part.values[:, width:], source.clock), places_of(table, part))
                if most is None or found.rows < most:
                    left = len(part) if most is None else min(len(part), most - found.rows)
                    found.bad = int(part.bad[left])
                found.rows += len(part)
                table.enough = max(_ENOUGH, found.rows)
                _count(found, bound, values)
                if not problem.certain and len(part):
                    steep, constants = problem.steep(bound.block(values))
                    if steep.any() and not found.steep and problem.policy != CLIP:
                        first = int(np.argmax(steep))
                        place = f"{table.name}, {table.place} {part.line(first)}"
                        found.told.append(f"{place}: {problem.complaint(float(constants[first]))}")
                    found.steep += int(steep.sum())
                step(table.done() - shown)
                shown = table.done()
        except TooManyBad:
            found.bad, found.whole = table.skipped, False
        found.told = table.told + found.told
        found.empty = table.empty
    crowd.tell(found, beside)
    return found


class _Crowd:
    """Counts whose rows are, and how many each block of the clock has; refuses rows out of order."""

    def __init__(self, clock: Clock | None) -> None:
        self._watch = None if clock is None else Watch(clock)
        self._nobody, self._open, self._fullest = 0, 0, 0

    def see(self, marks: Marks, where: Callable[[int], str]) -> None:
        self._nobody += marks.nobody
        if self._watch is None or marks.blocks is None or not marks.blocks.size:
            return
        before = self._watch.last
        self._watch.see(marks.blocks, where)
        _, counts = np.unique(marks.blocks, return_counts=True)
        if before == marks.blocks[0]:
            counts[0] += self._open
        self._open, self._fullest = int(counts[-1]), max(self._fullest, int(counts.max()))

    def tell(self, found: Checked, beside: Sequence[Column]) -> None:
        found.nobody, found.fullest = self._nobody, self._fullest
        found.persons = sum(len(column.known) for column in beside if isinstance(column, Keys))
        if self._watch is not None and self._watch.first is not None and self._watch.last is not None:
            found.blocks = self._watch.first, self._watch.last


def _count(found: Checked, bound: Rounds, values: Array) -> None:
    from reticent.estimators._encoding import Number

    for i, encoding in enumerate(bound.encodings):
        if isinstance(encoding, Number):
            found.beyond[bound.columns[i].name] += _outside(values[:, i], encoding.range.low, encoding.range.high)
    for i, (low, high) in bound.bounds.items():
        found.beyond[bound.columns[i].name] += _outside(values[:, i], low, high)
    if bound.columns[-1].kind in ("label", "class"):
        found.ones += int((values[:, -1] == 1.0).sum())


def _outside(values: Array, low: float, high: float) -> int:
    return int(((values < low) | (values > high)).sum())


# What is wrong, in one sentence; advice is tried first, and says what it would do.


def refuse(problem: Problem, found: Checked, columns: Columns, unharmed: str) -> None:
    """Refuse a file with bad rows before anything is done with it; `unharmed` says so."""
    if not found.bad:
        return
    source: Any = problem.source
    whole = "the" if found.whole else "the first"
    count = f"{found.bad:,} of {whole} {found.seen:,} rows"
    these = f"{count} are" if found.rows else f"all of {whole} {found.bad:,} rows are"
    if found.bad == 1:
        these = "it is the only row that is"
    advice = _advice(source, found, columns)
    raise ValueError(f"{found.told[0]}; {these} bad, and {unharmed}; {advice}")


def _advice(source: FileSource, found: Checked, columns: Columns) -> str:
    bound, parts = source.bound, []
    target = bound.columns[-1]
    labels = target.kind in ("label", "class") and f"column {target.name!r} has" in found.told[0]
    if labels and (named := _labels(source.name, columns, target)):
        return f"{named}; or correct the file"  # what else there is shows when labels are read
    fillable = [column.name for column in bound.features if found.empty[column.name] and not column.fills]
    if fillable:
        names = ",".join(f"{name}=VALUE" for name in fillable)
        cells = sum(found.empty[name] for name in fillable)
        these = "" if cells == found.bad else f" for {cells:,} of them"
        parts.append(f"give --fill {names}{these}: what counts in empty cells, chosen without looking at the data")
    # A label that nobody named is a mistake in the names, or a third one: that leaves few rows out.
    if found.whole and (found.rows >= found.bad if not labels else found.rows > 9 * found.bad):
        parts.append(f"leave {'it' if found.bad == 1 else 'them'} out with --bad-rows skip")
    return "; or ".join([*parts, "correct the file"])


def _labels(path: str, columns: Columns, target: Column) -> str:
    """Look which labels there are, and propose those if they are two."""
    from reticent.cli._columns import texts_of

    found = texts_of(path, target.name, **columns.form)
    if len(found) != 2 or any("," in text for text in found):
        return ""
    if target.labels and found[0] == target.labels[1]:
        found.reverse()
    return f"name both labels, the one to predict last, such as --labels {','.join(found)}"


def check_horizon(problem: Problem, found: Checked | None, horizon: int | None, unharmed: str) -> None:
    """Refuse a horizon that ends before the rounds do."""
    from reticent.cli._run_source import SKIP

    rounds = problem.source.rounds
    if found is not None:
        rounds = found.rows - (found.steep if problem.policy == SKIP else 0)
    if horizon is not None and rounds is not None and rounds > horizon:
        raise ValueError(
            f"{problem.source.name} has {rounds:,} rounds, more than the horizon of {horizon:,}, and what is promised "
            f"ends there; {unharmed}; give --horizon {rounds}{'' if found is None else ', or a shorter file'}"
        )


def check_clock(problem: Problem, found: Checked | None, usual: int | None, unharmed: str) -> None:
    """Refuse a file of which a block has more rows than one may, and say what of the clock is taken as public."""
    from reticent.systems.gate._base import blocks_of

    source: Any = problem.source
    if usual is None:
        return
    clock, most = source.clock, int(blocks_of(usual, 1)["most_rows"])
    if found is not None and found.fullest > most:
        raise ValueError(
            f"a block of the clock has {found.fullest:,} rows, and at most {most:,} may come between two strokes; "
            f"{unharmed}; give a shorter --every, or --usual-rows {-(-found.fullest // 16)} if that many are known to "
            "come without looking at the data"
        )
    ends = [] if clock.start is not None else ["the first"]
    ends += [] if clock.until is not None else ["the last"]
    if ends:
        spans = ""
        if found is not None and found.blocks is not None:
            spans = f", from {clock.text(found.blocks[0])} to {clock.text(found.blocks[1] + 1)}"
        problem.notes.append(
            f"the clock runs{spans}: in which block {' and '.join(ends)} row came is taken as public (--from and "
            "--until give other ends)"
        )


def check_steep(problem: Problem, found: Checked, unharmed: str) -> None:
    """Refuse rows that are steeper, or longer, than was said, where one of them would end the run."""
    from reticent.cli._run_source import STOP
    from reticent.cli._show import counted

    if found.steep and problem.policy == STOP:
        rest = found.rows - found.steep
        skip = f", or leave them out with --bad-rows skip, which leaves {rest:,}" if rest >= found.steep else ""
        raise ValueError(f"{found.told[-1]}{skip}; {counted(found.steep, 'row')} like this, and {unharmed}")


def remarks(problem: Problem, found: Checked) -> list[str]:
    """Return what somebody has to know of a file that can be run: labels all alike, bounds that cut much off."""
    from reticent.cli._run_source import CLIP, FileSource

    source = problem.source
    assert isinstance(source, FileSource)
    bound, said = source.bound, []
    if bound.columns[-1].kind in ("label", "class") and found.rows and found.ones in (0, found.rows):
        which = "1" if found.ones else "-1"
        label = bound.columns[-1].labels[int(found.ones > 0)] if bound.columns[-1].labels else which
        said.append(f"all {found.rows:,} rows have the label {label!r}, so there is nothing to tell apart")
    for name, count in found.beyond.items():
        if count > _MANY * found.rows:
            said.append(
                f"{count:,} of {found.rows:,} values of {name!r} lie beyond its bounds and are cut off; are they in "
                "the units of the column?"
            )
    if found.steep and problem.policy == CLIP:
        said.append(f"{found.steep:,} of {found.rows:,} rounds are steeper than lipschitz {problem.lipschitz:.6g}")
    return said


# `--check` alone: what was found, and what would be promised.


def report(
    problem: Problem, found: Checked | None, horizon: int | None, claim: tuple[Any, Any], to: str
) -> dict[str, Any]:
    """Return what a check has found; what is under `not_private` is computed from the data."""
    measured: dict[str, Any] = {}
    if found is not None:
        measured = {
            "rows": found.rows,
            "bad_rows": found.bad,
            "bad_rows_told": found.told,
            "steep_rounds": found.steep,
            "cut_off": {name: count for name, count in found.beyond.items() if count},
        }
        source: Any = problem.source
        if found.persons or found.nobody:
            measured |= {"persons": found.persons, "rows_of_nobody": found.nobody}
        if found.blocks is not None:
            measured |= {"blocks": found.blocks[1] - found.blocks[0] + 1, "rows_of_the_fullest_block": found.fullest}
        if source.bound.columns[-1].kind in ("label", "class"):
            names = source.bound.columns[-1].labels or ("-1", "1")
            measured["labels"] = {names[0]: found.rows - found.ones, names[1]: found.ones}
    return {
        "source": problem.source.name,
        "horizon": horizon,
        "domain": repr(problem.domain),
        "lipschitz": problem.lipschitz,
        "decision": list(problem.decision),
        "scaling": problem.scaling,
        "epsilon": claim[0],
        "delta": claim[1],
        "protected": to if claim[0] is not None else None,
        "notes": problem.notes,
        "not_private": measured,
    }


def in_words(said: dict[str, Any]) -> str:
    """Return a report as lines of text."""
    from reticent.systems._words import labelled

    found = said["not_private"]
    rows = [("checked", said["source"])]
    if found:
        rows.append(("rows", f"{found['rows']:,} can be read, {found['bad_rows']:,} cannot"))
    if "persons" in found:
        rows.append(("persons", f"{found['persons']:,}, and {found['rows_of_nobody']:,} rows of nobody"))
    if "blocks" in found:
        rows.append(("clock", f"{found['blocks']:,} blocks, {found['rows_of_the_fullest_block']:,} rows at most"))
    if "labels" in found:
        rows.append(("labels", ", ".join(f"{name}: {count:,}" for name, count in found["labels"].items())))
    if found.get("cut_off"):
        rows.append(("beyond bounds", ", ".join(f"{name}: {count:,}" for name, count in found["cut_off"].items())))
    rows.append(("scaling", said["scaling"]))
    rows.append(("decisions in", f"{said['domain']}: {', '.join(said['decision'])}"))
    rows.append(("horizon", "unknown" if said["horizon"] is None else f"{said['horizon']:,} rounds"))
    if said["epsilon"] is not None:
        rows.append(("would promise", f"epsilon {said['epsilon']:g} at delta {said['delta']:g} to {said['protected']}"))
    rows.append(("spent", "nothing; counts of rows, labels and values are computed from the data, and not private"))
    return labelled(rows)
