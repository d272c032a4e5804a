"""What pages are made of: lists, facts, boxes that scroll, and sections."""

from __future__ import annotations

from collections.abc import Iterable

from reticent._core._html import Html, tag


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
