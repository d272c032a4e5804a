"""What a release reveals: statements, their composition, accounts, the odometer, the filter, and other accountants.

`account(plan)` is the certificate of a whole run, `spent(plan, rounds)` that of a part of it, `require` refuses rounds
that could break a goal, `dp_event(plan)` and `distribution(plan)` speak dp_accounting's language. `Filter` and
`Odometer` add up releases whose costs are chosen as one goes. `best_guess`, `posterior` and `group` say what a
certificate means for a person. This package knows no plan and no learner: it asks whatever it is given. `audit` and
`worst_case`, which run learners, live in `reticent.audit` and can be had here too.
"""

from importlib import import_module
from typing import Any

from reticent.privacy._account import Account, Curve, Shares, SystemAccount
from reticent.privacy._adaptive import Cost, Filter, Odometer
from reticent.privacy._filter import account, allowed, distribution, dp_event, require, rounds_within, spent
from reticent.privacy._posterior import best_guess, group, posterior

_OF_AUDIT = ("Audit", "audit", "worst_case")


def __getattr__(name: str) -> Any:
    """Return what `reticent.audit` has: it stands above the learners, and is known here by name only."""
    if name in _OF_AUDIT:
        return getattr(import_module("reticent.audit"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Account",
    "Audit",
    "Cost",
    "Curve",
    "Filter",
    "Odometer",
    "Shares",
    "SystemAccount",
    "account",
    "allowed",
    "audit",
    "best_guess",
    "distribution",
    "dp_event",
    "group",
    "posterior",
    "require",
    "rounds_within",
    "spent",
    "worst_case",
]
