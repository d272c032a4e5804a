"""Implicit steps in floating point: far from exact where a kink meets a face, and harmless there (docs/theory, Q11)."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._phi import dphi
from reticent.systems.implicit._implicit import _MARGIN, _OFF
from reticent.systems.implicit._kernel import prox

SQUARE = rt.Box([-1.0, -1.0], [1.0, 1.0])


def stepped(domain, loss, a, c, kappa, z):
    """Return the machine's step."""
    out = z.copy()
    prox(domain.body, loss.code, loss.parameter, a[None].copy(), np.array([c]), 0, kappa, z, z.copy(), out)
    return out


def assumed(domain):
    """Return what is assumed: by how much margins are off, over |a|, and points."""
    size = math.sqrt(domain.chart_dim) * domain.radius
    return _MARGIN * size, _OFF * size


def faced(rng, kappa):
    """Return a vector nearly normal to the right side of the square, an offset and a start: the step ends on a kink."""
    slant = math.sqrt(1e-16 / kappa) * 10 ** rng.uniform(-0.5, 1.5)
    z = np.array([1 - kappa * rng.uniform(0, 0.3), rng.uniform(-0.8, 0.8)])
    return np.array([1.0, slant]), -(1 + slant * (z[1] + kappa * slant * rng.uniform(0.4, 0.95))), z


@pytest.mark.parametrize("kappa", [1.0, 1e-2, 1e-4])
def test_a_kink_on_a_face_is_missed_by_far_but_its_margin_is_right(kappa):
    rng, off, worst, count = np.random.default_rng(1), 0.0, 0.0, 0
    for _ in range(3000):
        a, c, z = faced(rng, kappa)
        x = stepped(SQUARE, rt.Absolute(), a, c, kappa, z)
        # On the right side the margin is 0 in one point alone; it is the exact step if a slope up to 1 leads there.
        slant, first, room = Fraction(a[1]), Fraction(z[1]), Fraction(kappa) * Fraction(a[1])
        kink = (-Fraction(c) - 1) / slant
        if not (first <= kink <= first + room and Fraction(z[0]) + (kink - first) / slant >= 1):
            continue
        count += 1
        off = max(off, abs(float(Fraction(x[1]) - kink)))
        # The point is on the path of steps, and so the exact step for another offset: by how much?
        assert x[0] == 1.0
        assert first <= Fraction(x[1]) <= first + room
        worst = max(worst, abs(float(Fraction(a[0]) + slant * Fraction(x[1]) + Fraction(c))) / float(np.linalg.norm(a)))
    assert count > 1000
    # Negative control: that steps be right to 2^-50 sqrt(d) R was assumed.
    assert off > 1e4 * 2.0**-50 * math.sqrt(2) * SQUARE.radius
    assert worst <= assumed(SQUARE)[0]


@pytest.mark.parametrize("kappa", [1.0, 1e-2, 1e-4])
def test_two_worlds_stay_as_near_as_the_account_says(kappa):
    rng, apart, grown = np.random.default_rng(2), -math.inf, -math.inf
    for _ in range(3000):
        a, c, z = faced(rng, kappa)
        G = float(np.linalg.norm(a))
        for most in kappa * G * np.append(1.0, 10 ** rng.uniform(-12, 0, 3)):
            move = rng.normal(size=2)
            other = np.clip(z + most * (1 - 1e-12) * move / np.linalg.norm(move), -1, 1)
            x, y = (stepped(SQUARE, rt.Absolute(), a, c, kappa, start) for start in (z, other))
            apart = max(apart, float(np.linalg.norm(x - y)) - kappa * G)
            grown = max(grown, float(np.linalg.norm(x - y) - np.linalg.norm(z - other)))
    margin, off = assumed(SQUARE)
    assert apart <= 4 * margin + 2 * off
    # Negative control: the distance itself, where it is small, grows by far more than rounding of numbers up to R.
    assert grown > 1e3 * off


def nearest_exactly(domain, y):
    if domain.body.box:
        return [min(max(v, -1), 1) for v in y]
    size = mpmath.sqrt(sum(v * v for v in y))
    return y if size <= 1 else [v / size for v in y]


def exact_step(domain, loss, a, c, kappa, z):
    """Return the step by bisection for its slope, in 200 bits; a kink is at margin 0."""
    a, z = [mpmath.mpf(v) for v in a], [mpmath.mpf(v) for v in z]
    kinked = loss.code < rt.Huber().code

    def at(s):
        return nearest_exactly(domain, [v - kappa * s * w for v, w in zip(z, a, strict=True)])

    def slope(m):
        if isinstance(loss, rt.Logistic):
            return -1 / (1 + mpmath.exp(m))
        return m if isinstance(loss, rt.Squared) else min(max(m, -loss.parameter), loss.parameter)

    def gap(s):
        m = sum(v * w for v, w in zip(a, at(s), strict=True)) + c
        return m if kinked else slope(m) - s

    ends = (dphi(loss.code, loss.parameter, -1.0), dphi(loss.code, loss.parameter, 1.0)) if kinked else (-50, 50)
    low, high = (mpmath.mpf(end) for end in ends)
    if gap(low) <= 0 or gap(high) >= 0:
        return at(low if gap(low) <= 0 else high)
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) > 0 else (low, middle)
    return at(high)


def distance(x, y):
    return float(mpmath.sqrt(sum((mpmath.mpf(v) - w) ** 2 for v, w in zip(x, y, strict=True))))


def backward_error(domain, loss, a, c, kappa, z):
    """Return how far the machine's step is from the exact one of the best offset within what is assumed."""
    x, c = stepped(domain, loss, a, c, kappa, z), mpmath.mpf(c)
    best = distance(x, exact_step(domain, loss, a, c, kappa, z))
    margin, off = assumed(domain)
    reach = margin * float(np.linalg.norm(a))
    low, high = c - reach, c + reach
    first, last = (exact_step(domain, loss, a, end, kappa, z) for end in (low, high))
    for _ in range(50):
        if best <= off / 2:
            break
        middle = (low + high) / 2
        found = exact_step(domain, loss, a, middle, kappa, z)
        best = min(best, distance(x, found))
        ahead = sum((v - w) * (q - p) for v, w, p, q in zip(x, found, first, last, strict=True)) > 0
        low, high = (middle, high) if ahead else (low, middle)
    return best


@pytest.mark.parametrize(
    "loss", [rt.Absolute(), rt.Hinge(), rt.Pinball(0.3), rt.Huber(0.5), rt.Logistic(), rt.Squared()]
)
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_steps_are_those_of_a_loss_next_to_it(loss, kind):
    rng = np.random.default_rng(3)
    with mpmath.workprec(200):
        for _ in range(8):
            d, kappa = int(rng.integers(2, 6)), 10 ** rng.uniform(-4, 0)
            domain = rt.Box([-1] * d, [1] * d) if kind == "box" else rt.Ball(d)
            normal, along = np.eye(d)[0], np.append(0.0, rng.normal(size=d - 1))
            a = -(normal + along * math.sqrt(1e-16 / kappa) * 10 ** rng.uniform(-0.5, 2))
            touched = domain.project(3 * normal + rng.uniform(-1, 1) * along / np.linalg.norm(along))
            z = domain.project(touched - kappa * rng.uniform(0, 0.3) * normal + 1e-6 * rng.normal(size=d))
            c = -float(a @ touched) * (1 + rng.choice([0, 1e-16, 1e-12, 1e-8]) * rng.normal())
            G = float(np.linalg.norm(a)) * (
                abs(float(a @ z + c)) + 2 * np.linalg.norm(a) if loss == rt.Squared() else 1
            )
            assert backward_error(domain, loss, a, c, kappa, z) <= assumed(domain)[1] + 2.0**-49 * kappa * G
