"""Mutants of a saved state: every number in it, and every array, changed in several ways, with a checksum that fits."""

import json
import math

import numpy as np

from reticent._core._errors import WorkLimitError
from reticent.saving._format import MARK, VERSION, sealed

LARGE = 1 << 61


def taken(data):
    """Return structure and arrays of the bytes of a file."""
    body = data[len(MARK) + 8 : -32]
    size = int.from_bytes(body[:8], "little")
    start = 8 + size + -(8 + size) % 16
    return json.loads(body[8 : 8 + size]), bytearray(body[start:])


def put(structure, arrays=b"", version=VERSION):
    """Return the bytes of a file with this structure and these arrays."""
    text = json.dumps(structure).encode()
    pad = bytes(-(8 + len(text)) % 16)
    return b"".join(
        sealed([MARK, version.to_bytes(8, "little"), len(text).to_bytes(8, "little"), text, pad, bytes(arrays)])
    )


class Leaf:
    """A value in a saved state: by which attributes it is reached, and what holds it."""

    def __init__(self, path, owner, holder, place):
        self.path, self.owner, self.holder, self.place = path, owner, holder, place

    @property
    def value(self):
        return self.holder[self.place]

    def __repr__(self):
        return ".".join(map(str, self.path))


def leaves(structure):
    """Yield every leaf of a structure, the arrays included, each once."""
    entries, seen = structure["entries"], set()

    def visit(holder, place, path, owner):
        value = holder[place]
        if not isinstance(value, dict) or "float" in value:
            yield Leaf(path, owner, holder, place)
        elif value["$"] not in seen:
            seen.add(value["$"])
            yield from inside(entries, value["$"], path, owner)

    def inside(holder, number, path, owner):
        entry = entries[number]
        match entry[0]:
            case "object":
                yield from visit(entry, 2, path, entry[1])
            case "dict":
                for pair in entry[1]:
                    yield from visit(pair, 1, (*path, pair[0]), owner)
            case "list" | "tuple" | "set" | "frozenset":
                for i in range(len(entry[1])):
                    yield from visit(entry[1], i, (*path, i), owner)
            case "named":
                for i in range(len(entry[2])):
                    yield from visit(entry[2], i, (*path, i), owner)
            case "generator" | "domain":
                yield from visit(entry, 2, path, entry[0])
            case "array" | "scalar":
                yield Leaf(path, owner, entries, number)

    yield from visit(structure, "root", (), "")


def changed(value):
    """Yield other values of the kind of a number or truth value."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from {-1000, -1, value + 1, value - 1, 0, 3, LARGE, 0.5} - {value}
    elif isinstance(value, float):
        yield from {-value, 2 * value, value + 1e-3, 1e300, 0.0} - {value}
        yield {"float": "nan"}
    elif isinstance(value, dict):
        yield 1.0
    elif value is None:
        yield 3


def mutants(data, some=None, seed=0):
    """Yield (leaf, what was done to it, the bytes of the file) for every mutant of a saved state, or some of them."""
    rng, count = np.random.default_rng(seed), len([*leaves(taken(data)[0])])
    if some is None:
        yield from _all(data, range(count))
        return
    for number in rng.permutation(count)[:some]:
        found = [*_all(data, [number])]
        if found:
            yield found[rng.integers(len(found))]


def _all(data, numbers):
    for number in numbers:
        structure, arrays = taken(data)
        leaf = [*leaves(structure)][number]
        value = leaf.value
        if isinstance(value, list) and value[0] == "array":
            yield from _of_array(leaf, structure, arrays)
            continue
        if isinstance(value, list):
            continue
        for other in changed(value):
            leaf.holder[leaf.place] = other
            yield leaf, f"{value!r} -> {other!r}", put(structure, arrays)


def _of_array(leaf, structure, arrays):
    _, text, shape, order, writeable, start = leaf.value
    kind, size = np.dtype(text), math.prod(shape)
    if size:
        cell = slice(start, start + kind.itemsize)
        before = bytes(arrays[cell])
        (value,) = np.frombuffer(before, dtype=kind)
        others = [value + 1, -value, np.nan, np.inf, 1e300] if kind.kind == "f" else [value + 1, -5, 10**9, LARGE]
        for other in others:
            new = np.array(other).astype(kind).tobytes()
            if new != before:
                arrays[cell] = new
                yield leaf, f"first {value!r} -> {other!r}", put(structure, arrays)
        arrays[cell] = before
        for cut in ([*shape[:-1], shape[-1] - 1], [shape[0] - 1, *shape[1:]], [size], [*shape, 1]):
            if cut != shape:
                leaf.holder[leaf.place] = ["array", text, cut, order, writeable, start]
                yield leaf, f"shape {shape} -> {cut}", put(structure, arrays)
    for other in ("<i8", "<f8", "<f4", "|b1", "<u8"):
        if other != text and np.dtype(other).itemsize <= kind.itemsize:
            leaf.holder[leaf.place] = ["array", other, shape, order, writeable, start]
            yield leaf, f"type {text} -> {other}", put(structure, arrays)
    leaf.holder[leaf.place] = ["array", text, shape, order, not writeable, start]
    yield leaf, f"writeable {not writeable}", put(structure, arrays)


def fate(data, load, go_on, expected):
    """Return what becomes of a mutant: refused, the same run, another run, or what went wrong."""
    try:
        found = load(data)
    except ValueError:
        return "refused"
    try:
        run = go_on(found)
    except WorkLimitError:
        return "another"
    except Exception as error:
        return f"loads, and then {type(error).__name__}: {error}"
    return "same" if run == expected else "another"
