"""Learners as files: `learner.save(path)` and `rt.load(path)`."""

from __future__ import annotations

import os
from typing import Any

from reticent.learners import Learner
from reticent.losses import Loss

from ._format import MARK, check_mark, pack, unpack
from ._standing import check_standing
from ._write import write_file

_KIND = "learner"


def load(path: str | os.PathLike[str], loss: Loss | None = None) -> Learner:
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
    with open(name, "rb") as file:
        head = file.peek(len(MARK))
        if len(head) >= len(MARK):  # a pipe may bring less at first
            check_mark(_KIND, head, name)  # before the rest of what may be a huge file is read
        data = file.read()
    return unpack_learner(data, name, loss)


def save_learner(learner: Learner, path: str | os.PathLike[str]) -> None:
    """Write the state of a learner to a file, at once or not at all."""
    write_file(path, pack(_KIND, _whole(learner)))


def pack_learner(learner: Learner) -> bytes:
    """Return the state of a learner as the bytes of a file."""
    return b"".join(pack(_KIND, _whole(learner)))


def unpack_learner(data: bytes, source: str, loss: Loss | None = None) -> Learner:
    """Return the learner in the bytes of a file; `source` names it in messages."""
    if loss is not None and not isinstance(loss, Loss):
        raise ValueError(f"loss must be one of the losses of reticent.losses, or None, got {loss!r}")
    found = unpack(_KIND, data, source, loss, _check_learner)
    assert isinstance(found, Learner)
    if loss is not None and found.loss != loss:
        raise ValueError(
            f"loss must be the one that the learner was made with, {found.loss!r}, got {loss!r}; leave it out"
        )
    return found


def _check_learner(found: Any) -> None:
    if not isinstance(found, Learner):
        raise ValueError(f"it does not hold a learner, but a {type(found).__name__}")
    check_standing(found)


def _whole(learner: Learner) -> Learner:
    if learner._torn():
        raise ValueError(
            "a learner that was interrupted while it took in rounds cannot be saved, as nobody knows how many are in; "
            "resume an earlier state"
        )
    return learner
