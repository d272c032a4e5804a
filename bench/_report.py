"""What every benchmark report has in common: facts about the machine, tables, files."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent._core._progress import bar
from reticent.lab._environment import facts
from reticent.lab._environment import in_words as facts_markdown

__all__ = [
    "PICTURES",
    "drawing",
    "facts",
    "facts_markdown",
    "figure",
    "peak_memory",
    "run_sections",
    "say",
    "section_parser",
    "table",
    "write",
]


def say(*words: object) -> None:
    """Report progress on stderr."""
    print(*words, file=sys.stderr, flush=True)


def figure(x: float | int | str | None, digits: int = 3) -> str:
    """Return a number with so many significant digits, without exponents; text as it is; None as a dash."""
    if x is None:
        return "-"
    if isinstance(x, str):
        return x
    if x == 0:
        return "0"
    if abs(x) >= 10 ** (digits - 1):
        return f"{x:,.0f}".replace(",", " ")
    return f"{float(f'{x:.{digits}g}'):.10f}".rstrip("0").rstrip(".")


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], text: int = 0) -> str:
    """Return a Markdown table; the first `text` columns are aligned left, the others right."""
    marks = ["---" if i < text else "---:" for i in range(len(heads))]
    lines = [heads, marks, *[[figure(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(out: Path, markdown: str, data: dict[str, Any]) -> None:
    """Write the report and, beside it with the ending .json, the numbers."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(markdown.rstrip() + "\n")
    out.with_suffix(".json").write_text(json.dumps(data, indent=1) + "\n")


PICTURES = Path(__file__).resolve().parent.parent / "docs" / "img"
"""Where the pictures of the guides are."""
_PHONE = 4.6  # inches: panels below each other, so that text is still read where a page is as wide as a hand


@contextmanager
def drawing(path: Path, panels: int, height: float = 2.5, *, named: bool = True) -> Iterator[list[Any]]:
    """Yield the axes of a picture for the guides, with the look of all others; write it at the end.

    One legend below names everything, unless the panels have their own.
    """
    from reticent._core._look import blank, legend, look

    with look():
        picture, axes = blank(panels, width=_PHONE, height=height * panels)
        found = [row[0] for row in axes]
        yield found
        if named:
            legend(picture, found)
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, format="png", dpi=160, metadata={"Software": None}, facecolor="white")


def peak_memory() -> int:
    """Return the largest resident size of this process so far in bytes.

    From the system's account of this program where there is one: getrusage counts the parent's size in.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def section_parser(about: str, script: str, sections: Collection[str], quick: str) -> argparse.ArgumentParser:
    """Return the command line of a script whose report has sections that can be run again one by one."""
    source = Path(script)
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--out", type=Path, default=source.parent / "results" / f"{source.stem}.md")
    parser.add_argument("--only", nargs="+", choices=sections, help="sections to run again; others stay as they are")
    return parser


def run_sections(
    args: argparse.Namespace,
    sections: Mapping[str, tuple[Callable[[bool], Any], Any]],
    packages: Sequence[str],
    report: Callable[[dict[str, Any]], str],
) -> None:
    """Run the sections, all or those asked for, and write the report after each."""
    kept = args.out.with_suffix(".json")
    results: dict[str, Any] = {"quick": args.quick, "facts": facts(*packages)}
    if args.only and kept.exists():
        old = json.loads(kept.read_text())
        results = old if old["quick"] == args.quick else results
    begin, names = time.perf_counter(), list(args.only or sections)
    with bar(len(names), "sections") as update:
        for place, name in enumerate(names, 1):
            say(f"{name} ({place} of {len(names)}, {time.perf_counter() - begin:.0f} s so far)")
            update(description=name)
            results[name] = sections[name][0](args.quick)
            results.setdefault("runs", {})[name] = facts()["date"]
            write(args.out, report(results), results)
            update(advance=1)
    say(f"wrote {args.out.name} in {time.perf_counter() - begin:.0f} s")
