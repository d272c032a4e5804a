"""`reticent tables`: the paper's Tables 1 and 2, made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reticent.cli import _options as options
from reticent.cli._options import OUTPUT, WORK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXAMPLES = options.examples(
    "reticent tables --quick",
    "reticent tables --only table2 --quick --jobs 2 --out out/lazy",
    "reticent tables --backend dask --scheduler tcp://127.0.0.1:8786",
    "reticent tables --from bench/results/tables.json --out out/again",
)
ONLY = ("table1", "table2", "landscape", "curves")


def tables(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer points, and P-COMW for losses that react only.", rich_help_panel=WORK)
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help=f"A part: {', '.join(ONLY)}; may be repeated.", rich_help_panel=WORK)
    ] = None,
    jobs: options.Jobs = -1,
    backend: Annotated[str, typer.Option(help="loky, threading, dask or ray.", rich_help_panel=WORK)] = "loky",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a running Dask or Ray cluster.", rich_help_panel=WORK)
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Where tables.md, tables.json and pictures go.", rich_help_panel=OUTPUT)
    ] = Path("out/tables"),
    cache: Annotated[
        Path | None, typer.Option(help="Where finished work is kept; OUT/cache unless given.", rich_help_panel=OUTPUT)
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="A tables.json of before: its text and pictures are made anew, nothing is computed.",
            rich_help_panel=WORK,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make Tables 1 and 2 of the paper again: P-COMW beside the previous best of every regime, and who wins.

    What each promises and what it reaches, as regret a round; exponents where fits have power. Every finished piece is
    kept: after Ctrl-C the same command goes on where it stopped.
    """
    from reticent._core._errors import need
    from reticent.cli._show import check_folder, print_json, say

    sections = _sections(only)
    workers = options.workers(jobs)
    need("matplotlib", "lab")
    kept = out / "cache" if cache is None else cache
    check_folder("--out", out)
    check_folder("--cache", kept)
    try:
        if earlier is not None:
            results = _read(earlier, sections)
        else:
            results = _make(quick, sections, kept, workers, backend, scheduler, json)
    except KeyboardInterrupt:
        say(f"what is finished is kept in {kept}; the same command goes on from there")
        raise
    paths = write(results, out)
    if json:
        print_json({name: part for name, part in results.items() if name != "curves"})
    else:
        _show(results)
    for path in paths:
        say(f"Wrote {path}")


def _sections(only: Sequence[str] | None) -> tuple[str, ...]:
    for name in only or ():
        if name not in ONLY:
            raise ValueError(f"--only must be one of {', '.join(ONLY)}, got {name!r}")
    return tuple(name for name in ONLY if not only or name in only)


def _make(
    quick: bool,
    sections: tuple[str, ...],
    cache: Path,
    jobs: int,
    backend: str,
    scheduler: str | None,
    quiet: bool,
) -> dict[str, Any]:
    from time import perf_counter

    from reticent.cli._show import console, left_in_words, progress, say
    from reticent.lab.tables import Workers, count, make

    total, begin = count(quick, sections), perf_counter()
    done = 0
    lines = not quiet and not console().is_terminal  # where no bar can be drawn, a line now and then
    with progress(total, "tables", quiet=quiet) as step:

        def report(title: str) -> None:
            nonlocal done
            done += 1
            step(1, title)
            if lines and done * 10 // total > (done - 1) * 10 // total:
                say(f"{done:,} of {total:,} done, {left_in_words(perf_counter() - begin, done, total)}; {title}")

        return make(quick, Workers(cache, jobs, backend, scheduler, report), sections)


def _read(path: Path, sections: tuple[str, ...]) -> dict[str, Any]:
    """Return the results of an earlier run, judged by what is here now."""
    import json

    from reticent.lab.tables import judged

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        kept = {name: part for name, part in found.items() if name not in ONLY or name in sections}
        return {name: kept[name] for name in ("quick", "environment", "work", "seconds")} | judged(kept)
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError, KeyError, TypeError) as why:
        raise ValueError(
            f"--from must be a tables.json that `reticent tables` wrote, got {path}, which cannot be read as one "
            f"({type(why).__name__}: {why})"
        ) from why


def write(results: Mapping[str, Any], out: Path) -> list[Path]:
    """Write the report, the numbers and the pictures; return the paths."""
    import json

    from reticent.lab import pictures
    from reticent.lab._kept import write_whole
    from reticent.lab.tables import curve_study, exponent_rows, markdown

    paths = [out / "tables.md", out / "tables.json"]
    write_whole(paths[0], markdown(results))
    numbers = {name: part for name, part in results.items() if name != "curves"}
    write_whole(paths[1], json.dumps(_rounded(numbers)) + "\n")
    drawn = {}
    for number in (1, 2):
        found = results.get(f"table{number}", {"levels": [], "rows": []})
        if found["levels"]:
            drawn[f"winners-{number}"] = pictures.winners(found["levels"])
        rows = exponent_rows(found["rows"])
        if rows:  # none where no fit has power
            drawn[f"exponents-{number}"] = pictures.exponents(rows)
    for kind in ("convex", "smooth") if "landscape" in results else ():
        drawn[f"landscape-{kind}"] = pictures.landscape(results["landscape"][kind])
    for variable, draw in (("epsilon", pictures.against_epsilon), ("S", pictures.against_switches)):
        if "curves" in results:
            study = curve_study(variable, results["curves"][variable])
            name = "against-epsilon" if variable == "epsilon" else "against-switches"
            paths.append(study.save(out / f"{name}.json"))
            drawn[name] = draw(study)
    return paths + [path for name, figure in drawn.items() for path in pictures.save(figure, out / name)]


def _rounded(value: Any) -> Any:
    """Return plain data with six digits of every number: more would only make the file longer."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _show(results: Mapping[str, Any]) -> None:
    from reticent.cli._show import out, table
    from reticent.lab.tables import SHORT_CAPTION, SHORT_HEADS, short_line, verdict

    for number in (1, 2):
        if f"table{number}" in results:
            found = results[f"table{number}"]
            lines = [short_line(level) for level in found["levels"]]
            if lines:
                table(SHORT_HEADS, lines, title=f"Table {number}", left=(0, 1, 3, 5, 6), caption=SHORT_CAPTION)
            for said in verdict(found["levels"], found["rows"]):
                out().print(f"* {said}", highlight=False, markup=False)
    for kind in ("convex", "smooth") if "landscape" in results else ():
        cells = results["landscape"][kind]
        lines = [
            [f"{cell['horizon']:.0e}", str(cell["dim"]), f"{cell['epsilon']:g}", cell["system"] or "none",
             "" if cell["bound"] is None else f"{cell['bound']:.3g}"]
            for cell in cells
        ]  # fmt: skip
        heads_here = ("rounds", "d", "epsilon", "lowest certificate", "regret a round")
        table(heads_here, lines, title=f"The lowest certificate, {kind} losses", left=(3,))
