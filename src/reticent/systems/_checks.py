"""What plans are asked for, checked in one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from reticent._core._check import integer, positive, real
from reticent.domains import Domain
from reticent.privacy._account import SystemAccount, gaussian
from reticent.privacy._losses import largest_mu
from reticent.systems._grid import Rounding

NEIGHBORS = ("replace", "zero-out")
ADVERSARIES = ("adaptive", "oblivious")
_SMALLEST, _GREATEST = 1e-100, 1e100


def check_body(domain: Domain) -> None:
    """Refuse what is not a convex body."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain must be a domain such as Ball(dim=2), got {domain!r}")
    if domain.finite:
        raise ValueError(
            f"domain must be a convex body, got {domain!r}; take Simplex({domain.dim}), or a system for experts "
            "(rt.compare_plans lists them)"
        )


LONGEST = 1 << 53
"""Rounds beyond which counts are not exact in double precision."""


def check_rounds(name: str, value: int, most: int = LONGEST, instead: str = "") -> int:
    """Return a number of rounds; refuse what is not one, or too large, and say what can be done instead."""
    rounds = integer(name, value, least=1)
    if rounds > most:
        size = f"{Decimal(rounds):.6g}"  # a float may be too small for it
        raise ValueError(f"{name} must be at most {most:,} rounds, got {size}{instead}")
    return rounds


def check_horizon(value: int, most: int = LONGEST) -> int:
    """Return the horizon of a plan that could also do without one."""
    return check_rounds("horizon", value, most, "; take horizon=None for a run without an end")


def check_firm(name: str, value: float, domain: Domain, lipschitz: float) -> float:
    """Return a regulariser; refuse one so weak that decisions overflow on their way to the domain."""
    firm = positive(name, value)
    if firm * domain.radius < 1e-100 * lipschitz:
        raise ValueError(f"{name} must be at least 1e-100 * lipschitz / radius, got {value!r}")
    return firm


def check_scale(domain: Domain, lipschitz: float) -> None:
    """Refuse scales whose squares and products leave double precision."""
    for name, value in (("lipschitz", lipschitz), ("the radius of the domain", domain.radius)):
        if not _SMALLEST <= value <= _GREATEST:
            raise ValueError(f"{name} must be from 1e-100 to 1e100, got {value!r}; choose other units")


# What private planners are asked for, checked in one place.

# Beyond 50 a promise of exp(epsilon) is none, and below 1e-6 steps are lost in rounding. The accountant cuts chances
# off at 1e-40 and takes no delta below 1e-30.
_EPSILON = (1e-6, 50.0)
_DELTA = (1e-30, 0.5)
LESS = (1e-9, 1e-6, *(2.0**-k for k in range(18, 2, -1)))  # what planners may give up for rounding, in turn


class Target(NamedTuple):
    """A horizon, a Lipschitz constant, and the privacy asked for."""

    horizon: int
    lipschitz: float
    epsilon: float
    delta: float
    neighbors: str

    def largest_mu(self) -> float:
        """Return the mu of the least noise: runs that are mu-GDP have the privacy asked for, by their account too."""
        most = largest_mu(self.epsilon, self.delta)
        # A little less than the most, so that rounding in an account never shows an epsilon above the goal.
        for less in LESS:
            account = SystemAccount(self.horizon, self.neighbors, (gaussian((1 - less) * most),))
            if account.epsilon(self.delta) <= self.epsilon:
                return (1 - less) * most
        raise ValueError(
            f"no noise is known to meet epsilon={self.epsilon!r} at delta={self.delta!r}; take a larger epsilon"
        )


def machine_mu(target: Target, domain: Domain, releases: int) -> float:
    """Return the mu of the least noise with room for rounding in so many decisions (docs/theory, Q11), or refuse."""
    found = Rounding.of(domain, target.horizon, releases).narrowed(target.largest_mu())
    if found == 0:
        raise ValueError(
            f"epsilon={target.epsilon!r} at delta={target.delta!r} is less than what rounding may reveal in "
            f"{releases:,} decisions; take a larger epsilon, fewer changes, or noisy descent, whose sums are exact"
        )
    return found


def least_noise(unit: float, most: float, rounding: Callable[[float], Rounding]) -> float:
    """Return noise with room in `most` for its own last bits, as good as the least; infinity if none has.

    Noise of deviation s is unit/s-GDP, and `rounding(s)` is what the machine adds, which does not fall with s.

    >>> least_noise(2.0, 1.0, lambda s: Rounding())
    2.0
    """
    machine = rounding(0.0)
    for _ in range(200):
        mu = machine.narrowed(most)
        if mu == 0:
            return math.inf
        found = rounding(unit / mu)
        if found.distance <= machine.distance:
            return unit / mu
        machine = found._replace(distance=found.distance * (1 + 1e-6))
    return math.inf


def within_failures(
    machine: Rounding, horizon: int, epsilon: float, delta: float, max_switches: int | None
) -> tuple[float, int | None]:
    """Return the epsilon and the switches that draws which may fail leave of a goal, `machine` being that of one.

    So many draws cost (1 + exp(epsilon)) times as many failures (docs/theory, Q11): above the epsilon returned that of
    one alone is more than delta, and that of more draws than those returned at any epsilon. A plan that meets the goal
    meets what is returned too, so searches that ask for no more lose none, and begin where plans are.

    >>> within_failures(Rounding(failure=1e-8), 1000, 9.0, 1e-6, None), within_failures(Rounding(), 1000, 9.0, 1e-6, 7)
    ((4.59511985013459, 50), (9.0, 7))
    >>> within_failures(Rounding(failure=1e-6), 1000, 9.0, 1e-6, None)
    (9.0, 0)
    """
    if not machine.failure:
        return epsilon, max_switches
    draws = math.floor(delta / (2 * machine.failure) * (1 + 1e-9))
    if draws == 0:
        return epsilon, 0
    least = math.log(max(delta / machine.failure - 1, 1 + 1e-9))
    most = horizon if max_switches is None else max_switches
    return min(epsilon, least), draws if draws < most else max_switches


def least_batch(horizon: int, max_switches: int | None) -> int:
    """Return the fewest rounds per batch with at most `max_switches` full batches; 1 where that is None.

    A change after the last round counts as one.

    >>> least_batch(10, 3), least_batch(10, None)
    (3, 1)
    """
    return 1 if max_switches is None else horizon // (integer("max_switches", max_switches, least=0) + 1) + 1


def check_target(
    domain: Domain, horizon: int, lipschitz: float, epsilon: float, delta: float, neighbors: str
) -> Target:
    """Return what is asked for as numbers, or refuse it; the domain has been checked."""
    T, G = check_rounds("horizon", horizon), positive("lipschitz", lipschitz)
    check_scale(domain, G)
    check_neighbors(neighbors)
    return Target(T, G, *check_claim(epsilon, delta), neighbors)


def check_neighbors(neighbors: str) -> None:
    """Refuse what is not one of the two neighbouring relations."""
    _check_word("neighbors", neighbors, NEIGHBORS)


def check_adversary(adversary: str) -> None:
    """Refuse what is not one of the two adversaries."""
    _check_word("adversary", adversary, ADVERSARIES)


def _check_word(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")


def check_claim(epsilon: float, delta: float) -> tuple[float, float]:
    """Return the goal as numbers; refuse one that no plan meets, or that promises nothing, and name the nearest."""
    eps, small = positive("epsilon", epsilon), real("delta", delta)
    if eps < _EPSILON[0]:
        raise ValueError(
            f"epsilon must be at least {_EPSILON[0]:g}, got {epsilon!r}: nothing would be learned from any stream of "
            f"feasible length; the nearest possible goal is epsilon={_EPSILON[0]:g}, or max_switches=0 for a plan that "
            "reveals nothing at all"
        )
    if eps > _EPSILON[1]:
        raise ValueError(
            f"epsilon must be at most {_EPSILON[1]:g}, got {epsilon!r}: a factor of exp({eps:g}) promises nothing; the "
            f"nearest possible goal is epsilon={_EPSILON[1]:g}, and plan_lazy plans without privacy"
        )
    if not _DELTA[0] <= small <= _DELTA[1]:
        nearest = _DELTA[0] if small < _DELTA[0] else _DELTA[1]
        why = (
            "draws are compared through normal laws, which have no finite epsilon at delta = 0"
            if small < _DELTA[0]
            else "a delta near 1 promises nothing"
        )
        raise ValueError(
            f"delta must be from {_DELTA[0]:g} to {_DELTA[1]:g}, got {delta!r}: {why}; the nearest possible goal is "
            f"delta={nearest:g}, and far below one over the number of people is usual"
        )
    return eps, small


def chance(name: str, value: float) -> float:
    """Return `value` as a probability."""
    found = real(name, value)
    if not 0 <= found <= 1:
        raise ValueError(f"{name} must be a probability from 0 to 1, got {value!r}")
    return found
