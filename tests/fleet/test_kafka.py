"""Fleets fed from Kafka: every message once, wherever a crash falls; against the broker that librdkafka has for tests.

A real broker was not tried. Transactions of that one are hollow; none are used here.
"""

import sys

import numpy as np
import pytest
from fleets import SPECS

import reticent as rt
from reticent.fleet import KafkaLoop, ShardedFleet, on_ray

kafka = pytest.importorskip("confluent_kafka")
MEAN = SPECS["mean"]
MESSAGES = 300


def read(message):
    return None if message.value() == b"no row" else (int(message.key()), float(message.value()))


@pytest.fixture(scope="module")
def broker():
    """Settings of a consumer, and what is in a topic: even keys in partition 0, odd ones in 1."""
    producer = kafka.Producer(
        {"test.mock.num.brokers": 1, "bootstrap.servers": "replaced", "log_level": 0, "linger.ms": 0}
    )
    (one,) = producer.list_topics(timeout=10).brokers.values()
    rng = np.random.default_rng(0)
    rows = list(zip(rng.integers(0, 6, MESSAGES).tolist(), rng.exponential(5.0, MESSAGES).tolist(), strict=True))
    for key, value in rows:
        producer.produce("minutes", key=str(key), value=repr(value), partition=key % 2)
        if key == 3:
            producer.produce("minutes", key=b"", value=b"no row", partition=1)
    assert producer.flush(20) == 0
    settings = {"bootstrap.servers": f"{one.host}:{one.port}", "session.timeout.ms": 6000, "log_level": 0}
    yield settings, rows
    del producer  # with which the broker ends


def undisturbed(rows):
    fleet = rt.Fleet(MEAN, seed=4)
    fleet.observe([key for key, _ in rows], np.array([value for _, value in rows]))
    return fleet


def ended(fleet, rows):
    """Say whether all is in; never more."""
    taken = int(fleet.rounds(range(6)).sum())
    assert taken <= len(rows)
    return taken == len(rows)


def same(fleet, rows):
    other = undisturbed(rows)
    assert fleet.decisions(range(6)).tobytes() == other.decisions(range(6)).tobytes()
    assert fleet.versions(range(6)).tolist() == other.versions(range(6)).tolist()
    for key in range(6):
        assert fleet.history(key)[0].tolist() == other.history(key)[0].tolist()


class Crash(BaseException):
    """What ends a loop at a bad moment."""


@pytest.mark.parametrize("moment", ["after the commit", "before the commit"])
def test_crashes_lose_nothing_and_repeat_nothing(broker, moment, tmp_path, monkeypatch):
    settings, rows = broker
    crashes, chance = 0, np.random.default_rng(1)
    told, observed = KafkaLoop._told, rt.Fleet.observe

    def crash(done):
        def wrapped(*args, **more):
            if chance.random() < 0.3:
                raise Crash
            return done(*args, **more)

        return wrapped

    if moment == "after the commit":  # to the store, before that to Kafka: a group would deliver the messages again
        monkeypatch.setattr(KafkaLoop, "_told", crash(told))
    else:
        monkeypatch.setattr(rt.Fleet, "observe", crash(observed))
    while True:
        with rt.Fleet(MEAN, tmp_path / "fleet.db", seed=4) as fleet:
            try:
                with KafkaLoop(fleet, settings, "minutes", read, size=8) as loop:
                    loop.run(lambda: ended(fleet, rows), wait=0.2)
                break
            except Crash:
                crashes += 1
    monkeypatch.undo()
    assert crashes > 5
    with rt.Fleet.open(tmp_path / "fleet.db") as fleet:
        same(fleet, rows)
        with KafkaLoop(fleet, settings, "minutes", read, size=25) as loop:
            assert loop.step(0.5) == {}


def test_messages_that_come_again_are_left_out(broker):
    settings, rows = broker
    fleet = rt.Fleet(MEAN, seed=4)
    with KafkaLoop(fleet, settings, "minutes", read, size=40) as loop:
        while not ended(fleet, rows):
            loop.step(0.2)
            if fleet.rounds(range(6)).sum() > 100:  # as if somebody had gone back to the beginning
                where = [kafka.TopicPartition("minutes", p, kafka.OFFSET_BEGINNING) for p in (0, 1)]
                loop._consumer.assign(where)
                break
        for _ in range(100):
            if ended(fleet, rows):
                break
            loop.step(0.2)
    same(fleet, rows)


def test_a_batch_half_in_ends_where_it_did(broker, monkeypatch):
    """Of shards some may be ahead: the batch that they have is repeated with the same end."""
    settings, _ = broker
    fleet, ends = rt.Fleet(MEAN, seed=4), []
    monkeypatch.setattr(KafkaLoop, "_half", lambda loop, partition: 7)
    observe = fleet.observe

    def noted(keys, *columns, batch):
        ends.append(batch)
        return observe(keys, *columns, batch=batch)

    fleet.observe = noted
    with KafkaLoop(fleet, settings, "minutes", read, size=5, partitions=[0]) as loop:
        while len(ends) < 3:
            loop.step(0.2)
    assert ends[0] == ("minutes/0", 7)
    assert fleet.rounds([0, 2, 4]).sum() == 1 + ends[-1][1]


def test_what_cannot_be_read_is_told_by_its_offset(broker):
    settings, _ = broker
    fleet = rt.Fleet(MEAN, seed=4)
    with (
        KafkaLoop(fleet, settings, "minutes", lambda message: (1, 2.0, 3.0), partitions=[0]) as loop,
        pytest.raises(ValueError, match="a key and 1 columns, got 3 values") as told,
    ):
        loop.run(lambda: False, 0.2)
    assert told.value.__notes__ == ["of 'minutes', partition 0, offset 0"]
    assert len(fleet) == 0
    with pytest.raises(ValueError, match="the topic 'hours' cannot be read"):
        KafkaLoop(fleet, settings, "hours", read)
    fleet.observe([1], [1.0], batch=("minutes/0", 10**6))
    with (
        KafkaLoop(fleet, settings, "minutes", read, partitions=[0]) as loop,
        pytest.raises(OSError, match="cannot be read on"),
    ):
        loop.run(lambda: False, 0.5)


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ImportError, match=r"confluent_kafka; pip install 'reticent\[kafka\]' brings it"):
        KafkaLoop(rt.Fleet(MEAN), {"bootstrap.servers": "nowhere"}, "minutes", read)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray closes sockets late
@pytest.mark.parametrize("careful", [True, False])
def test_shards_of_which_some_are_ahead(broker, careful, tmp_path, monkeypatch):
    """A crash between two shards, and batches cut elsewhere the next time: without care, rows would count twice."""
    ray = pytest.importorskip("ray")
    settings, rows = broker
    crashes, chance = 0, np.random.default_rng(1)
    observed = ShardedFleet._observed

    def half(fleet, calls):
        if chance.random() < 0.4:
            fleet._ask({0: calls[0]})
            raise Crash
        return observed(fleet, calls)

    monkeypatch.setattr(ShardedFleet, "_observed", half)
    if not careful:
        monkeypatch.setattr(KafkaLoop, "_half", lambda loop, partition: -1)
    with on_ray(MEAN, tmp_path / "fleet.db", shards=2, seed=4) as fleet:
        over = False
        while not over:
            try:
                with KafkaLoop(fleet, settings, "minutes", read, size=int(chance.integers(5, 60))) as loop:
                    while not over:
                        loop.step(0.2)
                        over = int(fleet.rounds(range(6)).sum()) >= len(rows)
            except Crash:
                crashes += 1
        assert crashes > 3
        if careful:
            same(fleet, rows)
        else:
            assert fleet.rounds(range(6)).tolist() != undisturbed(rows).rounds(range(6)).tolist()
    ray.shutdown()
