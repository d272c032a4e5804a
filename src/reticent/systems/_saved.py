"""Learners as files: `learner.save(path)` and `rt.load(path)`."""

from __future__ import annotations

import os
from typing import Any

from reticent.losses import Loss
from reticent.saving import Key, key_bytes, pack, read_file, unpack
from reticent.systems._learner import STATE, Learner


def load(path: str | os.PathLike[str], loss: Loss | None = None, *, key: Key = None) -> Learner:
    """Return the learner that `learner.save(path)` wrote; it goes on bit for bit.

    A `Custom` loss holds functions, which are not in the file: give it again as `loss`. Nothing of a file is run: it
    holds values and the names of reticent's own classes. One that is damaged, of another kind or of a newer version is
    refused, and so is a state in which no learner of its plan can stand. The checksum finds accidents; it does not
    prove who wrote a file, so load your own.

    **Resume a state once, and destroy it.** Two learners from one file go on with the same randomness, and no privacy
    claim covers that.

    >>> import os, tempfile
    >>> import reticent as rt
    >>> plan = rt.plan_lazy(rt.Ball(dim=2), horizon=100, lipschitz=1.0, max_switches=20)
    >>> learner = rt.PCOMW(plan, rt.Linear(), seed=1)
    >>> learner.observe([0.6, 0.8])
    >>> path = os.path.join(tempfile.mkdtemp(), "learner.state")
    >>> learner.save(path)
    >>> rt.load(path).rounds
    1
    """
    name = os.fsdecode(path)
    return unpack_learner(read_file(STATE, name), name, loss, key_bytes(key))


def pack_learner(learner: Learner, key: bytes | None = None) -> bytes:
    """Return the state of a learner as the bytes of a file."""
    return b"".join(pack(STATE, learner.whole(), key))


def unpack_learner(data: bytes, source: str, loss: Loss | None = None, key: bytes | None = None) -> Learner:
    """Return the learner in the bytes of a file; `source` names it in messages."""
    if loss is not None and not isinstance(loss, Loss):
        raise ValueError(f"loss must be one of the losses of reticent.losses, or None, got {loss!r}")
    found = unpack(STATE, data, source, loss, _check_learner, key)
    assert isinstance(found, Learner)
    if loss is not None and found.loss != loss:
        raise ValueError(
            f"loss must be the one that the learner was made with, {found.loss!r}, got {loss!r}; leave it out"
        )
    return found


def _check_learner(found: Any) -> None:
    if not isinstance(found, Learner):
        raise ValueError(f"it does not hold a learner, but a {type(found).__name__}")
    found.check_standing()
