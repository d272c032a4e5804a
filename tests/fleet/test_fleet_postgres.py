"""The same fleets in PostgreSQL, started here from what the machine has; skipped where there is none."""

import numpy as np
import pytest
from fleets import SPECS, Stream, same_as_alone
from postgres import running
from test_store import survived

import reticent as rt
from reticent.fleet import Stale, Store


@pytest.fixture(scope="module")
def server():
    """A server of its own in a new folder, for this machine only."""
    yield from running()


def test_eviction_reopening_and_repeated_batches(server):
    spec, rng = SPECS["filtered, interval"], np.random.default_rng(0)
    keys = ["a", 1, "1", "'; DROP TABLE reticent_fleets; --", "\0ü"]
    stream = Stream(spec, keys, rng)
    for part in range(2):
        with rt.Fleet(spec, server, name="first", resident=2) as fleet:
            given, columns = stream.batch(200)
            assert not fleet.observe(given, *columns, batch=("s", part)).repeated
            assert fleet.observe(given, *columns, batch=("s", part)).repeated
            same_as_alone(fleet, stream.rows())
    with rt.Fleet.open(server, "first") as fleet:
        assert sorted(map(repr, fleet.keys())) == sorted(map(repr, keys))


def test_two_writers_one_of_which_is_stale(server):
    spec = SPECS["mean"]
    first = rt.Fleet(spec, server, name="second", seed=1)
    first.observe(["a"] * 30, np.arange(30.0))
    with pytest.raises(RuntimeError, match="being written by"):
        rt.Fleet.open(server, "second")
    with rt.Fleet.open(server, "second", take_over=True) as second:
        with pytest.raises(Stale):
            first.observe(["a"], [1.0])
        first.close()
        assert second.rounds(["a"])[0] == 30


def test_a_connection_that_was_cut_loses_nothing(server):
    """The server ends every connection; what follows is an error or a success, and the same run in the end."""
    spec, rng = SPECS["mean"], np.random.default_rng(3)
    fleet, other = rt.Fleet(spec, server, name="third", seed=1), rt.Fleet(spec, seed=1)
    for number in range(6):
        keys, values = rng.integers(0, 4, 50), rng.exponential(5.0, 50)
        other.observe(keys, values)
        cutter = Store(server)
        with cutter.engine.connect() as connection:
            connection.exec_driver_sql(CUT)
        cutter.close()
        for _ in range(3):
            try:
                receipt = fleet.observe(keys, values, batch=("s", number))
            except OSError:
                continue
            assert not receipt.repeated
            break
        assert np.array_equal(fleet.decisions(range(4)), other.decisions(range(4)))
    fleet.close()


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL"


@pytest.mark.slow
def test_kills(server):
    assert survived(server, 30, 4, 30) >= 20
