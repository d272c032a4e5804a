"""Two neighbouring streams: the worst that is known for linear losses, and the check that two are neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent._check import Array

if TYPE_CHECKING:
    from reticent.planning import Plan
    from reticent.planning._goal import AnyPlan

Block = tuple[Any, ...]
"""The rounds of a stream as `observe_many` takes them."""


def worst_case(plan: Plan) -> tuple[Array, Array]:
    """Return two neighbouring streams of gradients, for `Linear`, that a run of `plan` tells apart about best.

    They differ in the first round: `lipschitz` along a line against the opposite ("replace") or 0 ("zero-out"). With
    p = 1 all other gradients are 0 and draws in the two worlds are normal laws s apart, as far as the certificate
    allows (docs/theory.md, Q1), if the domain is wide beside 1/sqrt(beta lam). With coins, later gradients go to and
    fro, batch by batch: so every coin tells of the change and the measure stays away from the walls. Nothing proves
    that this is worst where there are coins, and losses that react to decisions are not among them.

    >>> import reticent as rt
    >>> plan = rt.Plan(rt.Interval(-9.0, 9.0), 4, 1.0, beta=1.0, lam=1.0, p=1.0, phi=1.0)
    >>> [stream.ravel().round(6).tolist() for stream in worst_case(plan)]
    [[1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0]]
    """
    horizon = rounds_of(plan)
    G = plan.lipschitz * (1 - 1e-12)  # a rounding error may not make it steeper than allowed
    along = np.zeros(plan.domain.chart_dim)
    along[0] = 1.0
    direction = plan.domain.from_chart(along) - plan.domain.from_chart(np.zeros_like(along))
    sizes = np.zeros(horizon)
    if plan.p < 1 and horizon > plan.batch:
        # The mean of the measure goes out and back by the batch's sum / lam: half of the way to the walls at most.
        swing = min(G, plan.domain.radius * plan.lam / (2 * plan.batch))
        sizes = swing * np.where((np.arange(horizon) // plan.batch) % 2 == 1, 1.0, -1.0)
        sizes[: plan.batch] = 0.0
    stream, neighbour = np.outer(sizes, direction), np.outer(sizes, direction)
    stream[0] = G * direction
    neighbour[0] = -G * direction if plan.neighbors == "replace" else 0.0
    return stream, neighbour


def rounds_of(plan: AnyPlan) -> int:
    """Return the horizon of a plan; refuse one without."""
    if plan.horizon is None:
        raise ValueError(
            "a plan with horizon=None runs epochs, each with an account of its own: audit plan.epoch(k); plan.epoch(0) "
            "is the first"
        )
    return plan.horizon


def block(name: str, stream: Any) -> Block:
    """Return a stream as the arguments of `observe_many`: one array of gradients, or a tuple (features, targets).

    A list is a block of objects, as `Custom` takes them.
    """
    parts = stream if isinstance(stream, tuple) else (stream,)
    if not parts or any(not hasattr(part, "__len__") for part in parts):
        raise ValueError(f"{name} must be an array of gradients or a tuple (features, targets), got {stream!r}")
    lengths = [len(part) for part in parts]
    if len(set(lengths)) != 1 or lengths[0] == 0:
        raise ValueError(f"{name} must have parts of one length, at least 1, got lengths {lengths}")
    return parts


def changed_round(plan: AnyPlan, one: Block, two: Block) -> int:
    """Return the one round (from 0) in which two streams differ; refuse streams that are not neighbours."""
    horizon = rounds_of(plan)
    if len(one) != len(two):
        raise ValueError(f"stream and neighbour must have the same parts, got {len(one)} and {len(two)}")
    for name, parts in (("stream", one), ("neighbour", two)):
        if len(parts[0]) > horizon:
            raise ValueError(
                f"{name} must have at most as many rounds as the plan's horizon of {horizon}, got {len(parts[0])}; "
                "cut it, or plan a longer horizon"
            )
    if len(one[0]) != len(two[0]):
        raise ValueError(
            f"stream and neighbour must have the same number of rounds, got {len(one[0])} and {len(two[0])}; "
            "neighbours differ in what one round says, not in whether it is there"
        )
    rounds = range(len(one[0]))
    changed = [t for t in rounds if any(not _same(a[t], b[t]) for a, b in zip(one, two, strict=True))]
    if len(changed) != 1:
        raise ValueError(
            f"stream and neighbour must differ in exactly one round, got {len(changed)} that differ; "
            "worst_case(plan) makes such a pair for linear losses"
        )
    return changed[0]


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    except ValueError:  # ragged objects
        return bool(a == b)
