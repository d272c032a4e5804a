"""A fleet and single learners: the same bits, whatever rows of whatever keys come together."""

import numpy as np
import pytest
from fleets import AT_ONCE, SPECS, Stream, same_as_alone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reticent as rt
from reticent.fleet._each import OneEach
from reticent.fleet._filtered import FilteredHolder
from reticent.fleet._fleet import holder_of
from reticent.fleet._keys import Root

KEYS = ["a", "b", 3, "3", -7, "long " * 20, "ü\0'", 10**20]


@pytest.mark.parametrize("name", SPECS)
def test_every_key_is_a_single_learner_bit_for_bit(name):
    rng = np.random.default_rng([*name.encode()])
    for seed in (3, None) if name in ("filtered, interval", "descent", "mean", "quantiles") else (3,):
        stream = Stream(SPECS[name], KEYS, rng)
        fleet = rt.Fleet(SPECS[name], seed=seed)
        for count in (1, 40, 700, 5, 800) if name != "lazy" else (1, 60, 5):
            keys, columns = stream.batch(count, lean=0.3)
            receipt = fleet.observe(keys, *columns)
            assert receipt.rounds == count
        changes = same_as_alone(fleet, stream.rows())
        assert changes > len(KEYS) or name in ("lazy", "quantile, long")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(AT_ONCE), st.integers(0, 2**32), st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_any_interleaving_of_keys(name, seed, counts):
    rng = np.random.default_rng(seed)
    stream = Stream(SPECS[name], KEYS[: 1 + seed % 8], rng)
    fleet = rt.Fleet(SPECS[name], seed=seed)
    for count in counts:
        keys, columns = stream.batch(count, lean=rng.exponential())
        fleet.observe(keys, *columns)
    same_as_alone(fleet, stream.rows())


def test_many_keys_together_are_as_each_alone():
    """So many that vector instructions, blocks of keys and groups of draws all come into play."""
    spec, rng = SPECS["filtered, interval"], np.random.default_rng(5)
    fleet = rt.Fleet(spec, seed=1)
    keys, y = rng.integers(0, 3000, size=60_000), rng.exponential(5.0, 60_000)
    fleet.observe(keys, np.ones(60_000), y)
    assert len(fleet) == 3000
    for key in (0, 1, 1500, 2047, 2048, 2999):
        single = spec.new(fleet.seed_of(key))
        single.observe_many(np.ones(int((keys == key).sum())), y[keys == key])
        assert single.decision[0] == fleet.decision(key)[0]
        assert single.switches == fleet.versions([key])[0] > 0


def test_long_runs_go_through_epochs_and_groups_of_noise():
    spec, rng = SPECS["filtered, interval"], np.random.default_rng(6)
    fleet, stream = rt.Fleet(spec, seed=2), Stream(spec, ["often", "seldom"], rng)
    for _ in range(4):
        keys, columns = stream.batch(6_000, lean=4.0)
        fleet.observe(keys, *columns)
    holder = fleet._holder
    assert isinstance(holder, FilteredHolder)
    assert holder.epoch.max() >= 5 > holder.epoch.min()
    same_as_alone(fleet, stream.rows())


def test_what_is_held_in_arrays():
    each = {name for name, spec in SPECS.items() if isinstance(holder_of(spec, Root.new(0)), OneEach)}
    assert each == set(SPECS) - set(AT_ONCE)


def test_another_seed_is_other_noise():
    """The negative control of the tests above: they can fail."""
    spec, rng = SPECS["filtered, interval"], np.random.default_rng(7)
    keys, y = np.zeros(400, dtype=np.int64), rng.exponential(5.0, 400)
    found = set()
    for seed in (1, 2, None):
        fleet = rt.Fleet(spec, seed=seed)
        fleet.observe(keys, np.ones(400), y)
        fleet.observe(keys + 1, np.ones(400), y)
        found |= {fleet.decision(0)[0], fleet.decision(1)[0]}
    assert len(found) == 6
