"""Matplotlib's pictures as part of a page: in its colours and font, with ids of their own and words."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from reticent.lab.pictures._style import GRID, INK, MUTED, as_svg
from reticent.lab.report._html import Html, scrolled, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {INK: "currentColor", MUTED: "var(--muted)", GRID: "var(--line)"}
_LEAST, _MOST = 1.05, 1.75  # pixels of width per point of the picture: narrower boxes scroll, wider ones are not filled


def inline(figure: Figure, name: str, title: str, words: str) -> Html:
    """Return a figure as inline SVG with a caption; `name` makes its ids its own, `words` say what it shows."""
    text = as_svg(figure)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    assert size is not None
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r" font-family: [^;\"]*;", "", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{name}-", body)
    for colour, meaning in _COLOURS.items():
        body = body.replace(colour, meaning)
    head = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 {size[1]} {size[2]}" role="img" '
        f'aria-labelledby="{name}-title {name}-words" style="{_widths(float(size[1]))}">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-words">{escape(words)}</desc>'
    )
    return tag("figure", scrolled(Html(head + body + "</svg>"), title, "box picture"), tag("figcaption", words))


def _widths(points: float) -> str:
    return f"min-width: {_LEAST * points:.0f}px; max-width: {_MOST * points:.0f}px"
