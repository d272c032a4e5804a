"""Fleets: one learner for every key, from one specification, fed in batches and kept in a database."""

from reticent.fleet._batches import Receipt
from reticent.fleet._fleet import Fleet
from reticent.fleet._spec import Spec
from reticent.fleet._store import Stale, Store

__all__ = ["Fleet", "Receipt", "Spec", "Stale", "Store"]
