"""Wrap the Python code of the pages at 90 columns, so that a block is read without scrolling: python docs/wrap.py.

A remark beside a line that is too long moves nearer, or above it; a statement that is still too long is laid out by
ruff. What a block does stays the same: its syntax tree is compared.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from pathlib import Path

COLUMNS = 90
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def wrapped(code: str) -> str:
    """Return a block of code with no line longer than 90 letters, if there is a way.

    >>> print(wrapped("print(1)" + 40 * " " + "# " + 50 * "o"))
    print(1)  # oooooooooooooooooooooooooooooooooooooooooooooooooo
    >>> print(wrapped("print(1)" + "  # " + 10 * "eight of " + "these"))
    # eight of eight of eight of eight of eight of eight of eight of eight of eight of eight
    # of these
    print(1)
    """
    if all(len(line) <= COLUMNS for line in code.splitlines()):
        return code
    found = _laid_out(_moved(code))
    if ast.dump(ast.parse(found)) != ast.dump(ast.parse(code)):
        raise ValueError(f"wrapping would change what this does:\n{code}")
    return found


def _moved(code: str) -> str:
    """Move remarks from beside long lines to lines of their own."""
    lines = code.split("\n")
    remarks = {
        token.start[0]: token
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    out: list[str] = []
    for number, line in enumerate(lines, 1):
        remark = remarks.get(number)
        if len(line) <= COLUMNS or remark is None:
            out.append(line)
            continue
        rest = line[: remark.start[1]].rstrip()
        indent = " " * (len(line) - len(line.lstrip()))
        if rest and len(rest) + 2 + len(remark.string) <= COLUMNS:
            out.append(f"{rest}  {remark.string}")
            continue
        words = textwrap.wrap(remark.string.lstrip("# "), COLUMNS - len(indent) - 2, break_on_hyphens=False)
        said = [f"{indent}# {part}" for part in words]
        out += [*said, rest] if rest else said
    return "\n".join(out)


def _laid_out(code: str) -> str:
    """Lay out statements that are still too long."""
    by_hand: set[str] = set()
    while True:
        lines = code.split("\n")
        long = next((k for k, line in enumerate(lines, 1) if len(line) > COLUMNS and line not in by_hand), None)
        if long is None:
            return code
        by_hand.add(lines[long - 1])  # unless there is a way below
        nodes = [
            node
            for node in ast.walk(ast.parse(code))
            if isinstance(node, ast.stmt) and node.lineno <= long <= (node.end_lineno or 0)
        ]
        node = max(nodes, key=lambda one: one.lineno, default=None)
        if node is None or hasattr(node, "body"):
            continue  # the head of a function
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        text = "\n".join(lines[first:last])
        indent = " " * node.col_offset
        command = [sys.executable, "-m", "ruff", "format", "--no-cache", "--isolated", "-"]
        command += ["--line-length", str(COLUMNS - len(indent))]
        made = subprocess.run(command, input=textwrap.dedent(text), capture_output=True, text=True, check=True).stdout
        new = textwrap.indent(made.rstrip("\n"), indent)
        code = "\n".join([*lines[:first], new, *lines[last:]])


def page(text: str) -> str:
    """Return a page with its Python blocks wrapped."""

    def block(match: re.Match[str]) -> str:
        indent, code = match.group(1), match.group(2)
        inside = textwrap.indent(wrapped(textwrap.dedent(code)), indent)
        return f"{indent}```python\n{inside.rstrip()}\n{indent}```"

    return BLOCK.sub(block, text)


def main() -> None:
    """Wrap all pages beside this file."""
    for path in sorted(Path(__file__).parent.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = page(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.name)
        for code in (match.group(2) for match in BLOCK.finditer(after)):
            for line in code.splitlines():
                if len(line) > COLUMNS:
                    print(f"{path.name}: still {len(line)}: {line.strip()}")


if __name__ == "__main__":
    main()
