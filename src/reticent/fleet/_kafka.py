"""Fleets fed from Kafka, each message once: offsets live in the store of the fleet, not in a consumer group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from reticent._core._check import integer
from reticent._core._errors import need
from reticent.fleet._batches import Receipt
from reticent.fleet._fleet import Fleet
from reticent.fleet._ray import ShardedFleet

_WAIT = 30.0  # seconds for the broker to say which partitions a topic has


class KafkaLoop:
    """Reads partitions of a topic and hands their messages to a fleet, exactly once as far as the fleet goes.

    `settings` are those of `confluent_kafka.Consumer`; `read(message)` returns `(key, *row)`, one number or list for
    each of `fleet.spec.columns`, or None for a message that is no row. The offset of a partition is written in the same
    transaction as the states that its messages led to, and reading begins after it: partitions are assigned here, no
    group decides. After a crash at any moment nothing is missing and nothing counts twice. Offsets are committed to
    Kafka as well, later, for those who watch how far readers are; nobody here reads them.

    A fleet has one writer, so one loop: it reads `partitions`, or all that there are when it begins. Rows of one key
    keep their order if their messages are in one partition. A topic that was deleted and made anew counts from 0
    again: give it another `source`. Messages that the broker has deleted before they were read are an error.

    >>> import reticent as rt
    >>> fleet = rt.Fleet(rt.fleet.Spec(rt.PrivateMean, 0.0, 60.0, epsilon=1.0))
    >>> def read(message):
    ...     return message.key().decode(), float(message.value())
    >>> KafkaLoop(fleet, {}, "minutes", read)
    Traceback (most recent call last):
    ValueError: settings must name "bootstrap.servers", got none of them
    """

    def __init__(
        self,
        fleet: Fleet | ShardedFleet,
        settings: Mapping[str, Any],
        topic: str,
        read: Callable[[Any], tuple[Any, ...] | None],
        *,
        partitions: Iterable[int] | None = None,
        source: str | None = None,
        size: int = 10_000,
    ) -> None:
        """Connect, and go to where the fleet is in each partition; at most `size` messages are handed on together."""
        if "bootstrap.servers" not in settings:
            raise ValueError(f'settings must name "bootstrap.servers", got {sorted(settings) or "none of them"}')
        self._kafka = kafka = need("confluent_kafka", "kafka")
        self.fleet, self.topic, self.source = fleet, topic, source or topic
        self._read, self._size = read, integer("size", size, least=1)
        ours = {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": False}
        self._consumer = kafka.Consumer({"group.id": f"reticent {fleet.name}"} | dict(settings) | ours)
        try:
            wanted = self._partitions() if partitions is None else sorted(set(partitions))
            taken = {partition: fleet.offset(self._name(partition)) for partition in wanted}
            self._last = {partition: -1 if last is None else last for partition, last in taken.items()}
            self._until = {partition: self._half(partition) for partition in wanted}
            self._ahead: dict[int, list[Any]] = {partition: [] for partition in wanted}
            self._consumer.assign([self._start(partition) for partition in wanted])
        except BaseException:
            self._consumer.close()
            raise

    def _partitions(self) -> list[int]:
        about = self._consumer.list_topics(self.topic, timeout=_WAIT).topics[self.topic]
        if about.error is not None:
            raise ValueError(f"the topic {self.topic!r} cannot be read: {about.error.str()}")
        return sorted(about.partitions)

    def _name(self, partition: int) -> str:
        return f"{self.source}/{partition}"

    def _half(self, partition: int) -> int:
        """Return where the first batch must end: one of which some shards have their part and others do not."""
        begun = self.fleet.begun(self._name(partition)) if isinstance(self.fleet, ShardedFleet) else None
        return -1 if begun is None else begun

    def _start(self, partition: int) -> Any:
        last = self._last[partition]
        return self._kafka.TopicPartition(
            self.topic, partition, self._kafka.OFFSET_BEGINNING if last is None else last + 1
        )

    def step(self, wait: float = 1.0) -> dict[int, Receipt]:
        """Hand on the messages that are there, waiting so many seconds for some; return a receipt by partition.

        If the store fails, call it again: messages are kept until they are in.
        """
        for message in self._consumer.consume(self._size, wait):
            if message.error() is not None:
                raise OSError(f"the topic {self.topic!r} cannot be read on: {message.error().str()}")
            ahead = self._ahead[message.partition()]
            if message.offset() > (ahead[-1].offset() if ahead else self._last[message.partition()]):
                ahead.append(message)
        return {partition: self._hand_on(partition) for partition in self._ahead if self._whole(partition)}

    def _whole(self, partition: int) -> bool:
        """Say whether there is something to hand on: anything, or all of a batch that is half in."""
        ahead = self._ahead[partition]
        return bool(ahead) and ahead[-1].offset() >= self._until[partition]

    def _hand_on(self, partition: int) -> Receipt:
        ahead, until = self._ahead[partition], self._until[partition]
        end = until if until > self._last[partition] else ahead[-1].offset()
        count = sum(message.offset() <= end for message in ahead)
        keys, columns = self._rows(ahead[:count])
        receipt = self.fleet.observe(keys, *columns, batch=(self._name(partition), end))
        self._last[partition], self._ahead[partition] = end, ahead[count:]
        self._told(partition, end)
        return receipt

    def _rows(self, messages: list[Any]) -> tuple[list[Any], list[Any]]:
        width = 1 + len(self.fleet.spec.columns)
        rows = []
        for message in messages:
            try:
                row = self._read(message)
                if row is not None and len(row) != width:
                    raise ValueError(f"read must return a key and {width - 1} columns, got {len(row)} values")
            except Exception as error:
                error.add_note(f"of {self.topic!r}, partition {message.partition()}, offset {message.offset()}")
                raise
            if row is not None:
                rows.append(row)
        keys, *columns = zip(*rows, strict=True) if rows else [()] * width
        return list(keys), [np.array(column, dtype=np.float64) for column in columns]

    def _told(self, partition: int, last: int) -> None:
        """Commit an offset for those who watch; it is in the store already."""
        at = self._kafka.TopicPartition(self.topic, partition, last + 1)
        self._consumer.commit(offsets=[at], asynchronous=True)

    def run(self, stop: Callable[[], bool], wait: float = 1.0) -> None:
        """Go on until `stop()` is true, which is asked after every step."""
        while not stop():
            self.step(wait)

    def close(self) -> None:
        """Leave Kafka; the fleet stays open."""
        self._consumer.close()

    def __enter__(self) -> KafkaLoop:
        """Return the loop."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
