"""Pieces of HTML that cannot be broken by what is written into them, and how an object is shown in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from reticent._core._names import INK, colour_of

_EMPTY = {"input", "br", "meta"}  # elements that have no end


class Html(str):
    """Text that is HTML already; any other text is escaped where it is put in."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | bool | None) -> Html:
    """Return an element; underscores in names of attributes stand for dashes, one at the end keeps Python's words free.

    >>> tag("p", "1 < 2", tag("b", "&"), class_="note", hidden=True, id=None)
    '<p class="note" hidden>1 &lt; 2<b>&amp;</b></p>'
    """
    parts = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(key)
        elif value is not None and value is not False:
            parts.append(f'{key}="{escape(value)}"')
    inside = join(children)
    return Html(f"<{' '.join(parts)}>" + ("" if name in _EMPTY else f"{inside}</{name}>"))


def join(parts: Iterable[str]) -> Html:
    """Return pieces one after the other, escaping those that are not HTML.

    >>> join(["<", Html("<br>")])
    '&lt;<br>'
    """
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


# How plans, learners, accounts and others look in a notebook. Nothing is coloured but the sample of a system: text
# and ground are those of the page, light or dark, and lines are a grey that shows on both.

NOT_PRIVATE = "not private"
"""What stands beside every number that was computed from the data without protection."""

_LINE = "1px solid rgba(128, 128, 128, 0.45)"
_CELL = f"text-align: left; vertical-align: top; padding: 0.2em 1.2em 0.2em 0; border-top: {_LINE}; font-weight: normal"
_NUMBER = _CELL.replace("text-align: left", "text-align: right")
_QUIET = "opacity: 0.75"
_TABLE = "border-collapse: collapse; margin: 0.3em 0; background: none"


def card(
    title: str,
    rows: Iterable[tuple[str, str]] = (),
    *,
    system: str | None = None,
    note: str = "",
    below: str = "",
) -> str:
    """Return an object as a heading and a table of labels and texts, with a remark and more HTML below.

    `system` names one whose colour in pictures stands before the heading. Everything is escaped that is not `Html`.

    >>> card("a <plan>", [("rounds", "1 & 2")]).count("&lt;plan&gt;"), "1 &amp; 2" in card("", [("rounds", "1 & 2")])
    (1, True)
    """
    head = [tag("strong", title)]
    if system is not None:
        colour = colour_of(system)
        ground = "currentColor" if colour == INK else colour  # ink is lost on a dark page
        style = f"display: inline-block; width: 0.7em; height: 0.7em; margin-right: 0.5em; background: {ground}"
        head.insert(0, tag("span", style=style))
    lines = [
        tag("tr", tag("th", label, scope="row", style=f"{_CELL}; {_QUIET}"), tag("td", text, style=_CELL))
        for label, text in rows
    ]
    parts = [tag("div", *head)]
    parts += [tag("table", tag("tbody", *lines), style=_TABLE)] if lines else []
    parts += [tag("p", note, style=f"{_QUIET}; margin: 0.3em 0; max-width: 60em")] if note else []
    return tag("div", *parts, below, class_="reticent", style="overflow-x: auto")


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> Html:
    """Return a table with headings; the first `text` columns and the last are words, the others numbers.

    >>> grid(["system", "changes", "why"], [["a < b", "3", "so"]]).count("<td")
    3
    """
    last = len(heads) - 1

    def style(place: int) -> str:
        return _CELL if place < text or place == last else _NUMBER

    top = tag("tr", *(tag("th", head, scope="col", style=f"{style(k)}; {_QUIET}") for k, head in enumerate(heads)))
    body = [tag("tr", *(tag("td", cell, style=style(k)) for k, cell in enumerate(row))) for row in rows]
    return tag("table", tag("thead", top), tag("tbody", *body), style=_TABLE)


def numbers(values: Iterable[float], most: int = 8) -> str:
    """Return the coordinates of a decision for people, the first ones of many.

    >>> numbers([1.0, 0.25]), numbers(range(30), most=3)
    ('1, 0.25', '0, 1, 2, ... (30 numbers)')
    """
    found = [f"{value:.6g}" for value in values]
    return ", ".join(found[:most]) + (f", ... ({len(found)} numbers)" if len(found) > most else "")
