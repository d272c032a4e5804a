"""Fleets behind Spark Structured Streaming: what `foreachBatch` calls, harmless when a batch is delivered again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reticent.fleet._batches import batch_name
from reticent.fleet._fleet import Fleet
from reticent.fleet._ray import ShardedFleet


def for_each_batch(
    fleet: Fleet | ShardedFleet, query: str, *, key: str, columns: Sequence[str], order: str | None = None
) -> Callable[[Any, int], None]:
    """Return the function for `stream.writeStream.foreachBatch(...)`: it hands the rows of a batch to a fleet.

    `key` and `columns` name columns of the stream, those for what `fleet.spec.columns` names, in that order. Spark
    delivers a batch again after a failure, with the same number: the fleet knows it by `query` and the number, which
    are in its store in the same transaction as the states. **A new checkpoint counts from 0 again: give a new
    `query`**, or its batches are taken for old ones. Rows of a key are taken in the order of the column `order`;
    without one, in any. Arrays of numbers are features of several columns; missing numbers are nan.

    The rows of a batch are collected on the driver, where the function runs, in a thread of Spark.

    >>> import reticent as rt
    >>> fleet = rt.Fleet(rt.fleet.Spec(rt.PrivateMean, 0.0, 60.0, epsilon=1.0))
    >>> for_each_batch(fleet, "minutes", key="shop", columns=["minutes", "length"])
    Traceback (most recent call last):
    ValueError: columns must name one column for each of ('values',), got ['minutes', 'length']
    """
    batch_name((query, 0))
    named = [columns] if isinstance(columns, str) else list(columns)
    if len(named) != len(fleet.spec.columns):
        raise ValueError(f"columns must name one column for each of {fleet.spec.columns}, got {named}")

    def observe(batch: Any, number: int) -> None:
        rows = (batch if order is None else batch.orderBy(order)).select(key, *named).collect()
        keys, *parts = zip(*rows, strict=True) if rows else [()] * (1 + len(named))
        fleet.observe(list(keys), *(np.array(part, dtype=np.float64) for part in parts), batch=(query, number))

    return observe
