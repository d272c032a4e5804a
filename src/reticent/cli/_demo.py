"""`reticent demo`: lazy and private learners on real data, in about a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._options import OUTPUT, WORK

if TYPE_CHECKING:
    from reticent.lab._compare import Contest

EXAMPLES = options.examples("reticent demo", "reticent demo --rounds 3000 --out out/short")
OUT = Path("out")


def demo(
    out: Annotated[
        Path, typer.Option(help="The folder for the picture and the reports.", rich_help_panel=OUTPUT)
    ] = OUT,
    rounds: Annotated[str | None, typer.Option(help="Only so many, from the first on.", rich_help_panel=WORK)] = None,
    json: options.Json = False,
) -> None:
    """Run lazy and private learners on real data: a table, a picture and reports."""
    from reticent.cli._show import busy, check_folder, print_json, progress, say
    from reticent.lab import demo as shown
    from reticent.lab import pictures
    from reticent.lab.report import write_report
    from reticent.systems._texts import count_of

    check_folder("--out", out)
    begin = time.perf_counter()
    streams = shown.streams(None if rounds is None else count_of(rounds, "rounds"))
    if not json:
        say("A private and a lazy learner on the RAND health insurance experiment, beside one that promises neither.")
    contests = []
    with progress(shown.steps(), "reading", quiet=json) as step:
        for stream in streams:
            contests.append(shown.play(stream, lambda words: step(1, words)))
    studies = [shown.study_of(contest) for contest in contests]
    with busy("drawing"):
        picture = pictures.save(shown.picture(studies), out / "demo.png")[0]
        reports = [
            write_report(study, out / f"demo-{name}.html") for name, study in zip(shown.STREAMS, studies, strict=True)
        ]
    if json:
        found = [_facts(contest) for contest in contests]
        print_json({"streams": found, "picture": str(picture), "reports": [str(path) for path in reports]})
        return
    _table(contests)
    print(f"Picture: {picture}")
    for path, stream in zip(reports, streams, strict=True):
        print(f"Report:  {path} ({stream.title})")
    print(f"Done in {time.perf_counter() - begin:.0f} s. Other systems: reticent compare randhie --epsilon 1")


def _facts(contest: Contest) -> dict[str, Any]:
    from dataclasses import asdict

    from reticent.cli._contest import results

    return {"stream": contest.stream.name, "systems": [asdict(row) for row in results(contest)]}


def _table(contests: list[Contest]) -> None:
    from reticent.cli._contest import of_the_way, results
    from reticent.cli._show import table

    for contest in contests:
        rows = [
            [
                f"{row.system}: {row.label}",
                f"{row.switches.mean:,.0f}",
                f"{row.loss.mean:.4f}",
                "" if row.accuracy is None else f"{row.accuracy.mean:.1%}",
                of_the_way(row),
            ]
            for row in results(contest)
        ]
        rows += _baselines(contest)
        heads = ("learner", "changes", "mean loss", "right", "of the way")
        table(heads, rows, title=f"{contest.stream.title}: {contest.stream.rounds:,} rounds")
    print(
        "Of the way: from never moving to the best fixed decision in hindsight. That, losses and shares are computed "
        "from the data: not private. What is private is the sequence of decisions, for ever, at epsilon 1."
    )


def _baselines(contest: Contest) -> list[list[str]]:
    """Return the lines of what everything is measured against."""
    best, T = contest.best, contest.stream.rounds
    if best is None or best.idle is None:
        return []
    lines = [["never moving", "0", f"{best.idle / T:.4f}", "", "0%"]]
    if best.constant is not None and best.majority is not None:
        share = best.share(best.constant)
        way = "" if share is None else f"{share:.0%}"
        lines.append(["the majority class", "0", f"{best.constant / T:.4f}", f"{best.majority:.1%}", way])
    return [*lines, ["best fixed decision, in hindsight", "0", f"{best.value / T:.4f}", "", "100%"]]
