"""What somebody who sees everything can make of it: from a belief before to one after, and how often a guess is right.

Whoever guesses knows all other rounds and both things that one unit can have been, and holds the first for true with
a probability `prior`. All is computed from the curve of (epsilon, delta), the whole of it where an account has one
(docs/theory, Q16). `group` is the same for several units at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent._core._check import integer, real
from reticent.privacy._account import (
    LEAST_DELTA,
    Certificate,
    SystemAccount,
    check_delta,
    check_epsilon,
    gaussian,
    smallest,
)
from reticent.privacy._coins import NO_LOSS
from reticent.privacy._pure import PureAccount

ACCOUNTANT = "by the accountant"
"""Who certifies what is not claimed by hand or by a published theorem."""
# Parts of the chance that are tried as delta: each is a bound, and the best is within a few percent of all of them.
_PARTS = np.concatenate((np.geomspace(1e-7, 0.01, 6), (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65, 0.85)))


@dataclass(frozen=True)
class Promise(Certificate):
    """The curve of whatever is (epsilon, delta)-private and nothing more is known of.

    >>> one = Promise(1.0, 1e-6)
    >>> one.delta(1.0), round(one.delta(0.0), 6), one.epsilon(1e-6), one.epsilon(1e-7)
    (1e-06, 0.462118, 1.0, inf)
    """

    stated: float
    at: float

    def heading(self) -> str:
        """Say what it covers."""
        return f"Whatever is (epsilon {self.stated:g}, delta {self.at:g})-private"

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta that holds at `epsilon`: that of randomised response with a chance of failure."""
        rest = max(0.0, -math.expm1(check_epsilon(epsilon) - self.stated) / (1 + math.exp(-self.stated)))
        return self.at + (1 - self.at) * rest

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that holds at `delta`; infinity below the stated one."""
        if delta < self.at:
            return math.inf
        if delta == self.at:
            return self.stated
        return PureAccount.of(None, "replace", self.stated).epsilon((delta - self.at) / (1 - self.at))


def certificate_of(what: Any) -> Certificate:
    """Return the curve of an account, a plan, or a pair (epsilon, delta).

    A plan whose epochs go on for ever has what it claims; one that claims nothing has no curve.
    """
    if isinstance(what, Certificate):
        return what
    if isinstance(what, tuple) and len(what) == 2:
        return _stated(*what)
    if not hasattr(what, "account"):
        raise ValueError(f"what is guessed from must be an account, a plan or a pair (epsilon, delta), got {what!r}")
    if getattr(what, "epsilon", None) is None:
        raise ValueError("this plan makes no privacy claim, so nothing limits what can be guessed; give an epsilon")
    if getattr(what, "certified_by", ACCOUNTANT) != ACCOUNTANT:
        return _stated(what.epsilon, what.delta)
    try:
        found: Certificate = what.account()
    except ValueError:  # every epoch has a curve of its own, and what is claimed holds for all
        return _stated(what.epsilon, what.delta)
    return found


def _stated(epsilon: float, delta: float) -> Certificate:
    level = real("delta", delta)
    if not 0 <= level < 1:
        raise ValueError(f"delta must be at least 0 and less than 1, got {delta!r}")
    goal = check_epsilon(epsilon)
    return PureAccount.of(None, "replace", goal) if level == 0 else Promise(goal, level)


def best_guess(what: Any, prior: float = 0.5) -> float:
    """Return the largest chance to guess right which of two things one unit was, after seeing everything.

    `what` is an account, a plan or a pair (epsilon, delta). Who guesses knows all but this, and holds the first of the
    two for true with probability `prior`. Without looking the chance is the larger of prior and 1 - prior.

    >>> round(best_guess((1.0, 1e-6)), 4), round(best_guess((1.0, 1e-6), prior=0.01), 4)
    (0.7311, 0.99)
    >>> import reticent as rt
    >>> plan = rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6)
    >>> round(best_guess(plan), 4)
    0.5471
    """
    belief = _check_prior(prior)
    less, more = min(belief, 1 - belief), max(belief, 1 - belief)
    if less == 0:
        return 1.0
    return min(1.0, more + less * certificate_of(what).delta(math.log(more / less)))


def posterior(what: Any, prior: float = 0.5, chance: float = 0.0) -> float:
    """Return how far the belief that a unit was what it was can rise, but for a `chance` of more.

    `what` is an account, a plan or a pair (epsilon, delta); `prior` is the probability that somebody who knows all else
    gives to the truth before anything is seen. After everything was seen it is at most what is returned, except with
    a probability of at most `chance`; 0 is for pure privacy (delta 0), where the bound always holds.

    >>> round(posterior((1.0, 0.0), 0.1), 4), round(posterior((1.0, 1e-6), 0.1, chance=1e-3), 4)
    (0.232, 0.2321)
    >>> posterior((1.0, 1e-6), 0.1)
    1.0
    """
    belief = _check_prior(prior)
    beyond = real("chance", chance)
    if not 0 <= beyond < 1:
        raise ValueError(f"chance must be at least 0 and less than 1, got {chance!r}")
    if belief in (0.0, 1.0):
        return belief
    return belief / (belief + (1 - belief) / odds_factor(certificate_of(what), beyond))


def odds_factor(curve: Certificate, chance: float) -> float:
    """Return the factor that odds rise by at most, but for this chance of more (docs/theory, Q16b)."""
    always = curve.pure if isinstance(curve, PureAccount) else math.inf
    if chance > 0:
        parts = [float(part) for part in _PARTS if chance * part >= LEAST_DELTA]
        always = min([always, *(curve.epsilon(chance * part) - math.log1p(-part) for part in parts)])
    return math.exp(always) if always < 700 else math.inf


def group(what: Any, size: int) -> Certificate:
    """Return the curve for `size` units that change at once: the rows of one person, say.

    It is exact where the whole is one Gaussian release (size times mu) or pure (size times epsilon); else it is the
    bound that holds for everything, delta(epsilon/k) (e^epsilon - 1)/(e^(epsilon/k) - 1) (docs/theory, Q16d).

    >>> import reticent as rt
    >>> plan = rt.planning.plan_ftrl(rt.Ball(2), 1000, 1.0, 1.0, 1e-6)
    >>> [round(group(plan, k).epsilon(1e-6), 2) for k in (1, 2, 5, 10)]
    [1.0, 2.12, 5.93, 13.51]
    >>> round(group((1.0, 1e-6), 2).epsilon(1e-5), 2), group((0.5, 0.0), 4).epsilon(0.0)
    (2.0, 2.0)
    """
    k = integer("size", size, least=1)
    curve = certificate_of(what)
    if k == 1:
        return curve
    if isinstance(curve, PureAccount):
        return PureAccount.of(curve.rounds, curve.neighbors, k * curve.pure)
    mu = _gdp(curve)
    if mu is not None and isinstance(curve, SystemAccount):
        return SystemAccount(curve.rounds, curve.neighbors, (gaussian(k * mu),))
    return _Group(curve, k)


def _gdp(curve: Certificate) -> float | None:
    """Return the mu of an account that is one Gaussian release; None for others."""
    if not isinstance(curve, SystemAccount) or len(curve.statements) != 1:
        return None
    method, bound = curve.statements[0]
    if method != "pld" or bound.failure or len(bound.alternatives) != 1 or len(bound.alternatives[0]) != 1:
        return None
    term = bound.alternatives[0][0]
    alone = term.other is NO_LOSS and (not term.count or term.coin.silent)
    return term.mu if alone else None


@dataclass(frozen=True)
class _Group(Certificate):
    """So many changes, one after the other, of what is known by its curve only."""

    one: Certificate
    size: int

    def heading(self) -> str:
        """Say what it covers."""
        return f"{self.one.heading()}; {self.size} such changes at once"

    def delta(self, epsilon: float) -> float:
        """Return a delta that holds at `epsilon`: each step at a part of it."""
        level = check_epsilon(epsilon)
        once = self.one.delta(level / self.size)
        if level == 0:
            return min(1.0, self.size * once)
        if level > 700 or not once:
            return 1.0 if once else 0.0
        return min(1.0, once * math.expm1(level) / math.expm1(level / self.size))

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon that the bound holds at for `delta`."""
        return smallest(self.delta, check_delta(delta))


def _check_prior(prior: float) -> float:
    found = real("prior", prior)
    if not 0 <= found <= 1:
        raise ValueError(f"prior must be a probability, got {prior!r}")
    return found
