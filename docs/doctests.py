"""For the reference: examples in docstrings become code blocks, and lists in running text stay lists."""

from __future__ import annotations

import textwrap
from typing import Any

from griffe import Extension, Object


class Doctests(Extension):
    """Puts fences around what begins with >>> in every docstring; Markdown would take it for a quotation."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of an object as it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its examples fenced; an example ends at an empty line."""
    parts = []
    for part in textwrap.dedent(text).split("\n\n"):
        body = part.strip("\n")
        parts.append(f"```pycon\n{body}\n```" if body.lstrip().startswith(">>>") else body)
    return "\n\n".join(parts)
