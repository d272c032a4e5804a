"""What a run reveals: the accountant, the odometer, the filter, and the way to other accountants.

`account(plan)` is the certificate of a whole run, `spent(plan, rounds)` that of a part of it, `require` refuses rounds
that could break a goal, `dp_event(plan)` and `distribution(plan)` speak dp_accounting's language. `audit` holds a
learner against its certificate by many runs on two neighbouring streams, such as those of `worst_case(plan)`.
"""

from reticent.privacy._account import Account, Shares, account, spent
from reticent.privacy._audit import Audit, audit
from reticent.privacy._audit_streams import worst_case
from reticent.privacy._events import distribution, dp_event
from reticent.privacy._filter import allowed, require, rounds_within
from reticent.privacy._ledger import Curve, SystemAccount

__all__ = [
    "Account",
    "Audit",
    "Curve",
    "Shares",
    "SystemAccount",
    "account",
    "allowed",
    "audit",
    "distribution",
    "dp_event",
    "require",
    "rounds_within",
    "spent",
    "worst_case",
]
