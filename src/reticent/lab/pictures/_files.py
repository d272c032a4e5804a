"""Pictures as files: PNG and SVG beside each other, equal for equal figures."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from reticent._core._look import look
from reticent.lab._kept import about

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(figure: Figure, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG beside each other, and return both paths; equal figures give equal files.

    >>> import tempfile
    >>> from reticent.lab.pictures import wealth
    >>> picture = wealth({"buy and hold": ([1, 2, 3], [1.0, 1.1, 1.2])})
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [one.name for one in save(picture, Path(place) / "wealth")]
    ['wealth.png', 'wealth.svg']
    """
    png, svg = png_and_svg(path)
    png.parent.mkdir(parents=True, exist_ok=True)
    with look(), about(png):
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None}, facecolor="white")
    with about(svg):
        svg.write_text(as_svg(figure, facecolor="white"), encoding="utf-8")
    return png, svg


def png_and_svg(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the two files of a picture, whichever of them is named.

    >>> [str(one) for one in png_and_svg("study.svg")]
    ['study.png', 'study.svg']
    """
    target = Path(path)
    if target.suffix.lower() in (".png", ".svg"):
        target = target.with_suffix("")
    return target.with_name(f"{target.name}.png"), target.with_name(f"{target.name}.svg")


def as_svg(figure: Figure, facecolor: str = "none") -> str:
    """Return a figure as the text of an SVG; without a face colour it takes the colour of the page."""
    page = io.StringIO()
    with look():
        figure.savefig(page, format="svg", metadata={"Date": None, "Creator": None}, facecolor=facecolor)
    return page.getvalue().replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")  # Verdana is as wide
