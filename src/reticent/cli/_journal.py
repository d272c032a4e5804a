"""`reticent journal`: what a journal holds, whether all of it is right, and its decisions as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._show import print_json, say

SHOW, VERIFY, EXPORT = (f"reticent journal {name} run.journal" for name in ("show", "verify", "export"))
EXAMPLES = options.examples(SHOW, VERIFY, f"{EXPORT} --output decisions.csv")

app = typer.Typer(
    name="journal",
    epilog=EXAMPLES,
    help="Read a journal, also while a program writes it: rounds, decisions, privacy spent. Nothing is changed.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Place = Annotated[Path, typer.Argument(help="The journal, as rt.Journal(path) wrote it.", show_default=False)]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="The key of a journal that was started with one: a file's bytes.", show_default=False
    ),
]


def _key(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()


@app.callback(invoke_without_command=True)
def _begin(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("show", epilog=options.examples(SHOW))
def show(path: Place, json: options.Json = False, key_file: KeyFile = None) -> None:
    """Say what a journal holds: the learner, its plan, rounds, changes of decision, and the privacy spent."""
    from reticent.journal import Reader

    with Reader(path, key=_key(key_file)) as reader:
        facts = _facts(reader)
        if json:
            print_json(facts)
            return
        plan = str(reader.facts["plan"])
    print(f"{facts['learner']} with {facts['loss']}, after {facts['rounds']:,} rounds on disk\n")
    print(plan, "\n")
    print(f"decisions      {facts['decisions']:,}, the last since round {facts['since']:,}")
    print(f"in play        {facts['decision']}")
    print(f"privacy        {_privacy(facts)}")
    print(f"records        {facts['records']:,}, {facts['bytes']:,} bytes; the chain ends with {facts['seal'][:16]}")


def _facts(reader: Any) -> dict[str, Any]:
    count, last = 0, None
    for change in reader.changes():
        count, last = count + 1, change
    assert last is not None  # there is a first decision always
    plan = reader.facts["plan"]
    return {
        "learner": reader.facts["learner"],
        "loss": reader.facts["loss"],
        "horizon": plan.horizon,
        "rounds": reader.rounds,
        "decisions": count,
        "decision": last.point.tolist(),
        "since": last.rounds,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "spent": reader.spent(),
        "records": reader.records,
        "bytes": Path(reader.path).stat().st_size,
        "seal": reader.seal,
    }


def _privacy(facts: dict[str, Any]) -> str:
    if facts["spent"] is None:
        return "no claim"
    return f"epsilon {facts['spent']:.4g} of {facts['epsilon']:.4g} spent, at delta {facts['delta']:g}"


@app.command("verify", epilog=options.examples(VERIFY))
def verify(path: Place, json: options.Json = False, key_file: KeyFile = None) -> None:
    """Check every record, take in all rounds again from the first on, and compare every decision with the one written.

    Exit code 2 with one sentence if anything is wrong. A journal of a Custom loss needs its functions, so verify it in
    Python: Reader(path).verify(loss).
    """
    from reticent.journal import Reader

    with Reader(path, key=_key(key_file)) as reader:
        learner = reader.verify()
        found = {"rounds": learner.rounds, "switches": learner.switches, "records": reader.records, "seal": reader.seal}
    if json:
        print_json({"whole": True, **found})
        return
    print(
        f"{path} is whole: {found['records']:,} records, {found['rounds']:,} rounds, {found['switches']:,} changes of "
        "decision, all as the rounds lead to"
    )


@app.command("export", epilog=options.examples(EXPORT))
def export(
    path: Place,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.", show_default=False)
    ] = None,
    key_file: KeyFile = None,
) -> None:
    """Write the decisions as CSV: each with the rounds before it, the rounds on disk once it was, and its point.

    Of a private learner the decisions and their times may be published; everything else in a journal is secret.
    """
    from reticent.journal import Reader
    from reticent.saving._write import write_file

    with Reader(path, key=_key(key_file)) as reader:
        if output is None:
            sys.stdout.writelines(_lines(reader))
            return
        reader.refuse_own(output)
        if output.exists() and not output.is_file():  # a pipe, or a device such as /dev/stdout
            with open(output, "w", newline="") as file:
                file.writelines(_lines(reader))
        else:
            write_file(output, (line.encode() for line in _lines(reader)), mode=0o666)
        count = sum(1 for _ in reader.changes())
    say(f"{count:,} decisions written to {output}")


def _lines(reader: Any) -> Iterator[str]:
    for number, change in enumerate(reader.changes()):
        if not number:
            yield ",".join(["after_rounds", "written_after", *(f"x{i + 1}" for i in range(change.point.size))]) + "\n"
        yield ",".join([str(change.rounds), str(change.written), *(repr(float(x)) for x in change.point)]) + "\n"
