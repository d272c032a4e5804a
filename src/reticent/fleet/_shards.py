"""Fleets in parts: which shard a key is in, rows by shard, and the fleets of all shards, with one root of seeds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from reticent.fleet._batches import Receipt
from reticent.fleet._fleet import _check_same
from reticent.fleet._keys import Groups, Key, Root, text_of
from reticent.fleet._ledger import FleetPlan
from reticent.fleet._spec import Spec
from reticent.fleet._store import Store


@lru_cache(1 << 16)
def shard_of(key: Key, shards: int) -> int:
    """Return the shard of a key: a hash of its text, the same on every machine and for ever.

    >>> [shard_of(key, 4) for key in ("a", "b", 7)]
    [2, 0, 1]
    """
    found = blake2b(text_of(key).encode(), digest_size=8, person=b"fleet shard").digest()
    return int.from_bytes(found, "little") % shards


def divided(groups: Groups, keys: Any, columns: Sequence[Any], shards: int) -> dict[int, tuple[Any, ...]]:
    """Return keys and columns of the rows of each shard that has some, in the order of the rows."""
    codes = np.empty(groups.order.size, dtype=np.int64)
    codes[groups.order] = np.repeat(np.arange(len(groups.keys)), groups.counts)
    home = np.array([shard_of(key, shards) for key in groups.keys], dtype=np.int64)[codes]
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        named: Any = keys
    else:
        plain = np.empty(len(groups.keys), dtype=object)
        plain[:] = groups.keys
        named = plain[codes]
    whole = [np.asarray(column) for column in columns]
    parts = {}
    for shard in np.unique(home).tolist():
        mine = np.flatnonzero(home == shard)
        parts[shard] = (named[mine], *(column[mine] for column in whole))
    return parts


def together(groups: Groups, receipts: Sequence[Receipt]) -> Receipt:
    """Return the receipt of a batch whose rows were divided: that of one fleet with all of them."""
    changed = {key for receipt in receipts for key in receipt.changed}
    order = np.argsort(groups.firsts, kind="stable").tolist() if len(groups.keys) else []
    found = tuple(key for key in (groups.keys[i] for i in order) if key in changed)
    again = bool(receipts) and all(receipt.repeated for receipt in receipts)
    return Receipt(sum(receipt.rounds for receipt in receipts), found, repeated=again)


def place_of(store: Any, shard: int) -> str:
    """Return where a shard is kept: the store of all, or one of its own if "{shard}" stands in the text.

    >>> place_of("postgresql://db/fleets", 3), place_of("/data/fleet-{shard}.db", 3)
    ('postgresql://db/fleets', '/data/fleet-3.db')
    """
    text = store.where if isinstance(store, Store) else os.fsdecode(store)
    found = text.replace("{shard}", str(shard))
    return found if "://" in found else str(Path(found).absolute())


def begin_shards(
    spec: Spec,
    store: Any,
    name: str,
    shards: int,
    *,
    seed: int | None,
    ledger: Any,
    population: str | None,
    max_keys: int | None,
    factor: int | None,
) -> Root:
    """Enter the fleets of all shards, `name/0` and so on, or find them as they were begun; return their root.

    All have the root of the first: the seed of a key does not depend on the shard that it is in.
    """
    opened = {place: Store(place) for place in dict.fromkeys(place_of(store, shard) for shard in range(shards))}
    names = [f"{name}/{shard}" for shard in range(shards)]
    places = [opened[place_of(store, shard)] for shard in range(shards)]
    try:
        found = [place.find(one) for place, one in zip(places, names, strict=True)]
        root = Root.new(seed) if found[0] is None else Root.read(found[0].root)
        lost = [one for one, record in zip(names, found, strict=True) if record is None]
        for record in found:
            if record is not None:
                _check_shard(record, shards)
                _check_same(record, spec, max_keys, root if seed is None else Root.new(seed))
                if lost and record.sequence:
                    # To begin them anew would draw the same noise for other rows.
                    raise ValueError(f"the fleet {name!r} has taken in batches, but its shards {lost} are not there")
        if ledger is not None and found[0] is None:
            ledger.spend(population, FleetPlan(spec.plan, max_keys or 1), note=f"fleet {name}", factor=factor)
        about = json.dumps({"max_keys": max_keys, "population": population, "shards": shards})
        for place, one, record in zip(places, names, found, strict=True):
            if record is None:
                place.begin(one, json.dumps(spec.to_json()), root.written(), about)
        return root
    finally:
        for place in opened.values():
            place.close()


def _check_shard(record: Any, shards: int) -> None:
    begun = json.loads(record.about).get("shards")
    if begun != shards:
        told = "without shards" if begun is None else f"with {begun} shards"
        raise ValueError(
            f"the fleet {record.name!r} was begun {told}, got shards={shards}: keys would be sought where they are "
            "not, and begun again with noise that was used already"
        )
