"""Fleets on Ray: the transcript of one fleet, actors killed or moved or not; nothing twice, and one layout for good."""

import os
import pickle
import random
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from fleets import SPECS, Stream, same_as_alone
from postgres import running

import reticent as rt
from reticent.fleet import _ray, _shards, on_ray

ray = pytest.importorskip("ray")
# Ray warns of sockets and files that it closes late.
pytestmark = pytest.mark.filterwarnings("ignore")
PINBALL = SPECS["filtered, interval"]
KEYS = ["a", "b", 1, "1", 2, "ü", "c", 77]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A handler that was there stays there."""
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        from reticent._core._ray import ray_at

        assert ray_at(None, 2, "ray", 100_000_000)[1]
        os.kill(os.getpid(), signal.SIGTERM)
        assert seen == [1]
        yield
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)


def same(sharded, fleet, keys=KEYS):
    assert sharded.decisions(keys).tobytes() == fleet.decisions(keys).tobytes()
    assert sharded.versions(keys).tolist() == fleet.versions(keys).tolist()
    assert sharded.rounds(keys).tolist() == fleet.rounds(keys).tolist()
    for key in keys:
        for one, other in zip(sharded.history(key), fleet.history(key), strict=True):
            assert one.tobytes() == other.tobytes()
        assert sharded.spent(key) == fleet.spent(key)
    assert sorted(map(repr, sharded.keys())) == sorted(map(repr, fleet.keys()))
    assert len(sharded) == len(fleet)


def killed_while(sharded, stream, fleet, batches, kills, seed):
    """Feed both, while actors of one are killed at random moments; return how many were."""
    chance, over, dead = random.Random(seed), threading.Event(), []

    def killer():
        while not over.is_set() and len(dead) < kills:
            time.sleep(chance.uniform(0.0, 0.2))
            process = chance.choice(sharded.processes())
            time.sleep(chance.uniform(0.0, 0.03))  # into the middle of a batch, by chance
            os.kill(process, signal.SIGKILL)
            dead.append(process)

    thread = threading.Thread(target=killer)
    thread.start()
    number = 0
    while number < batches or thread.is_alive():
        keys, columns = stream.batch(60)
        expected = fleet.observe(keys, *columns, batch=("s", number))
        assert sharded.observe(keys, *columns, batch=("s", number)) == expected
        number += 1
    over.set()
    thread.join()
    again = fleet.observe(keys, *columns, batch=("s", number - 1))
    assert sharded.observe(keys, *columns, batch=("s", number - 1)) == again
    assert again.repeated
    assert sharded.offset("s") == sharded.begun("s") == number - 1
    return len(dead)


@pytest.mark.slow
def test_the_transcript_is_that_of_one_fleet_though_actors_are_killed_and_moved(tmp_path):
    stream = Stream(PINBALL, KEYS, np.random.default_rng(2))
    fleet = rt.Fleet(PINBALL, seed=3)
    with on_ray(PINBALL, tmp_path / "fleet.db", shards=2, seed=3, resident=3) as sharded:
        assert killed_while(sharded, stream, fleet, 8, 2, 1) == 2
        before = sharded.processes()
        sharded.move(1, num_cpus=1)
        after = sharded.processes()
        assert after[0] == before[0]
        assert after[1] != before[1]
        keys, columns = stream.batch(100)
        assert sharded.observe(keys, *columns) == fleet.observe(keys, *columns)
        same(sharded, fleet)
        assert "a" in sharded
        assert "nobody" not in sharded
        with pytest.raises(TypeError, match="cannot be copied"):
            pickle.dumps(sharded)
        with pytest.raises(RuntimeError, match="being written by"):
            on_ray(PINBALL, tmp_path / "fleet.db", shards=2)
    assert same_as_alone(fleet, stream.rows()) > 0
    with on_ray(PINBALL, tmp_path / "fleet.db", shards=2) as sharded:
        same(sharded, fleet)


@pytest.mark.parametrize("careful", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_answer_that_is_lost_after_the_commit(careful, tmp_path, monkeypatch):
    """The actor dies between commit and answer; a caller that asks again with another id counts twice."""
    lost = str(tmp_path / "lost")

    class Dying(_ray.Shard):
        def _observe(self, fleet, keys, columns, batch):
            found = super()._observe(fleet, keys, columns, batch if careful else None)
            if not os.path.exists(lost):
                open(lost, "w").close()
                os._exit(1)
            return found

    monkeypatch.setattr(_ray, "Shard", Dying)
    stream, fleet = Stream(PINBALL, KEYS, np.random.default_rng(8)), rt.Fleet(PINBALL, seed=3)
    with on_ray(PINBALL, tmp_path / "fleet.db", shards=1, seed=3) as sharded:
        keys, columns = stream.batch(50)
        assert sharded.observe(keys, *columns, batch="first").repeated is False
        fleet.observe(keys, *columns)
        assert os.path.exists(lost)
        assert (sharded.rounds(KEYS).tolist() == fleet.rounds(KEYS).tolist()) is careful
        assert sharded.observe(keys, *columns, batch="first").repeated is careful
        if careful:
            same(sharded, fleet)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean", "descent", "lazy"])
def test_many_kills(name, tmp_path):
    spec = SPECS[name]
    stream, fleet = Stream(spec, KEYS, np.random.default_rng(4)), rt.Fleet(spec, seed=6)
    with on_ray(spec, tmp_path / "fleet-{shard}.db", shards=3, seed=6, resident=2) as sharded:
        assert killed_while(sharded, stream, fleet, 10, 15, 7) == 15
        if name == "lazy":
            assert sharded.decisions(KEYS).tobytes() == fleet.decisions(KEYS).tobytes()
        else:
            same(sharded, fleet)


@pytest.fixture(scope="module")
def server():
    yield from running()


@pytest.mark.slow
def test_kills_with_postgres(server):
    spec = SPECS["mean"]
    stream, fleet = Stream(spec, KEYS, np.random.default_rng(4)), rt.Fleet(spec, seed=6)
    with on_ray(spec, server, shards=2, seed=6) as sharded:
        assert killed_while(sharded, stream, fleet, 10, 10, 8) == 10
        same(sharded, fleet)


@pytest.mark.slow
def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "guides" / "growing.md").read_text()
    names = {}
    for code in re.findall(r"^(?:<!-- in_test_ray -->\n)?```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:2]:
        exec(compile(code, "growing.md", "exec"), names)
    assert names["fleet"].shards == 2


def test_a_batch_that_is_half_in_is_completed_by_repeating_it(tmp_path):
    """A crash of the caller between two shards, by giving one of them its part alone."""
    where = tmp_path / "fleet-{shard}.db"
    horizon = SPECS["filtered, horizon"]
    stream, fleet = Stream(horizon, KEYS, np.random.default_rng(5)), rt.Fleet(horizon, seed=3)
    keys, columns = stream.batch(80)
    receipt = fleet.observe(keys, *columns, batch=("s", 0))
    on_ray(horizon, where, shards=2, seed=3).close()
    with rt.Fleet.open(str(where).replace("{shard}", "0"), "fleet/0") as part:
        mine = np.array([_shards.shard_of(key, 2) == 0 for key in keys])
        assert 0 < mine.sum() < 80
        named = [key for key, here in zip(keys, mine, strict=True) if here]
        part.observe(named, *(column[mine] for column in columns), batch=("s", 0))
    with on_ray(horizon, where, shards=2) as sharded:
        assert (sharded.offset("s"), sharded.begun("s")) == (None, 0)
        assert sharded.observe(keys, *columns, batch=("s", 0)) == receipt
        same(sharded, fleet)
        # Nothing at all is taken in if a row of any shard is refused.
        bad = columns[0].copy()
        bad[0, 0] = np.nan
        with pytest.raises(ValueError):
            sharded.observe(keys, bad, columns[1], batch=("s", 1))
        with pytest.raises(ValueError, match="nothing was recorded"):
            sharded.observe([*keys, *["a"] * 6000], np.ones((6080, 2)), np.ones(6080), batch=("s", 1))
        with pytest.raises(ValueError, match="persons cannot be given"):
            sharded.observe(keys, *columns, persons=keys)
        same(sharded, fleet)
        assert sharded.sequences == (1, 1)


def test_a_store_is_needed():
    with pytest.raises(ValueError, match="store must be given"):
        on_ray(PINBALL, None, shards=2)
