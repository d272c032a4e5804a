"""Rounds that are no rounds: what cannot be learned from becomes an empty round, so that no later one moves (R15)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent._core._check import Array, numbers
from reticent.domains import Domain
from reticent.losses import Custom, Loss
from reticent.losses._label import Label


class EmptyRoundWarning(UserWarning):
    """Some rounds held no numbers that can be learned from, and were taken for empty rounds."""


def check_on_bad(on_bad: str, on_steep: str, loss: Loss) -> str:
    """Return what to do with bad rounds; "empty" is for losses of rows, where nothing else is refused."""
    if on_bad not in ("raise", "empty"):
        raise ValueError(f'on_bad must be "raise" or "empty", got {on_bad!r}')
    if on_bad == "empty" and (isinstance(loss, Custom) or on_steep != "clip"):
        why = "a custom loss, whose rounds may be anything" if isinstance(loss, Custom) else f"on_steep={on_steep!r}"
        raise ValueError(f'on_bad="empty" needs on_steep="clip" and a loss of rows of numbers, got {why}')
    return on_bad


def well_formed(domain: Domain, loss: Loss, block: tuple[Any, ...]) -> tuple[Array, ...] | None:
    """Return a block as arrays of one row of numbers a round, whatever the numbers are; None if it is none."""
    if len(block) != len(loss.data):
        return None
    try:
        arrays = [numbers(part) for part in block]
    except (TypeError, ValueError, OverflowError):
        return None
    features, targets = arrays[0], arrays[1:]
    if domain.dim == 1 and features.ndim < 2:
        features = features.reshape(-1, 1)
    elif features.ndim == 1:
        features = features.reshape(1, -1)
    targets = [part.reshape(1) if part.ndim == 0 else part for part in targets]
    if features.ndim != 2 or features.shape[1] != domain.dim or not len(features):
        return None
    if any(part.shape != (len(features),) for part in targets):
        return None
    return features, *targets


def emptied(
    domain: Domain, loss: Loss, block: tuple[Any, ...], prepare: Callable[..., Any]
) -> tuple[tuple[Any, ...], int]:
    """Return a block with zeros in the place of rounds that would be refused, and their number.

    A round of zeros has the same loss everywhere. What is not a block of rows of numbers at all is left as it is, for
    the full check to refuse.

    >>> from reticent.domains import Ball
    >>> from reticent.losses import Linear
    >>> block, bad = emptied(Ball(2), Linear(), (np.array([[1.0, np.nan], [0.5, 0.5]]),), lambda *block: None)
    >>> block[0], bad
    (array([[0. , 0. ],
           [0.5, 0.5]]), 1)
    """
    arrays = well_formed(domain, loss, block)
    if arrays is None:
        return block, 0
    bad: NDArray[np.bool_] = np.logical_not(np.isfinite(arrays[0]).all(axis=1))
    for targets in arrays[1:]:
        bad |= ~np.isfinite(targets)
        if isinstance(loss, Label):
            bad |= (targets != 0) & (np.abs(targets) != 1)
    found = _with_zeros(arrays, bad) if bad.any() else block
    try:
        prepare(*found)
    except ValueError:
        # Numbers so large that they overflow, or what else a system refuses: round by round.
        bad |= _refused(arrays, bad, prepare)
        found = _with_zeros(arrays, bad)
    return found, int(np.count_nonzero(bad))


def _refused(arrays: Sequence[Array], bad: NDArray[np.bool_], prepare: Callable[..., Any]) -> NDArray[np.bool_]:
    found = np.zeros(len(bad), dtype=bool)
    for i in np.flatnonzero(~bad):
        try:
            prepare(*(part[i : i + 1] for part in arrays))
        except ValueError:
            found[i] = True
    return found


def _with_zeros(arrays: Sequence[Array], bad: NDArray[np.bool_]) -> tuple[Array, ...]:
    found = tuple(part.copy() for part in arrays)
    for part in found:
        part[bad] = 0.0
    return found


def tell(bad: int, count: int) -> None:
    """Tell the caller, not the public, that rounds were taken for empty ones; only once they are in.

    Where warnings are errors the caller must not give a round again that counts already.
    """
    if bad:
        warnings.warn(
            f"{bad} of {count} rounds were no rows of finite numbers (or labels, or persons) and counted as empty "
            "rounds: nothing was learned from them, and no later round has moved. This message is not private: do not "
            "publish it",
            EmptyRoundWarning,
            stacklevel=3,
        )
