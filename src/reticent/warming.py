"""Compiles ahead of use what learners would compile on first use: one small run of every kind of learner.

A kind is what makes numba compile code of its own: the shape of the domain and the family of the loss, never their
sizes. Kinds are grouped by what they share, so that several processes compile little twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from reticent._core._check import Array, integer
from reticent.domains import Ball, Box, Domain, Experts, Interval, Simplex
from reticent.gibbs import Gibbs
from reticent.learners import make
from reticent.losses import Absolute, Custom, Hinge, Huber, Linear, Logistic, Loss, Pinball, Squared
from reticent.losses._label import Label
from reticent.planning import (
    FlatPlan,
    LazyToPrivatePlan,
    Plan,
    plan_agarwal_singh,
    plan_agarwal_singh_experts,
    plan_approximate_leader,
    plan_dartboard,
    plan_descent,
    plan_drawn_leader,
    plan_experts_lazy_leader,
    plan_ftrl,
    plan_grid_descent,
    plan_implicit,
    plan_independent,
    plan_lazy_leader,
    plan_lazy_leader_star,
    plan_leader,
    plan_newton,
    plan_objective,
    plan_perturbed_leader,
    plan_restarting_leader,
    plan_sherman_koren,
    plan_simplex_leader,
)

_ROUNDS = 48  # of a run: enough for every coin and draw to come up
_BALL, _LINE, _BOX = Ball(2), Interval(-1.0, 1.0), Box([-1.0, -1.0], [1.0, 1.0])
_SIMPLEX = Simplex(3)
_EXPERTS = Experts(3)
_PRIVATE = (1.0, 3.0, 1e-5)  # lipschitz, epsilon, delta


@dataclass(frozen=True)
class Kind:
    """What is compiled together: a name, what it is for, and runs that use all of it."""

    group: str
    title: str
    runs: tuple[Callable[[], None], ...]


def _away(x: Array, c: Array) -> float:
    return float(np.linalg.norm(x - c))


def _from_there(x: Array, c: Array) -> Array:
    return (x - c) / max(_away(x, c), 1e-12)


_CUSTOM = Custom(_away, _from_there, lipschitz=1.0)
_BOWL = Custom(
    lambda x, c: float((x - c) @ (x - c)) / 8,
    lambda x, c: (x - c) / 4,
    lipschitz=1.0,
    hessian=lambda x, c: np.eye(x.size) / 4,
)


def _rows(domain: Domain, loss: Loss, rounds: int) -> tuple[Any, ...]:
    """Return rounds that every plan takes: slopes of at most a tenth."""
    rng = np.random.default_rng(0)
    vectors = rng.uniform(-0.05, 0.05, size=(rounds, domain.dim))
    if isinstance(loss, Custom):
        return ([domain.project(domain.center + row) for row in vectors],)
    if isinstance(loss, Linear):
        return (np.abs(vectors) if domain.finite else vectors,)
    return vectors, np.where(vectors[:, 0] > 0, 1.0, -1.0) if isinstance(loss, Label) else vectors[:, 0].copy()


def _learner(plan: Callable[[], Any], loss: Loss) -> Callable[[], None]:
    """Return a run of a learner: a block of rounds, and one more."""

    def run() -> None:
        learner = make(plan(), loss, seed=0)
        rows = _rows(learner.plan.domain, loss, _ROUNDS)
        learner.observe_many(*(part[:-1] for part in rows))
        learner.observe(*(part[-1] for part in rows))

    return run


def _measure(domain: Domain, loss: Loss, rounds: int = 8, method: str | None = None) -> Callable[[], None]:
    """Return draws from a measure by itself."""

    def run() -> None:
        measure = Gibbs(domain, loss, beta=0.5, lam=1.0)
        rng = np.random.default_rng(0)
        measure.draw(rng)
        measure.observe_many(*_rows(domain, loss, rounds))
        measure.draw(rng, method=method)
        measure.log_density(domain.center)

    return run


def _walk(domain: Domain) -> Callable[[], Any]:
    return lambda: Plan(domain, 64, 1.0, beta=0.5, lam=2.0, p=0.3, phi=1.3)


def _renewed(domain: Domain) -> Callable[[], Any]:
    return lambda: LazyToPrivatePlan(
        domain, 64, 1.0, beta=0.5, lam=2.0, p=0.3, budget=20, batch=2, refresh=0.1, refreshes=12
    )


def _flat(domain: Domain) -> Callable[[], Any]:
    return lambda: FlatPlan(domain, 64, 1.0, beta=0.5, p=0.3, budget=20)


def _steps(domain: Domain) -> tuple[Callable[[], None], ...]:
    """Return runs of all that steps along gradients over a domain."""
    return (
        _learner(lambda: plan_descent(domain, 64, 1.0), Hinge()),
        _learner(lambda: plan_leader(domain, 64, 1.0), Absolute()),
        _learner(lambda: plan_descent(domain, 64, 1.0), Linear()),
        _learner(lambda: plan_leader(domain, 64, 1.0), _CUSTOM),
        _learner(lambda: plan_independent(domain, 64, 1.0, 3), Linear()),
        _learner(lambda: plan_lazy_leader(domain, 64, 1.0), Linear()),
    )


def _leaders(domain: Domain) -> tuple[Callable[[], None], ...]:
    return (
        _learner(lambda: plan_ftrl(domain, 64, *_PRIVATE), Logistic()),
        _learner(lambda: plan_ftrl(domain, 64, *_PRIVATE, noise="toeplitz-exact"), Linear()),
        _learner(lambda: plan_agarwal_singh(domain, 64, *_PRIVATE), Linear()),
        _learner(lambda: plan_ftrl(domain, 64, *_PRIVATE, smoothness=1.0), Huber()),
        _learner(lambda: plan_approximate_leader(domain, 64, *_PRIVATE), Hinge()),
    )


def _perturbed(domain: Domain, *curved: Loss) -> tuple[Callable[[], None], ...]:
    return (
        _learner(lambda: plan_objective(domain, 64, *_PRIVATE, smoothness=0.0), Linear()),
        *(_learner(lambda: plan_objective(domain, 64, *_PRIVATE, smoothness=1.0), loss) for loss in curved),
        _learner(lambda: plan_objective(domain, 64, *_PRIVATE, smoothness=1.0, general=True), _BOWL),
        _learner(lambda: plan_sherman_koren(domain, 64, 1.0, 20), Linear()),
    )


KINDS = {
    "pcomw-curved-ball": Kind(
        "ball", "P-COMW, logistic and Huber losses on a ball", (_learner(_walk(_BALL), Logistic()),)
    ),
    "pcomw-linear-ball": Kind("ball", "P-COMW, linear losses on a ball", (_learner(_walk(_BALL), Linear()),)),
    "draws-ball": Kind(
        "ball",
        "draws from a measure, and lazy-to-private, on a ball",
        (
            _measure(_BALL, Linear()),
            _measure(_BALL, Squared()),
            _measure(_BALL, Logistic()),
            _measure(_BALL, Hinge(), 300),
            _measure(_BALL, _CUSTOM),
            _learner(_renewed(_BALL), Linear()),
            _learner(_flat(_BALL), Logistic()),
        ),
    ),
    "descent-ball": Kind("ball", "gradient steps and lazy leaders on a ball", _steps(_BALL)),
    "ftrl-ball": Kind("ball", "DP-FTRL and the approximate leader on a ball", _leaders(_BALL)),
    "implicit-ball": Kind(
        "ball",
        "private implicit descent on a ball",
        (_learner(lambda: plan_implicit(_BALL, 64, *_PRIVATE), Logistic()),),
    ),
    "newton-ball": Kind(
        "ball", "online Newton steps on a ball", (_learner(lambda: plan_newton(_BALL, 64, 1.0, 0.3), Logistic()),)
    ),
    "perturbed-ball": Kind(
        "ball", "objective perturbation and the lazy perturbed leader on a ball", _perturbed(_BALL, Logistic())
    ),
    "pcomw-line": Kind(
        "line",
        "P-COMW, kinked and Huber losses on an interval",
        (_learner(_walk(_LINE), Pinball(0.9)), _learner(_walk(_LINE), Huber())),
    ),
    "pcomw-linear-box": Kind(
        "line",
        "P-COMW, linear losses on an interval or a box",
        (_learner(_walk(_LINE), Linear()),),
    ),
    "draws-line": Kind(
        "line",
        "draws from a measure, and lazy-to-private, on an interval",
        (
            _measure(_LINE, Absolute()),
            _measure(_LINE, Linear()),
            _measure(_LINE, Squared()),
            _measure(_LINE, _CUSTOM),
            _learner(_flat(_LINE), Absolute()),
        ),
    ),
    "experts": Kind(
        "line",
        "all learners over experts",
        (
            _learner(lambda: plan_dartboard(_EXPERTS, 64, 1.0, 20), Linear()),
            _learner(lambda: plan_restarting_leader(_EXPERTS, 64, 1.0, 20), Linear()),
            _learner(lambda: plan_perturbed_leader(_EXPERTS, 64, 1.0), Linear()),
            _learner(lambda: plan_lazy_leader_star(_EXPERTS, 64, 1.0, 20), Linear()),
            _learner(lambda: plan_experts_lazy_leader(_EXPERTS, 64, 1.0, 20), Linear()),
            _learner(lambda: plan_drawn_leader(_EXPERTS, 64, *_PRIVATE), Linear()),
            _learner(lambda: plan_agarwal_singh_experts(_EXPERTS, 64, *_PRIVATE), Linear()),
            _learner(lambda: plan_simplex_leader(_EXPERTS, 64, 1.0), Linear()),
        ),
    ),
    "pcomw-curved-rows": Kind(
        "rows",
        "P-COMW, logistic and Huber losses on a box, a simplex or a polytope",
        (_learner(_walk(_BOX), Logistic()),),
    ),
    "draws-rows": Kind(
        "rows",
        "draws from a measure on a box, a simplex or a polytope",
        (
            _measure(_BOX, Squared()),
            _measure(_BOX, Logistic()),
            _measure(_SIMPLEX, Linear()),
            _measure(_BOX, Hinge(), 300),
        ),
    ),
    "descent-rows": Kind(
        "rows",
        "gradient steps and lazy leaders on a box, a simplex or a polytope",
        (
            *_steps(_BOX),
            _learner(lambda: plan_grid_descent(_BOX, 64, 1.0, 20, strong_convexity=0.5, smoothness=1.0), _CUSTOM),
        ),
    ),
    "ftrl-rows": Kind("rows", "DP-FTRL and the approximate leader on these", _leaders(_BOX)),
    "implicit-rows": Kind(
        "rows", "private implicit descent on these", (_learner(lambda: plan_implicit(_BOX, 64, *_PRIVATE), Hinge()),)
    ),
    "newton-rows": Kind(
        "rows", "online Newton steps on these", (_learner(lambda: plan_newton(_BOX, 64, 1.0, 0.3), Logistic()),)
    ),
    "perturbed-rows": Kind(
        "rows", "objective perturbation and the lazy perturbed leader on these", _perturbed(_BOX, Huber())
    ),
}
"""What there is to compile, by name, in the order in which it is compiled."""


def warm(
    kinds: Iterable[str] | None = None,
    *,
    jobs: int = 1,
    progress: Callable[[str, float], None] | None = None,
) -> dict[str, float]:
    """Compile what learners would compile on first use, all kinds or some of `KINDS`; return seconds by kind.

    What is compiled is kept on disk, so this is for once: after installing, in an image that is built, before a test
    run. `jobs` processes share the work; `progress` is called with each kind and its seconds when it is done.
    The front door, `rt.private_learner` and `rt.lazy_learner` on ordinary data, and the trackers compile nothing.

    >>> import reticent as rt
    >>> sorted(rt.warm(["experts"]))
    ['experts']
    """
    chosen = list(KINDS) if kinds is None else list(dict.fromkeys(kinds))
    for name in chosen:
        if name not in KINDS:
            raise ValueError(f"there is no kind {name!r} to compile; kinds are {', '.join(KINDS)}")
    workers = integer("jobs", jobs, least=1)
    tell = progress or (lambda name, seconds: None)
    groups: dict[str, list[str]] = {}
    for name in chosen:
        groups.setdefault(KINDS[name].group, []).append(name)
    seconds: dict[str, float] = {}
    if workers == 1 or len(groups) == 1:
        for name in chosen:
            seconds[name] = _seconds(name)
            tell(name, seconds[name])
        return seconds
    with ExitStack() as stack:
        running = {}
        for share in _shares(list(groups.values()), workers):
            # A process for each share: what its kinds have in common stays in memory.
            pool = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
            running.update({pool.submit(_seconds, name): name for name in share})
        for done in as_completed(running):
            name = running[done]
            seconds[name] = done.result()
            tell(name, seconds[name])
    return {name: seconds[name] for name in chosen}


def _shares(groups: list[list[str]], workers: int) -> list[list[str]]:
    """Return the kinds of each process, groups kept together, the largest first."""
    shares: list[list[str]] = [[] for _ in range(min(workers, len(groups)))]
    for group in sorted(groups, key=_weight, reverse=True):
        min(shares, key=_weight).extend(group)
    return shares


def _weight(names: list[str]) -> float:
    """Return roughly how long kinds take: those on polytopes hold most of the code."""
    return sum(2.0 if KINDS[name].group == "rows" else 1.0 for name in names)


def _seconds(name: str) -> float:
    from reticent._core._waiting import hushed

    begin = time.perf_counter()
    with hushed():
        for run in KINDS[name].runs:
            run()
    return time.perf_counter() - begin
