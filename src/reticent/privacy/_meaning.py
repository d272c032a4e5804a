"""A certificate in plain words: what somebody who sees everything can guess, believe, and tell of several rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from reticent.privacy._account import Certificate
from reticent.privacy._posterior import Promise, best_guess, certificate_of, group, odds_factor
from reticent.privacy._pure import PureAccount

PRIORS = (0.01, 0.1, 0.5)
"""Beliefs before, in tables."""
SIZES = (2, 5, 10)
"""Rows of one person, in tables."""
RARE = 1e-3
"""The chance with which a belief may rise higher than tables say: one case in a thousand."""
# Beyond that a case is no exception any more: for a delta so large that ten times as much is no chance.
_OFTENEST = 0.5


class Meaning(NamedTuple):
    """What a certificate means for the person of one row.

    `right` is the largest chance of a right guess between two things equally likely; `beliefs` are pairs of before and
    after, which are exceeded with a chance of `rare` at most; `groups` are (rows, epsilon, delta), infinite where
    nothing is promised.
    """

    right: float
    rare: float
    beliefs: tuple[tuple[float, float], ...]
    groups: tuple[tuple[int, float, float], ...]


def meaning(what: Any, delta: float, priors: Sequence[float] = PRIORS, sizes: Sequence[int] = SIZES) -> Meaning:
    """Return what an account, a plan or a pair (epsilon, delta) means; groups are at `delta` where that is known.

    >>> found = meaning((1.0, 0.0), 0.0)
    >>> round(found.right, 3), found.rare, [round(after, 3) for _, after in found.beliefs], found.groups[1]
    (0.731, 0.0, [0.027, 0.232, 0.731], (5, 5.0, 0.0))
    """
    curve = certificate_of(what)
    rare = 0.0 if isinstance(curve, PureAccount) else min(max(RARE, 10 * delta), _OFTENEST)
    factor = odds_factor(curve, rare)
    beliefs = tuple((prior, _risen(prior, factor)) for prior in priors)
    return Meaning(best_guess(curve), rare, beliefs, tuple(_group(curve, k, delta) for k in sizes))


def _risen(prior: float, factor: float) -> float:
    return prior / (prior + (1 - prior) / factor)


def _group(curve: Certificate, k: int, delta: float) -> tuple[int, float, float]:
    together = group(curve, k)
    if not isinstance(curve, Promise):
        return k, together.epsilon(delta), delta
    # Of a promise alone no smaller delta is known than that of k steps, each with its epsilon and delta.
    whole = together.delta(k * curve.stated)
    return k, (k * curve.stated if whole < 1 else math.inf), whole


def guessed(what: Any, unit: str = "row") -> str:
    """Return in one line what an attacker can guess of one unit.

    >>> guessed((1.0, 1e-6))
    'a guess between two equally likely versions of one row is right with a chance of at most 0.731 (0.5 by a coin)'
    """
    right = best_guess(what)
    return (
        f"a guess between two equally likely versions of one {unit} is right with a chance of at most "
        f"{right:.3f} (0.5 by a coin)"
    )


def in_percent(belief: float) -> str:
    """Return a probability in percent, never rounded below itself where it matters.

    >>> in_percent(0.01), in_percent(0.2321), in_percent(0.99996), in_percent(1.0)
    ('1', '23.3', '99.999...', '100')
    """
    if belief in (0.0, 0.01, 0.1, 0.5, 1.0):
        return f"{100 * belief:g}"
    if belief > 0.999:
        return "99.999..." if belief < 1 else "100"
    return f"{math.ceil(1000 * belief - 1e-9) / 10:g}"


def beliefs_in_words(found: Meaning) -> str:
    """Return how beliefs may rise.

    >>> print(beliefs_in_words(meaning((1.0, 0.0), 0.0)))
    always: from 1 percent to 2.7 at most, from 10 to 23.2, from 50 to 73.2
    """
    often = "always" if not found.rare else f"but for one case in {math.floor(1 / found.rare + 1e-9):,}"
    (first, after), *rest = found.beliefs
    parts = [f"from {in_percent(first)} percent to {in_percent(after)} at most"]
    parts += [f"from {in_percent(before)} to {in_percent(later)}" for before, later in rest]
    return f"{often}: {', '.join(parts)}"


def groups_in_words(found: Meaning, unit: str) -> str:
    """Return what holds for several rows of one person.

    >>> print(groups_in_words(meaning((1.0, 0.0), 0.0), "rounds"))
    epsilon 2 for 2 rounds, 5 for 5, 10 for 10 (delta 0)
    >>> print(groups_in_words(meaning((1.0, 1e-6), 1e-6), "rounds"))
    epsilon 2 at delta 3.72e-06 for 2 rounds, 5 at 8.58e-05 for 5, 10 at 0.0128 for 10
    """
    same = len({delta for _, _, delta in found.groups}) == 1
    parts = []
    for i, (k, epsilon, delta) in enumerate(found.groups):
        at = "" if same else f" at delta {delta:.3g}" if i == 0 else f" at {delta:.3g}"
        size = f"{k} {unit}" if i == 0 else f"{k}"
        parts.append(f"nothing for {size}" if math.isinf(epsilon) else f"{epsilon:.3g}{at} for {size}")
    return f"epsilon {', '.join(parts)}" + (f" (delta {found.groups[0][2]:g})" if same else "")
