"""Which rows of a source are rounds: those that are too steep are counted, left out, or end it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from reticent.cli._run_piece import Piece

CLIP, SKIP, STOP = "clip", "skip", "stop"
"""What happens to a round that is too steep: the learner scales it down, it is left out, or the run ends there."""


def sifted(
    pieces: Generator[Piece, None, None], measure: Callable[..., tuple[Any, Any]], limit: float, policy: str
) -> Generator[Piece, None, None]:
    """Give the rounds that a learner takes; `measure` says of a block which are too steep, and how steep each is."""
    seen = 0
    with closing(pieces):
        for piece in pieces:
            steep, constants = measure(piece.block)
            counted = replace(piece, steep=seen + np.append(0, np.cumsum(steep)))
            seen = int(counted.steep[-1])
            if policy == CLIP or not steep.any():
                yield counted
            elif policy == SKIP:
                yield counted.only(np.flatnonzero(~steep))
            else:
                first = int(np.argmax(steep))
                yield counted.first(first)
                raise ValueError(
                    f"{piece.where(first)}: the round has Lipschitz constant {constants[first]:.6g}, above the limit "
                    f"{limit:.6g}; give a larger --lipschitz, --on-steep clip to scale such rounds down, or --bad-rows "
                    "skip"
                )
