"""Loading what was saved: learners and trackers alike."""

from __future__ import annotations

import os
from typing import Any

from reticent.losses import Loss
from reticent.saving import Key, key_bytes, read_file, unpack
from reticent.systems import _saved as learners
from reticent.trackers._tracker import STATE, Tracker

_KIND = b'{"kind":"tracker"'


def load(path: str | os.PathLike[str], loss: Loss | None = None, *, key: Key = None) -> Any:
    """Return the learner or tracker that its `save(path)` wrote; it goes on bit for bit.

    A `Custom` loss holds functions, which are not in the file: give it again as `loss`. Nothing of a file is run: it
    holds values and the names of reticent's own classes. One that is damaged, of another kind or of a newer version is
    refused, and so is a state in which nothing of its plan can stand. The checksum finds accidents; it does not
    prove who wrote a file, so load your own, or save with a `key` and give it here: then what was written or changed
    by anybody who does not have it is refused (an older file of your own is not).

    **Resume a state once, and destroy it.** Two learners from one file go on with the same randomness, and no privacy
    claim covers that.

    >>> import os, tempfile
    >>> import reticent as rt
    >>> path = os.path.join(tempfile.mkdtemp(), "tracker.state")
    >>> tracker = rt.PrivateQuantile(0.5, 0.0, 1.0, epsilon=1.0, seed=1)
    >>> tracker.update(0.3)
    >>> tracker.save(path)
    >>> load(path).rounds
    1
    """
    name = os.fsdecode(path)
    data = read_file("learner", name)
    if _KIND not in data[:128]:
        return learners.unpack_learner(data, name, loss, key_bytes(key))
    if loss is not None:
        raise ValueError(f"loss must be None for a saved tracker, got {loss!r}; leave it out")
    return unpack(STATE, data, name, check=_check, key=key_bytes(key))


def _check(found: Any) -> None:
    if not isinstance(found, Tracker):
        raise ValueError(f"it does not hold a tracker, but a {type(found).__name__}")
    found.check_standing()
