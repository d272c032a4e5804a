"""Shards: which key is where, for good, and one root of seeds for all of them."""

import numpy as np
import pytest
from fleets import SPECS

import reticent as rt
from reticent.fleet._keys import grouped
from reticent.fleet._shards import begin_shards, divided, shard_of, together

PINBALL = SPECS["filtered, interval"]
PLAIN = {"ledger": None, "population": None, "max_keys": None, "factor": None}


def begun(where, shards=2, spec=PINBALL, seed=None, **more):
    return begin_shards(spec, where, "x", shards, seed=seed, **{**PLAIN, **more})


def test_keys_are_spread_evenly():
    counts = np.bincount([shard_of(key, 7) for key in range(70_000)], minlength=7)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 40  # chi-square of 6 degrees: 1e-6 is at 38.3


@pytest.mark.parametrize("keys", [np.array([3, 1, 3, 2, 1]), ["a", 1, "a", "1", 1]])
def test_rows_are_divided_in_their_order_and_receipts_joined(keys):
    groups, values = grouped(keys), np.arange(5.0)
    parts = divided(groups, keys, [values], 3)
    assert sorted(np.concatenate([values for _, values in parts.values()])) == values.tolist()
    for shard, (mine, rows) in parts.items():
        assert [shard_of(key, 3) for key in mine.tolist()] == [shard] * len(mine)
        assert rows.tolist() == sorted(rows)
        assert [list(keys)[int(row)] for row in rows] == mine.tolist()
    receipts = [rt.fleet.Receipt(1, (key,), repeated=True) for key in [*dict.fromkeys(list(keys))][::-1]]
    assert together(groups, receipts) == rt.fleet.Receipt(3, tuple(dict.fromkeys(list(keys))), repeated=True)


def test_all_shards_have_one_root(tmp_path):
    where = tmp_path / "fleet-{shard}.db"
    root = begun(where, 3)
    assert begun(where, 3).written() == root.written()
    with rt.Fleet.open(tmp_path / "fleet-2.db", "x/2") as last:
        assert last._root.written() == root.written()
        assert not root.open_seed


def test_another_layout_is_refused(tmp_path):
    where = tmp_path / "fleet-{shard}.db"
    begun(where)
    with pytest.raises(ValueError, match=r"begun with 2 shards, got shards=1.*noise that was used"):
        begun(where, 1)
    with pytest.raises(ValueError, match="another seed"):
        begun(where, seed=1)
    with pytest.raises(ValueError, match="another specification"):
        begun(where, spec=SPECS["mean"])
    with pytest.raises(ValueError, match="max_keys=2"):
        begun(where, max_keys=2)
    (tmp_path / "fleet-1.db").unlink()
    begun(where)  # nothing was taken in: it may be made again
    with rt.Fleet.open(tmp_path / "fleet-0.db", "x/0") as first:
        first.observe(["a"], [1.0], [2.0])
    (tmp_path / "fleet-1.db").unlink()
    with pytest.raises(ValueError, match=r"has taken in batches, but its shards \['x/1'\] are not there"):
        begun(where)
    rt.Fleet(PINBALL, tmp_path / "plain.db", name="x/0").close()
    with pytest.raises(ValueError, match="begun without shards"):
        begun(tmp_path / "plain.db", 1)


def test_the_ledger_is_charged_once_for_all_shards(tmp_path):
    ledger = rt.Ledger(tmp_path / "privacy.db")
    ledger.add("all", epsilon=20.0, delta=1e-3)
    options = {"ledger": ledger, "population": "all", "max_keys": 2}
    begun(tmp_path / "fleet.db", 3, **options)
    spent = ledger.total("all")
    begun(tmp_path / "fleet.db", 3, **options)
    assert ledger.total("all") == spent
    other = rt.Ledger(tmp_path / "other.db")
    other.add("all", epsilon=20.0, delta=1e-3)
    rt.Fleet(PINBALL, ledger=other, population="all", max_keys=2)
    assert other.total("all") == spent
