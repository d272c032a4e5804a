"""A loaded object beside a new one made for the same purpose: what never moves is equal, what does is of one kind.

The checksum of a file finds accidents, and a key forgeries; this finds states that no run leads to, before compiled
code sees them. Each class says in `_moves` what changes as rounds come in, in `_grows` which arrays get longer, and in
`_may_lack` what may be None; all else is compared, so that what somebody forgets to name is refused, not let through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent._core._tags import tag_of
from reticent.domains import Domain
from reticent.losses import Loss, Objects, Rows

_MOST = 1 << 62  # whole numbers of a state: counts, and rounds that never come
_GREATEST = 1e250  # other numbers: units are from 1e-100 to 1e100, and beyond it little is left before infinity


def check_twin(found: Any, new: Any, own: tuple[Any, Any], name: str) -> None:
    """Refuse a loaded object that is not as a new one, but for what moves; `own` are the generators of the two.

    A class may define `_catch_up(found)`, which brings the new object to where the loaded one stands, and
    `_check_moved()`, which refuses what moves if its parts do not fit each other.
    """
    _Pairs(own).whole(found, new, name)


def refuse_unless(right: bool, what: str) -> None:
    """Refuse a loaded state of which something is not as it should be."""
    if not right:
        raise ValueError(what)


def _named(kind: type, what: str) -> set[str]:
    """Return what a class and those that it inherits from say of their objects: what moves, say."""
    return {name for base in kind.__mro__ for name in vars(base).get(what, ())}


class _Pairs:
    """The objects compared so far, in pairs: what two parts of the one share, the same parts of the other share."""

    def __init__(self, own: tuple[Any, Any]) -> None:
        self._new = {id(own[0]): own[1]}
        self._found = {id(own[1]): own[0]}

    def whole(self, found: Any, new: Any, name: str) -> None:
        """Compare two objects with everything in them."""
        if not self._first(found, new, name):
            return
        if hasattr(new, "_catch_up"):
            new._catch_up(found)
        if vars(found).keys() - vars(new).keys():
            _refuse(name, sorted(vars(found).keys() - vars(new).keys()), "no such parts")
        moves, grows, may_lack = (_named(type(new), what) for what in ("_moves", "_grows", "_may_lack"))
        for part in vars(new):
            place = f"{name}.{part}"
            if not hasattr(found, part):
                raise ValueError(f"{place} is missing")
            pair = getattr(found, part), getattr(new, part)
            if part in may_lack and (pair[0] is None or pair[1] is None):
                continue  # its owner knows
            if part in moves:
                self._moved(*pair, place, longer=part in grows)
            else:
                self._equal(*pair, place)
        if hasattr(found, "_check_moved"):
            found._check_moved()

    def _first(self, found: Any, new: Any, name: str) -> bool:
        """Say whether a pair has not been compared yet; refuse one of objects that belong to others."""
        if id(found) in self._new or id(new) in self._found:
            if self._new.get(id(found)) is not new or self._found.get(id(new)) is not found:
                raise ValueError(f"{name} is not what other parts take it for")
            return False
        if type(found) is not type(new):
            _refuse(name, f"a {type(found).__name__}", f"a {type(new).__name__}")
        self._new[id(found)], self._found[id(new)] = new, found
        return True

    def _equal(self, found: Any, new: Any, name: str) -> None:
        """Compare what never moves."""
        if _has_parts(new):
            self.whole(found, new, name)
        elif type(found) is not type(new):
            _refuse(name, found, new)
        elif isinstance(new, np.random.Generator):
            self._first(found, new, name)
        elif isinstance(new, np.ndarray):
            same = found.dtype == new.dtype and found.flags.writeable == new.flags.writeable
            refuse_unless(same and np.array_equal(found, new), f"{name} is not that of its plan")
        elif isinstance(new, list | tuple):
            refuse_unless(len(found) == len(new), f"{name} is not that of its plan")
            for i, pair in enumerate(zip(found, new, strict=True)):
                self._equal(*pair, f"{name}[{i}]")
        elif found != new:
            _refuse(name, found, new)

    def _moved(self, found: Any, new: Any, name: str, *, longer: bool) -> None:
        """Compare the kinds of what moves; of a list or of what may be missing `_check_moved` of its owner knows."""
        if _has_parts(new):
            self.whole(found, new, name)
            return
        if isinstance(new, list):
            refuse_unless(type(found) is list, f"{name} is no list")
            return
        if isinstance(new, dict):
            refuse_unless(type(found) is dict and found.keys() == new.keys(), f"{name} has other parts")
            for key in new:
                self._moved(found[key], new[key], f"{name}[{key!r}]", longer=False)
            return
        if type(found) is not type(new):
            _refuse(name, f"a {type(found).__name__}", f"a {type(new).__name__}")
        if isinstance(new, np.random.Generator):
            self._first(found, new, name)
        elif isinstance(new, np.ndarray):
            check_array(found, new, name, longer=longer)
        elif isinstance(new, tuple):
            refuse_unless(len(found) == len(new), f"{name} has {len(found)} parts, where there are {len(new)}")
            for i, pair in enumerate(zip(found, new, strict=True)):
                self._moved(*pair, f"{name}[{i}]", longer=False)
        elif isinstance(new, int):
            refuse_unless(-_MOST <= found <= _MOST, f"{name} is {found!r}, which is beyond 2^62")
        elif isinstance(new, float):
            refuse_unless(abs(found) <= _GREATEST, f"{name} is {found!r}, which is too large to be")


def check_array(found: Any, new: Any, name: str, *, longer: bool = False) -> None:
    """Refuse an array that is not of the type and shape of another, but for its length, or not finite."""
    skip = int(longer)
    alike = found.dtype == new.dtype and found.ndim == new.ndim and found.shape[skip:] == new.shape[skip:]
    if not alike or (new.flags.writeable and not found.flags.writeable):
        what = f"an array of {found.dtype} of shape {found.shape}"
        _refuse(name, what, f"one of {new.dtype} of shape {new.shape} that can be written to")
    if found.dtype.kind == "f":
        refuse_unless(bool((np.abs(found) <= _GREATEST).all()), f"{name} has numbers that are not finite, or too large")
    elif found.dtype.kind == "i" and found.size:
        refuse_unless(bool(-_MOST <= found.min() <= found.max() <= _MOST), f"{name} has numbers beyond 2^62")


def _has_parts(thing: Any) -> bool:
    """Say whether a thing is an object that files can hold, and whose parts are compared one by one, not as a whole."""
    whole = isinstance(thing, Domain | Loss) or hasattr(thing, "__dataclass_fields__")
    return hasattr(thing, "__dict__") and tag_of(type(thing)) is not None and not whole


def _refuse(name: str, found: Any, wanted: Any) -> None:
    raise ValueError(f"{name} is {found!s:.60}, where its plan has {wanted!s:.60}")


def check_rows(rows: Any, domain: Domain) -> int:
    """Refuse rounds, in normal form, that no gate over a domain lets in; return how many there are."""
    if isinstance(rows, Objects):
        refuse_unless(len(rows.items) == len(rows.scales) == len(rows.bounds), "rounds that it keeps are not whole")
        return len(rows)
    refuse_unless(type(rows) is Rows and len(rows.vectors) == len(rows.offsets), "rounds that it keeps are none")
    check_array(rows.vectors, np.zeros((0, domain.chart_dim)), "a round that it keeps", longer=True)
    check_array(rows.offsets, np.zeros(0), "a round that it keeps", longer=True)
    return len(rows)
