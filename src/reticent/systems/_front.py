"""The front door: learners for ordinary data, from a loss, a domain, and a privacy budget or a budget of changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypedDict

from reticent._core._check import positive
from reticent._core._random import Seed
from reticent.domains import Domain, Experts
from reticent.losses import Custom, GeneralisedLinear, Linear, Loss
from reticent.losses._limit import slope_cap
from reticent.systems._choice import best_plan
from reticent.systems._group import for_persons
from reticent.systems._learner import Learner, make
from reticent.systems._likeness import tried
from reticent.systems._plan import BasePlan
from reticent.systems.budgeted import plan_budgeted
from reticent.systems.experts import plan_doubling
from reticent.systems.filtered import clip_for, plan_filtered
from reticent.systems.gate import plan_noisy_descent

_CLIPS = (1.0, 0.5, 0.25, 0.125)  # of the Lipschitz constant, that public data choose among


class _Limits(TypedDict):
    max_switches: int | None
    neighbors: str


class _Units(TypedDict):
    max_rows: int | None
    window: int | None
    clock: int | None


def private_learner(
    loss: Loss,
    domain: Domain,
    *,
    epsilon: float,
    delta: float,
    horizon: int | None = None,
    max_switches: int | None = None,
    neighbors: str = "replace",
    max_rows: int | None = None,
    window: int | None = None,
    clock: int | None = None,
    lipschitz: float | None = None,
    on_bad: str | None = None,
    like: Any = None,
    seed: Seed = None,
) -> Learner:
    """Return a learner whose decisions are (epsilon, delta)-private for any number of rounds, at its first decision.

    It is made for ordinary data: privacy is certified, what decisions cost is measured (docs/systems.md). `lipschitz`
    is the slope of a round at most, by default what the loss has for features of length 1; steeper rounds are scaled
    down, never refused, so nothing has to be known of the data but its scale. With a `horizon` the run ends there, and
    `max_switches` is a hard cap on changes over it. Neighbours are rounds that are replaced, or "zero-out". For
    `rt.Experts` privacy is pure (`delta` may be 0); experts whose order drifts are better served by the dartboard.

    **Who is protected**: one round, or with `max_rows=k` a person with any number of rounds, of which the first k count
    and the rest are left out; hand over `observe(..., person=key)`, `observe_many(..., persons=keys)`. With `window=w`
    k of them count in each window of w rounds, and what is protected is whatever a person does in any w rounds in a
    row: a budget that is renewed, for runs without an end. `clock=n` is for blocks that end when you call
    `learner.close_block()`, by a public clock, with about n rounds in between: then rounds put in or left out are
    covered too, and `window` counts blocks (docs/guarantees/units.md).

    A row that holds no finite numbers, or no label, counts as an empty round, with a warning: if it were refused, all
    later rounds would come to stand elsewhere, and no claim covers that. `on_bad="raise"` refuses it. A call that is no
    row of numbers at all (a wrong shape) is an error always, and counts for nothing.

    `like` is public data, or a model of yours, as `observe_many` takes them: how gradients are clipped, and with a
    horizon the system too, are then what is best there. Never pass the private stream: no epsilon covers that.

    >>> import numpy as np
    >>> import reticent as rt
    >>> learner = rt.private_learner(rt.Pinball(0.9), rt.Interval(0.0, 10.0), epsilon=1.0, delta=1e-6, seed=1)
    >>> values = np.random.default_rng(1).gamma(2.0, 1.0, 20_000)
    >>> trace = learner.observe_many(np.ones(20_000), values)
    >>> bool(abs(learner.decision[0] - np.quantile(values, 0.9)) < 0.5), learner.spent() <= 1.0
    (True, True)
    """
    G = unit_lipschitz(loss) if lipschitz is None else positive("lipschitz", lipschitz)
    claim, limits = (epsilon, delta), _Limits(max_switches=max_switches, neighbors=neighbors)
    units = _Units(max_rows=max_rows, window=window, clock=clock)
    # The caller's own functions may be given anything: what they refuse cannot be made an empty round.
    bad = ("raise" if isinstance(loss, Custom) else "empty") if on_bad is None else on_bad
    if isinstance(domain, Experts):
        if clock is not None:
            raise ValueError(f"clock must be None for experts, got {clock!r}: their blocks double in length")
        planner = for_persons(plan_doubling, max_rows=max_rows, window=window)
        return make(planner(domain, horizon, G, *claim, **limits), loss, seed, on_steep="clip", on_bad=bad)
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0, got 0: normal noise has no finite epsilon without a delta, and no learner "
            "for a convex body has pure privacy here; take one far below one over the number of people, such as 1e-9 "
            "(rt.PrivateQuantile and rt.PrivateMean are pure)"
        )
    if like is None:
        plan: BasePlan = plan_filtered(domain, horizon, G, *claim, clip=clip_for(loss, G), **limits, **units)
    else:
        if any(unit is not None for unit in units.values()):
            raise ValueError("like must be None with max_rows, window or clock: plans are compared by rounds")
        plan = _alike(domain, horizon, G, loss, claim, limits, like)
    return make(plan, loss, seed, on_steep="clip", on_bad=bad)


def _alike(
    domain: Domain,
    horizon: int | None,
    G: float,
    loss: Loss,
    claim: tuple[float, float],
    limits: _Limits,
    like: Any,
) -> BasePlan:
    """Return the plan that does best on public data, among those with this privacy."""

    def plans() -> Iterator[BasePlan]:
        for share in _CLIPS:
            yield plan_filtered(domain, horizon, G, *claim, clip=share * G, **limits)
        if horizon is None:
            yield plan_noisy_descent(domain, None, G, *claim, **limits)
        else:
            wanted = {"epsilon": claim[0], "delta": claim[1], **limits}
            yield best_plan(domain, horizon, G, loss, aim="ordinary", like=like, **wanted)  # type: ignore[arg-type]

    return min(plans(), key=lambda plan: tried(plan, loss, like).loss)


def lazy_learner(
    loss: Loss,
    domain: Domain,
    *,
    max_switches: int,
    horizon: int | None = None,
    lipschitz: float | None = None,
    seed: Seed = None,
) -> Learner:
    """Return a learner whose decision never changes more than `max_switches` times, for ordinary streams.

    With a `horizon` the changes are made to last for so many rounds; rounds beyond it are taken too, and the cap still
    holds. Without one, an eighth of the changes that are left may be made each time the run doubles. `lipschitz` is
    what the loss has for rows of length at most 1 unless given; steeper rounds are clipped to it, never refused.
    Nothing is random; `seed` is there because every learner has one. A `Custom` loss is read at some 70 points a round.

    >>> import numpy as np
    >>> import reticent as rt
    >>> learner = lazy_learner(rt.Pinball(0.95), rt.Interval(0, 1000), max_switches=50, horizon=10_000)
    >>> values = np.random.default_rng(0).gamma(4.0, 50.0, size=10_000)
    >>> trace = learner.observe_many(np.ones(10_000), values)
    >>> trace.switches <= 50, bool(abs(learner.decision[0] - np.quantile(values, 0.95)) < 20)
    (True, True)
    """
    G = unit_lipschitz(loss) if lipschitz is None else positive("lipschitz", lipschitz)
    return make(plan_budgeted(domain, horizon, G, max_switches), loss, seed, on_steep="clip")


def unit_lipschitz(loss: Loss) -> float:
    """Return how steep a loss is at most for features of length 1; refuse one that has no such number.

    >>> from reticent.losses import Logistic, Pinball
    >>> unit_lipschitz(Pinball(0.95)), unit_lipschitz(Logistic())
    (0.95, 1.0)
    """
    found = math.inf
    if isinstance(loss, Linear):
        found = 1.0
    elif isinstance(loss, GeneralisedLinear):
        found = slope_cap(loss.slope_bound)
    elif isinstance(loss, Custom) and isinstance(loss.bound, float):
        found = loss.bound
    elif not isinstance(loss, Loss):
        raise ValueError(f"loss must be one of the losses of reticent.losses, got {loss!r}")
    if not math.isfinite(found):
        raise ValueError(
            f"lipschitz must be given for {loss!r}, whose slope has no bound of its own: the steepest slope of a round "
            "on the domain that is worth learning from; steeper rounds are scaled down"
        )
    return found
