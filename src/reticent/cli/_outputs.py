"""Where results go, checked before anything runs: a private run must not be spent for files that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path


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
        from reticent.lab.pictures._style import png_and_svg

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
