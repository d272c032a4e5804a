"""`reticent ledger`: budgets of privacy, what was spent of them and by what, and whether the books are right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._options import number
from reticent.cli._show import print_json, say

INIT = "reticent ledger init privacy.db patients --epsilon 3 --delta 1e-6"
SPEND = 'reticent ledger spend privacy.db patients --mu 0.3 --note "yearly means"'
SHOW, VERIFY, EXPORT = (f"reticent ledger {name} privacy.db" for name in ("show", "verify", "export"))
EXAMPLES = options.examples(INIT, SPEND, SHOW, VERIFY, f"{EXPORT} --output ledger.csv")
_BAR = 40  # letters of the bar

app = typer.Typer(
    name="ledger",
    epilog=EXAMPLES,
    help="Keep the books of privacy: budgets of populations, and what was spent of them before it was released.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Place = Annotated[str, typer.Argument(help="The ledger: a file, or a URL of SQLAlchemy.", show_default=False)]
Name = Annotated[str, typer.Argument(help="The population.", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.", show_default=False)
]


@app.callback(invoke_without_command=True)
def _begin(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("init", epilog=options.examples(INIT, f"{INIT.replace('patients', 'riders')} --unit person --window 30"))
def init(
    where: Place,
    population: Name,
    epsilon: Annotated[float, typer.Option(help="What everything together may cost one unit.", parser=number)],
    delta: Annotated[float, typer.Option(help="The delta that goes with it.", parser=number)] = options.DELTA,
    neighbors: Annotated[
        str, typer.Option(help="How worlds differ: replace, zero-out or add-remove a unit.")
    ] = "replace",
    unit: Annotated[str, typer.Option(help="Who is protected, in a word: row, person.")] = "row",
    window: Annotated[
        float | None, typer.Option(help="Days: the budget is for what a unit gave within any so many.", parser=number)
    ] = None,
    slack: Annotated[
        float | None,
        typer.Option(help="Of delta, for entries with one of their own; half unless given.", parser=number),
    ] = None,
    kind: Annotated[str, typer.Option(help="The filter: renyi, or gaussian (sharper for Gaussian entries).")] = "renyi",
) -> None:
    """Add a population with its budget, and make the ledger if there is none. A budget cannot change."""
    from reticent.ledger import Ledger

    book = Ledger(where)
    book.add(population, epsilon, delta, neighbors=neighbors, unit=unit, window=window, slack=slack, kind=kind)
    print(f"{population}: epsilon {epsilon:g} at delta {delta:g} for one {unit} ({neighbors}){_days(window)}")


@app.command("spend", epilog=options.examples(SPEND))
def spend(
    where: Place,
    population: Name,
    mu: Annotated[float, typer.Option(help="A Gaussian release: sensitivity over noise.", parser=number)] = 0.0,
    rho: Annotated[float, typer.Option(help="A zCDP release.", parser=number)] = 0.0,
    epsilon: Annotated[float, typer.Option(help="A pure release, or one with --delta.", parser=number)] = 0.0,
    delta: Annotated[float, typer.Option(help="The delta of the release itself.", parser=number)] = 0.0,
    event: Annotated[
        str | None, typer.Option(help='An event of dp_accounting: {"event": "LaplaceDpEvent", "noise_multiplier": 4}.')
    ] = None,
    neighbors: Annotated[str | None, typer.Option(help="What the release is for; events need it.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="What the release protects, if not a unit of the population.")
    ] = None,
    factor: Annotated[int | None, typer.Option(help="So many of these one unit of the population has at most.")] = None,
    since: Annotated[str | None, typer.Option(help="For windows: no older data enters (now, or a time).")] = None,
    note: Annotated[str, typer.Option(help="What it is, for readers of the ledger.")] = "",
    json: options.Json = False,
) -> None:
    """Enter a release that is about to be made. Exit code 2 if that would exceed the budget: then do not make it."""
    from reticent.ledger import Ledger

    book = Ledger(where, create=False)
    what = _released(mu, rho, epsilon, delta, event)
    entry = book.spend(population, what, note=note, neighbors=neighbors, unit=unit, factor=factor, since=since)
    facts = _facts(book.standing(population))
    if json:
        print_json({"entry": entry.number, "digest": entry.digest, **facts})
        return
    print(f"entry {entry.number} is made; {_left(facts)}")


def _released(mu: float, rho: float, epsilon: float, delta: float, event: str | None) -> Any:
    from json import JSONDecodeError, loads

    from reticent.privacy import Cost
    from reticent.privacy._serial import event_from_plain

    if event is None:
        if not (mu or rho or epsilon or delta):
            raise ValueError("a release costs something; give --mu, --rho, --epsilon (and --delta) or --event")
        return Cost(mu=mu, rho=rho, epsilon=epsilon, delta=delta)
    if mu or rho or epsilon or delta:
        raise ValueError("an event says what it costs; leave --mu, --rho, --epsilon and --delta out")
    try:
        return event_from_plain(loads(event))
    except JSONDecodeError as error:
        raise ValueError(f"--event must be JSON, got {event!r}: {error}") from None


@app.command("end", epilog=options.examples("reticent ledger end privacy.db 2"))
def end(where: Place, entry: Annotated[int, typer.Argument(help="The number of the entry.")]) -> None:
    """Say that no more data enters what an entry is for: in a window it counts until so many days from now."""
    from reticent.ledger import Ledger

    Ledger(where, create=False).end(entry)
    print(f"entry {entry} has ended")


@app.command("show", epilog=options.examples(SHOW))
def show(
    where: Place,
    population: Annotated[str | None, typer.Argument(help="One population, with its entries.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw what is left, as PNG and SVG.", show_default=False)] = None,
    json: options.Json = False,
) -> None:
    """Say what was spent and what is left, of all populations or of one.

    What is left is by the filter, which decides; the total epsilon beside it is by tight composition and describes.
    """
    from reticent.cli._show import table
    from reticent.ledger import Ledger

    book = Ledger(where, create=False)
    found = [one.name for one in book.populations()] if population is None else [population]
    facts = {name: _facts(book.standing(name)) for name in found}
    entries = [] if population is None else _entries(book, population)
    if picture is not None and facts:
        from reticent.lab.pictures import budget_left, save

        say(f"Picture: {save(budget_left({name: one['spent'] for name, one in facts.items()}), picture)[0]}")
    if json:
        print_json({"populations": facts, **({"entries": entries} if population is not None else {})})
        return
    if not facts:
        print("no populations yet; reticent ledger init adds one")
        return
    heads = ["population", "budget", "for", "entries", "total epsilon", "left"]
    rows = [[name, *_cells(one), _bar(one["spent"])] for name, one in facts.items()]
    table(heads, rows, left=(0, 1, 2, 5), whole=(5,))
    for name, one in facts.items():
        print(f"{name}: {_left(one)}")
    if entries:
        costs = [name for name in ("mu", "rho", "epsilon", "delta") if any(one[name] is not None for one in entries)]
        heads = ["entry", "time", "what", "note", "factor", *costs, "share"]
        rows = [[str(one[head]) if one[head] is not None else "" for head in heads] for one in entries]
        table(heads, rows, left=(1, 2, 3), whole=(1,))


def _facts(standing: Any) -> dict[str, Any]:
    people = standing.population
    return {
        "epsilon": people.epsilon,
        "delta": people.delta,
        "neighbors": people.neighbors,
        "unit": people.unit,
        "window": people.window,
        "entries": standing.entries,
        "counted": standing.counted,
        "spent": standing.spent,
        "left_mu": standing.left_mu,
        "left_epsilon": standing.left_epsilon,
        "left_delta": standing.left_delta,
        "total_epsilon": standing.total.epsilon,
        "method": standing.total.method,
    }


def _entries(book: Any, population: str) -> list[dict[str, Any]]:
    budget = book.standing(population).population.filter()
    found = []
    for entry in book.entries(population):
        budget.sums = entry.price
        found.append(_entry(entry) | {"share": float(f"{budget.spent:.4g}")})
    return found


def _entry(entry: Any) -> dict[str, Any]:
    terms = entry.terms
    return {
        "entry": entry.number,
        "time": entry.time.isoformat(timespec="seconds").removesuffix("+00:00"),
        "what": entry.what,
        "note": entry.note,
        "factor": entry.factor,
        "mu": float(f"{terms.square**0.5:.4g}") if terms.square else None,
        "rho": float(f"{terms.rho:.4g}") if terms.rho else None,
        "epsilon": float(f"{terms.pure:.4g}") if terms.pure else None,
        "delta": float(f"{entry.price.delta:.4g}") if entry.price.delta else None,
    }


def _cells(facts: dict[str, Any]) -> list[str]:
    promise = f"one {facts['unit']} ({facts['neighbors']}){_days(facts['window'])}"
    budget = f"epsilon {facts['epsilon']:g}, delta {facts['delta']:g}"
    return [budget, promise, f"{facts['entries']:,}", f"{facts['total_epsilon']:.4g}"]


def _days(window: float | None) -> str:
    return "" if window is None else f", within any {window:g} days"


def _bar(spent: float) -> str:
    """Return a bar of what is left.

    >>> _bar(0.25)
    '##############################..........  75%'
    """
    left = min(max(1 - spent, 0.0), 1.0)
    full = int(left * _BAR)
    return f"{'#' * full}{'.' * (_BAR - full)} {left:4.0%}"


def _left(facts: dict[str, Any]) -> str:
    return (
        f"{max(0.0, 1 - facts['spent']):.1%} of the budget is left: one more Gaussian release of mu "
        f"{facts['left_mu']:.4g}, or a pure one of epsilon {facts['left_epsilon']:.4g}"
    )


@app.command("verify", epilog=options.examples(VERIFY))
def verify(
    where: Place,
    head: Annotated[str | None, typer.Option(help="A digest that was noted: it must be among those found.")] = None,
    json: options.Json = False,
) -> None:
    """Check every record and how they hang together. Exit code 2 with one sentence if anything was changed.

    Also for a CSV or JSON file that export wrote.
    """
    from reticent.ledger import Ledger, check_chain, read_export

    exported = where.endswith((".csv", ".json"))
    last, digest = check_chain(read_export(where), head) if exported else Ledger(where, create=False).verify(head)
    if json:
        print_json({"whole": True, "records": last, "head": digest})
        return
    print(f"{where} is whole: {last:,} records; note the last digest elsewhere: {digest}")


@app.command("export", epilog=options.examples(EXPORT, f"{EXPORT} --as opendp --population patients"))
def export(
    where: Place,
    form: Annotated[str, typer.Option("--as", help="csv, json, opendp or dp-accounting.")] = "csv",
    population: Annotated[str | None, typer.Option(help="Whose; opendp and dp-accounting need it.")] = None,
    output: Output = None,
) -> None:
    """Write the ledger for others: all records as CSV or JSON, or a population in OpenDP's or dp_accounting's terms."""
    import csv
    import io

    from reticent.cli._specs import choice_of
    from reticent.ledger import Ledger
    from reticent.ledger._export import as_json, csv_lines, opendp_terms
    from reticent.privacy._serial import event_to_plain
    from reticent.saving._write import write_file

    choice_of("as", form, ("csv", "json", "opendp", "dp-accounting"))
    book, text = Ledger(where, create=False), io.StringIO()
    if form in ("opendp", "dp-accounting"):
        if population is None:
            raise ValueError(f"--as {form} is about one population; name it with --population")
        people = book.standing(population).population
    elif population is not None:
        raise ValueError(f"a chain is exported whole; leave --population out for --as {form}")
    if form == "csv":
        csv.writer(text, lineterminator="\n").writerows(csv_lines(book))
    elif form == "json":
        text.write(as_json(book))
    elif form == "opendp":
        rows = opendp_terms(book.entries(population), people.neighbors, people.delta)
        table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    else:
        from json import dumps

        event, delta = book.dp_event(str(population))
        relation = ["ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL"]
        text.write(dumps({"event": event_to_plain(event), "add_to_delta": delta, "compose_under": relation}) + "\n")
    if output is None:
        sys.stdout.write(text.getvalue())
        return
    write_file(output, [text.getvalue().encode()], mode=0o666)
    say(f"written to {output}")
