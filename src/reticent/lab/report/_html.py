"""Pieces of HTML that cannot be broken by what is written into them."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

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


def listed(items: Iterable[str], **attributes: str | None) -> Html:
    """Return a list of items."""
    return tag("ul", *(tag("li", item) for item in items), **attributes)


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return names with what belongs to them."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))


def scrolled(inside: Html, name: str, class_: str = "box") -> Html:
    """Return a box that scrolls by itself where the page is too narrow, also by keys."""
    return tag("div", inside, class_=class_, role="region", aria_label=name, tabindex="0")


def section(name: str, heading: str, *children: str) -> Html:
    """Return a section with its heading."""
    return tag("section", tag("h2", heading, id=f"{name}-head"), *children, id=name, aria_labelledby=f"{name}-head")
