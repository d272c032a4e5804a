"""`reticent score`: the weights that a run has published, applied to the rows of a file."""

from __future__ import annotations

import csv
import json as json_module
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._columns import Columns
from reticent.cli._options import OUTPUT
from reticent.cli._specs import choice_of
from reticent.systems._texts import loss_of

if TYPE_CHECKING:
    from reticent.lab.files import Scorer, Table

EXAMPLES = options.examples(
    "reticent score people.csv --decisions scorer.json",
    "reticent score people.csv --decisions decisions.csv --features age,income --bounds age=0:120,income=0:2e5 "
    "--intercept --loss logistic",
)


def score(
    source: Annotated[str, typer.Argument(help="A CSV or Parquet file, or - for CSV on standard input.")],
    decisions: Annotated[
        Path, typer.Option(help="What `reticent run` wrote with --scorer, or with --out.", rich_help_panel=OUTPUT)
    ],
    features: options.Features = "",
    intercept: options.Intercept = False,
    bounds: options.Bounds = "",
    categories: options.Categories = "",
    fill: options.Fill = "",
    unit_rows: options.UnitRows = False,
    loss: Annotated[
        str | None, typer.Option(help="With logistic, scores are probabilities too.", rich_help_panel=options.COLUMNS)
    ] = None,
    separator: options.Separator = ",",
    no_header: options.NoHeader = False,
    bad_rows: options.BadRows = "stop",
    out: Annotated[
        Path | None, typer.Option(help="Write scores here, not to standard output.", rich_help_panel=OUTPUT)
    ] = None,
    json: options.Json = False,
) -> None:
    """Score the rows of a file by the last decision of a run, in the units of its columns.

    A scorer (`run --scorer`) says itself how columns are read; for decisions (`run --out`) give the options of columns
    of the run again. Weights of a private run are public, a score is not: it is computed from the row itself.
    """
    from reticent.cli._show import check_outputs, counted, say
    from reticent.lab._kept import about
    from reticent.lab.files import open_table

    check_outputs(source, out=out)
    skip = choice_of("bad-rows", bad_rows, ("stop", "skip")) == "skip"
    columns = Columns(features, None, intercept, bounds, None, None, categories, fill, unit_rows, separator, no_header)
    with ExitStack() as files:
        table = files.enter_context(open_table(source, **columns.form))
        scorer = _scorer(decisions, columns, loss, table)
        say(scorer.formula())
        file: Any = sys.stdout
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            files.enter_context(about(out))
            file = files.enter_context(out.open("w", encoding="utf-8", newline=""))
        count = _write(scorer, table, file, skip, json)
    left = f", {counted(table.skipped, 'bad row')} left out" if table.skipped else ""
    say(f"{counted(count, 'row')} scored{left}; a score is about one row, and not private")


def _scorer(path: Path, columns: Columns, loss: str | None, table: Table) -> Scorer:
    """Return the scorer in a file, or the one that its last decision means with these columns."""
    from reticent.lab.files import Scorer

    with path.open(encoding="utf-8") as file:
        text = file.read()
    if text.lstrip().startswith("{") and '"reticent"' in text[:200]:
        columns.check_none(str(path))
        return Scorer.from_json(text, str(path))
    names, decision = _last(text, path)
    if not columns.features:
        raise ValueError(
            f"{path} has decisions, which do not say how columns are read; give --features, --bounds, --categories and "
            "--intercept as in the run, or a scorer (run --scorer)"
        )
    known = columns.layout().bind(table, None)
    if len(decision) != known.dim or (names is not None and names != list(known.decision)):
        shown = ", ".join(names) if names is not None else f"{len(decision)} numbers"
        raise ValueError(
            f"the decisions in {path} are for {shown}, and the options of columns mean {', '.join(known.decision)}; "
            "give those of the run"
        )
    found = Scorer.of(known, None if loss is None else loss_of(loss), decision, {})
    assert found is not None  # there are features
    return found


def _last(text: str, path: Path) -> tuple[list[str] | None, list[float]]:
    """Return the names, where they are told, and the last decision in CSV or JSON lines."""
    from reticent.cli._run_report import plain_name

    try:
        if text.lstrip().startswith("{"):
            lines = [json_module.loads(line) for line in text.splitlines() if line.strip()]
            return None, [float(x) for x in [line for line in lines if "decision" in line][-1]["decision"]]
        head, *rows = [row for row in csv.reader(text.splitlines()) if row]
        if head[0] != "round":
            raise ValueError
        return [plain_name(name) for name in head[1:]], [float(x) for x in rows[-1][1:]]
    except (ValueError, IndexError, TypeError, KeyError):
        raise ValueError(
            f"{path} has no decisions; expected what `reticent run` writes with --scorer or --out"
        ) from None


def _write(scorer: Scorer, table: Table, file: Any, skip: bool, as_json: bool) -> int:
    """Write the score of every row, with the place of the row; return their number."""
    from scipy.special import expit

    from reticent.lab.files._scorer import ODDS

    heads = [table.place, "score", *(["probability"] if scorer.kind == ODDS else [])]
    writer, count = csv.writer(file, lineterminator="\n"), 0
    if not as_json:
        writer.writerow(heads)
    for part in table.parts(scorer.columns(table), skip=skip):
        found = scorer.scores(part.values).tolist()
        lists = [[part.line(i) for i in range(len(part))], found]
        lists += [expit(found).tolist()] if scorer.kind == ODDS else []
        rows = zip(*lists, strict=True)
        if as_json:
            file.writelines(json_module.dumps(dict(zip(heads, row, strict=True))) + "\n" for row in rows)
        else:
            writer.writerows(rows)
        count += len(part)
    file.flush()
    return count
