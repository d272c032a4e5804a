"""Fleets: one learner for every key, from one specification, fed in batches and kept in a database."""

from reticent.fleet._batches import Receipt
from reticent.fleet._fleet import Fleet
from reticent.fleet._kafka import KafkaLoop
from reticent.fleet._ray import ShardedFleet, on_ray
from reticent.fleet._spark import for_each_batch
from reticent.fleet._spec import Spec
from reticent.fleet._store import Stale, Store

__all__ = ["Fleet", "KafkaLoop", "Receipt", "ShardedFleet", "Spec", "Stale", "Store", "for_each_batch", "on_ray"]
