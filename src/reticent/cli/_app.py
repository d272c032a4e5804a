"""The commands of `reticent`, each in a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from reticent.cli import (
    _audit,
    _compare,
    _demo,
    _example,
    _journal,
    _ledger,
    _plan,
    _report,
    _run,
    _score,
    _serve,
    _streams,
    _tables,
    _warm,
)

app = typer.Typer(
    name="reticent",
    help="Online decisions that change rarely and reveal little: plan, run, compare and audit them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

USE, STUDY = "Use", "Study"


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"reticent {version('reticent')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("plan", rich_help_panel=USE, epilog=_plan.EXAMPLES)(_plan.plan)
app.command("run", rich_help_panel=USE, epilog=_run.EXAMPLES)(_run.run)
app.command("score", rich_help_panel=USE, epilog=_score.EXAMPLES)(_score.score)
app.command("example", rich_help_panel=USE, epilog=_example.EXAMPLES)(_example.example)
app.command("streams", rich_help_panel=USE, epilog=_streams.EXAMPLES)(_streams.streams)
app.add_typer(_journal.app, name="journal", rich_help_panel=USE)
app.add_typer(_ledger.app, name="ledger", rich_help_panel=USE)
app.command("serve", rich_help_panel=USE, epilog=_serve.EXAMPLES)(_serve.serve)
app.command("demo", rich_help_panel=USE, epilog=_demo.EXAMPLES)(_demo.demo)
app.command("warm", rich_help_panel=USE, epilog=_warm.EXAMPLES)(_warm.warm)
app.command("compare", rich_help_panel=STUDY, epilog=_compare.EXAMPLES)(_compare.compare)
app.command("tables", rich_help_panel=STUDY, epilog=_tables.EXAMPLES)(_tables.tables)
app.command("audit", rich_help_panel=STUDY, epilog=_audit.EXAMPLES)(_audit.audit)
app.command("report", rich_help_panel=STUDY, epilog=_report.EXAMPLES)(_report.report)
