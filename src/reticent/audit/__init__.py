"""Attacks on what is promised: many runs on two neighbouring streams, and the epsilon that they prove at least."""

from reticent.audit._audit import Audit, audit
from reticent.audit._runs import worst_case

__all__ = ["Audit", "audit", "worst_case"]
