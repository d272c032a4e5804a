"""Words of the command line turned into numbers, lists of them and names of systems."""

from __future__ import annotations

from collections.abc import Sequence

from reticent._core._names import NICKS
from reticent.systems._texts import count_of, nearest_of, number_of

LONGEST = 1 << 53  # rounds: beyond this they cannot be counted in double precision


def horizon_of(text: str) -> int | None:
    """Return the rounds that are planned for, None for an unknown number.

    >>> horizon_of("1e6"), horizon_of("unknown")
    (1000000, None)
    >>> horizon_of("1e300")
    Traceback (most recent call last):
    ValueError: horizon must be at most 9,007,199,254,740,992, got '1e300'; --horizon unknown has no end
    """
    if text == "unknown":
        return None
    try:
        return count_of(text, "horizon", most=LONGEST)
    except ValueError as error:
        raise ValueError(f"{error}; --horizon unknown has no end") from None


def floats_of(text: str, name: str = "numbers") -> tuple[float, ...]:
    """Return the numbers of a text such as "0.5,1,3", each once.

    >>> floats_of("0.5,1,3,1.0")
    (0.5, 1.0, 3.0)
    """
    return tuple(dict.fromkeys(number_of(name, part) for part in _parts(text, name)))


def counts_of(text: str, name: str = "counts") -> tuple[int, ...]:
    """Return the whole numbers of a text such as "100,1e4", each once.

    >>> counts_of("100,1e4,1e2")
    (100, 10000)
    """
    return tuple(dict.fromkeys(count_of(part, name, least=0) for part in _parts(text, name)))


def system_names() -> tuple[str, ...]:
    """Return the names of all systems, as tables have them."""
    from reticent.systems._choice import SYSTEMS

    return tuple(system.name for system in SYSTEMS)


def system_of(text: str, among: Sequence[str] | None = None) -> str:
    """Return the exact name of a system from a short or partial one; case, spaces and punctuation do not matter.

    An exact name wins, then the only name that begins with the text, then the only one that contains it.

    >>> system_of("pcomw"), system_of("dp-ftrl-tree"), system_of("ogd"), system_of("objective")
    ('P-COMW', 'DP-FTRL, tree noise', 'online gradient descent', 'objective perturbation (Agarwal et al.)')
    """
    names = system_names() if among is None else tuple(among)
    wanted = _bare(text)
    for name in names:
        if wanted == _bare(name) or NICKS.get(wanted) == name:
            return name
    found = [name for name in names if wanted and _bare(name).startswith(wanted)]
    found = found or [name for name in names if wanted and wanted in _bare(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"system must be the name of one system, got {text!r}, which may be {_listed(found)}")
    near = nearest_of(wanted, {_bare(name): name for name in names} | NICKS)
    raise ValueError(f"system must be one of {_listed(names)}, got {text!r}{near}")


def choice_of(name: str, text: str, allowed: Sequence[str]) -> str:
    """Return a text that must be one of a few words.

    >>> choice_of("neighbors", "replace", ("replace", "zero-out"))
    'replace'
    """
    if text not in allowed:
        near = nearest_of(text, {word: word for word in allowed})
        raise ValueError(f"{name} must be {' or '.join(allowed)}, got {text!r}{near}")
    return text


def _parts(text: str, name: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{name} must be numbers with commas between them, such as 0.5,1,3, got {text!r}")
    return parts


def _bare(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter == "*")


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names)
