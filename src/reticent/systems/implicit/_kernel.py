"""Implicit gradient steps: the proximal point of a loss over a body, compiled."""

from __future__ import annotations

import math

from reticent._core._fine import standard_normal
from reticent._core._kernel import kernel
from reticent.domains._linalg import put
from reticent.gibbs._phi import dphi, margin
from reticent.losses._glm import HUBER, LOGISTIC
from reticent.systems._nearest import nearest, to_multiples

_MOST = 200  # steps of the search for the slope; a third of them halve the bracket to nothing
_FINE = 4e-16  # of the slope at the start: what the search leaves open


@kernel
def _point(body, vectors, i, kappa, slope, z, y, out):
    """Write the nearest point of the body to y = z - kappa slope a into out; say whether that is y itself."""
    for j in range(z.size):
        y[j] = z[j] - kappa * slope * vectors[i, j]
    nearest(body, y, out)
    same = True
    for j in range(z.size):
        same = same and out[j] == y[j]
    return same


@kernel
def _free_slope(code, parameter, m, q):
    """The slope s of the loss at its own margin m - q s: that of the step if no constraint is met."""
    if code < HUBER:  # kinked at margin 0: between the two slopes the step ends on the kink
        return min(max(m / q, dphi(code, parameter, -1.0)), dphi(code, parameter, 1.0))
    if code == HUBER:
        return min(max(m / (1.0 + q), -parameter), parameter)
    if code != LOGISTIC:
        return m / (1.0 + q)
    # s - dphi(m - q s) rises from below 0 at dphi(m) to 0 or more at 0.
    low, high = dphi(code, parameter, m), 0.0
    s = low
    for _ in range(_MOST):
        value = dphi(code, parameter, m - q * s)
        if s < value:
            low = s
        else:
            high = s
        # Newton's step, if it stays in the bracket; the derivative of dphi is -value (1 + value).
        step = (s - value) / (1.0 - q * value * (1.0 + value))
        after = s - step
        if not low < after < high:
            after = 0.5 * (low + high)
        if abs(after - s) <= _FINE * abs(s) or after in (low, high):
            return after
        s = after
    return s


@kernel
def _gap(code, parameter, vectors, offsets, i, s, out):
    """What falls with s and is 0 at the slope sought: the margin itself for a kink, else slope there less s."""
    m = margin(vectors, offsets, i, out)
    return m if code < HUBER else dphi(code, parameter, m) - s


@kernel
def prox(body, code, parameter, vectors, offsets, i, kappa, z, y, out):
    """Write the least of |x - z|^2/2 + kappa phi(a.x + c) over the body into out, for a point z of it; y is scratch.

    It is the nearest point to z - kappa s a for a slope s of phi at its own margin. That margin falls with s, because
    projection is monotone; so s is the root of a falling function, between 0 and the slope at z (docs/theory, R3).
    """
    if code < 0:
        _point(body, vectors, i, kappa, 1.0, z, y, out)
        return
    start = margin(vectors, offsets, i, z)
    square = 0.0
    for j in range(z.size):
        square += vectors[i, j] * vectors[i, j]
    end = dphi(code, parameter, start)
    if kappa * square == 0.0 or end == 0.0:
        for j in range(z.size):
            out[j] = z[j]
        return
    # Where no constraint is met on the way the slope has a closed form.
    s = _free_slope(code, parameter, start, kappa * square)
    if _point(body, vectors, i, kappa, s, z, y, out):
        return
    # The whole step, at the slope of z: right for a kink that it does not cross.
    _point(body, vectors, i, kappa, end, z, y, out)
    if code < HUBER and dphi(code, parameter, margin(vectors, offsets, i, out)) == end:
        return
    # a: the side of 0, b: the side of `end`; f has opposite signs there. Regula falsi (Illinois), made to halve the
    # bracket every third step.
    a, fa = 0.0, start if code < HUBER else end
    b, fb = end, _gap(code, parameter, vectors, offsets, i, end, out)
    side = 0
    for k in range(_MOST):
        if fb == 0.0:
            s = b
            break
        if abs(b - a) <= _FINE * abs(end):
            s = b
            break
        s = 0.5 * (a + b) if k % 3 == 2 else a + (b - a) * (fa / (fa - fb))
        if not min(a, b) < s < max(a, b):
            s = 0.5 * (a + b)
        if s in (a, b):
            break
        _point(body, vectors, i, kappa, s, z, y, out)
        f = _gap(code, parameter, vectors, offsets, i, s, out)
        # A gap of slopes bounds the error of s; a margin does not.
        if f == 0.0 or (code >= HUBER and abs(f) <= _FINE * abs(end)):
            return
        if (f > 0.0) == (fb > 0.0):
            if side == 1:
                fa *= 0.5
            b, fb, side = s, f, 1
        else:
            if side == -1:
                fb *= 0.5
            a, fa, side = s, f, -1
    _point(body, vectors, i, kappa, s, z, y, out)


@kernel
def step_implicitly(rng, body, code, parameter, vectors, offsets, alpha, noise, knee, done, w, after):
    """Take in rounds: move the hidden iterate w after each, and release it with new noise, which it never sees.

    `done` rounds are in already. `w` is changed in place.
    """
    n, d = vectors.shape
    z, x = w.copy(), w.copy()
    for i in range(n):
        t = done + i + 1.0
        # The step 1/(alpha t) on a loss with alpha/2 |x|^2 added is one of 1/(alpha (t+1)) from a point nearer to 0.
        for j in range(d):
            z[j] = w[j] * (t / (t + 1.0))
        prox(body, code, parameter, vectors, offsets, i, 1.0 / (alpha * (t + 1.0)), z, x, w)
        deviation = noise * math.pow(min(1.0, knee / (t + 1.0)), 2.0 / 3.0)
        for j in range(d):
            x[j] = w[j] + deviation * standard_normal(rng)
        to_multiples(body, x)
        nearest(body, x, x)
        put(x, after[i])
