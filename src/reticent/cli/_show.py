"""What people see: a console, tables, progress, JSON for machines, and files that are checked before anything runs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def check_outputs(source: str, *, out: Path | None = None, picture: Path | None = None, **whole: Path | None) -> None:
    """Refuse outputs that would replace the source or each other, are folders, or cannot be written.

    `out` is written as results come, so it may be a device or a pipe; the `whole` ones take the place of what is there.

    >>> check_outputs("people.csv", save=Path("study.json"), report=Path("study.json"))
    Traceback (most recent call last):
    ValueError: --save and --report must be different files, got 'study.json' for both
    """
    named = [("--out", out)] if out is not None else []
    named += [(f"--{name}", path) for name, path in whole.items() if path is not None]
    for name, path in named:
        _check_place(name, path, device=path is out)
    if picture is not None:
        from reticent.lab.pictures._files import png_and_svg

        _check_folder("--picture", picture)
        for path in png_and_svg(picture):
            _check_place("--picture", path, device=False)
            named.append(("--picture", path))
    for k, (name, path) in enumerate(named):
        if _same(path, Path(source)):
            raise ValueError(f"{name} must not be the file that is read, got {str(path)!r} for both")
        for other, earlier in named[:k]:
            if name != other and _same(path, earlier):
                raise ValueError(f"{other} and {name} must be different files, got {str(path)!r} for both")


def check_folder(name: str, path: Path) -> None:
    """Refuse what cannot be a folder for results, or is one that cannot be written.

    >>> check_folder("--out", Path(__file__))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: --out must be a folder, got '...', and '...' is a file
    """
    folder = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not folder.is_dir():
        raise ValueError(f"{name} must be a folder, got {str(path)!r}, and {str(folder)!r} is a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be a folder that can be written, got {str(path)!r}, and {str(folder)!r} cannot")


def _check_folder(name: str, path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{name} must be a file, got the folder {str(path)!r}; name a file in it")


def _check_place(name: str, path: Path, device: bool) -> None:
    _check_folder(name, path)
    if path.exists() and not path.is_file() and not device:
        raise ValueError(f"{name} must be a plain file, got {str(path)!r}, which is a device or a pipe")
    if device and path.exists():
        if not os.access(path, os.W_OK):
            raise ValueError(f"{name} must be a file that can be written, got {str(path)!r}, which is read-only")
        return
    folder = next(above for above in path.absolute().parents if above.exists())
    if not folder.is_dir():
        raise ValueError(f"{name} must be in a folder, got {str(path)!r}, and {str(folder)!r} is a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be in a folder that can be written, got {str(path)!r} in {str(folder)!r}")


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.is_file() and os.path.samefile(path, other)
    return path.resolve() == other.resolve()


# What people see: a console for words and progress, tables, and JSON for machines.

_PIPED = 118  # columns where there is no terminal to ask


def console(*, stderr: bool = True) -> Console:
    """Return a console for standard error (words and progress), or for standard output (results).

    Colour is for terminals only, and NO_COLOR turns it off there too.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPED
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def out() -> Console:
    """Return the console for results, standard output."""
    return console(stderr=False)


def say(text: str) -> None:
    """Say something beside the results, on standard error; where nobody can hear it, work goes on."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        mute(sys.stderr)


def mute(stream: TextIO) -> None:
    """Send to nowhere what a stream that cannot be written still holds: Python must not meet it again at the end."""
    with suppress(OSError, ValueError):  # a stream that is no file holds nothing back
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_json(value: Any) -> None:
    """Print one JSON document on standard output; numbers that JSON has no words for become null.

    >>> print_json({"regret": 1.5, "bound": float("inf")})
    {
      "regret": 1.5,
      "bound": null
    }
    """
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value in the words of JSON: arrays as lists, other objects as text.

    >>> import numpy as np
    >>> plain({"x": np.arange(2), "n": np.float64(0.5), "who": {1: float("nan")}})
    {'x': [0, 1], 'n': 0.5, 'who': {'1': None}}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    left: Sequence[int] = (0,),
    caption: str = "",
    bold: Sequence[int] = (),
    whole: Sequence[int] = (),
) -> None:
    """Print a table on standard output: columns in `left` are text, others numbers; rows in `bold` stand out.

    Texts are broken into lines where the screen is narrow, but for those of the columns in `whole`.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title or None, caption=caption or None, box=box.SIMPLE_HEAD, title_justify="left")
    shown.caption_justify = "left"
    for place, head in enumerate(heads):
        # Texts may be broken between words, never within one.
        broken = place in left and place not in whole
        words = [word for row in (heads, *rows) for word in row[place].split()] if broken else []
        least = max(map(len, words), default=None)
        shown.add_column(head, justify="left" if place in left else "right", no_wrap=not broken, min_width=least)
    for place, row in enumerate(rows):
        shown.add_row(*(Text(cell) for cell in row), style="bold" if place in bold else None)
    out().print(shown)


@contextmanager
def progress(total: float | None, title: str, *, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error while a block runs; yields `step(amount=1, title=None)`.

    Nothing is shown where standard error is not a terminal, or if `quiet`.
    """
    from reticent._core._progress import bar

    with bar(total, title, console(), hidden=quiet) as update:

        def step(amount: float = 1.0, title: str | None = None) -> None:
            update(advance=amount, description=title)

        yield step


def counted(count: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "row"), counted(2000, "bad row")
    ('1 row', '2,000 bad rows')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def left_in_words(seconds: float, done: int, total: int) -> str:
    """Say how long the rest of some pieces of work will take, if it goes on as it did.

    >>> left_in_words(30.0, 10, 110), left_in_words(4.0, 1, 2), left_in_words(9e3, 1, 2), left_in_words(5.0, 2, 2)
    ('about 5 min left', 'some seconds left', 'about 2.5 h left', 'nothing left')
    """
    if done >= total:
        return "nothing left"
    left = seconds / done * (total - done)
    if left < 50:
        return "some seconds left"
    return f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.1f} h left"


@contextmanager
def busy(title: str) -> Iterator[None]:
    """Show on standard error that work of unknown length goes on, where that is a terminal."""
    words = console()
    if not words.is_terminal:
        yield
        return
    with words.status(f"{title} ..."):
        yield
