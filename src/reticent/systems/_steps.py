"""Walks of methods that may change their decision after every round, or every batch of a fixed length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from reticent._core._check import Array
from reticent._core._tags import saved
from reticent.domains import Domain
from reticent.domains._base import read_only
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss, Objects, Rows
from reticent.systems._decider import Batched, Changes

LINEAR = -1
"""The code of linear losses, beside those of `reticent.losses._glm`."""


@saved("loss of a compiled step")
class CompiledLoss:
    """What compiled steps need to know of a loss; see `reticent.systems._kernels`.

    >>> from reticent.losses import Hinge
    >>> reader = CompiledLoss(Hinge())
    >>> reader.plain(Rows(np.ones((1, 2)), np.zeros(1)))[1]
    array([-1.])
    """

    def __init__(self, loss: Loss) -> None:
        self.code, self.parameter, self.kink = LINEAR, 0.0, 0.0
        if isinstance(loss, GeneralisedLinear):
            self.code, self.parameter = loss.code, loss.parameter
            pieces = loss.pieces()
            # One break with a jump of the slope is a kink; kernels reckon margins from there.
            if pieces is not None and pieces[1].any():
                self.kink = float(pieces[0][0])
        elif not isinstance(loss, Linear | Custom):
            raise ValueError(f"no learner knows the loss {loss!r}; wrap it in Custom(value, subgradient)")

    def plain(self, rows: Rows) -> tuple[Array, Array]:
        """Return vectors and offsets, C-contiguous, with margins reckoned from the kink."""
        offsets = rows.offsets - self.kink if self.kink else rows.offsets
        return np.ascontiguousarray(rows.vectors), np.ascontiguousarray(offsets)


def gradient_at(domain: Domain, loss: Custom, rows: Objects, i: int, u: Array) -> Array:
    """Return the subgradient of object `i` at the chart point `u`, in the chart and checked."""
    scale, bound = float(rows.scales[i]), float(rows.bounds[i])
    _, slope = loss.look(domain, domain.from_chart(u), rows.items[i], bound / scale if scale > 0 else np.inf)
    pulled: Array = domain.pull(scale * slope[None])[0][0]
    return pulled


# Walks of methods that may change their decision after every round, or every batch of a fixed length.


class StepWalk(Batched, ABC):
    """Takes gradient steps in the chart; subclasses have one compiled loop, `_play`, over rounds in normal form.

    Custom losses are read through the caller's functions: each round becomes a linear one, its subgradient at the
    decision in play, and takes the same compiled step. So `_play` must depend on a round through its gradient at the
    decision in play only; a method that reads more of a loss refuses custom losses in its plan's `check_loss`.
    """

    _moves: ClassVar[tuple[str, ...]] = ("u",)

    def __init__(self, domain: Domain, loss: Loss, batch: int = 1) -> None:
        """Start at the centre."""
        super().__init__(batch)
        self.domain, self.loss = domain, loss
        self.reader = CompiledLoss(loss)
        self.u: Array = np.zeros(domain.chart_dim)

    def _rows(self, code: int, vectors: Array, offsets: Array) -> tuple[Any, ...]:
        """Return what compiled steps take first: the body, the loss, and the rounds."""
        return self.domain.body, code, self.reader.parameter, vectors, offsets

    @abstractmethod
    def _play(self, code: int, vectors: Array, offsets: Array, after: Array) -> None:
        """Take in rounds and write the decision in play after round i into `after[i]`; leave `self.u` to the caller.

        `code` is that of the loss (`self.reader.code`, or LINEAR for subgradients of custom losses); `offsets` are
        reckoned from the kink. State other than the decision is the subclass's own.
        """

    def take(self, rows: Any, changes: Changes) -> None:
        """Take in prepared rounds; changes of decision are added."""
        if isinstance(rows, Objects):
            for i in range(len(rows)):
                assert isinstance(self.loss, Custom)
                gradient = gradient_at(self.domain, self.loss, rows, i, self.u)
                self._advance(LINEAR, np.ascontiguousarray(gradient[None]), np.zeros(1), changes)
        else:
            self._advance(self.reader.code, *self.reader.plain(rows), changes)

    def _advance(self, code: int, vectors: Array, offsets: Array, changes: Changes) -> None:
        after = np.empty((len(offsets), self.u.size))
        self.torn = True
        self._play(code, vectors, offsets, after)
        self._note(after, changes)
        self.torn = False

    def _note(self, after: Array, changes: Changes) -> None:
        """Write down where the decision changed."""
        # As the caller sees them: with a centre far off, points of the chart that differ may be one decision.
        shown = self.domain.from_chart(np.concatenate([self.u[None], after]))
        places = np.flatnonzero((shown[1:] != shown[:-1]).any(axis=1))
        if places.size:
            changes.add_many(places + self.done + 1, after[places])
        self.u = after[-1].copy()
        self.done += len(after)


class NoisyWalk(StepWalk):
    """A walk whose compiled loop puts decisions on the grid of a private plan before anything reads them.

    So gradients are read where decisions are released, and noise is rounded before anything is projected (docs/theory,
    Q11). `steps` are those of the grid; none without a claim.
    """

    steps: Array = np.zeros(0)

    def _rows(self, code: int, vectors: Array, offsets: Array) -> tuple[Any, ...]:
        body, *rest = super()._rows(code, vectors, offsets)
        return body._replace(grid=read_only(self.steps)), *rest  # of one type, however the walk was made
