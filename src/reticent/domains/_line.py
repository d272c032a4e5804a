"""Exact draws from a log-concave density on an interval, by rejection from tangents (docs/theory, S2).

A tangent of a concave function lies above it everywhere, so any set of tangents is a valid envelope: where they
touch decides how fast a draw is, never its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from reticent._core._fine import exponential_below, pick, standard_exponential
from reticent._core._kernel import Kernel, kernel


@kernel
def _segment_log_mass(top: float, slope: float, width: float) -> float:
    """log of the integral of exp over a line of the given slope whose higher end is `top`."""
    fall = abs(slope) * width
    if fall < 1e-290:
        return top + math.log(width)
    return top + math.log(-math.expm1(-fall)) - math.log(abs(slope))


def line_sampler(evaluate: Callable[..., Any]) -> Kernel:
    """Compile a sampler of the log-concave density given by `evaluate(args, x) -> (log density, supergradient)`.

    The result, called as `draw(args, lo, hi, guess, scale, rng, out)`, fills the array `out` with independent exact
    draws from [lo, hi] and returns the last of them and the number of evaluations. `guess` and `scale` say where the
    mode may be and how wide the peak; they affect speed only. The envelope, most of the evaluations, serves all draws.
    To be called by kernels only: they are cached with it inside, while numba would compile it anew in every process.
    """

    @kernel
    def draw(args, lo, hi, guess, scale, rng, out):
        scale = min(max(scale, 1e-300), hi - lo)
        x = min(max(guess, lo), hi)
        f, g = evaluate(args, x)
        evaluations = 1
        # Bracket the mode between `left` (rising or at lo) and `right` (falling or at hi).
        left, fl, gl = x, f, g
        right, fr, gr = x, f, g
        step = scale
        while gr > 0.0 and right < hi:
            left, fl, gl = right, fr, gr
            right = min(hi, right + step)
            fr, gr = evaluate(args, right)
            evaluations += 1
            step *= 2.0
        step = scale
        while gl < 0.0 and left > lo:
            right, fr, gr = left, fl, gl
            left = max(lo, left - step)
            fl, gl = evaluate(args, left)
            evaluations += 1
            step *= 2.0
        # Tighten until the two tangents leave little room above the better end.
        for k in range(200):
            if gl <= 0.0 or gr >= 0.0 or right <= left:
                break
            cross = (fr - fl + gl * left - gr * right) / (gl - gr)
            if fl + gl * (cross - left) - max(fl, fr) < 0.1:
                break
            if k % 3 == 2 or not left < cross < right:
                cross = 0.5 * (left + right)
                if not left < cross < right:
                    break
            f, g = evaluate(args, cross)
            evaluations += 1
            if g > 0.0:
                left, fl, gl = cross, f, g
            else:
                right, fr, gr = cross, f, g
        xs = np.empty(4)
        fs = np.empty(4)
        gs = np.empty(4)
        count = 0
        top = max(fl, fr)
        # One tangent on each flank, where the density has fallen by a factor of about e.
        for side in range(2):
            origin = left if side == 0 else right
            limit = lo if side == 0 else hi
            near, far = 0.0, abs(limit - origin)
            if side == 1:
                xs[count], fs[count], gs[count] = left, fl, gl
                count += 1
                if right > left:
                    xs[count], fs[count], gs[count] = right, fr, gr
                    count += 1
            distance = min(scale, far)
            found = False
            xf, ff, gf = origin, top, 0.0
            for _ in range(200):
                if distance <= 0.0 or (found and far - near <= 1e-3 * far):
                    break
                xf = origin - distance if side == 0 else origin + distance
                ff, gf = evaluate(args, xf)
                evaluations += 1
                found = True
                drop = top - ff
                if drop < 0.6:
                    if distance >= far:
                        break
                    near = distance
                    distance = min(far, 2.0 * distance) if far > 4.0 * distance else 0.5 * (near + far)
                elif drop > 2.0:
                    far = distance
                    distance = 0.5 * (near + far) if near > 0.0 else distance / 4.0
                else:
                    break
            if found and xf != origin:
                xs[count], fs[count], gs[count] = xf, ff, gf
                count += 1
        cuts = np.empty(5)
        masses = np.empty(4)
        cuts[0] = lo
        cuts[count] = hi
        for i in range(count - 1):
            fall = gs[i] - gs[i + 1]
            cross = 0.5 * (xs[i] + xs[i + 1])
            if fall > 0.0:
                cross = (fs[i + 1] - fs[i] + gs[i] * xs[i] - gs[i + 1] * xs[i + 1]) / fall
            cuts[i + 1] = min(max(cross, xs[i]), xs[i + 1])
        best = -np.inf
        for i in range(count):
            width = cuts[i + 1] - cuts[i]
            masses[i] = -np.inf
            if width > 0.0:
                end = cuts[i + 1] if gs[i] > 0.0 else cuts[i]
                masses[i] = _segment_log_mass(fs[i] + gs[i] * (end - xs[i]), gs[i], width)
            best = max(best, masses[i])
        total = 0.0
        for i in range(count):
            masses[i] = math.exp(masses[i] - best)
            total += masses[i]
        filled = 0
        while filled < out.size:
            i = pick(rng, masses, count, total)
            width = cuts[i + 1] - cuts[i]
            slope = gs[i]
            if abs(slope) * width < 1e-290:
                x = cuts[i] + width * rng.random()
            elif slope > 0.0:
                x = cuts[i + 1] - exponential_below(rng, slope * width) / slope
            else:
                x = cuts[i] - exponential_below(rng, -slope * width) / slope
            x = min(max(x, lo), hi)
            f, g = evaluate(args, x)
            evaluations += 1
            if standard_exponential(rng) >= fs[i] + slope * (x - xs[i]) - f:
                out[filled] = x
                filled += 1
        return x, evaluations

    return draw
