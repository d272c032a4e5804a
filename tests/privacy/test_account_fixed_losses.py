"""The certificate for losses fixed in advance, against mechanisms whose laws are known in closed form."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

import reticent as rt
from reticent.privacy import account
from reticent.privacy._compose import Composed
from reticent.privacy._exposure import oblivious, switched
from reticent.systems.pcomw._account import exposure


def plan(**changes):
    """A body so wide that its ends do not matter: the measures are normal, with precision beta lam = 1."""
    values = {"beta": 0.02, "lam": 50.0, "p": 0.05, "phi": 1.5, "adversary": "oblivious", "distance": 0.0} | changes
    return rt.Plan(rt.Interval(-40.0, 40.0), 1, 1.0, **values)


def line(given):
    """The densities of x and of the next measure in both worlds, losses x and -x, as masses on a fine grid."""
    x = np.linspace(-12, 12, 240_001)
    move = given.beta * given.batch / (given.beta * given.lam)
    weight = x[1] - x[0]
    return norm.pdf(x) * weight, norm.pdf(x + move) * weight, norm.pdf(x - move) * weight


@pytest.mark.parametrize("changes", [{}, {"p": 0.3}, {"phi": 1.1, "p": 0.01}, {"beta": 0.1, "lam": 10.0, "phi": 1.8}])
def test_switch_curve_is_above_the_truth_and_close(changes):
    given = plan(**changes)
    now, one, two = line(given)
    keep = (1 - given.p) / given.phi
    losses = switched(exposure(given))
    assert losses.mass.sum() + losses.infinite == pytest.approx(1 - keep, rel=1e-9)
    m, m2 = (np.minimum(keep * after, (1 - given.p) * now) for after in (one, two))
    worst = 0.0
    for epsilon in np.linspace(-1.0, 1.5, 26):
        truth = np.maximum(now - m - math.exp(epsilon) * (now - m2), 0.0).sum()
        ours = losses.delta(0.0, float(epsilon))
        # What clipping moves is accounted apart.
        moved = np.maximum(keep * one - m, 0.0).sum()
        assert truth <= ours + moved + 1e-9
        if truth > 1e-3:
            worst = max(worst, ours / truth)
    assert worst < 1.6


@pytest.mark.parametrize("phi", [1.3, 1.5, 2.0])
def test_one_coin_with_its_decision_and_draw(phi):
    """n = 1: the transcript is (x, coin, fresh draw after a switch), here with a clipped ratio coin in closed form."""
    given = plan(phi=phi)
    now, one, two = line(given)
    keep = (1 - given.p) / phi
    a, b = (np.clip(keep * after / now, (1 - given.p) / phi**2, 1 - given.p) for after in (one, two))
    shift = exposure(given).shift
    found = account(given)
    for epsilon in (0.0, 0.1, 0.3, 0.6):
        alpha = math.exp(epsilon)
        kept = np.maximum(now * a - alpha * now * b, 0.0).sum()
        p, q = now * (1 - a), now * (1 - b)
        level = epsilon + np.log(q / p)
        fresh = norm.cdf(shift / 2 - level / shift) - np.exp(level) * norm.cdf(-shift / 2 - level / shift)
        truth = kept + (p * fresh).sum()
        bound = oblivious(found.exposure)
        assert bound is not None
        ours = Composed(bound).delta(epsilon)
        failure = bound.failure * (1 + alpha)
        assert truth <= ours + failure + 1e-9
        assert truth <= found.delta(epsilon) + 1e-9
        assert ours <= 1.35 * truth + 2e-3


def test_clipping_is_paid_for_and_too_much_of_it_falls_back():
    base = rt.Plan(
        rt.Ball(2), 10_000, 1.0, beta=0.02, lam=200.0, p=0.02, phi=1.2, budget=600, adversary="oblivious", distance=0.0
    )
    adaptive = account(replace(base, adversary="adaptive"))
    better, rough = account(base), account(replace(base, phi=1.002))
    assert better.exposure.clip < 1e-9 < rough.exposure.clip
    assert better.epsilon(1e-6) < 0.9 * adaptive.epsilon(1e-6)
    # Where the drift is more than delta allows, the adaptive certificate is what is left.
    assert rough.epsilon(1e-9) == account(replace(base, phi=1.002, adversary="adaptive")).epsilon(1e-9)
    levels = [better.delta(e) for e in np.linspace(0, 60, 40)]
    assert all(a >= b for a, b in pairwise(levels))


def test_forced_switches_only_leave_nothing_to_gain():
    forced = plan(p=1.0)
    assert account(forced).epsilon(1e-6) == account(replace(forced, adversary="adaptive")).epsilon(1e-6)
