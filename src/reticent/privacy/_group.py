"""Accounts of persons with several rows: their own, or that of a group of rounds (docs/theory, R14 and Q16d)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.privacy._account import Certificate, Statement, SystemAccount
from reticent.privacy._posterior import group


@dataclass(frozen=True)
class PersonAccount(SystemAccount):
    """What a run can reveal about a person, by statements that are about persons."""

    def heading(self) -> str:
        """Say what the account covers, and for whom."""
        many = "any number of" if self.rounds is None else self.rounds
        return f"Account of {many} rounds, where losses react to released decisions, for one person's that count"


def group_account(rounds: int | None, neighbors: str, statements: tuple[Statement, ...], size: int = 1) -> Certificate:
    """Return the account of `size` rounds that change together.

    >>> from reticent.privacy._account import gaussian
    >>> pair, double = group_account(9, "replace", (gaussian(0.1),), 2), group_account(9, "replace", (gaussian(0.2),))
    >>> pair.epsilon(1e-6) == double.epsilon(1e-6)
    True
    """
    return group(SystemAccount(rounds, neighbors, statements), size)


def group_factor(epsilon: float, size: int) -> float:
    """Return 1 + e^epsilon + ... + e^((size-1) epsilon): how much larger the delta of `size` rounds is.

    >>> group_factor(0.0, 3), round(group_factor(1.0, 2), 6)
    (3.0, 3.718282)
    """
    if epsilon * size > 700:
        return math.inf
    return float(size) if epsilon == 0 else math.expm1(size * epsilon) / math.expm1(epsilon)
