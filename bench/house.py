"""How the code is laid out: files, modules that one other uses, cycles between packages, and what a round visits.

    python bench/house.py                      # this checkout; writes bench/results/house.md
    python bench/house.py --src OTHER/src      # another one beside it: printed only

Imports inside functions count. What a round visits is that of the middle one of many.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WATCH = """
import json, os, sys, tempfile
import numpy as np
import reticent as rt
home = os.path.dirname(rt.__file__)
def visited(work):
    functions = set()
    def watch(frame, event, argument):
        code = frame.f_code
        # Modules that are loaded on the way are not visited by what loads them.
        if event == "call" and code.co_filename.startswith(home) and code.co_name != "<module>":
            functions.add((code.co_filename, code.co_qualname))
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in functions}), len(functions)
rng = np.random.default_rng(0)
rows = rng.normal(size=(400, 3)); rows /= 1.01 * np.linalg.norm(rows, axis=1)[:, None]
labels = np.where(rows[:, 0] > 0, 1, -1)
"""
# Kernels as plain Python, since compiled ones cannot be watched.
ROUNDS = (
    """
import numba, numba.extending
def plain(*_, **__):
    def same(function):
        function.py_func = function
        return function
    return same
numba.njit = numba.extending.overload = plain
"""
    + WATCH
    + """
plan = rt.Plan(rt.Ball(3), 10_000, 1.0, beta=0.1, lam=40.0, p=0.02, phi=1.1)
learner = rt.PCOMW(plan, rt.Logistic(), seed=1)
seen = {"quiet": [], "switching": []}
for row, label in zip(rows, labels):
    before = learner.switches
    found = visited(lambda: learner.observe(row, label))
    seen["switching" if learner.switches > before else "quiet"].append(found)
middle = lambda found: sorted(found)[len(found) // 2]
found = {"a quiet round": middle(seen["quiet"]), "a switching round": middle(seen["switching"])}
json.dump(found, open(sys.argv[1], "w"))
"""
)
COMMANDS = (
    WATCH
    + """
from reticent.cli import main
found = {"plan_private": visited(lambda: rt.plan_private(rt.Ball(3), 2_000, 1.0, 1.0, 1e-6))}
place = tempfile.mkdtemp()
with open(os.path.join(place, "rows.csv"), "w") as file:
    file.write("a,b,c,y\\n")
    file.writelines(",".join(map(str, [*row, int(label)])) + "\\n" for row, label in zip(rows, labels))
words = ["run", os.path.join(place, "rows.csv"), "--features", "a,b,c", "--bounds", "a=-1:1,b=-1:1,c=-1:1"]
words += ["--target", "y", "--loss", "logistic", "--epsilon", "3", "--quiet", "--seed", "1"]
found["reticent run"] = visited(lambda: main([*words, "--out", os.path.join(place, "out.csv")]))
json.dump(found, open(sys.argv[1], "w"))
"""
)


def modules_of(src: Path) -> dict[str, tuple[Path, bool]]:
    """Return the modules of the package: their files, and whether they are packages."""
    found = {}
    for path in sorted(src.rglob("*.py")):
        parts = list(path.relative_to(src).with_suffix("").parts)
        package = parts[-1] == "__init__"
        found[".".join(parts[:-1] if package else parts)] = path, package
    return found


def imports_of(name: str, modules: dict[str, tuple[Path, bool]]) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in it."""
    path, package = modules[name]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name in modules}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = name.split(".") if package else name.split(".")[:-1]
                parts = parts[: len(parts) - (node.level - 1)]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for one in node.names:
                inner = f"{base}.{one.name}"
                found |= {inner} if inner in modules else {base} & modules.keys()
    return found - {name}


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected parts of more than one node (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            part = set()
            while not part or node not in part:
                part.add(stack.pop())
            if len(part) > 1:
                found.append(part)

    sys.setrecursionlimit(10_000)
    for node in graph:
        if node not in order:
            visit(node)
    return found


def package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def seen_by(src: Path, code: str) -> dict[str, list[int]]:
    """Run a program on a checkout; return what it has counted."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "counted.json"
        environment = {**os.environ, "PYTHONPATH": str(src)}
        subprocess.run([sys.executable, "-c", code, str(out)], env=environment, check=True, stdout=subprocess.DEVNULL)
        found: dict[str, list[int]] = json.loads(out.read_text())
        return found


def measure(src: Path) -> dict[str, object]:
    modules = modules_of(src / "reticent" / "..")
    modules = {name: value for name, value in modules.items() if name.split(".")[0] == "reticent"}
    graph = {name: imports_of(name, modules) for name in modules}
    users = defaultdict(set)
    for name, others in graph.items():
        for other in others:
            users[other].add(name)
    alone = [
        name
        for name, (_, package) in modules.items()
        if not package and len(users[name]) == 1 and name.rpartition(".")[0] == min(users[name]).rpartition(".")[0]
    ]
    packages: dict[str, set[str]] = defaultdict(set)
    for name, others in graph.items():
        # The root's __init__ collects the public names, and is above all others.
        packages[package_of(name)] |= {package_of(other) for other in others} - {package_of(name), "reticent"}
    packages.pop("reticent", None)
    knots = cycles({name: others & packages.keys() for name, others in packages.items()})
    lines = sum(len(path.read_text().splitlines()) for path, _ in modules.values())
    visits = seen_by(src, ROUNDS) | seen_by(src, COMMANDS)
    return {
        "files": len(modules),
        "lines": lines,
        "modules that only one sibling imports": len(alone),
        "packages in cycles": sum(map(len, knots)),
        **{f"files visited by {name}": seen[0] for name, seen in visits.items()},
        "functions called by plan_private": visits["plan_private"][1],
        "alone": sorted(alone),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, help="the src folder of another checkout, measured beside this one")
    given = parser.parse_args()
    here = measure(ROOT / "src")
    other = measure(given.src.resolve()) if given.src else None
    head = "| | this checkout |" + (" other |" if other else "")
    text = [head, "|---" * (head.count("|") - 1) + "|"]
    for name in [name for name in here if name != "alone"]:
        text.append(f"| {name} | {here[name]:,} |" + (f" {other[name]:,} |" if other else ""))
    print("\n".join(text))
    print("used by one sibling:", ", ".join(here["alone"]))
    if other is None:
        out = ROOT / "bench" / "results" / "house.md"
        out.write_text("# How the code is laid out\n\n`python bench/house.py`\n\n" + "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
